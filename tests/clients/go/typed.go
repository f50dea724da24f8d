package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	apply "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

// typedClients writes through one client and reads through another that speaks the other encoding.
type typedClients struct {
	name           string
	writer, reader kubernetes.Interface
}

// checkTyped uses typed clients in JSON and in protobuf.
func checkTyped(r *run) {
	inOne, err := kubernetes.NewForConfig(r.server.config("typed-json", inJSON))
	if err != nil {
		r.fail("%v", err)
		return
	}
	inOther, err := kubernetes.NewForConfig(r.server.config("typed-protobuf", inProtobuf))
	if err != nil {
		r.fail("%v", err)
		return
	}
	var checks sync.WaitGroup
	for _, clients := range []typedClients{{"json", inOne, inOther}, {"protobuf", inOther, inOne}} {
		checks.Go(func() {
			r.rounds("typed "+clients.name, func(ctx context.Context, n int) error {
				return clients.round(ctx, fmt.Sprintf("%s-%d", clients.name, n))
			})
		})
	}
	checks.Go(func() {
		r.rounds("contended", func(ctx context.Context, n int) error {
			return contend(ctx, []kubernetes.Interface{inOne, inOther}, fmt.Sprintf("contended-%d", n))
		})
	})
	checks.Wait()
	if r.server.traffic.answered("typed-protobuf", inProtobuf) == 0 {
		r.fail("the typed client that asks for protobuf never had it")
	}
}

func (c typedClients) round(ctx context.Context, name string) error {
	for _, step := range []struct {
		what string
		do   func(context.Context, string) error
	}{
		{"deployment", c.deployment},
		{"applied deployment", c.applied},
		{"pod", c.pod},
		{"service", c.service},
		{"pages", c.pages},
		{"errors", c.errors},
		{"access review", c.review},
		{"events", c.events},
	} {
		if err := step.do(ctx, name); err != nil {
			return fmt.Errorf("%s %s: %w", step.what, name, err)
		}
	}
	return nil
}

func template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/image:1",
			Ports: []corev1.ContainerPort{{ContainerPort: 80, Name: "http"}},
		}}},
	}
}

