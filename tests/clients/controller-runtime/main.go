// Command controller-runtime starts kenter the way controllers' tests start kube-apiserver (envtest), with its flags, its
// certificates and its patience, and runs a manager against it.
//
// It prints one line when everything was reconciled; anything else ends it with an error.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	namespace = "default"
	objects   = 10
	patience  = time.Minute
	finalizer = "controller-runtime.example.com/cleaned"
)

var kind = schema.GroupVersionKind{Group: "controller-runtime.example.com", Version: "v1", Kind: "Gear"}

func main() {
	// envtest wants an etcd beside the server. kenter needs none, so that this program stands in for one that is healthy.
	for _, argument := range os.Args[1:] {
		if address, is := strings.CutPrefix(argument, "--listen-client-urls="); is {
			standIn(address)
		}
		if argument == "--help" {
			return
		}
	}
	binary := flag.String("kenter", "", "the server's binary")
	state := flag.String("state", "", "folder for the server's state")
	flag.Parse()
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := run(*binary, *state); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED", err)
		os.Exit(1)
	}
	fmt.Println("reconciled")
}

func standIn(address string) {
	parsed, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", parsed.Host)
	if err != nil {
		panic(err)
	}
	panic(http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
}

func run(binary, state string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}}
	environment.ControlPlane.Etcd = &envtest.Etcd{Path: self}
	apiServer := environment.ControlPlane.GetAPIServer()
	apiServer.Path, apiServer.Out, apiServer.Err = binary, os.Stderr, os.Stderr
	apiServer.Configure().Disable("etcd-servers").Set("state-dir", filepath.Join(state, "state"))
	environment.ControlPlaneStartTimeout = patience
	defer func() {
		if stopped := environment.Stop(); err == nil {
			err = stopped
		}
	}()
	config, err := environment.Start()
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "gears",
		LeaderElectionNamespace: namespace,
		// Gives the lease back, so that the server is not stopped while it is still renewed.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	reconciler := &reconciler{manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).For(gear("")).Owns(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	if err := use(ctx, uncached(manager)); err != nil {
		stop()
		return err
	}
	stop()
	return <-ended
}

// uncached is a client that reads from the server, not from the manager's caches.
func uncached(manager ctrl.Manager) client.Client {
	direct, err := client.New(manager.GetConfig(), client.Options{Scheme: manager.GetScheme()})
	if err != nil {
		panic(err)
	}
	return direct
}

func gear(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gears." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "gears", Singular: "gear", Kind: kind.Kind, ListKind: kind.Kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
			}},
		},
	}
}

// reconciler gives every gear a ConfigMap with its number of teeth, and says so in its status.
type reconciler struct{ client client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := gear("")
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
	if object.GetDeletionTimestamp() != nil {
		if err := client.IgnoreNotFound(r.client.Delete(ctx, child)); err != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(object, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(r.client.Update(ctx, object))
	}
	if controllerutil.AddFinalizer(object, finalizer) {
		return ctrl.Result{}, r.client.Update(ctx, object)
	}
	teeth, _, _ := unstructured.NestedInt64(object.Object, "spec", "teeth")
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, child, func() error {
		child.Data = map[string]string{"teeth": fmt.Sprint(teeth)}
		return controllerutil.SetControllerReference(object, child, r.client.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := object.DeepCopy()
	object.Object["status"] = map[string]any{"teeth": teeth}
	return ctrl.Result{}, r.client.Status().Patch(ctx, object, client.MergeFrom(before))
}

// use makes gears, changes them, takes a child away, deletes them, and asks each time that the reconciler followed.
func use(ctx context.Context, c client.Client) error {
	name := func(n int) string { return fmt.Sprintf("gear-%d", n) }
	for n := range objects {
		object := gear(name(n))
		object.Object["spec"] = map[string]any{"teeth": int64(n)}
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	follows := func(add int64) error {
		return every(ctx, func(n int) (bool, error) { return reconciled(ctx, c, name(n), int64(n)+add) })
	}
	if err := follows(0); err != nil {
		return fmt.Errorf("after creation: %w", err)
	}
	for n := range objects {
		patch := fmt.Appendf(nil, `{"spec":{"teeth":%d}}`, n+100)
		if err := c.Patch(ctx, gear(name(n)), client.RawPatch(client.Merge.Type(), patch)); err != nil {
			return err
		}
	}
	if err := follows(100); err != nil {
		return fmt.Errorf("after a change: %w", err)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name(0)}}
	if err := c.Delete(ctx, child); err != nil {
		return err
	}
	if err := follows(100); err != nil {
		return fmt.Errorf("after the loss of a child: %w", err)
	}
	for n := range objects {
		if err := c.Delete(ctx, gear(name(n))); err != nil {
			return err
		}
	}
	return every(ctx, func(n int) (bool, error) {
		object, child := gear(name(n)), &corev1.ConfigMap{}
		key := client.ObjectKeyFromObject(object)
		return apierrors.IsNotFound(c.Get(ctx, key, object)) && apierrors.IsNotFound(c.Get(ctx, key, child)), nil
	})
}

func every(ctx context.Context, holds func(n int) (bool, error)) error {
	for n := range objects {
		condition := func(context.Context) (bool, error) { return holds(n) }
		if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, condition); err != nil {
			return fmt.Errorf("number %d: %w", n, err)
		}
	}
	return nil
}

func reconciled(ctx context.Context, c client.Client, name string, teeth int64) (bool, error) {
	object, child := gear(name), &corev1.ConfigMap{}
	key := client.ObjectKeyFromObject(object)
	if err := c.Get(ctx, key, object); err != nil {
		return false, err
	}
	if err := c.Get(ctx, key, child); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "teeth")
	return observed == teeth && child.Data["teeth"] == fmt.Sprint(teeth) && metav1.IsControlledBy(child, object), nil
}
