use super::*;
use crate::{
    object::{self, to_string},
    schema::{builtin, vectors},
};

fn kind(group: &str, kind: &str) -> TypeId {
    builtin().kind(group, "v1", kind).unwrap()
}

fn read(ty: TypeId, text: &str) -> Result<(String, Vec<String>), String> {
    let mut value = object::parse(text.as_bytes()).unwrap();
    let unknown = decode(builtin(), ty, &mut value, Some(text.as_bytes())).map_err(|error| error.message)?;
    Ok((to_string(&value), unknown))
}

#[track_caller]
fn refused(ty: TypeId, text: &str, message: &str) {
    assert_eq!(read(ty, text).unwrap_err(), message);
}

#[test]
fn wrong_types_are_refused_in_gos_words() {
    let (config, pod) = (kind("", "ConfigMap"), kind("", "Pod"));
    refused(
        config,
        r#"{"data":[]}"#,
        "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
    );
    refused(
        config,
        r#"{"data":{"k":1}}"#,
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    );
    refused(
        config,
        r#"{"metadata":"x"}"#,
        "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
    );
    refused(
        config,
        r#"{"immutable":"x"}"#,
        "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool",
    );
    for number in ["1.5", "3.0", "9223372036854775808"] {
        let message = format!(
            "json: cannot unmarshal number {number} into Go struct field ObjectMeta.metadata.generation of type int64"
        );
        refused(config, &format!(r#"{{"metadata":{{"generation":{number}}}}}"#), &message);
    }
    refused(
        pod,
        r#"{"spec":{"containers":[{"ports":[{"containerPort":"x"}]}]}}"#,
        "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
    );
    refused(
        pod,
        r#"{"spec":{"volumes":[{"emptyDir":1}]}}"#,
        "json: cannot unmarshal number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
    );
    refused(pod, "[]", "json: cannot unmarshal array into Go value of type v1.Pod");
    refused(
        kind("policy", "PodDisruptionBudget"),
        r#"{"spec":{"minAvailable":1.5}}"#,
        "json: cannot unmarshal number 1.5 into Go struct field PodDisruptionBudgetSpec.spec.minAvailable of type int32",
    );
    refused(
        config,
        r#"{"metadata":{"creationTimestamp":5}}"#,
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
    );
    refused(kind("", "Secret"), r#"{"data":{"a":"QUJ"}}"#, "illegal base64 data at input byte 0");
}

#[test]
fn errors_inside_a_schema_s_alternatives_name_the_outer_struct() {
    let crd = kind("apiextensions.k8s.io", "CustomResourceDefinition");
    let schema = |inner: &str| {
        format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{{"properties":{{"x":{inner}}}}}}}}}]}}}}"#)
    };
    refused(
        crd,
        &schema(r#"{"minimum":"x"}"#),
        "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.minimum of type float64",
    );
    refused(
        crd,
        &schema(r#"{"items":{"type":[]}}"#),
        "json: cannot unmarshal array into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.items.type of type string",
    );
    refused(crd, &schema(r#"{"additionalProperties":1}"#), "boolean or JSON schema expected");
    // Upstream's own decoders are not told to be strict.
    assert_eq!(read(crd, &schema(r#"{"items":{"foo":1}}"#)).unwrap().1, Vec::<String>::new());
    assert_eq!(
        read(crd, &schema(r#"{"foo":1}"#)).unwrap().1,
        ["spec.versions[0].schema.openAPIV3Schema.properties.x.foo"]
    );
}

#[test]
fn the_error_that_comes_first_in_the_text_is_the_one_reported() {
    let pod = kind("", "Pod");
    let text = r#"{"spec":{"containers":3,"nodeName":4},"metadata":{"name":5}}"#;
    refused(
        pod,
        text,
        "json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type []v1.Container",
    );
    let mut value = object::parse(text.as_bytes()).unwrap();
    let sorted = decode(builtin(), pod, &mut value, None).unwrap_err();
    assert_eq!(
        sorted.message,
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"
    );
    // A decoder of a type's own ends everything at once, before errors that wait are told.
    let text = r#"{"metadata":{"name":5,"creationTimestamp":"x"}}"#;
    assert!(read(pod, text).unwrap_err().starts_with("parsing time"));
}

#[test]
fn unknown_members_are_dropped_and_reported_in_the_order_of_the_text() {
    let text = r#"{"metadata":{"foo":1},"spec":{"containers":[{"name":"c","imagee":"x","ports":[{"nope":1}]}],"zz":{}},"Kind":"x","a":1}"#;
    let (value, unknown) = read(kind("", "Pod"), text).unwrap();
    assert_eq!(
        unknown,
        ["metadata.foo", "spec.containers[0].imagee", "spec.containers[0].ports[0].nope", "spec.zz", "Kind", "a"]
    );
    assert_eq!(
        value,
        r#"{"metadata":{},"spec":{"containers":[{"name":"c","ports":[{"containerPort":0}],"resources":{}}]},"status":{}}"#
    );
}

#[test]
fn strict_errors_stand_in_the_order_of_the_text() {
    let text =
        br#"{"metadata":{"name":"a","name":"b","foo":1,"foo":2},"x":{"y":1,"y":2},"data":{"k":"1","k":"2"},"data":{}}"#;
    let parsed = object::parse_reporting_duplicates(text).unwrap();
    let mut value = parsed.value;
    let unknown = decode(builtin(), kind("", "ConfigMap"), &mut value, Some(text)).unwrap();
    assert_eq!(
        strict_errors(unknown, parsed.duplicates, Some(text)),
        [
            r#"duplicate field "metadata.name""#,
            r#"unknown field "metadata.foo""#,
            r#"unknown field "x""#,
            r#"duplicate field "data.k""#,
            r#"duplicate field "data""#,
        ]
    );
}

#[test]
fn values_take_the_form_in_which_go_prints_them() {
    let text = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2024-01-02T03:04:05.5+01:00","labels":{},"name":""},
        "spec":{"containers":[{"name":"c","env":[{"name":"","value":""}],"resources":{"limits":{"cpu":0.5,"memory":"1024Ki"}}}],
        "hostNetwork":false,"terminationGracePeriodSeconds":null,"nodeSelector":null},"status":{"startTime":null}}"#;
    assert_eq!(
        read(kind("", "Pod"), text).unwrap().0,
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2024-01-02T02:04:05Z"},"spec":{"containers":[{"env":[{"name":""}],"name":"c","resources":{"limits":{"cpu":"500m","memory":"1Mi"}}}]},"status":{}}"#
    );
}

#[test]
fn a_list_that_was_stored_empty_is_null_where_it_is_printed() {
    let role = kind("rbac.authorization.k8s.io", "Role");
    let mut value = object::parse(br#"{"rules":[]}"#).unwrap();
    decode(builtin(), role, &mut value, None).unwrap();
    assert_eq!(to_string(&value), r#"{"metadata":{},"rules":[]}"#);
    normalise_stored(builtin(), role, &mut value);
    assert_eq!(to_string(&value), r#"{"metadata":{},"rules":null}"#);
}

#[test]
fn what_go_printed_is_decoded_to_itself() {
    let cases = vectors::read("vectors/protobuf.json");
    assert!(cases.len() > 600);
    for case in &cases {
        let (group, version, kind) = vectors::split_kind(case.str_at(&["kind"]));
        let ty = builtin().kind(group, version, kind).unwrap();
        let printed = case.get("json").unwrap();
        let mut value = printed.clone();
        let unknown = decode(builtin(), ty, &mut value, None).unwrap();
        let name = format!("{} {}", case.str_at(&["kind"]), case.str_at(&["case"]));
        if name == "v1/ConfigMap zero-time" {
            // A pointer to a zero time, which prints as null, is no pointer when it is read back.
            continue;
        }
        assert_eq!(unknown, Vec::<String>::new(), "{name}");
        assert_eq!(to_string(&value), to_string(printed), "{name}");
        normalise(builtin(), ty, &mut value);
        assert_eq!(to_string(&value), to_string(printed), "{name} normalised");
        normalise_stored(builtin(), ty, &mut value);
        assert_eq!(to_string(&value), to_string(case.get("json_decoded").unwrap_or(printed)), "{name} stored");
    }
}

#[test]
fn members_written_twice_fill_structs_and_maps_and_replace_the_rest() {
    let merged = |kind: &str, text: &str| {
        let object::Parsed { mut value, replaced, .. } = object::parse_reporting_duplicates(text.as_bytes()).unwrap();
        let ty = builtin().kind("", "v1", kind).unwrap();
        merge_repeated(builtin(), ty, &mut value, replaced);
        object::to_string(&value)
    };
    assert_eq!(
        merged("ConfigMap", r#"{"data":{"a":"1","b":"2"},"data":{"b":"3"},"data":{"c":"4"}}"#),
        r#"{"data":{"a":"1","b":"3","c":"4"}}"#
    );
    assert_eq!(
        merged("Pod", r#"{"metadata":{"name":"a","labels":{"x":"1"}},"metadata":{"labels":{"y":"2"}}}"#),
        r#"{"metadata":{"labels":{"x":"1","y":"2"},"name":"a"}}"#
    );
    assert_eq!(
        merged("Pod", r#"{"spec":{"containers":[{"name":"a","resources":{"limits":{"x":"1"}},"resources":{}}]}}"#),
        r#"{"spec":{"containers":[{"name":"a","resources":{"limits":{"x":"1"}}}]}}"#
    );
    assert_eq!(
        merged("Pod", r#"{"spec":{"containers":[{"name":"a"}]},"spec":{"containers":[]}}"#),
        r#"{"spec":{"containers":[]}}"#
    );
}