// deployment creates, reads in both encodings, patches, scales, updates the status and deletes.
func (c typedClients) deployment(ctx context.Context, name string) error {
	one, other := c.writer.AppsV1().Deployments(others), c.reader.AppsV1().Deployments(others)
	created, err := one.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if created.Spec.Replicas == nil || *created.Spec.Replicas != 1 {
		return fmt.Errorf("without its default: %v", created.Spec.Replicas)
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/image:%s"}]}}}}`, name)
	patched, err := one.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	container := patched.Spec.Template.Spec.Containers[0]
	if container.Image != "example.com/image:"+name || len(container.Ports) != 1 || patched.Generation != created.Generation+1 {
		return fmt.Errorf("the patch gave generation %d of %v", patched.Generation, container)
	}
	scale, err := one.GetScale(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 3
	if _, err := one.UpdateScale(ctx, name, scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	scaled, err := one.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if *scaled.Spec.Replicas != 3 || scaled.Generation != patched.Generation+1 {
		return fmt.Errorf("scaling gave generation %d with %d replicas", scaled.Generation, *scaled.Spec.Replicas)
	}
	scaled.Status.ObservedGeneration = scaled.Generation
	scaled.Spec.Replicas = new(int32(7))
	settled, err := one.UpdateStatus(ctx, scaled, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if settled.Status.ObservedGeneration != scaled.Generation || *settled.Spec.Replicas != 3 {
		return fmt.Errorf("the status took %d replicas along", *settled.Spec.Replicas)
	}
	read, err := other.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(settled, read) {
		return fmt.Errorf("one encoding has %v, the other %v", settled, read)
	}
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{
		PropagationPolicy: &background,
		Preconditions:     metav1.NewRVDeletionPrecondition(read.ResourceVersion).Preconditions,
	}
	if err := one.Delete(ctx, name, options); err != nil {
		return err
	}
	return gone(other.Get(ctx, name, metav1.GetOptions{}))
}

// gone asks that an answer says so.
func gone[T any](_ T, err error) error {
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("it is not gone: %v", err)
	}
	return nil
}

// applied is server-side apply: two managers, a conflict, force, and what a manager owns.
func (c typedClients) applied(ctx context.Context, name string) error {
	name = "applied-" + name
	client := c.writer.AppsV1().Deployments(others)
	want := func(replicas int32) *apply.DeploymentApplyConfiguration {
		container := applycore.Container().WithName("main").WithImage("example.com/image:1")
		return apply.Deployment(name, others).WithSpec(apply.DeploymentSpec().
			WithReplicas(replicas).
			WithSelector(applymeta.LabelSelector().WithMatchLabels(map[string]string{"app": name})).
			WithTemplate(applycore.PodTemplateSpec().
				WithLabels(map[string]string{"app": name}).
				WithSpec(applycore.PodSpec().WithContainers(container))))
	}
	if _, err := client.Apply(ctx, want(1), metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return err
	}
	if _, err := client.Apply(ctx, want(2), metav1.ApplyOptions{FieldManager: "two"}); !apierrors.IsConflict(err) {
		return fmt.Errorf("no conflict: %v", err)
	}
	forced, err := client.Apply(ctx, want(2), metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		return err
	}
	if *forced.Spec.Replicas != 2 {
		return fmt.Errorf("force gave %d replicas", *forced.Spec.Replicas)
	}
	owned, err := apply.ExtractDeployment(forced, "one")
	if err != nil {
		return err
	}
	if owned.Spec == nil || owned.Spec.Replicas != nil || owned.Spec.Template == nil {
		return fmt.Errorf("the first manager owns %v", owned.Spec)
	}
	again, err := client.Apply(ctx, want(2), metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		return err
	}
	if again.ResourceVersion != forced.ResourceVersion {
		return errors.New("applying the same again made a new version")
	}
	return client.Delete(ctx, name, metav1.DeleteOptions{})
}

// pod binds a pod, reports its status and evicts it.
func (c typedClients) pod(ctx context.Context, name string) error {
	client := c.writer.CoreV1().Pods(others)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, Spec: template(name).Spec}
	pod.Spec.TerminationGracePeriodSeconds = new(int64(0))
	pod, err := client.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	name = pod.Name
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "a-node"},
	}
	if err := client.Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	status := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	running, err := client.Patch(ctx, name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	scheduled := false
	for _, condition := range running.Status.Conditions {
		scheduled = scheduled || condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue
	}
	if running.Spec.NodeName != "a-node" || running.Status.Phase != corev1.PodRunning || !scheduled {
		return fmt.Errorf("it runs on %q as %v", running.Spec.NodeName, running.Status)
	}
	selected, err := c.reader.CoreV1().Pods(others).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=a-node,status.phase=Running,metadata.name=" + name,
	})
	if err != nil {
		return err
	}
	if len(selected.Items) != 1 || !apiequality.Semantic.DeepEqual(&selected.Items[0], running) {
		return fmt.Errorf("the field selector finds %v", selected.Items)
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: &now}
	if err := client.EvictV1(ctx, eviction); err != nil {
		return err
	}
	return gone(client.Get(ctx, name, metav1.GetOptions{}))
}

// service takes an address and gives it back.
func (c typedClients) service(ctx context.Context, name string) error {
	client := c.writer.CoreV1().Services(others)
	service, err := client.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s-" + name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if service.Spec.ClusterIP == "" || service.Spec.Ports[0].NodePort == 0 {
		return fmt.Errorf("it has no address: %v", service.Spec)
	}
	return client.Delete(ctx, service.Name, metav1.DeleteOptions{})
}

