//! The policy of custom resources, one for each version (apiextensions-apiserver `pkg/registry/customresource`).

use std::sync::{Arc, OnceLock};

use super::schema::CustomSchema;
use crate::{
    api::{ErrorList, FieldError, Path, field::ErrorType, field::quote, meta::Meta, names},
    object::Value,
    registry::{
        strategy::{ResetFields, Strategy, StrategyContext},
        validation::object_meta::{validate_meta, validate_object_meta_update},
    },
    schema::{
        ownership::FieldSet,
        patch::go_print,
        structural::{
            correlate::{Comparison, Correlated},
            embedded, list_types,
            validate::validate,
        },
    },
};

/// Where a Scale is in an object, each path as the definition has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub selector: Option<String>,
}

/// Member names of a simple path: `.spec.replicas`.
pub fn path_steps(path: &str) -> Vec<String> {
    path.strip_prefix('.').unwrap_or(path).split('.').map(str::to_owned).collect()
}

/// Objects of one version.
pub struct CustomStrategy {
    pub schema: Arc<CustomSchema>,
    pub kind: Arc<str>,
    /// The status has an endpoint of its own.
    pub has_status: bool,
    pub scale: Option<Scale>,
}

impl CustomStrategy {
    /// What is wrong with kind and apiVersion; nothing else is judged then.
    fn type_problems(&self, new: &Value) -> Vec<FieldError> {
        let mut problems = Vec::new();
        for (name, wanted) in [("kind", &*self.kind), ("apiVersion", &*self.schema.api_version)] {
            let given = new.str_at(&[name]);
            if given != wanted {
                problems.push(FieldError::invalid(&name, given, &format!("must be {wanted}")));
            }
        }
        problems
    }

    fn replicas(&self, object: &Value, path: &str, errors: &mut ErrorList) {
        match at(object, path) {
            Ok(None) => {}
            Ok(Some(Value::Int(number))) if *number < 0 => {
                errors.push(FieldError::invalid(&path, *number, "should be a non-negative integer"));
            }
            Ok(Some(Value::Int(number))) if *number > i64::from(i32::MAX) => {
                errors.push(FieldError::invalid(
                    &path,
                    *number,
                    &format!("should be less than or equal to {}", i32::MAX),
                ));
            }
            Ok(Some(Value::Int(_))) => {}
            Ok(Some(other)) => errors.push(FieldError::invalid(&path, 0, &accessor_error(path, other, "int64"))),
            Err(why) => errors.push(FieldError::invalid(&path, 0, &why)),
        }
    }

    fn scale_status(&self, object: &Value, errors: &mut ErrorList) {
        let Some(scale) = &self.scale else { return };
        self.replicas(object, &scale.status_replicas, errors);
        let Some(path) = &scale.selector else { return };
        match at(object, path) {
            Ok(None | Some(Value::Str(_))) => {}
            Ok(Some(other)) => errors.push(FieldError::invalid(path, "", &accessor_error(path, other, "string"))),
            Err(why) => errors.push(FieldError::invalid(path, "", &why)),
        }
    }

    fn whole(&self, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let root = self.schema.root();
        let comparison = Comparison::default();
        let correlated = old.map(|old| Correlated::new(root, new, old, &comparison));
        validate(root, new, correlated, "", errors);
        if let Some(scale) = &self.scale {
            self.replicas(new, &scale.spec_replicas, errors);
        }
        self.scale_status(new, errors);
        embedded::validate(root, new, false, &embedded_meta, &Path::ROOT, errors);
        self.lists(new, old, errors);
        self.rules(errors);
    }

    /// An update may keep what is there twice.
    fn lists(&self, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let repeated = |object: &Value| {
            let mut found = ErrorList::new();
            list_types::validate(self.schema.root(), object, &Path::ROOT, &mut found);
            found
        };
        let found = repeated(new);
        if !found.is_empty() && old.is_none_or(|old| repeated(old).is_empty()) {
            errors.extend(found);
        }
    }

    /// What upstream says where rules cannot be judged since the object does not even have the right form.
    fn rules(&self, errors: &mut ErrorList) {
        use ErrorType::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
        let blocks =
            |error: &FieldError| matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid);
        if self.schema.has_rules() && errors.iter().any(blocks) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(FieldError::invalid(&"<nil>", Value::Null, why));
        }
    }
}

