//! The object engine: parse, print, decode, default, encode as protobuf.

#![allow(clippy::expect_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use kenter::{
    codec::{self, Format},
    object::{Style, Value, parse, to_vec},
    registry::{builtin::defaults::apply_defaults, store::encode_stored},
    schema,
};

/// A pod as a Deployment's template makes them, about 3 KB.
fn pod() -> Vec<u8> {
    let container = |n: usize| {
        format!(
            r#"{{"name":"c{n}","image":"registry.example/app:{n}","ports":[{{"containerPort":80{n},"name":"p{n}"}}],
            "env":[{{"name":"A","value":"{n}"}},{{"name":"NODE","valueFrom":{{"fieldRef":{{"fieldPath":"spec.nodeName"}}}}}}],
            "resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}},"limits":{{"memory":"128Mi"}}}},
            "readinessProbe":{{"httpGet":{{"path":"/ready","port":"p{n}"}},"periodSeconds":5}},
            "volumeMounts":[{{"name":"data","mountPath":"/data"}}]}}"#
        )
    };
    let containers: Vec<String> = (0..3).map(container).collect();
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-0","namespace":"default","labels":{{"app":"web","tier":"front"}}}},
        "spec":{{"containers":[{}],"volumes":[{{"name":"data","emptyDir":{{}}}}],"nodeSelector":{{"disk":"ssd"}}}}}}"#,
        containers.join(",")
    )
    .into_bytes()
}

fn complete() -> Value {
    let mut value = parse(&pod()).expect("the pod is JSON");
    let table = schema::builtin();
    let ty = table.kind("", "v1", "Pod").expect("a pod has a type");
    schema::decode(table, ty, &mut value, None).expect("the pod is one");
    apply_defaults("", "v1", "Pod", &mut value, kenter::api::clock::now_seconds());
    value
}

fn objects(criterion: &mut Criterion) {
    let text = pod();
    let table = schema::builtin();
    let ty = table.kind("", "v1", "Pod").expect("a pod has a type");
    let value = complete();
    criterion.bench_function("parse", |b| b.iter(|| parse(black_box(&text))));
    criterion.bench_function("print", |b| b.iter(|| to_vec(black_box(&value))));
    criterion.bench_function("encode stored", |b| b.iter(|| encode_stored(black_box(&value))));
    criterion.bench_function("clone", |b| b.iter(|| black_box(&value).clone()));
    criterion.bench_function("parse, decode, default", |b| {
        b.iter(|| {
            let mut value = parse(&text).expect("the pod is JSON");
            schema::decode(table, ty, &mut value, Some(&text)).expect("the pod is one");
            apply_defaults("", "v1", "Pod", &mut value, kenter::api::clock::now_seconds());
            value
        })
    });
    criterion
        .bench_function("protobuf", |b| b.iter(|| codec::encode(Format::Protobuf, black_box(&value), Style::Compact)));
}

criterion_group!(benches, objects);
criterion_main!(benches);
