//! APIServices (kube-aggregator `pkg/registry/apiservice`, `pkg/apis/apiregistration/validation`).

use crate::{
    api::{
        ErrorList, FieldError, Path,
        duration::format_time,
        field::quote,
        names::{Messages, is_dns1035_label, is_dns1123_subdomain, is_path_segment_name, is_valid_port_num},
    },
    json,
    object::Value,
    registry::{
        builtin::kind::Own,
        strategy::StrategyContext,
        validation::{object_meta::push_messages, validate_object_meta, validate_one_of},
    },
};

pub const GROUP: &str = "apiregistration.k8s.io";

pub struct ApiService;

const SPEC: Path<'static> = Path::new("spec");
const MAX_GROUP_PRIORITY: i64 = 20000;
const MAX_VERSION_PRIORITY: i64 = 1000;

impl Own for ApiService {
    /// What this server serves itself is available from the beginning.
    fn prepare(&self, cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        if old.is_some() {
            return;
        }
        let status = if is_local(new) { json!({"conditions": [(local_condition(cx))]}) } else { Value::object() };
        new.set(&["status"], status);
    }

    fn judges_metadata(&self) -> bool {
        true
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, _old: Option<&Value>, errors: &mut ErrorList) {
        validate_object_meta(new, false, &|name, _| judge_name(new, name), errors);
        validate_spec(new, errors);
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        let status = Path::new("status");
        let path = status.child("conditions");
        for (index, condition) in new.array_at(&["status", "conditions"]).iter().enumerate() {
            let path = path.index(index);
            let allowed = ["True", "False", "Unknown"];
            validate_one_of(condition.str_at(&["status"]), &allowed, &path.child("status"), errors);
        }
    }
}

fn is_local(service: &Value) -> bool {
    service.at(&["spec", "service"]).is_none_or(Value::is_null)
}

fn local_condition(cx: &StrategyContext<'_>) -> Value {
    json!({
        "type": "Available",
        "status": "True",
        "lastTransitionTime": (format_time(cx.now)),
        "reason": "Local",
        "message": "Local APIServices are always available"
    })
}

fn judge_name(service: &Value, name: &str) -> Messages {
    let bad = is_path_segment_name(name);
    let wanted = format!("{}.{}", service.str_at(&["spec", "version"]), service.str_at(&["spec", "group"]));
    if !bad.is_empty() || name == wanted {
        return bad;
    }
    vec![format!("must be `spec.version+\".\"+spec.group`: {}", quote(&wanted)).into()]
}

fn validate_spec(new: &Value, errors: &mut ErrorList) {
    let (group, version) = (new.str_at(&["spec", "group"]), new.str_at(&["spec", "version"]));
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&SPEC.child("group"), why));
    }
    if !group.is_empty() {
        push_messages(is_dns1123_subdomain(group), group, &SPEC.child("group"), errors);
    }
    push_messages(is_dns1035_label(version), version, &SPEC.child("version"), errors);
    for (name, max) in [("groupPriorityMinimum", MAX_GROUP_PRIORITY), ("versionPriority", MAX_VERSION_PRIORITY)] {
        let value = new.i64_at(&["spec", name]).unwrap_or(0);
        if !(1..=max).contains(&value) {
            let why = format!("must be positive and less than {max}");
            errors.push(FieldError::invalid(&SPEC.child(name), value, &why));
        }
    }
    validate_service(new, errors);
}

fn validate_service(new: &Value, errors: &mut ErrorList) {
    // The bundle is base64 text of its bytes.
    let bundle = base64_length(new.str_at(&["spec", "caBundle"]));
    let skip = new.bool_at(&["spec", "insecureSkipTLSVerify"]);
    let skip_path = SPEC.child("insecureSkipTLSVerify");
    if is_local(new) {
        if bundle > 0 {
            let shown = format!("{bundle} bytes");
            errors.push(FieldError::invalid(
                &SPEC.child("caBundle"),
                shown,
                "local APIServices may not have a caBundle",
            ));
        }
        if skip {
            errors.push(FieldError::invalid(&skip_path, true, "local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    let path = SPEC.child("service");
    for name in ["namespace", "name"] {
        if new.str_at(&["spec", "service", name]).is_empty() {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    let port = new.i64_at(&["spec", "service", "port"]).unwrap_or(0);
    let bad = is_valid_port_num(port);
    if !bad.is_empty() {
        let why = format!("port is not valid: {}", bad.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, &why));
    }
    if skip && bundle > 0 {
        errors.push(FieldError::invalid(&skip_path, true, "may not be true if caBundle is present"));
    }
}

/// Bytes that base64 text stands for.
fn base64_length(text: &str) -> usize {
    let digits = text.bytes().filter(|byte| !matches!(byte, b'=' | b'\n' | b'\r')).count();
    digits * 3 / 4
}
