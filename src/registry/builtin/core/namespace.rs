//! Namespace (kubernetes `pkg/registry/core/namespace`). A namespace has finalizers of its own in its spec, which only
//! the endpoint `finalize` changes; a first deletion only marks it.

use std::sync::OnceLock;

use crate::{
    api::{ErrorList, FieldError, Meta, Path, names::Messages},
    object::Value,
    registry::{
        builtin::kind::{NameRule, Own, keep, validate_metadata_as_on_create, validate_metadata_on_update},
        strategy::{ResetFields, Strategy, StrategyContext},
        validation::object_meta::{validate_bare_finalizer, validate_finalizer_name},
    },
    schema::ownership::FieldSet,
};

const FINALIZER: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub struct Namespace;

impl Own for Namespace {
    fn prepare(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: Option<&Value>) {
        match old {
            Some(old) => {
                let kept = old.at(&["spec", "finalizers"]).cloned();
                let spec = new.make(&["spec"]).make_object();
                match kept {
                    Some(kept) => spec.insert("finalizers", kept),
                    None => spec.remove("finalizers"),
                };
            }
            None => {
                new.set(&["status"], [("phase", "Active")]);
                let finalizers = new.make(&["spec", "finalizers"]);
                match finalizers.as_array_mut() {
                    Some(list) if list.iter().any(|it| it.as_str() == Some(FINALIZER)) => {}
                    Some(list) => list.push(FINALIZER.into()),
                    None => *finalizers = vec![FINALIZER].into(),
                }
            }
        }
    }

    /// Upstream runs the rules of a create, then those of an update.
    fn judges_metadata(&self) -> bool {
        true
    }

    fn validate(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        validate_metadata_as_on_create(new, false, NameRule::Label, errors);
        let spec = Path::new("spec");
        for name in finalizers(new) {
            validate_finalizer(name, &spec.child("finalizers"), errors);
        }
        if let Some(old) = old {
            validate_metadata_on_update(new, old, errors);
        }
    }

    /// A generated name is known only here.
    fn canonicalise(&self, new: &mut Value) {
        let name = Meta::of(new).name().to_owned();
        new.make(&["metadata", "labels"]).make_object().insert(NAME_LABEL, name);
    }

    fn validate_status(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        let phase = new.str_at(&["status", "phase"]);
        let (wanted, why) = if Meta::of(new).is_being_deleted() {
            ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
        } else {
            ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
        };
        if phase != wanted {
            let status = Path::new("status");
            errors.push(FieldError::invalid(&status.child("Phase"), phase, why));
        }
    }

    /// The first deletion only marks; later ones remove what is finalized.
    fn keeps_deleted(&self, object: &Value) -> bool {
        !Meta::of(object).is_being_deleted() || finalizers(object).next().is_some()
    }

    fn on_marked_for_deletion(&self, object: &mut Value) {
        object.remove_at(&["metadata", "deletionGracePeriodSeconds"]);
        object.set(&["status", "phase"], "Terminating");
    }
}

fn finalizers(namespace: &Value) -> impl Iterator<Item = &str> {
    namespace.array_at(&["spec", "finalizers"]).iter().filter_map(Value::as_str)
}

fn validate_finalizer(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let before = errors.len();
    validate_finalizer_name(name, path, errors);
    if errors.len() == before || !name.contains('/') {
        validate_bare_finalizer(name, path, errors);
    }
}

/// `namespaces/finalize`: `spec.finalizers` and metadata are taken.
pub struct Finalize;

impl Strategy for Finalize {
    fn prepare_for_update(&self, _cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        keep(new, old, "status");
    }

    fn validate_update(&self, _cx: &StrategyContext<'_>, new: &Value, _old: &Value, errors: &mut ErrorList) {
        crate::registry::validation::validate_bare_finalizers(new, errors);
        let (spec, list) = (Path::new("spec"), "finalizers");
        let path = spec.child(list);
        for (index, name) in finalizers(new).enumerate() {
            validate_finalizer(name, &path.index(index), errors);
        }
    }

    fn canonicalise(&self, new: &mut Value) {
        Namespace.canonicalise(new);
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Messages {
        NameRule::Label.judge(name, prefix)
    }

    fn reset_fields(&self) -> ResetFields {
        static STATUS: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(STATUS.get_or_init(|| FieldSet::of(&[&["status"]])))
    }

    fn keeps_deleted(&self, object: &Value) -> bool {
        Namespace.keeps_deleted(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, registry::builtin::kind::testing::context};

    #[test]
    fn a_new_namespace_is_active_and_has_the_finalizer_of_the_controller() {
        let mut new = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["example.com/f"]}, "status": {"phase": "Terminating"}});
        Namespace.prepare(&context(), &mut new, None);
        Namespace.canonicalise(&mut new);
        assert_eq!(new.at(&["spec", "finalizers"]), Some(&json!(["example.com/f", "kubernetes"])));
        assert_eq!(new.str_at(&["status", "phase"]), "Active");
        assert_eq!(new.str_at(&["metadata", "labels", NAME_LABEL]), "n");
    }

    #[test]
    fn it_goes_only_when_it_was_marked_and_nothing_holds_it() {
        let marked = json!({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}, "spec": {}});
        assert!(!Namespace.keeps_deleted(&marked));
        assert!(Namespace.keeps_deleted(&json!({"metadata": {}, "spec": {}})));
        let mut held = marked.clone();
        held.set(&["spec", "finalizers"], json!(["kubernetes"]));
        assert!(Namespace.keeps_deleted(&held));
    }
}
