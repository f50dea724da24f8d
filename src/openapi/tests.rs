use std::{collections::BTreeMap, io::Read, sync::Arc};

use super::{Form, GroupVersion, Gvk, Resource, Section, Subresource, v2, v3};
use crate::{
    json,
    object::{Value, parse},
};

/// What a live server of this release answered, without descriptions.
fn recorded(name: &str) -> Value {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
    parse(&text).unwrap()
}

/// The resources of a default server, as documents see them.
fn built_in() -> Vec<Arc<GroupVersion>> {
    let path = format!("{}/src/registry/data/resources.json", env!("CARGO_MANIFEST_DIR"));
    let rows = parse(&std::fs::read(path).unwrap()).unwrap();
    let mut sources: BTreeMap<(String, String), Vec<Resource>> = BTreeMap::new();
    for row in rows.as_array().unwrap().iter().filter(|row| row.bool_at(&["default"])) {
        let text = |name: &str| row.str_at(&[name]).to_owned();
        sources.entry((text("group"), text("version"))).or_default().push(resource(row));
    }
    let source = |((group, version), resources): ((String, String), Vec<Resource>)| {
        Arc::new(GroupVersion { group: group.into(), version: version.into(), resources, custom: false })
    };
    sources.into_iter().map(source).collect()
}

fn resource(row: &Value) -> Resource {
    let text = |name: &str| row.str_at(&[name]);
    let group_kind = format!("{} {}", text("group"), text("kind"));
    Resource {
        plural: text("plural").into(),
        kind: text("kind").into(),
        list_kind: format!("{}List", text("kind")).into(),
        namespaced: row.bool_at(&["namespaced"]),
        verbs: verbs(row),
        returns_deleted: RETURN_DELETED.contains(&group_kind.as_str()),
        subresources: row.array_at(&["subresources"]).iter().map(subresource).collect(),
        schema: None,
        selectable: Vec::new(),
    }
}

/// Kinds whose deletion answers the object.
const RETURN_DELETED: [&str; 16] = [
    " PersistentVolumeClaim",
    " Pod",
    " PodTemplate",
    " ResourceQuota",
    " ServiceAccount",
    " Service",
    " PersistentVolume",
    "resource.k8s.io DeviceClass",
    "resource.k8s.io ResourceClaim",
    "resource.k8s.io ResourceClaimTemplate",
    "resource.k8s.io ResourceSlice",
    "storage.k8s.io CSIDriver",
    "storage.k8s.io CSINode",
    "storage.k8s.io StorageClass",
    "storage.k8s.io VolumeAttachment",
    "storage.k8s.io VolumeAttributesClass",
];

fn verbs(row: &Value) -> Vec<&'static str> {
    let known = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let said: Vec<&str> = row.array_at(&["verbs"]).iter().filter_map(Value::as_str).collect();
    known.into_iter().filter(|verb| said.contains(verb)).collect()
}

fn subresource(row: &Value) -> Subresource {
    let text = |name: &str| Arc::<str>::from(row.str_at(&[name]));
    Subresource {
        name: text("name"),
        gvk: Gvk { group: text("group"), version: text("version"), kind: text("kind") },
        verbs: verbs(row),
        connect: ["attach", "exec", "log", "portforward", "proxy"].contains(&row.str_at(&["name"])),
    }
}

fn sections(sources: &[Arc<GroupVersion>]) -> Vec<Section> {
    let mut sections =
        vec![Section::Api, Section::Groups, Section::Version, Section::OpenIdConfiguration, Section::OpenIdKeys];
    let mut groups: Vec<Arc<str>> = sources.iter().map(|it| it.group.clone()).filter(|it| !it.is_empty()).collect();
    groups.dedup();
    sections.extend(groups.into_iter().map(Section::Group));
    sections.extend(sources.iter().cloned().map(Section::GroupVersion));
    sections
}

/// Takes out the texts, which are not part of the structure.
fn strip(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(map) => {
            map.remove("description");
            map.values_mut().for_each(strip);
        }
        _ => {}
    }
}

