package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// What informers select by, and the annotation that numbers an object's versions from 0.
const (
	selected = "clients.example.com/selected"
	numbered = "clients.example.com/n"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// ledger is what was written to one resource, as an informer of the selected objects sees it: an object that loses
// its label is deleted, one that gets it back is added.
type ledger struct{ adds, updates, deletes atomic.Int64 }

func (l *ledger) counts() counts {
	return counts{l.adds.Load(), l.updates.Load(), l.deletes.Load()}
}

type counts struct{ adds, updates, deletes int64 }

// observer is an informer with what it has seen.
type observer struct {
	name     string
	informer cache.SharedIndexInformer
	list     func(context.Context) (runtime.Object, error)
	ledger   *ledger

	fail func(string, ...any)
	lock sync.Mutex
	seen counts
	last map[types.UID]int64
}

func (o *observer) counts() counts {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.seen
}

// start begins to watch and waits until what there is has arrived.
func (o *observer) start(ctx context.Context, r *run) error {
	o.fail = r.fail
	o.last = map[types.UID]int64{}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(it any) { o.added(it) },
		UpdateFunc: func(before, after any) { o.updated(before, after) },
		DeleteFunc: func(it any) { o.deleted(it) },
	}
	registration, err := o.informer.AddEventHandler(handler)
	if err != nil {
		return err
	}
	go o.informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("%s did not sync", o.name)
	}
	return nil
}

// number reads which version of an object this is.
func (o *observer) number(it any) (metav1.Object, int64) {
	object, err := meta.Accessor(it)
	if err != nil {
		o.fail("%s: %T: %v", o.name, it, err)
		return &metav1.ObjectMeta{}, 0
	}
	n, err := strconv.ParseInt(object.GetAnnotations()[numbered], 10, 64)
	if err != nil {
		o.fail("%s: %s: %v", o.name, object.GetName(), err)
	}
	return object, n
}

func (o *observer) added(it any) {
	object, n := o.number(it)
	o.lock.Lock()
	defer o.lock.Unlock()
	o.seen.adds++
	if last, known := o.last[object.GetUID()]; known && n <= last {
		o.fail("%s: %s comes back as version %d after %d", o.name, object.GetName(), n, last)
	}
	o.last[object.GetUID()] = n
}

func (o *observer) updated(before, after any) {
	_, was := o.number(before)
	object, n := o.number(after)
	o.lock.Lock()
	defer o.lock.Unlock()
	o.seen.updates++
	if last := o.last[object.GetUID()]; was != last || n != last+1 {
		o.fail("%s: %s goes from version %d to %d, and %d was last", o.name, object.GetName(), was, n, last)
	}
	o.last[object.GetUID()] = n
}

func (o *observer) deleted(it any) {
	if unknown, is := it.(cache.DeletedFinalStateUnknown); is {
		o.fail("%s: nobody told that %s was deleted", o.name, unknown.Key)
		return
	}
	object, n := o.number(it)
	o.lock.Lock()
	defer o.lock.Unlock()
	o.seen.deletes++
	if last := o.last[object.GetUID()]; n != last {
		o.fail("%s: %s is deleted at version %d, and %d was last", o.name, object.GetName(), n, last)
	}
	o.last[object.GetUID()] = n
}

// compare holds the informer's cache against a list.
func (o *observer) compare(ctx context.Context) error {
	list, err := o.list(ctx)
	if err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	cached := map[string]runtime.Object{}
	for _, it := range o.informer.GetStore().List() {
		object := it.(runtime.Object)
		key, err := cache.MetaNamespaceKeyFunc(object)
		if err != nil {
			return err
		}
		cached[key] = nameless(object)
	}
	if len(cached) != len(items) {
		return fmt.Errorf("%d objects are cached, %d are listed", len(cached), len(items))
	}
	for _, item := range items {
		key, err := cache.MetaNamespaceKeyFunc(item)
		if err != nil {
			return err
		}
		if !apiequality.Semantic.DeepEqual(cached[key], nameless(item)) {
			return fmt.Errorf("%s is cached as %v and listed as %v", key, cached[key], item)
		}
	}
	return nil
}

// nameless is a copy without its kind, which typed clients leave out of a list's items.
func nameless(object runtime.Object) runtime.Object {
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return object
}

func chosen(options *metav1.ListOptions) { options.LabelSelector = selected }

func selection() metav1.ListOptions { return metav1.ListOptions{LabelSelector: selected} }

func typedObserver(config *rest.Config) (*observer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(watched), informers.WithTweakListOptions(chosen))
	list := func(ctx context.Context) (runtime.Object, error) {
		return client.CoreV1().ConfigMaps(watched).List(ctx, selection())
	}
	return &observer{informer: factory.Core().V1().ConfigMaps().Informer(), list: list}, nil
}

