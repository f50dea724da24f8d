package main

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// The encodings a client may speak.
const (
	inJSON     = runtime.ContentTypeJSON
	inProtobuf = runtime.ContentTypeProtobuf
	inCBOR     = runtime.ContentTypeCBOR
)

// server makes clients of the server under test; all of them report to one traffic.
type server struct {
	address, token, authority string
	traffic                   *traffic
}

// config is a client's configuration. The name shows up as user agent and is what traffic is counted by; without an
// encoding the client chooses, which for dynamic clients is CBOR where the environment says so.
func (s *server) config(name, encoding string) *rest.Config {
	config := &rest.Config{
		Host:            s.address,
		BearerToken:     s.token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.authority},
		UserAgent:       name,
		QPS:             -1,
	}
	config.ContentType = encoding
	if encoding == inProtobuf {
		config.AcceptContentTypes = inProtobuf + "," + inJSON
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return s.traffic.through(name, next) })
	return config
}

// traffic counts requests beneath client-go's own retries, and takes a lost connection or an answer that asks to come
// again for a failure: a change of the configuration must not be noticed.
type traffic struct {
	fail func(string, ...any)
	lock sync.Mutex
	// By client: all requests, lists, watches, watches that ask for what there is, and answers by media type.
	total, lists, watches, streamed map[string]int64
	types                           map[string]map[string]int64
}

func newTraffic(fail func(string, ...any)) *traffic {
	counter := func() map[string]int64 { return map[string]int64{} }
	return &traffic{
		fail: fail, total: counter(), lists: counter(), watches: counter(), streamed: counter(),
		types: map[string]map[string]int64{},
	}
}

func (t *traffic) requests() int64 {
	t.lock.Lock()
	defer t.lock.Unlock()
	sum := int64(0)
	for _, n := range t.total {
		sum += n
	}
	return sum
}

// of reads a counter for one client.
func (t *traffic) of(counter map[string]int64, name string) int64 {
	t.lock.Lock()
	defer t.lock.Unlock()
	return counter[name]
}

// answered tells how many answers of a media type a client had.
func (t *traffic) answered(name, mediaType string) int64 {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.types[name][mediaType]
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (t *traffic) through(name string, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			if request.Context().Err() == nil && !errors.Is(err, http.ErrServerClosed) {
				t.fail("%s: %s %s: %v", name, request.Method, request.URL, err)
			}
			return response, err
		}
		if response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError {
			t.fail("%s: %s %s: %s", name, request.Method, request.URL, response.Status)
		}
		t.seen(name, request, response)
		return response, err
	})
}

func (t *traffic) seen(name string, request *http.Request, response *http.Response) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.total[name]++
	mediaType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if t.types[name] == nil {
		t.types[name] = map[string]int64{}
	}
	t.types[name][mediaType]++
	query := request.URL.Query()
	switch {
	case query.Get("watch") != "" && query.Get("sendInitialEvents") == "true":
		t.streamed[name]++
		t.watches[name]++
	case query.Get("watch") != "":
		t.watches[name]++
	case request.Method == http.MethodGet && query.Has("resourceVersion"):
		t.lists[name]++
	}
}