/// The first differences, for people.
fn differences(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    if found.len() > 20 || ours == theirs {
        return;
    }
    let shown = |value: &Value| {
        let mut text = crate::object::to_string(value);
        text.truncate(text.floor_char_boundary(300));
        text
    };
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, theirs) in b.iter() {
                match a.get(name) {
                    Some(ours) => differences(&format!("{path}/{name}"), ours, theirs, found),
                    None => found.push(format!("{path}/{name} is missing: {}", shown(theirs))),
                }
            }
            for (name, ours) in a.iter().filter(|(name, _)| !b.contains_key(name)) {
                found.push(format!("{path}/{name} is too much: {}", shown(ours)));
            }
        }
        _ => found.push(format!("{path}: {} instead of {}", shown(ours), shown(theirs))),
    }
}

fn compare(name: &str, document: &[u8], theirs: &Value, found: &mut Vec<String>) {
    let mut ours = parse(document).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let mut theirs = theirs.clone();
    strip(&mut ours);
    strip(&mut theirs);
    differences(name, &ours, &theirs, found);
}

#[test]
fn v3_documents_have_upstreams_structure() {
    let recorded = recorded("openapi-v3.json.gz");
    let sections = sections(&built_in());
    let mut found = Vec::new();
    let recorded = recorded.as_object().unwrap();
    for (key, theirs) in recorded.iter().filter(|(key, _)| !key.contains("openshift")) {
        match sections.iter().find(|section| section.key() == **key) {
            Some(section) => compare(key, &v3(section, Form::Json), theirs, &mut found),
            None => found.push(format!("{key} is missing")),
        }
    }
    for section in &sections {
        if !recorded.contains_key(&section.key()) {
            found.push(format!("{} is too much", section.key()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_v2_document_has_upstreams_structure() {
    let mut found = Vec::new();
    compare("v2", &v2(&sections(&built_in()), Form::Json), &recorded("openapi-v2.json.gz"), &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn custom(schema: Value) -> Section {
    let own = |kind: &str| Gvk { group: "example.com".into(), version: "v1".into(), kind: kind.into() };
    let scale = Gvk { group: "autoscaling".into(), version: "v1".into(), kind: "Scale".into() };
    let resource = Resource {
        plural: "books".into(),
        kind: "Book".into(),
        list_kind: "BookList".into(),
        namespaced: true,
        verbs: vec!["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        returns_deleted: false,
        subresources: vec![
            Subresource {
                name: "status".into(),
                gvk: own("Book"),
                verbs: vec!["get", "patch", "update"],
                connect: false,
            },
            Subresource { name: "scale".into(), gvk: scale, verbs: vec!["get", "patch", "update"], connect: false },
        ],
        schema: Some(schema),
        selectable: vec![".spec.title".to_owned()],
    };
    let source =
        GroupVersion { group: "example.com".into(), version: "v1".into(), resources: vec![resource], custom: true };
    Section::GroupVersion(Arc::new(source))
}

fn book() -> Value {
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
            "spec": {
                "type": "object",
                "required": ["title"],
                "properties": {
                    "title": {"type": "string", "nullable": true, "default": ""},
                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}},
                    "port": {"x-kubernetes-int-or-string": true, "nullable": false},
                    "inner": {"type": "object", "x-kubernetes-embedded-resource": true}
                }
            }
        }
    })
}

#[test]
fn a_custom_resource_is_published_in_full_in_v3() {
    let document = parse(&v3(&custom(book()), Form::Json)).unwrap();
    let model = document.at(&["components", "schemas", "com.example.v1.Book"]).unwrap();
    let spec = |name: &str| model.at(&["properties", "spec", "properties", name]).unwrap();
    assert_eq!(model.array_at(&["required"]), [Value::from("spec")]);
    assert!(model.at(&["properties", "metadata", "allOf"]).is_some() && model.at(&["properties", "kind"]).is_some());
    assert_eq!(*spec("title"), json!({"type": "string", "nullable": true, "default": ""}));
    assert_eq!(
        *spec("port"),
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})
    );
    assert_eq!(spec("inner").array_at(&["required"]), [Value::from("kind"), Value::from("apiVersion")]);
    assert_eq!(model.at(&["x-kubernetes-selectable-fields"]), Some(&json!([{"fieldPath": ".spec.title"}])));
    let schemas = document.object_at(&["components", "schemas"]).unwrap();
    assert!(schemas.contains_key("io.k8s.api.autoscaling.v1.Scale"));
    assert!(document.at(&["components", "securitySchemes"]).is_none());
    let paths = document.object_at(&["paths"]).unwrap();
    assert_eq!(paths.len(), 5, "{:?}", paths.keys().collect::<Vec<_>>());
    let scale =
        document.at(&["paths", "/apis/example.com/v1/namespaces/{namespace}/books/{name}/scale", "get"]).unwrap();
    assert_eq!(scale.str_at(&["operationId"]), "readExampleComV1NamespacedBookScale");
    assert_eq!(scale.str_at(&["x-kubernetes-group-version-kind", "kind"]), "Book");
}

#[test]
fn v2_leaves_out_what_it_cannot_say_of_a_custom_resource() {
    let document = parse(&v2(&[custom(book())], Form::Json)).unwrap();
    let model = document.at(&["definitions", "com.example.v1.Book"]).unwrap();
    let spec = model.at(&["properties", "spec"]).unwrap();
    let of = |name: &str| spec.at(&["properties", name]).unwrap();
    assert_eq!(*of("title"), json!({}), "a member that may be null has no type");
    assert!(spec.get("required").is_none());
    assert_eq!(*of("any"), json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(*of("port"), json!({"x-kubernetes-int-or-string": true}));
    let loose = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let document = parse(&v2(&[custom(loose)], Form::Json)).unwrap();
    assert!(document.at(&["definitions", "com.example.v1.Book", "properties"]).is_none());
}

/// Fields of a protobuf message: (tag, bytes); numbers are left out.
fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(message: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = message[0];
            *message = &message[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut out = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        match key & 7 {
            0 => drop(varint(&mut message)),
            1 => message = &message[8..],
            _ => {
                let length = varint(&mut message) as usize;
                out.push((key >> 3, &message[..length]));
                message = &message[length..];
            }
        }
    }
    out
}

/// The value of the member `name` among repeated messages with this tag.
fn member<'a>(message: &'a [u8], tag: u64, name: &str) -> &'a [u8] {
    let named = |inner: &[u8]| fields(inner).iter().any(|(tag, text)| *tag == 1 && *text == name.as_bytes());
    let found = fields(message).into_iter().find(|(own, inner)| *own == tag && named(inner));
    fields(found.unwrap_or_else(|| panic!("{name} is missing")).1).into_iter().find(|(tag, _)| *tag == 2).unwrap().1
}

