//! RuntimeClass (kubernetes `pkg/registry/node/runtimeclass`, `pkg/apis/node/validation`).

use std::collections::HashSet;

use crate::{
    api::{ErrorList, FieldError, Path},
    object::{Map, Value, to_string},
    registry::{
        builtin::{
            core::pod::{PodOptions, deprecated_node_label, validate_overhead, validate_tolerations},
            kind::Own,
        },
        strategy::StrategyContext,
        validation::{
            declarative::{self, Format},
            object_meta::validate_labels,
        },
    },
};

pub struct RuntimeClass;

impl Own for RuntimeClass {
    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        if old.is_none() {
            if let Some(overhead) = new.at(&["overhead", "podFixed"]).filter(|it| !it.is_null()) {
                validate_overhead(overhead, PodOptions::default(), &Path::new("overhead"), errors);
            }
            let scheduling = Path::new("scheduling");
            validate_labels(new.object_at(&["scheduling", "nodeSelector"]), &scheduling.child("nodeSelector"), errors);
            validate_own_tolerations(
                new.array_at(&["scheduling", "tolerations"]),
                &scheduling.child("tolerations"),
                errors,
            );
        }
        declarative::merge(errors, declared(new, old));
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let labels = new.object_at(&["scheduling", "nodeSelector"]).into_iter().flat_map(Map::keys);
        labels.filter_map(|key| Some(format!("scheduling.nodeSelector: {}", deprecated_node_label(key)?))).collect()
    }
}

fn declared(new: &Value, old: Option<&Value>) -> ErrorList {
    let (mut errors, path) = (ErrorList::new(), Path::new("handler"));
    let before = old.and_then(|old| old.get("handler"));
    if !declarative::changed(new.get("handler"), old, before) {
        return errors;
    }
    if old.is_some() {
        declarative::immutable(new.get("handler"), before, &path, &mut errors);
        if !errors.is_empty() {
            return errors;
        }
    }
    if declarative::required(new.get("handler"), &path, &mut errors) {
        declarative::format(new.str_at(&["handler"]), Format::ShortName, &path, &mut errors);
    }
    errors
}

fn validate_own_tolerations(tolerations: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    validate_tolerations(tolerations, PodOptions::default(), path, errors);
    let mut seen = HashSet::new();
    for (index, toleration) in tolerations.iter().enumerate() {
        let key = ["key", "operator", "value", "effect"].map(|member| toleration.str_at(&[member]));
        if !seen.insert(key) {
            let seconds = toleration.get("tolerationSeconds").map_or("null".to_owned(), to_string);
            let [key, operator, value, effect] = key.map(|text| to_string(&text.into()));
            let mut error = FieldError::duplicate(&path.index(index), Value::Null);
            error.body = format!(
                "Duplicate value: {{\"Key\":{key},\"Operator\":{operator},\"Value\":{value},\"Effect\":{effect},\"TolerationSeconds\":{seconds}}}"
            );
            errors.push(error);
        }
    }
}
