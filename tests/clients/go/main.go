// Command clients uses client-go the way programs do, against a server whose configuration changes all the while, and
// fails when anything is missed: an event, an update's order, a request, a lease.
//
// It loads the server for -load, then waits until everything has arrived and compares. It prints one line of JSON with
// what was done; each failure is a line on standard error and makes the exit code 1.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// The longest wait for a condition; a machine under load is slow, a hang is a failure.
const patience = 60 * time.Second

// run is what the checks share.
type run struct {
	server server
	// load ends when the server has had enough; what a check then still does uses ctx.
	load, ctx context.Context

	lock   sync.Mutex
	failed bool
	done   map[string]int64
}

// fail reports something that went wrong; the check may go on.
func (r *run) fail(format string, arguments ...any) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.failed = true
	fmt.Fprintf(os.Stderr, "FAILED "+format+"\n", arguments...)
}

// count adds to a line of the summary.
func (r *run) count(what string, n int64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.done[what] += n
}

// rounds repeats one round of a check while there is load, once at least.
func (r *run) rounds(what string, round func(ctx context.Context, n int) error) {
	for n := 0; n == 0 || r.load.Err() == nil; n++ {
		if err := round(r.ctx, n); err != nil {
			r.fail("%s, round %d: %v", what, n, err)
			return
		}
		r.count(what, 1)
	}
}

// eventually waits until the condition holds.
func eventually(ctx context.Context, what string, condition func() (bool, error)) error {
	deadline := time.Now().Add(patience)
	for {
		held, err := condition()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if held {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("it never came true that %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func main() {
	address := flag.String("server", "", "address of the server, with https://")
	token := flag.String("token", "", "bearer token of an administrator")
	authority := flag.String("ca", "", "file with the authority of the server's certificate")
	load := flag.Duration("load", 10*time.Second, "how long the server is kept busy")
	klog.InitFlags(nil)
	flag.Parse()

	ctx, cancel := context.WithTimeout(context.Background(), *load+3*patience)
	defer cancel()
	loading, cancel := context.WithTimeout(ctx, *load)
	defer cancel()
	r := &run{load: loading, ctx: ctx, done: map[string]int64{}}
	r.server = server{address: *address, token: *token, authority: *authority, traffic: newTraffic(r.fail)}

	if err := prepare(r); err != nil {
		r.fail("%v", err)
	} else {
		var checks sync.WaitGroup
		for _, check := range []func(*run){checkInformers, checkTyped, checkDynamic, checkElection, checkDiscovery} {
			checks.Go(func() { check(r) })
		}
		checks.Wait()
	}

	r.count("requests", r.server.traffic.requests())
	summary, err := json.Marshal(r.done)
	if err != nil {
		r.fail("%v", err)
	}
	fmt.Println(string(summary))
	if r.failed {
		os.Exit(1)
	}
}
