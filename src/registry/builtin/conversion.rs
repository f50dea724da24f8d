//! What upstream's way through its internal types does to an object of a version: members that mirror each other,
//! members that only clients write. Runs at the end of every decode, before defaults. Mirrors the hand-written parts of
//! `pkg/apis/*/v1/conversion.go` of kubernetes.

use crate::{object::Value, schema::go_base64};

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// Brings a decoded object to the form its version has after a round trip.
///
/// # Errors
/// What upstream's conversion says, for the sentence of the decoder.
pub fn round_trip(group: &str, version: &str, kind: &str, object: &mut Value) -> Result<(), String> {
    match (group, kind) {
        ("", "Secret") => merge_string_data(object),
        ("", "Node") => mirror_pod_cidrs(object),
        ("autoscaling", "HorizontalPodAutoscaler") => super::autoscaling::round_trip(version, object),
        ("apps", "DaemonSet") => template_generation(object)?,
        ("apps", "Deployment") => rollback(object)?,
        ("apps", "StatefulSet") => name_claim_templates(object),
        _ => {}
    }
    Ok(())
}

/// What the conversion of an internal object without content adds to an empty one: members that are pointers in the
/// version alone.
pub fn of_nothing(group: &str, version: &str, kind: &str, object: &mut Value) {
    match (group, version, kind) {
        ("apps", _, "Deployment" | "ReplicaSet" | "StatefulSet") => object.set(&["spec", "replicas"], 0),
        ("apps", _, "DaemonSet") => set_template_generation(object, 0),
        _ => {}
    }
}

/// `stringData` is written over `data` and never kept.
fn merge_string_data(secret: &mut Value) {
    let Some(text) = secret.as_object_mut().and_then(|map| map.remove("stringData")) else { return };
    let Some(text) = text.as_object().filter(|text| !text.is_empty()) else { return };
    let data = secret.make(&["data"]).make_object();
    for (key, value) in text.iter() {
        data.insert(key.clone(), go_base64::encode(value.as_str().unwrap_or("").as_bytes()));
    }
}

/// The first of several networks stands alone, too; alone it wins.
fn mirror_pod_cidrs(node: &mut Value) {
    let alone = node.str_at(&["spec", "podCIDR"]).to_owned();
    let first = node.array_at(&["spec", "podCIDRs"]).first().and_then(Value::as_str).map(str::to_owned);
    match first {
        Some(first) if alone.is_empty() => node.set(&["spec", "podCIDR"], first),
        Some(first) if first == alone => {}
        _ if !alone.is_empty() => node.set(&["spec", "podCIDRs"], vec![alone]),
        _ => {}
    }
}

/// The generation of a template is a field upstream and an annotation in apps/v1.
fn template_generation(set: &mut Value) -> Result<(), String> {
    let annotations = set.make(&["metadata", "annotations"]).make_object();
    let given = annotations.get(TEMPLATE_GENERATION).and_then(Value::as_str);
    let generation = given.map_or(Ok(0), parse_int)?;
    annotations.insert(TEMPLATE_GENERATION, generation.to_string());
    Ok(())
}

/// Sets the generation of a daemon set's template.
pub fn set_template_generation(set: &mut Value, generation: i64) {
    set.make(&["metadata", "annotations"]).make_object().insert(TEMPLATE_GENERATION, generation.to_string());
}

pub fn template_generation_of(set: &Value) -> i64 {
    set.str_at(&["metadata", "annotations", TEMPLATE_GENERATION]).parse().unwrap_or(0)
}

fn rollback(deployment: &mut Value) -> Result<(), String> {
    let Some(annotations) = deployment.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let Some(given) = annotations.get(ROLLBACK_TO).and_then(Value::as_str).map(str::to_owned) else { return Ok(()) };
    if given.is_empty() {
        annotations.remove(ROLLBACK_TO);
        let empty = annotations.is_empty();
        if empty {
            deployment.remove_at(&["metadata", "annotations"]);
        }
        return Ok(());
    }
    let revision = parse_int(&given)
        .map_err(|error| format!("failed to parse annotation[{ROLLBACK_TO}]={given} as int64: {error}"))?;
    annotations.insert(ROLLBACK_TO, revision.to_string());
    Ok(())
}

/// Go's `strconv.ParseInt` and its words.
fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let why =
            if matches!(error.kind(), PosOverflow | NegOverflow) { "value out of range" } else { "invalid syntax" };
        format!("strconv.ParseInt: parsing {}: {why}", crate::api::field::quote(text))
    })
}

/// Claims inside a stateful set say what they are.
fn name_claim_templates(set: &mut Value) {
    let claims = set.at_mut(&["spec", "volumeClaimTemplates"]).and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten().filter_map(Value::as_object_mut) {
        claim.insert("apiVersion", "v1");
        claim.insert("kind", "PersistentVolumeClaim");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn after(group: &str, kind: &str, mut object: Value) -> Value {
        round_trip(group, "v1", kind, &mut object).unwrap();
        object
    }

    #[test]
    fn string_data_is_written_over_data() {
        let secret = json!({"data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}});
        assert_eq!(after("", "Secret", secret), json!({"data": {"a": "bmV3", "b": "Yg=="}}));
    }

    #[test]
    fn a_nodes_networks_mirror_each_other() {
        let wanted = json!({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}});
        assert_eq!(after("", "Node", json!({"spec": {"podCIDR": "10.0.0.0/24"}})), wanted);
        assert_eq!(after("", "Node", json!({"spec": {"podCIDRs": ["10.0.0.0/24"]}})), wanted);
        let differ = json!({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.9.0.0/24", "fd00::/64"]}});
        assert_eq!(after("", "Node", differ), wanted);
        assert_eq!(after("", "Node", json!({"spec": {}})), json!({"spec": {}}));
    }

    #[test]
    fn annotations_that_are_numbers_are_read_as_numbers() {
        let set = after("apps", "DaemonSet", json!({"metadata": {"name": "a"}}));
        assert_eq!(template_generation_of(&set), 0);
        let mut odd = json!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "x"}}});
        let error = round_trip("apps", "v1", "DaemonSet", &mut odd).unwrap_err();
        assert_eq!(error, "strconv.ParseInt: parsing \"x\": invalid syntax");
    }
}
