package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// checkDiscovery reads what the server has, both ways, which is the same every time, and maps kinds and names by it.
func checkDiscovery(r *run) {
	// This client decodes no CBOR, not even where the process prefers it.
	client, err := discovery.NewDiscoveryClientForConfig(r.server.config("discovery", inJSON))
	if err != nil {
		r.fail("%v", err)
		return
	}
	var first []string
	r.rounds("discovery", func(ctx context.Context, n int) error {
		// Discovery is read rarely by programs; it should not take the time of everything else.
		defer time.Sleep(200 * time.Millisecond)
		for _, legacy := range []bool{false, true} {
			client.UseLegacyDiscovery = legacy
			found, err := resources(client)
			if err != nil {
				return err
			}
			if first == nil {
				first = found
			}
			if !reflect.DeepEqual(found, first) {
				return fmt.Errorf("legacy %v: %v is not %v", legacy, found, first)
			}
		}
		client.UseLegacyDiscovery = false
		return mappings(client)
	})
	if err := documents(client); err != nil {
		r.fail("%v", err)
	}
}

// resources is every resource with its verbs and short names, sorted.
func resources(client discovery.DiscoveryInterface) ([]string, error) {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, list := range lists {
		for _, it := range list.APIResources {
			sort.Strings(it.Verbs)
			all = append(all, fmt.Sprintf("%s/%s %s %v %v %v %v", list.GroupVersion, it.Name, it.Kind, it.Namespaced, it.Verbs, it.ShortNames, it.Categories))
		}
	}
	sort.Strings(all)
	return all, nil
}

// mappings asks a fresh mapper for resources by kind, and for kinds by what people type.
func mappings(client discovery.DiscoveryInterface) error {
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	for kind, want := range map[schema.GroupKind]schema.GroupVersionResource{
		{Kind: "Pod"}:                                  {Version: "v1", Resource: "pods"},
		{Kind: "Endpoints"}:                            {Version: "v1", Resource: "endpoints"},
		{Group: "apps", Kind: "Deployment"}:            {Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "networking.k8s.io", Kind: "Ingress"}:  {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
		{Group: "policy", Kind: "PodDisruptionBudget"}: {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
		widgetKind.GroupKind():                         widgets,
	} {
		mapping, err := mapper.RESTMapping(kind)
		if err != nil {
			return err
		}
		namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
		if mapping.Resource != want || !namespaced {
			return fmt.Errorf("%v is mapped to %v", kind, mapping)
		}
	}
	typed := restmapper.NewShortcutExpander(mapper, cached, nil)
	for name, want := range map[string]string{
		"po": "Pod", "deploy": "Deployment", "svc": "Service", "wg": "Widget", "crd": "CustomResourceDefinition",
		"widget": "Widget",
	} {
		kind, err := typed.KindFor(schema.GroupVersionResource{Resource: name})
		if err != nil {
			return err
		}
		if kind.Kind != want {
			return fmt.Errorf("%s is mapped to %v", name, kind)
		}
	}
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: "nobody.example.com", Kind: "Nothing"}); !meta.IsNoMatchError(err) {
		return fmt.Errorf("what is nowhere is mapped: %v", err)
	}
	return nil
}

// documents reads the version and the OpenAPI documents, old and new.
func documents(client *discovery.DiscoveryClient) error {
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	if version.Major != "1" || version.Minor != "37" {
		return fmt.Errorf("the version is %v", version)
	}
	document, err := client.OpenAPISchema()
	if err != nil {
		return err
	}
	definitions := map[string]bool{}
	for _, it := range document.GetDefinitions().GetAdditionalProperties() {
		definitions[it.GetName()] = true
	}
	if !definitions["io.k8s.api.apps.v1.Deployment"] || !definitions["com.example.clients.v1.Widget"] {
		return errors.New("the OpenAPI document has no deployments or no widgets")
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	for _, version := range []schema.GroupVersion{{Group: "apps", Version: "v1"}, widgets.GroupVersion()} {
		found := paths["apis/"+version.String()]
		if found == nil {
			return fmt.Errorf("no OpenAPI of %v in %v", version, paths)
		}
		text, err := found.Schema(runtime.ContentTypeJSON)
		if err != nil {
			return err
		}
		if len(text) == 0 {
			return fmt.Errorf("the OpenAPI of %v is empty", version)
		}
	}
	_, err = client.ServerResourcesForGroupVersion(metav1.SchemeGroupVersion.String())
	if err == nil {
		return errors.New("what has no group was found")
	}
	return nil
}
