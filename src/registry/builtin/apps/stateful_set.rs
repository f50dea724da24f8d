//! StatefulSet (kubernetes `pkg/registry/apps/statefulset`).

use super::workload::{self, TemplateOf};
use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Value, to_string},
    registry::{
        builtin::{
            core::pod::{PodPolicy, claim_warnings, validate_claim_spec},
            kind::Own,
        },
        strategy::StrategyContext,
        validation::{
            LabelSelectorOptions, int_or_percent_value,
            object_meta::{validate_annotations, validate_labels},
            validate_dns1123_label, validate_immutable_or, validate_nonnegative, validate_not_more_than_100_percent,
            validate_positive_int_or_percent,
        },
    },
};

pub struct StatefulSet {
    pub pods: PodPolicy,
}

impl Own for StatefulSet {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        workload::prepare(new, old);
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let empty = Value::object();
        let body = new.get("spec").unwrap_or(&empty);
        let mut check = Check { pods: self.pods, old, skip_template: false };
        let Some(old) = old else {
            check.spec(body, errors);
            return;
        };
        // A template that would not pass as it was is not judged again.
        let mut before = ErrorList::new();
        check.spec(old.get("spec").unwrap_or(&empty), &mut before);
        check.skip_template = !before.is_empty();
        check.spec(body, errors);
        validate_kept(new, old, errors);
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = workload::warnings(new, old);
        let spec = Path::new("spec");
        let path = spec.child("volumeClaimTemplates");
        for (index, claim) in new.array_at(&["spec", "volumeClaimTemplates"]).iter().enumerate() {
            let Some(body) = claim.get("spec") else { continue };
            let path = path.index(index);
            // Upstream's path differs on update.
            let path = if old.is_some() { path.child("Spec") } else { path };
            warnings.extend(claim_warnings(body, &path));
        }
        if new.i64_at(&["spec", "revisionHistoryLimit"]).is_some_and(|limit| limit < 0) {
            warnings.push(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                    .to_owned(),
            );
        }
        warnings
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        let (path, empty) = (Path::new("status"), Value::object());
        let status = new.get("status").unwrap_or(&empty);
        let counts = [
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ];
        workload::validate_nonnegative_members(status, &counts, &path, errors);
        let bounded = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
        workload::validate_counts(status, &bounded, "status.readyReplicas", &path, errors);
        workload::validate_collisions(new, old, errors);
    }
}

fn validate_kept(new: &Value, old: &Value, errors: &mut ErrorList) {
    let spec = Path::new("spec");
    for (member, zero) in [
        ("selector", Value::Null),
        ("volumeClaimTemplates", Value::Null),
        ("serviceName", "".into()),
        ("podManagementPolicy", "".into()),
    ] {
        let of = |set: &Value| set.at(&["spec", member]).cloned();
        validate_immutable_or(of(new).as_ref(), of(old).as_ref(), zero, &spec.child(member), errors);
    }
}

/// The rules of a spec, which an update asks of the old one, too.
#[derive(Clone, Copy)]
struct Check<'a> {
    pods: PodPolicy,
    old: Option<&'a Value>,
    skip_template: bool,
}

