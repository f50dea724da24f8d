//! Rows of what extends the server: definitions, API services, webhooks, admission policies.

use super::{
    Cells, cells,
    text::{UNSET, age, condition, created_at, is_true, joined, name},
};
use crate::{
    object::{Map, Value},
    registry::printer::Printer,
};

pub fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "CustomResourceDefinition" => Printer::new(definition).gathering(),
        "APIService" => Printer::new(api_service),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            Printer::new(|it: &Value| -> Cells { cells![name(it), count(it, &["webhooks"]), age(it)] })
        }
        "ValidatingAdmissionPolicy" => Printer::new(|it: &Value| policy(it, "validations")),
        "MutatingAdmissionPolicy" => Printer::new(|it: &Value| policy(it, "mutations")),
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => Printer::new(policy_binding),
        _ => return None,
    })
}

fn count(it: &Value, path: &[&str]) -> i64 {
    it.array_at(path).len() as i64
}

fn definition(it: &Value) -> Cells {
    let spec = |path: &[&str]| it.at(&["spec"]).map_or("", |spec| spec.str_at(path));
    let versions = it.array_at(&["spec", "versions"]).iter().filter(|version| version.bool_at(&["served"]));
    let mut versions: Vec<String> = versions
        .map(|version| {
            version.str_at(&["name"]).to_owned() + if version.bool_at(&["storage"]) { "(storage)" } else { "" }
        })
        .collect();
    versions.sort_unstable();
    cells![
        name(it),
        spec(&["scope"]),
        versions.join(","),
        created_at(it),
        spec(&["group"]),
        spec(&["names", "kind"]),
        joined(it, &["spec", "names", "shortNames"]),
        is_true(it, &["status", "conditions"], "Established"),
    ]
}

fn api_service(it: &Value) -> Cells {
    let service = match it.at(&["spec", "service"]).filter(|it| !it.is_null()) {
        Some(service) => format!("{}/{}", service.str_at(&["namespace"]), service.str_at(&["name"])),
        None => "Local".to_owned(),
    };
    let available = condition(it, &["status", "conditions"], "Available").map(|it| {
        match (it.str_at(&["status"]), it.str_at(&["reason"])) {
            (status, reason) if status != "True" && !reason.is_empty() => format!("{status} ({reason})"),
            (status, _) => status.to_owned(),
        }
    });
    cells![name(it), service, available.unwrap_or_else(|| "Unknown".to_owned()), age(it)]
}

fn policy(it: &Value, rules: &str) -> Cells {
    let kind = match it.at(&["spec", "paramKind"]).filter(|it| !it.is_null()) {
        Some(kind) => format!("{}/{}", kind.str_at(&["apiVersion"]), kind.str_at(&["kind"])),
        None => UNSET.to_owned(),
    };
    cells![name(it), count(it, &["spec", rules]), kind, age(it)]
}

fn policy_binding(it: &Value) -> Cells {
    let reference = it.at(&["spec", "paramRef"]).filter(|it| !it.is_null());
    let parameter = reference.map_or_else(
        || UNSET.to_owned(),
        |reference| match (reference.str_at(&["namespace"]), reference.str_at(&["name"])) {
            (_, "") => {
                reference.at(&["selector"]).filter(|it| !it.is_null()).map_or_else(|| UNSET.to_owned(), go_selector)
            }
            ("", name) => format!("*/{name}"),
            (namespace, name) => format!("{namespace}/{name}"),
        },
    );
    cells![name(it), it.str_at(&["spec", "policyName"]), parameter, age(it)]
}

/// A label selector as Go's generated `String` prints it.
fn go_selector(it: &Value) -> String {
    let labels = it.object_at(&["matchLabels"]).into_iter().flat_map(Map::iter);
    let labels: String = labels.map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or(""))).collect();
    let expressions = it.array_at(&["matchExpressions"]).iter().map(|it| {
        let values: Vec<&str> = super::text::texts(it, &["values"]).collect();
        let (key, operator) = (it.str_at(&["key"]), it.str_at(&["operator"]));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
    });
    let expressions: String = expressions.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