func dynamicObserver(config *rest.Config, resource schema.GroupVersionResource) (*observer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, watched, 0, cache.Indexers{}, chosen)
	list := func(ctx context.Context) (runtime.Object, error) {
		return client.Resource(resource).Namespace(watched).List(ctx, selection())
	}
	return &observer{informer: informer.Informer(), list: list}, nil
}

func metadataObserver(config *rest.Config) (*observer, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer := metadatainformer.NewFilteredMetadataInformer(client, configMaps, watched, 0, cache.Indexers{}, chosen)
	list := func(ctx context.Context) (runtime.Object, error) {
		return client.Resource(configMaps).Namespace(watched).List(ctx, selection())
	}
	return &observer{informer: informer.Informer(), list: list}, nil
}

// observers are informers of every kind; what the name begins with tells them apart in the traffic.
func observers(r *run, name string, ofMaps, ofWidgets *ledger) ([]*observer, error) {
	var all []*observer
	add := func(kind, encoding string, ledger *ledger, make func(*rest.Config) (*observer, error)) error {
		it, err := make(r.server.config(name+"-"+kind, encoding))
		if err != nil {
			return fmt.Errorf("%s-%s: %w", name, kind, err)
		}
		it.name, it.ledger = name+"-"+kind, ledger
		all = append(all, it)
		return nil
	}
	of := func(resource schema.GroupVersionResource) func(*rest.Config) (*observer, error) {
		return func(config *rest.Config) (*observer, error) { return dynamicObserver(config, resource) }
	}
	for _, err := range []error{
		add("json", inJSON, ofMaps, typedObserver),
		add("protobuf", inProtobuf, ofMaps, typedObserver),
		add("dynamic", "", ofMaps, of(configMaps)),
		add("widgets", "", ofWidgets, of(widgets)),
		add("metadata", inProtobuf, ofMaps, metadataObserver),
	} {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// checkInformers has writers and informers, and asks that every informer has seen every change once, in order, over
// one watch.
func checkInformers(r *run) {
	var ofMaps, ofWidgets ledger
	all, err := observers(r, "informer", &ofMaps, &ofWidgets)
	if err != nil {
		r.fail("%v", err)
		return
	}
	watching, stop := context.WithCancel(r.ctx)
	defer stop()
	for _, it := range all {
		if err := it.start(watching, r); err != nil {
			r.fail("%v", err)
			return
		}
	}
	var writers sync.WaitGroup
	for n := range 3 {
		writers.Go(func() { write(r, configMaps, &ofMaps, fmt.Sprintf("m%d", n)) })
	}
	writers.Go(func() { write(r, widgets, &ofWidgets, "w") })
	late := lateObservers(watching, r)
	writers.Wait()

	for _, it := range all {
		settled := func() (bool, error) { return it.counts() == it.ledger.counts(), nil }
		if err := eventually(r.ctx, it.name+" has seen everything", settled); err != nil {
			r.fail("%v: it saw %+v of %+v", err, it.counts(), it.ledger.counts())
		}
		r.count("events", it.counts().adds+it.counts().updates+it.counts().deletes)
		traffic := r.server.traffic
		watches, streamed, lists := traffic.of(traffic.watches, it.name), traffic.of(traffic.streamed, it.name), traffic.of(traffic.lists, it.name)
		if watches != 1 || streamed != 1 || lists != 0 {
			r.fail("%s needed %d watches (%d with what there was) and %d lists", it.name, watches, streamed, lists)
		}
	}
	for _, it := range append(all, late...) {
		var difference error
		same := func() (bool, error) { difference = it.compare(r.ctx); return difference == nil, nil }
		if err := eventually(r.ctx, it.name+" has what is listed", same); err != nil {
			r.fail("%v: %v", err, difference)
		}
	}
	if protobuf := r.server.traffic.answered("informer-protobuf", inProtobuf); protobuf == 0 {
		r.fail("the informer that asks for protobuf never had it")
	}
	r.count("adds", ofMaps.adds.Load()+ofWidgets.adds.Load())
	r.count("updates", ofMaps.updates.Load()+ofWidgets.updates.Load())
	r.count("deletes", ofMaps.deletes.Load()+ofWidgets.deletes.Load())
}

// lateObservers starts informers while objects are written, a set each second.
func lateObservers(watching context.Context, r *run) []*observer {
	var all []*observer
	for n := 0; r.load.Err() == nil; n++ {
		set, err := observers(r, fmt.Sprintf("late%d", n), nil, nil)
		if err != nil {
			r.fail("%v", err)
			return all
		}
		for _, it := range set {
			if err := it.start(watching, r); err != nil {
				r.fail("%v", err)
				return all
			}
			all = append(all, it)
		}
		r.count("late informers", int64(len(set)))
		select {
		case <-r.load.Done():
		case <-time.After(time.Second):
		}
	}
	return all
}
