//! Field ownership on its hot paths: it runs on every write.
//!
//! `create` is one walk over a new pod of about 6 KB; `update` compares two of them (nothing changed, one field
//! changed); `apply` lays one over another; `long_list` is an update among ten thousand keyed items.

#![allow(clippy::expect_used)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use kenter::{
    object::{Value, parse, to_vec},
    schema::{
        TypeId, builtin,
        ownership::{ApplyContext, FieldFilter, FieldSet, WriteContext, apply, update_managed_fields},
    },
};

/// A pod as clients make them: three containers with environment, ports, probes, mounts.
fn pod() -> Value {
    let container = |name: &str| {
        let env: Vec<String> =
            (0..10).map(|at| format!(r#"{{"name":"SETTING_{at}","value":"some value of setting {at}"}}"#)).collect();
        let mounts: Vec<String> =
            (0..4).map(|at| format!(r#"{{"name":"volume-{at}","mountPath":"/var/lib/data/{at}"}}"#)).collect();
        format!(
            r#"{{"name":"{name}","image":"registry.example.com/team/{name}:1.2.3","imagePullPolicy":"IfNotPresent",
            "command":["/bin/{name}"],"args":["--verbose","--listen=:8080"],
            "ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}},{{"name":"metrics","containerPort":9090,"protocol":"TCP"}}],
            "env":[{}],"volumeMounts":[{}],
            "resources":{{"limits":{{"cpu":"500m","memory":"256Mi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}},
            "livenessProbe":{{"httpGet":{{"path":"/healthz","port":8080,"scheme":"HTTP"}},"periodSeconds":10,"failureThreshold":3,"successThreshold":1,"timeoutSeconds":1}},
            "readinessProbe":{{"httpGet":{{"path":"/readyz","port":8080,"scheme":"HTTP"}},"periodSeconds":10,"failureThreshold":3,"successThreshold":1,"timeoutSeconds":1}},
            "securityContext":{{"allowPrivilegeEscalation":false,"runAsNonRoot":true,"capabilities":{{"drop":["ALL"]}}}},
            "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}}"#,
            env.join(","),
            mounts.join(",")
        )
    };
    let volumes: Vec<String> = (0..4)
        .map(|at| format!(r#"{{"name":"volume-{at}","configMap":{{"name":"config-{at}","defaultMode":420}}}}"#))
        .collect();
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-0","namespace":"default","generateName":"web-",
        "labels":{{"app":"web","pod-template-hash":"5d4f8c7b9","tier":"front"}},"annotations":{{"example.com/checksum":"0123456789abcdef"}},
        "ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"7b0a3ffe","controller":true,"blockOwnerDeletion":true}}]}},
        "spec":{{"containers":[{},{},{}],"volumes":[{}],"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler",
        "serviceAccountName":"web","terminationGracePeriodSeconds":30,"securityContext":{{"fsGroup":1000}},"enableServiceLinks":true,
        "tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}},
        "status":{{}}}}"#,
        container("web"),
        container("proxy"),
        container("agent"),
        volumes.join(",")
    );
    parse(text.as_bytes()).expect("valid")
}

fn context<'a>(manager: &'a str, status: &'a FieldSet) -> WriteContext<'a> {
    WriteContext {
        manager,
        subresource: "",
        api_version: "v1",
        now: "2026-01-01T00:00:00Z",
        reset: FieldFilter::Without(status),
        versions: None,
    }
}

fn kind(name: &str) -> TypeId {
    builtin().kind("", "v1", name).expect("known")
}

/// The pod as it is stored after its creation.
fn stored(status: &FieldSet) -> Value {
    let mut pod = pod();
    update_managed_fields(builtin(), kind("Pod"), None, &mut pod, &context("controller", status));
    pod.set(&["metadata", "uid"], "7b0a3ffe-0000");
    pod
}

fn pods(c: &mut Criterion) {
    let status = FieldSet::of(&[&["status"]]);
    let ty = kind("Pod");
    println!("the pod takes {} bytes, {} with owners", to_vec(&pod()).len(), to_vec(&stored(&status)).len());
    let ctx = context("controller", &status);
    c.bench_function("create", |b| {
        b.iter_batched_ref(
            pod,
            |pod| update_managed_fields(builtin(), ty, None, black_box(pod), &ctx),
            BatchSize::SmallInput,
        );
    });
    let live = stored(&status);
    c.bench_function("update/same", |b| {
        b.iter_batched_ref(
            || live.clone(),
            |new| update_managed_fields(builtin(), ty, Some(&live), black_box(new), &ctx),
            BatchSize::SmallInput,
        );
    });
    let mut changed = live.clone();
    changed.set(&["metadata", "labels", "tier"], "back");
    let other = context("other", &status);
    c.bench_function("update/one_field", |b| {
        b.iter_batched_ref(
            || changed.clone(),
            |new| update_managed_fields(builtin(), ty, Some(&live), black_box(new), &other),
            BatchSize::SmallInput,
        );
    });
    applies(c, &live, ty, other);
}

fn applies(c: &mut Criterion, live: &Value, ty: TypeId, write: WriteContext<'_>) {
    let ctx = ApplyContext { write, kind: "Pod", force: true, finish: &Ok };
    let config = pod();
    c.bench_function("apply/create", |b| b.iter(|| apply(builtin(), ty, None, black_box(&config), &ctx)));
    c.bench_function("apply/first", |b| b.iter(|| apply(builtin(), ty, Some(live), black_box(&config), &ctx)));
    let applied = apply(builtin(), ty, Some(live), &config, &ctx).ok().flatten().expect("changes the owners");
    c.bench_function("apply/again", |b| b.iter(|| apply(builtin(), ty, Some(&applied), black_box(&config), &ctx)));
}

fn long_lists(c: &mut Criterion) {
    let none = FieldSet::new();
    let ctx = context("controller", &none);
    let ty = kind("Pod");
    let containers: Vec<Value> = (0..10_000)
        .map(|at| Value::from([("name", Value::from(format!("c{at}"))), ("image", Value::from("i"))]))
        .collect();
    let mut live = Value::from([("spec", Value::from([("containers", containers)]))]);
    live.set(&["apiVersion"], "v1");
    live.set(&["kind"], "Pod");
    update_managed_fields(builtin(), ty, None, &mut live, &ctx);
    live.set(&["metadata", "uid"], "u");
    let mut changed = live.clone();
    if let Some(item) = changed.at_mut(&["spec", "containers"]).and_then(|list| list.as_array_mut()?.get_mut(5_000)) {
        item.set(&["image"], "j");
    }
    c.bench_function("long_list/one_item", |b| {
        b.iter_batched_ref(
            || changed.clone(),
            |new| update_managed_fields(builtin(), ty, Some(&live), black_box(new), &ctx),
            BatchSize::LargeInput,
        );
    });
}

criterion_group!(benches, pods, long_lists);
criterion_main!(benches);