impl Check<'_> {
    fn spec(self, body: &Value, errors: &mut ErrorList) {
        let (spec, empty) = (Path::new("spec"), Value::object());
        let policy = body.str_at(&["podManagementPolicy"]);
        match policy {
            "OrderedReady" | "Parallel" => {}
            "" => errors.push(FieldError::required(&spec.child("podManagementPolicy"), "")),
            _ => {
                let why = "must be 'OrderedReady' or 'Parallel'";
                errors.push(FieldError::invalid(&spec.child("podManagementPolicy"), policy, why));
            }
        }
        validate_strategy(body.get("updateStrategy").unwrap_or(&empty), &spec.child("updateStrategy"), errors);
        validate_retention(body, &spec.child("persistentVolumeClaimRetentionPolicy"), errors);
        if self.old.is_none() {
            let path = spec.child("volumeClaimTemplates");
            for (index, claim) in body.array_at(&["volumeClaimTemplates"]).iter().enumerate() {
                let claim = claim.get("spec").unwrap_or(&empty);
                let path = path.index(index);
                validate_claim_spec(claim, LabelSelectorOptions::default(), &path.child("spec"), errors);
            }
        }
        workload::validate_nonnegative_members(body, &["replicas", "minReadySeconds"], &spec, errors);
        if let Some(start) = body.i64_at(&["ordinals", "start"]) {
            validate_nonnegative(start, &spec.child("ordinals.start"), errors);
        }
        let service = body.str_at(&["serviceName"]);
        if self.old.is_none() && !service.is_empty() {
            validate_dns1123_label(service, &spec.child("serviceName"), errors);
        }
        self.pods(body, &spec, errors);
    }

    fn pods(self, body: &Value, spec: &Path<'_>, errors: &mut ErrorList) {
        let (path, empty) = (spec.child("selector"), Value::object());
        workload::validate_required_selector(body, "statefulset", &path, errors);
        let template = body.get("template").unwrap_or(&empty);
        let at = spec.child("template");
        let of = TemplateOf { pods: self.pods, old: self.old, kind: "StatefulSet" };
        if let Some(selector) = workload::parsed_selector(body, "", &path, errors) {
            workload::validate_template_labels(template, &selector, &at, errors);
            if !self.skip_template {
                let judged = with_claims(template, body.array_at(&["volumeClaimTemplates"]));
                let old = self.old.and_then(|old| old.at(&["spec", "template"]));
                crate::registry::builtin::core::pod::validate_pod_template_spec(&judged, old, self.pods, &at, errors);
            }
            let metadata = |name: &str| template.object_at(&["metadata", name]);
            validate_labels(metadata("labels"), &at.child("labels"), errors);
            validate_annotations(metadata("annotations"), &at.child("annotations"), errors);
        }
        of.validate_lifetime(template, &at, errors);
    }
}

/// The template as its pods will have it: names the controller sets are gone, claims are volumes.
fn with_claims(template: &Value, claims: &[Value]) -> Value {
    let mut template = template.clone();
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    spec.remove("subdomain");
    spec.remove("hostname");
    if claims.is_empty() {
        return template;
    }
    let names: Vec<&str> = claims.iter().map(|claim| claim.str_at(&["metadata", "name"])).collect();
    let mut volumes: Vec<Value> = names
        .iter()
        .map(|name| {
            Value::from([("name", Value::from(*name)), ("persistentVolumeClaim", [("claimName", *name)].into())])
        })
        .collect();
    let own = spec.remove("volumes");
    let own = own.as_ref().and_then(Value::as_array).unwrap_or(&[]);
    volumes.extend(own.iter().filter(|volume| !names.contains(&volume.str_at(&["name"]))).cloned());
    spec.insert("volumes", volumes);
    template
}

fn validate_strategy(strategy: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("rollingUpdate");
    let rolling = strategy.get("rollingUpdate").filter(|it| !it.is_null());
    match (strategy.str_at(&["type"]), rolling) {
        ("", _) => errors.push(FieldError::required(path, "")),
        ("OnDelete" | "RollingUpdate", None) => {}
        ("OnDelete", Some(rolling)) => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid_shown(&at, show_rolling(rolling), why));
        }
        ("RollingUpdate", Some(rolling)) => validate_rolling(rolling, &at, errors),
        _ => {
            let shown = workload::show_strategy(strategy, show_rolling);
            errors.push(FieldError::invalid_shown(path, shown, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}

/// `{"Partition":…,"MaxUnavailable":…}`
fn show_rolling(rolling: &Value) -> String {
    let partition = workload::number(rolling, &["partition"]);
    let unavailable = rolling.get("maxUnavailable").map_or("null".to_owned(), to_string);
    format!("{{\"Partition\":{partition},\"MaxUnavailable\":{unavailable}}}")
}

fn validate_rolling(rolling: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    workload::validate_nonnegative_members(rolling, &["partition"], path, errors);
    let Some(unavailable) = rolling.get("maxUnavailable").filter(|it| !it.is_null()) else { return };
    let path = path.child("maxUnavailable");
    validate_positive_int_or_percent(unavailable, &path, errors);
    if int_or_percent_value(unavailable) == 0 {
        errors.push(FieldError::invalid_ref(&path, unavailable, "cannot be 0"));
    }
    validate_not_more_than_100_percent(unavailable, &path, errors);
}

fn validate_retention(body: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(policy) = body.get("persistentVolumeClaimRetentionPolicy").filter(|it| !it.is_null()) else { return };
    for member in ["whenDeleted", "whenScaled"] {
        let value = policy.str_at(&[member]);
        if !matches!(value, "Retain" | "Delete") {
            errors.push(FieldError::not_supported(&path.child(member), value, &["Retain", "Delete"]));
        }
    }
}
