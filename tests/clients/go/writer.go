package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// How often an object is updated before its fate.
const updates = 5

// write makes objects one after the other while there is load: each is created and updated, then stays, is deleted, or
// leaves the selection and comes back.
func write(r *run, resource schema.GroupVersionResource, ledger *ledger, prefix string) {
	client, err := dynamic.NewForConfig(r.server.config("writer-"+prefix, inJSON))
	if err != nil {
		r.fail("%v", err)
		return
	}
	w := writer{client: client.Resource(resource).Namespace(watched), resource: resource, ledger: ledger}
	r.rounds("objects of "+resource.Resource, func(ctx context.Context, n int) error {
		return w.life(ctx, fmt.Sprintf("%s-%d", prefix, n), n%3)
	})
}

type writer struct {
	client   dynamic.ResourceInterface
	resource schema.GroupVersionResource
	ledger   *ledger
}

func (w *writer) life(ctx context.Context, name string, fate int) error {
	object, err := w.client.Create(ctx, w.object(name), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating %s: %w", name, err)
	}
	w.ledger.adds.Add(1)
	version := 0
	update := func(isSelected bool) error {
		version++
		w.change(object, version, isSelected)
		if object, err = w.client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("version %d of %s: %w", version, name, err)
		}
		return nil
	}
	for range updates {
		if err := update(true); err != nil {
			return err
		}
		w.ledger.updates.Add(1)
	}
	switch fate {
	case 1:
		if err := w.client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("deleting %s: %w", name, err)
		}
		w.ledger.deletes.Add(1)
	case 2:
		if err := update(false); err != nil {
			return err
		}
		w.ledger.deletes.Add(1)
		if err := update(false); err != nil {
			return err
		}
		if err := update(true); err != nil {
			return err
		}
		w.ledger.adds.Add(1)
	}
	return nil
}

func (w *writer) object(name string) *unstructured.Unstructured {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	if w.resource == widgets {
		kind = widgetKind
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	w.change(object, 0, true)
	return object
}

// change makes an object its next version.
func (w *writer) change(object *unstructured.Unstructured, version int, isSelected bool) {
	object.SetAnnotations(map[string]string{numbered: fmt.Sprint(version)})
	labels := map[string]string{}
	if isSelected {
		labels[selected] = "yes"
	}
	object.SetLabels(labels)
	if w.resource == widgets {
		object.Object["spec"] = map[string]any{"replicas": int64(version)}
		return
	}
	object.Object["data"] = map[string]any{"version": fmt.Sprint(version)}
}
