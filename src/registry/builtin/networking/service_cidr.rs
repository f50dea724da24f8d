//! ServiceCIDRs (kubernetes `pkg/registry/networking/servicecidr`, `pkg/apis/networking/validation`).

use std::sync::OnceLock;

use crate::{
    api::{ErrorList, FieldError, Path, ip::parse_cidr},
    json,
    object::{Value, to_string},
    registry::{
        strategy::{ResetFields, Strategy, StrategyContext},
        validation::{FIELD_IMMUTABLE, address::validate_cidr, validate_bare_finalizers},
    },
    schema::ownership::FieldSet,
};

pub struct ServiceCidrStrategy;

const MAX_CIDRS: usize = 2;

impl Strategy for ServiceCidrStrategy {
    fn prepare_for_create(&self, _cx: &StrategyContext<'_>, new: &mut Value) {
        new.set(&["status"], Value::object());
    }

    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        new.set(&["status"], old.get("status").cloned().unwrap_or_else(Value::object));
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        validate_spec(new, errors);
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
        let spec = Path::new("spec");
        let path = spec.child("cidrs");
        let (before, after) = (cidrs(old), cidrs(new));
        let changed = |index: usize| FieldError::invalid(&path.index(index), after[index].clone(), FIELD_IMMUTABLE);
        match (before.len(), after.len()) {
            (a, b) if a == b => {
                errors.extend((0..a).filter(|index| before[*index] != after[*index]).map(changed));
            }
            // A second family may join.
            (1, 2) => {
                errors.extend((0..1).filter(|index| before[*index] != after[*index]).map(changed));
                validate_spec(new, errors);
            }
            _ => errors.push(FieldError::invalid(&path, Value::Array(after.to_vec()), FIELD_IMMUTABLE)),
        }
    }

    fn reset_fields(&self) -> ResetFields {
        static STATUS: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(STATUS.get_or_init(|| FieldSet::of(&[&["status"]])))
    }
}

/// `servicecidrs/status`.
pub struct StatusStrategy;

/// What a status write leaves as it is (upstream ResetObjectMetaForStatus).
const KEPT_METADATA: [&str; 6] =
    ["annotations", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "labels", "ownerReferences"];

impl Strategy for StatusStrategy {
    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        new.set(&["spec"], old.get("spec").cloned().unwrap_or_else(Value::object));
        let metadata = new.make(&["metadata"]).make_object();
        for name in KEPT_METADATA {
            match old.at(&["metadata", name]) {
                Some(kept) => metadata.insert(name, kept.clone()),
                None => metadata.remove(name),
            };
        }
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        validate_bare_finalizers(new, errors);
    }

    fn reset_fields(&self) -> ResetFields {
        static OTHERS: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(OTHERS.get_or_init(|| FieldSet::of(&[&["metadata"], &["spec"]])))
    }
}

fn cidrs(object: &Value) -> &[Value] {
    object.array_at(&["spec", "cidrs"])
}

fn validate_spec(object: &Value, errors: &mut ErrorList) {
    let spec = Path::new("spec");
    let path = spec.child("cidrs");
    let cidrs = cidrs(object);
    if cidrs.is_empty() {
        return errors.push(FieldError::required(&path, "at least one CIDR required"));
    }
    if cidrs.len() > MAX_CIDRS {
        // Upstream shows its internal struct.
        let shown = to_string(&json!({"CIDRs": (Value::Array(cidrs.to_vec()))}));
        return errors.push(FieldError::invalid_shown(&path, shown, "may only hold up to 2 values"));
    }
    for (index, cidr) in cidrs.iter().enumerate() {
        validate_cidr(cidr.as_str().unwrap_or(""), &path.index(index), errors);
    }
    let families: Vec<bool> = cidrs.iter().filter_map(|it| Some(parse_cidr(it.as_str()?)?.network.is_ipv4())).collect();
    if let [a, b] = families[..]
        && a == b
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(&path, Value::Array(cidrs.to_vec()), why));
    }
}