fn at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut node = object;
    let mut walked = String::new();
    for step in path.strip_prefix('.').unwrap_or(path).split('.') {
        let Value::Object(map) = node else {
            let (shown, kind) = (go_print::plain(node), go_print::type_name(node));
            return Err(format!(
                "{path} accessor error: {shown} is of the type {kind}, expected map[string]interface{{}}"
            ));
        };
        walked = walked + "." + step;
        match map.get(step) {
            Some(inner) => node = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

fn accessor_error(path: &str, found: &Value, expected: &str) -> String {
    let (shown, kind) = (go_print::plain(found), go_print::type_name(found));
    format!("{path} accessor error: {shown} is of the type {kind}, expected {expected}")
}

/// Judges the metadata of an embedded object: its name may be missing, and whether it has a namespace is its own affair.
pub fn embedded_meta(metadata: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let mut map = metadata.as_object().cloned().unwrap_or_default();
    let text = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let namespaced = !text("namespace").is_empty();
    if text("name").is_empty() {
        map.insert("name", "fakename");
    }
    let rule = |name: &str, prefix: bool| names::name_is_path_segment(name, prefix);
    validate_meta(Meta::from_map(Some(&map)), namespaced, &rule, path, errors);
}

/// Texts about finalizers that are new in `object`.
fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let known: Vec<&str> = old.map(|old| Meta::of(old).finalizers().collect()).unwrap_or_default();
    let mut added: Vec<&str> = Meta::of(object).finalizers().filter(|name| !known.contains(name)).collect();
    added.sort_unstable();
    added.dedup();
    let mut warnings = Vec::new();
    for name in added {
        let say = |what: &str| format!("metadata.finalizers: {}: {what}", quote(name));
        warnings.extend(names::is_qualified_name(name).iter().map(|problem| say(problem)));
        if !name.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(&name) {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            warnings.push(say(&format!(
                "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            )));
        }
    }
    warnings
}

impl Strategy for CustomStrategy {
    fn prepare_for_create(&self, _cx: &StrategyContext<'_>, new: &mut Value) {
        if self.has_status {
            new.remove_at(&["status"]);
        }
        new.set(&["metadata", "generation"], 1);
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        let wrong = self.type_problems(new);
        if !wrong.is_empty() {
            errors.retain(|_| false);
            errors.extend(wrong);
            return;
        }
        self.whole(new, None, errors);
    }

    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        if self.has_status
            && let Some(map) = new.as_object_mut()
        {
            match old.get("status") {
                Some(status) => map.insert("status", status.clone()),
                None => map.remove("status"),
            };
        }
        if differs(new, old) {
            new.set(&["metadata", "generation"], Meta::of(old).generation() + 1);
        }
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        let wrong = self.type_problems(new);
        if !wrong.is_empty() {
            errors.retain(|_| false);
            errors.extend(wrong);
            return;
        }
        // Upstream asks this here once more.
        validate_object_meta_update(new, old, errors);
        self.whole(new, Some(old), errors);
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
        finalizer_warnings(new, old)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self) -> ResetFields {
        static STATUS: OnceLock<FieldSet> = OnceLock::new();
        match self.has_status {
            true => ResetFields::Without(STATUS.get_or_init(|| FieldSet::of(&[&["status"]]))),
            false => ResetFields::None,
        }
    }
}

/// Whether anything outside the metadata is different.
fn differs(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return new != old };
    let rest = |map| crate::object::Map::iter(map).filter(|(name, _)| name.as_str() != "metadata");
    !rest(new).eq(rest(old))
}

/// The status endpoint: nothing but the status is taken, and nothing but the status is judged.
pub struct CustomStatus(pub Arc<CustomStrategy>);

impl Strategy for CustomStatus {
    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        let status = new.remove_at(&["status"]);
        let owners = new.remove_at(&["metadata", "managedFields"]);
        let version = new.remove_at(&["metadata", "resourceVersion"]);
        *new = old.clone();
        let Some(map) = new.as_object_mut() else { return };
        match status {
            Some(status) => map.insert("status", status),
            None => map.remove("status"),
        };
        let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        for (name, value) in [("managedFields", owners), ("resourceVersion", version)] {
            match value {
                Some(value) => metadata.insert(name, value),
                None => metadata.remove(name),
            };
        }
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        let strategy = &*self.0;
        let wrong = strategy.type_problems(new);
        if !wrong.is_empty() {
            errors.retain(|_| false);
            errors.extend(wrong);
            return;
        }
        validate_object_meta_update(new, old, errors);
        let root = strategy.schema.root();
        if let (Some(status), Some(node)) = (new.get("status"), root.property("status")) {
            let comparison = Comparison::default();
            let correlated = Correlated::new(root, new, old, &comparison).key("status");
            validate(node, status, correlated, "status", errors);
        }
        strategy.scale_status(new, errors);
        strategy.lists(new, Some(old), errors);
        strategy.rules(errors);
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self) -> ResetFields {
        static REST: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(REST.get_or_init(|| FieldSet::of(&[&["metadata"], &["spec"]])))
    }
}
