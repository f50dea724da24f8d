package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const lease = "the-lease"

// checkElection has candidates lead in turns: there is one leader at a time, each gives up by itself and never for want
// of an answer, and the next one follows.
func checkElection(r *run) {
	const candidates = 3
	var leaders atomic.Int32
	var terms atomic.Int64
	var running sync.WaitGroup
	for n := range candidates {
		name := fmt.Sprintf("candidate-%d", n)
		client, err := kubernetes.NewForConfig(r.server.config(name, inProtobuf))
		if err != nil {
			r.fail("%v", err)
			return
		}
		running.Go(func() {
			for r.load.Err() == nil {
				if err := stand(r, client, name, &leaders, &terms); err != nil {
					r.fail("%s: %v", name, err)
					return
				}
			}
		})
	}
	running.Wait()
	client, err := kubernetes.NewForConfig(r.server.config("election", inJSON))
	if err != nil {
		r.fail("%v", err)
		return
	}
	found, err := client.CoordinationV1().Leases(others).Get(r.ctx, lease, metav1.GetOptions{})
	if err != nil {
		r.fail("%v", err)
		return
	}
	if found.Spec.LeaseTransitions == nil || terms.Load() < 2 {
		r.fail("after %d terms the lease is %v", terms.Load(), found.Spec)
	}
	r.count("terms", terms.Load())
}

// stand waits for leadership, leads for a moment and gives it back.
func stand(r *run, client kubernetes.Interface, name string, leaders *atomic.Int32, terms *atomic.Int64) error {
	const term = 300 * time.Millisecond
	ctx, resign := context.WithCancel(r.load)
	defer resign()
	resigned := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: others, Name: lease},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		// Nobody has to take over from one that is merely slow.
		LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 100 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer close(resigned)
				if n := leaders.Add(1); n != 1 {
					r.fail("%s is one of %d leaders", name, n)
				}
				select {
				case <-leading.Done():
					if ctx.Err() == nil {
						r.fail("%s lost its leadership", name)
					}
				case <-time.After(term):
				}
				leaders.Add(-1)
				terms.Add(1)
				resign()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if elector.IsLeader() {
		return fmt.Errorf("it still leads")
	}
	return nil
}
