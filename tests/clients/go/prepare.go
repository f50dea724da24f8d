package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// The namespaces: one that informers watch, one for everything else.
const (
	watched = "watched"
	others  = "others"
)

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	widgets    = schema.GroupVersionResource{Group: "clients.example.com", Version: "v1", Resource: "widgets"}
	widgetKind = schema.GroupVersionKind{Group: "clients.example.com", Version: "v1", Kind: "Widget"}
)

// definition is the CustomResourceDefinition of widgets: some typed fields, one list with keys, two subresources.
func definition() *unstructured.Unstructured {
	field := func(kind string) map[string]any { return map[string]any{"type": kind} }
	part := map[string]any{
		"type": "object", "required": []any{"name"},
		"properties": map[string]any{"name": field("string"), "size": field("integer")},
	}
	parts := map[string]any{
		"type": "array", "items": part,
		"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"},
	}
	spec := map[string]any{
		"type":       "object",
		"properties": map[string]any{"replicas": field("integer"), "parts": parts},
	}
	status := map[string]any{
		"type":       "object",
		"properties": map[string]any{"replicas": field("integer"), "selector": field("string")},
	}
	version := map[string]any{
		"name": widgets.Version, "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "properties": map[string]any{"spec": spec, "status": status},
		}},
		"subresources": map[string]any{
			"status": map[string]any{},
			"scale": map[string]any{
				"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
				"labelSelectorPath": ".status.selector",
			},
		},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definitions.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": widgets.GroupResource().String()},
		"spec": map[string]any{
			"group": widgets.Group, "scope": "Namespaced", "versions": []any{version},
			"names": map[string]any{
				"plural": widgets.Resource, "singular": "widget", "kind": widgetKind.Kind, "listKind": "WidgetList",
				"shortNames": []any{"wg"},
			},
		},
	}}
}

// prepare makes the namespaces and the custom resource, and waits until it is served.
func prepare(r *run) error {
	config := r.server.config("prepare", inJSON)
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, name := range []string{watched, others} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := typed.CoreV1().Namespaces().Create(r.ctx, namespace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	client := untyped.Resource(definitions)
	if _, err := client.Create(r.ctx, definition(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the custom resource: %w", err)
	}
	return eventually(r.ctx, "the custom resource is established", func() (bool, error) {
		return established(r.ctx, client)
	})
}

func established(ctx context.Context, client dynamic.ResourceInterface) (bool, error) {
	found, err := client.Get(ctx, widgets.GroupResource().String(), metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	// Right after creation there are none, which is written as null.
	status, _, err := unstructured.NestedMap(found.Object, "status")
	conditions, _ := status["conditions"].([]any)
	for _, it := range conditions {
		condition, _ := it.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return true, nil
		}
	}
	return false, err
}
