// Makes src/registry/data/internal.txt: the members of Kubernetes' internal types that errors print, in Go's order,
// with the names errors show them by. These types have no JSON tags.
//
// Usage, in a module that requires k8s.io/kubernetes of the release that is served:
//
//	go run . > src/registry/data/internal.txt
//
// A line: the type, a colon, its members. A member: its name in Go, its JSON path in v1, its form:
// s text, t time, b boolean, i integer, q quantity, p port (number or text), m map, [x list, *x pointer, ?x left out
// where it is empty; anything else is the name of a struct.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/storage"
)

const meta = "k8s.io/apimachinery/pkg/apis/meta/v1"

var (
	lines = map[string]string{}
	from  = map[string]reflect.Type{}
)

func jsonTag(field reflect.StructField) (name string, omitEmpty bool) {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name, strings.Contains(options, "omitempty")
}

// versioned gathers names and types of a v1 struct's fields by their Go name in lower case.
func versioned(t reflect.Type, names map[string]string, types map[string]reflect.Type) {
	if t == nil {
		return
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _ := jsonTag(field)
		if field.Anonymous && name == "" {
			versioned(field.Type, names, types)
			continue
		}
		names[strings.ToLower(field.Name)] = name
		types[strings.ToLower(field.Name)] = field.Type
	}
}

func elem(t reflect.Type, kind reflect.Kind) reflect.Type {
	if t != nil && t.Kind() == kind {
		return t.Elem()
	}
	return t
}

func form(t, v reflect.Type) string {
	switch t {
	case reflect.TypeFor[quantity.Quantity]():
		return "q"
	case reflect.TypeFor[intstr.IntOrString]():
		return "p"
	case reflect.TypeFor[metav1.Time]():
		return "t"
	case reflect.TypeFor[runtime.RawExtension]():
		return "m"
	}
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32, reflect.Int64:
		return "i"
	case reflect.Map:
		return "m"
	case reflect.Slice:
		return "[" + form(t.Elem(), elem(v, reflect.Slice))
	case reflect.Pointer:
		return "*" + form(t.Elem(), elem(v, reflect.Pointer))
	case reflect.Struct:
		add(t, v)
		return t.Name()
	}
	panic(t.String())
}

func add(t, v reflect.Type) {
	if known := from[t.Name()]; known == t {
		return
	} else if known != nil {
		panic(t.Name() + " is in two groups")
	}
	from[t.Name()] = t
	lines[t.Name()] = ""
	lines[t.Name()] = strings.Join(members(t, v), ", ")
}

func members(t, v reflect.Type) (all []string) {
	names, types := map[string]string{}, map[string]reflect.Type{}
	versioned(v, names, types)
	for i := range t.NumField() {
		field := t.Field(i)
		name, omitEmpty := jsonTag(field)
		key := strings.ToLower(field.Name)
		switch {
		case t.PkgPath() == meta:
			code := form(field.Type, field.Type)
			if omitEmpty {
				code = "?" + code
			}
			all = append(all, name+" "+name+" "+code)
		case field.Type == reflect.TypeFor[metav1.ObjectMeta]():
			// What templates may have.
			for _, name := range []string{"name", "generateName", "namespace"} {
				all = append(all, name+" metadata."+name+" ?s")
			}
			all = append(all, "labels metadata.labels ?m", "annotations metadata.annotations ?m")
		case field.Anonymous:
			all = append(all, members(field.Type, v)...)
		default:
			if names[key] == "" {
				panic(t.Name() + "." + field.Name + " is unknown in v1")
			}
			all = append(all, field.Name+" "+names[key]+" "+form(field.Type, types[key]))
		}
	}
	return all
}

func main() {
	add(reflect.TypeFor[core.PodTemplateSpec](), reflect.TypeFor[v1.PodTemplateSpec]())
	add(reflect.TypeFor[core.PodIP](), reflect.TypeFor[v1.PodIP]())
	add(reflect.TypeFor[core.HostIP](), reflect.TypeFor[v1.HostIP]())
	add(reflect.TypeFor[core.PersistentVolumeSpec](), reflect.TypeFor[v1.PersistentVolumeSpec]())
	add(reflect.TypeFor[core.PersistentVolumeSource](), reflect.TypeFor[v1.PersistentVolumeSource]())
	add(reflect.TypeFor[core.PersistentVolumeClaimSpec](), reflect.TypeFor[v1.PersistentVolumeClaimSpec]())
	add(reflect.TypeFor[batch.PodFailurePolicy](), reflect.TypeFor[batchv1.PodFailurePolicy]())
	add(reflect.TypeFor[batch.SuccessPolicy](), reflect.TypeFor[batchv1.SuccessPolicy]())
	add(reflect.TypeFor[batch.UncountedTerminatedPods](), reflect.TypeFor[batchv1.UncountedTerminatedPods]())
	add(reflect.TypeFor[flowcontrol.FlowSchemaSpec](), reflect.TypeFor[flowcontrolv1.FlowSchemaSpec]())
	add(reflect.TypeFor[flowcontrol.PriorityLevelConfigurationSpec](), reflect.TypeFor[flowcontrolv1.PriorityLevelConfigurationSpec]())
	add(reflect.TypeFor[networking.ServiceCIDRSpec](), reflect.TypeFor[networkingv1.ServiceCIDRSpec]())
	add(reflect.TypeFor[resource.ResourceClaimSpec](), reflect.TypeFor[resourcev1.ResourceClaimSpec]())
	add(reflect.TypeFor[resource.ResourceClaimTemplateSpec](), reflect.TypeFor[resourcev1.ResourceClaimTemplateSpec]())
	add(reflect.TypeFor[resource.AllocationResult](), reflect.TypeFor[resourcev1.AllocationResult]())
	add(reflect.TypeFor[resource.ResourceSliceSpec](), reflect.TypeFor[resourcev1.ResourceSliceSpec]())
	add(reflect.TypeFor[storage.CSINodeDriver](), reflect.TypeFor[storagev1.CSINodeDriver]())
	add(reflect.TypeFor[storage.VolumeAttachmentSpec](), reflect.TypeFor[storagev1.VolumeAttachmentSpec]())
	var names []string
	for name := range lines {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Println(name + ": " + lines[name])
	}
}