fn field(message: &[u8], tag: u64) -> &[u8] {
    fields(message).into_iter().find(|(own, _)| *own == tag).unwrap_or_else(|| panic!("field {tag} is missing")).1
}

#[test]
fn protobuf_follows_gnostics_messages() {
    let sections = sections(&built_in());
    let apps = sections.iter().find(|section| section.key() == "apis/apps/v1").unwrap();
    let document = v3(apps, Form::Protobuf);
    assert_eq!(field(&document, 1), b"3.0.0");
    let path = member(field(&document, 4), 1, "/apis/apps/v1/namespaces/{namespace}/deployments");
    assert_eq!(field(field(path, 4), 5), b"listAppsV1NamespacedDeployment");
    let schemas = field(field(&document, 5), 1);
    let schema = field(member(schemas, 1, "io.k8s.api.apps.v1.Deployment"), 1);
    assert_eq!(field(schema, 25), b"object");
    let spec = field(member(field(schema, 31), 1, "spec"), 1);
    let reference = field(field(spec, 26), 2);
    assert_eq!(field(reference, 1), b"#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec");
    let kinds = field(member(schema, 36, "x-kubernetes-group-version-kind"), 2);
    assert_eq!(kinds, b"[{\"group\":\"apps\",\"kind\":\"Deployment\",\"version\":\"v1\"}]\n");

    let name = field(member(field(field(member(schemas, 1, "io.k8s.api.core.v1.Container"), 1), 31), 1, "name"), 1);
    assert_eq!(field(field(name, 33), 3), b"", "an empty default is there all the same");

    let document = v2(&sections, Form::Protobuf);
    let schema = member(field(&document, 9), 1, "io.k8s.api.core.v1.ConfigMap");
    assert_eq!(field(field(schema, 22), 1), b"object");
    let path = member(field(&document, 8), 2, "/api/v1/namespaces/{namespace}/configmaps");
    let parameter = field(field(path, 9), 2);
    assert_eq!(field(parameter, 1), b"#/parameters/namespace-vgWSWtn3");
    let answer = field(field(member(field(field(path, 4), 9), 1, "201"), 1), 2);
    assert_eq!(field(field(answer, 1), 1), b"#/definitions/io.k8s.api.core.v1.ConfigMap");
}