// pages lists in pages and deletes a collection.
func (c typedClients) pages(ctx context.Context, name string) error {
	const size = 7
	one, other := c.writer.CoreV1().Secrets(others), c.reader.CoreV1().Secrets(others)
	labels := map[string]string{"round": name}
	for n := range size {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, n), Labels: labels},
			Data:       map[string][]byte{"key": {0, 1, byte(n)}},
		}
		if _, err := one.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	options := metav1.ListOptions{LabelSelector: "round=" + name}
	pages := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return other.List(ctx, options)
	}))
	pages.PageSize = 3
	found := 0
	err := pages.EachListItem(ctx, options, func(it runtime.Object) error {
		if secret, is := it.(*corev1.Secret); !is || len(secret.Data["key"]) != 3 || secret.Data["key"][2] != byte(found) {
			return fmt.Errorf("%v is not number %d", it, found)
		}
		found++
		return nil
	})
	if err != nil {
		return err
	}
	if found != size {
		return fmt.Errorf("the pages have %d objects", found)
	}
	if err := one.DeleteCollection(ctx, metav1.DeleteOptions{}, options); err != nil {
		return err
	}
	rest, err := other.List(ctx, options)
	if err != nil {
		return err
	}
	if len(rest.Items) != 0 {
		return fmt.Errorf("%d are left of the collection", len(rest.Items))
	}
	return nil
}

// errors are told apart by what client-go reads in them.
func (c typedClients) errors(ctx context.Context, name string) error {
	client := c.writer.CoreV1().ConfigMaps(others)
	name = "e-" + name
	object, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("created twice: %v", err)
	}
	old := object.DeepCopy()
	object.Data = map[string]string{"a": "b"}
	if _, err := client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if _, err := client.Update(ctx, old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("updated from an old version: %v", err)
	}
	_, err = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Not A Name"}}, metav1.CreateOptions{})
	if cause, has := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid); !apierrors.IsInvalid(err) || !has || cause.Field != "metadata.name" {
		return fmt.Errorf("a name that is none: %v", err)
	}
	wrong := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("nobody")}
	if err := client.Delete(ctx, name, wrong); !apierrors.IsConflict(err) {
		return fmt.Errorf("deleted as somebody else: %v", err)
	}
	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return gone(client.Get(ctx, name, metav1.GetOptions{}))
}

// review asks for a right.
func (c typedClients) review(ctx context.Context, _ string) error {
	attributes := &authorizationv1.ResourceAttributes{Namespace: others, Verb: "get", Resource: "pods"}
	answer, err := c.writer.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if !answer.Status.Allowed {
		return fmt.Errorf("an administrator may not: %v", answer.Status)
	}
	return nil
}

// events reports through a recorder, which patches what it said before.
func (c typedClients) events(ctx context.Context, name string) error {
	sink := c.writer.CoreV1().Events("")
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: sink})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "clients"})
	about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: others, Name: name, UID: types.UID(name)}}
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Tested", "tested again")
	}
	return eventually(ctx, "the event was counted thrice", func() (bool, error) {
		found, err := c.reader.CoreV1().Events(others).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + name})
		return err == nil && len(found.Items) == 1 && found.Items[0].Count == 3, err
	})
}

// contend has many writers count up one object, each of which may find that another was first.
func contend(ctx context.Context, clients []kubernetes.Interface, name string) error {
	const writers, times = 4, 5
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := clients[0].CoreV1().ConfigMaps(others).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	patient := retry.DefaultBackoff
	patient.Steps = 100
	errs := make(chan error, writers)
	for n := range writers {
		client := clients[n%len(clients)].CoreV1().ConfigMaps(others)
		go func() {
			var err error
			for range times {
				err = errors.Join(err, retry.RetryOnConflict(patient, func() error { return countUp(ctx, client, name) }))
			}
			errs <- err
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			return err
		}
	}
	final, err := clients[1].CoreV1().ConfigMaps(others).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(final.BinaryData["n"]) != writers*times {
		return fmt.Errorf("%d of %d writes are there", len(final.BinaryData["n"]), writers*times)
	}
	return nil
}

// countUp adds a byte to an object, unless somebody was faster.
func countUp(ctx context.Context, client typedcore.ConfigMapInterface, name string) error {
	object, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.BinaryData = map[string][]byte{"n": append(object.BinaryData["n"], 1)}
	_, err = client.Update(ctx, object, metav1.UpdateOptions{})
	return err
}
