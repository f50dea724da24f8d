package main

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	watchtools "k8s.io/client-go/tools/watch"
)

// dynamicClients has what needs no types.
type dynamicClients struct {
	widgets dynamic.ResourceInterface
	scales  scale.ScaleInterface
}

// checkDynamic uses the dynamic client and the polymorphic scale client on the custom resource.
func checkDynamic(r *run) {
	client, err := dynamic.NewForConfig(r.server.config("dynamic", ""))
	if err != nil {
		r.fail("%v", err)
		return
	}
	// The clients of scales and of discovery decode no CBOR.
	config := r.server.config("scales", inJSON)
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		r.fail("%v", err)
		return
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	kinds := scale.NewDiscoveryScaleKindResolver(discoverer)
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		r.fail("%v", err)
		return
	}
	c := dynamicClients{client.Resource(widgets).Namespace(others), scales.Scales(others)}
	r.rounds("dynamic", func(ctx context.Context, n int) error {
		for _, step := range []struct {
			what string
			do   func(context.Context, string) error
		}{{"applied", c.applied}, {"scaled", c.scaled}, {"followed", c.followed}} {
			if err := step.do(ctx, fmt.Sprintf("%s-%d", step.what, n)); err != nil {
				return fmt.Errorf("%s: %w", step.what, err)
			}
		}
		return nil
	})
	r.count("dynamic answers in CBOR", r.server.traffic.answered("dynamic", inCBOR))
}

// widget has parts with sizes, in this order.
func widget(name string, replicas int64, parts ...string) *unstructured.Unstructured {
	var list []any
	for n, part := range parts {
		list = append(list, map[string]any{"name": part, "size": int64(n)})
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	if list != nil {
		object.Object["spec"].(map[string]any)["parts"] = list
	}
	object.SetGroupVersionKind(widgetKind)
	object.SetName(name)
	return object
}

func partNames(object *unstructured.Unstructured) (names []string) {
	parts, _, _ := unstructured.NestedSlice(object.Object, "spec", "parts")
	for _, it := range parts {
		part, _ := it.(map[string]any)
		name, _ := part["name"].(string)
		names = append(names, name)
	}
	return names
}

// applied has two managers share a list by its keys.
func (c dynamicClients) applied(ctx context.Context, name string) error {
	one := metav1.ApplyOptions{FieldManager: "one"}
	if _, err := c.widgets.Apply(ctx, name, widget(name, 1, "a", "b"), one); err != nil {
		return err
	}
	two := metav1.ApplyOptions{FieldManager: "two"}
	if _, err := c.widgets.Apply(ctx, name, widget(name, 2, "c"), two); !apierrors.IsConflict(err) {
		return fmt.Errorf("no conflict: %v", err)
	}
	two.Force = true
	shared, err := c.widgets.Apply(ctx, name, widget(name, 2, "c"), two)
	if err != nil {
		return err
	}
	if names := partNames(shared); !reflect.DeepEqual(names, []string{"a", "b", "c"}) {
		return fmt.Errorf("together they have %v", names)
	}
	fewer := widget(name, 2, "a")
	unstructured.RemoveNestedField(fewer.Object, "spec", "replicas")
	left, err := c.widgets.Apply(ctx, name, fewer, one)
	if err != nil {
		return err
	}
	if names := partNames(left); !reflect.DeepEqual(names, []string{"a", "c"}) {
		return fmt.Errorf("without what one gave up there are %v", names)
	}
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	patch := []byte(`[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":9}]`)
	if _, err := c.widgets.Patch(ctx, name, types.JSONPatchType, patch, dry); err != nil {
		return err
	}
	read, err := c.widgets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(read.Object, left.Object) {
		return fmt.Errorf("a dry run made %v of %v", read, left)
	}
	return c.widgets.Delete(ctx, name, metav1.DeleteOptions{})
}

// scaled changes the scale of a resource that only discovery knows.
func (c dynamicClients) scaled(ctx context.Context, name string) error {
	if _, err := c.widgets.Create(ctx, widget(name, 1), metav1.CreateOptions{}); err != nil {
		return err
	}
	found, err := c.scales.Get(ctx, widgets.GroupResource(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	found.Spec.Replicas = 4
	if _, err := c.scales.Update(ctx, widgets.GroupResource(), found, metav1.UpdateOptions{}); err != nil {
		return err
	}
	object, err := c.widgets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); replicas != 4 {
		return fmt.Errorf("it has %d replicas", replicas)
	}
	object.Object["status"] = map[string]any{"replicas": int64(4), "selector": "app=" + name}
	unstructured.RemoveNestedField(object.Object, "spec", "replicas")
	if _, err := c.widgets.UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	found, err = c.scales.Get(ctx, widgets.GroupResource(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if found.Spec.Replicas != 4 || found.Status.Replicas != 4 || found.Status.Selector != "app="+name {
		return fmt.Errorf("its scale is %v", found)
	}
	return c.widgets.Delete(ctx, name, metav1.DeleteOptions{})
}

// followed sees the life of one object through a watch that starts again by itself.
func (c dynamicClients) followed(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	created, err := c.widgets.Create(ctx, widget(name, 0), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, created.GetResourceVersion(), onlyNamed{c.widgets, name})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	const times = 5
	for n := int64(1); n <= times; n++ {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
		if _, err := c.widgets.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	if err := c.widgets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	for n := int64(1); n <= times+1; n++ {
		event, open := <-watcher.ResultChan()
		object, is := event.Object.(*unstructured.Unstructured)
		if !open || !is {
			return fmt.Errorf("%v instead of event %d", event, n)
		}
		replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		if n <= times && (event.Type != watch.Modified || replicas != n) || n > times && event.Type != watch.Deleted {
			return fmt.Errorf("event %d is %s with %d replicas", n, event.Type, replicas)
		}
	}
	return nil
}

// onlyNamed watches one object.
type onlyNamed struct {
	client dynamic.ResourceInterface
	name   string
}

func (o onlyNamed) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = "metadata.name=" + o.name
	return o.client.Watch(ctx, options)
}
