//! The strategy that built-in kinds share: what differs between them is a row of [`Rules`] and, where a row cannot say
//! it, what the kind has of its own ([`Own`]).
//!
//! Order on create: status cleared, own preparation, generation; then metadata, bare finalizers, own rules. On update:
//! status put back, own preparation, generation; then the same. Mirrors what `pkg/registry/*/*/strategy.go` of
//! kubernetes have in common.

use std::sync::{Arc, OnceLock};

use crate::{
    api::{ApiError, ErrorList, names::Messages},
    object::{Map, Value},
    registry::{
        resource::{Behaviour, SubresourceBehaviour},
        strategy::{
            ResetFields, Strategy, StrategyContext, name_is_dns_label, name_is_dns_subdomain, name_is_path_segment,
        },
        validation::{validate_bare_finalizers, validate_object_meta, validate_object_meta_update},
    },
    schema::{self, TypeId, ownership::FieldSet},
};

/// When `metadata.generation` moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Whatever a create says stays.
    Unmanaged,
    /// 1 on create, and no further.
    One,
    /// 1 on create, one more whenever one of these parts of the object changes.
    Parts(&'static [&'static [&'static str]]),
    /// One more whenever the spec changes, without being set on create (CSI drivers).
    BumpOnly,
    /// 1 on create, one more for any change but of metadata; labels count (endpoint slices).
    Content,
}

/// What the main endpoint does with `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The kind has none, or it is a member like any other.
    Ordinary,
    /// Cleared on create, kept on update.
    Separate,
    /// Taken on create, kept on update (nodes).
    SeparateOnUpdate,
}

/// What the status endpoint takes of `metadata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    Taken,
    /// Deployments.
    LabelsKept,
    /// Labels, annotations, finalizers, owners and the deletion stay (upstream `ResetObjectMetaForStatus`).
    UserDataKept,
    /// Everything but managedFields and the version stays (flow control).
    AllKept,
}

/// How names are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    Subdomain,
    Label,
    PathSegment,
}

/// What differs between kinds and can be said in a row.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Both empty in the row of kinds that have none of their own.
    pub group: &'static str,
    pub plural: &'static str,
    pub name: NameRule,
    pub generation: Generation,
    pub status: Status,
    pub status_metadata: StatusMetadata,
    pub creates_by_update: bool,
    pub unconditional_update: bool,
    pub returns_deleted_object: bool,
    pub bare_finalizers: bool,
    /// A deletion that says nothing about dependents orphans them (kinds of the first API versions).
    pub orphans_by_default: bool,
}

/// What a kind has of its own. `old` is `None` on create.
pub trait Own: Send + Sync {
    fn prepare(&self, _cx: &StrategyContext<'_>, _new: &mut Value, _old: Option<&Value>) {}

    /// Runs after metadata is judged, unless [`Own::judges_metadata`].
    fn validate(&self, _cx: &StrategyContext<'_>, _new: &Value, _old: Option<&Value>, _errors: &mut ErrorList) {}

    /// Whether [`Own::validate`] judges metadata too, at its own place in the order.
    fn judges_metadata(&self) -> bool {
        false
    }

    fn warnings(&self, _new: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    fn canonicalise(&self, _new: &mut Value) {}

    /// After the status endpoint has put back what it does not take.
    fn prepare_status(&self, _cx: &StrategyContext<'_>, _new: &mut Value, _old: &Value) {}

    fn validate_status(&self, _cx: &StrategyContext<'_>, _new: &Value, _old: &Value, _errors: &mut ErrorList) {}

    fn status_warnings(&self, _new: &Value, _old: &Value) -> Vec<String> {
        Vec::new()
    }

    /// A refusal of a deletion; see [`Strategy::check_delete`].
    fn check_delete(&self, _object: &Value) -> Result<(), ApiError> {
        Ok(())
    }

    /// See [`Strategy::keeps_deleted`].
    fn keeps_deleted(&self, _object: &Value) -> bool {
        false
    }

    /// See [`Strategy::on_marked_for_deletion`].
    fn on_marked_for_deletion(&self, _object: &mut Value) {}

    /// See [`Strategy::orphaning_warning`].
    fn orphaning_warning(&self) -> Option<&'static str> {
        None
    }

    /// What is wrong with a name, where the row's rule does not say it.
    fn validate_name(&self, _name: &str, _prefix: bool) -> Option<Messages> {
        None
    }
}

/// A kind that its row says everything about.
pub struct Plain;
impl Own for Plain {}

/// The main endpoint of a kind.
pub struct Kind {
    pub rules: Rules,
    own: Arc<dyn Own>,
    /// What Go prints for a status that was never set; `None` where it prints nothing.
    empty_status: Option<Value>,
    /// The stored type.
    ty: TypeId,
}

impl Kind {
    /// `group`, `version` and `kind` name the stored type.
    pub fn new(rules: Rules, own: Arc<dyn Own>, (group, version, kind): (&str, &str, &str)) -> Self {
        let table = schema::builtin();
        let ty = table.kind(group, version, kind).unwrap_or(TypeId::ANY);
        let status = table.struct_of(ty).and_then(|ty| ty.present().find(|field| field.name.as_str() == "status"));
        let empty_status = status.map(|field| schema::zero::of_field(table, field));
        Self { rules, own, empty_status, ty }
    }

    pub fn behaviour(self) -> Behaviour {
        Behaviour::Stored { strategy: Arc::new(self), lifecycle: None }
    }
}

/// Puts `member` of the old object into the new one, or takes it away.
pub fn keep(new: &mut Value, old: &Value, member: &'static str) {
    let Some(map) = new.as_object_mut() else { return };
    match old.get(member) {
        Some(kept) => {
            map.insert(member, kept.clone());
        }
        None => {
            map.remove(member);
        }
    }
}

/// The metadata rules of most built-in kinds' create functions, for updates that run those once more.
pub fn validate_metadata_as_on_create(new: &Value, namespaced: bool, rule: NameRule, errors: &mut ErrorList) {
    validate_object_meta(new, namespaced, &|name, prefix| rule.judge(name, prefix), errors);
    validate_bare_finalizers(new, errors);
}

/// The metadata rules of an update, bare finalizers included.
pub fn validate_metadata_on_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    validate_object_meta_update(new, old, errors);
    validate_bare_finalizers(new, errors);
}

impl NameRule {
    pub fn judge(self, name: &str, prefix: bool) -> Messages {
        match self {
            Self::Subdomain => name_is_dns_subdomain(name, prefix),
            Self::Label => name_is_dns_label(name, prefix),
            Self::PathSegment => name_is_path_segment(name, prefix),
        }
    }
}

impl Generation {
    fn on_create(self, new: &mut Value) {
        if matches!(self, Self::One | Self::Parts(_) | Self::Content) {
            new.set(&["metadata", "generation"], 1);
        }
    }

    fn on_update(self, new: &mut Value, old: &Value) {
        let changed = match self {
            Self::Unmanaged | Self::One => false,
            Self::BumpOnly => new.get("spec") != old.get("spec"),
            Self::Parts(parts) => parts.iter().any(|part| new.at(part) != old.at(part)),
            Self::Content => {
                new.at(&["metadata", "labels"]) != old.at(&["metadata", "labels"]) || content_differs(new, old)
            }
        };
        if changed {
            let before = old.i64_at(&["metadata", "generation"]).unwrap_or(0);
            new.set(&["metadata", "generation"], before + 1);
        }
    }
}

fn content_differs(new: &Value, old: &Value) -> bool {
    fn content(object: &Value) -> impl Iterator<Item = (&crate::object::Key, &Value)> {
        object.as_object().into_iter().flat_map(Map::iter).filter(|(name, _)| name.as_str() != "metadata")
    }
    !content(new).eq(content(old))
}

impl Strategy for Kind {
    fn prepare_for_create(&self, cx: &StrategyContext<'_>, new: &mut Value) {
        if self.rules.status == Status::Separate
            && let Some(map) = new.as_object_mut()
        {
            match &self.empty_status {
                Some(empty) => map.insert("status", empty.clone()),
                None => map.remove("status"),
            };
        }
        self.own.prepare(cx, new, None);
        self.rules.generation.on_create(new);
    }

    fn validate_create(&self, cx: &StrategyContext<'_>, new: &Value, errors: &mut ErrorList) {
        if self.rules.bare_finalizers && !self.own.judges_metadata() {
            validate_bare_finalizers(new, errors);
        }
        self.own.validate(cx, new, None, errors);
    }

    fn prepare_for_update(&self, cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        if self.rules.status != Status::Ordinary {
            keep(new, old, "status");
        }
        self.own.prepare(cx, new, Some(old));
        self.rules.generation.on_update(new, old);
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        if self.rules.bare_finalizers && !self.own.judges_metadata() {
            validate_bare_finalizers(new, errors);
        }
        self.own.validate(cx, new, Some(old), errors);
    }

    fn judges_metadata(&self) -> bool {
        self.own.judges_metadata()
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
        self.own.warnings(new, old)
    }

    /// Upstream stores these kinds as protobuf, in which an empty list is none.
    fn canonicalise(&self, new: &mut Value) {
        self.own.canonicalise(new);
        schema::normalise_stored(schema::builtin(), self.ty, new);
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Messages {
        self.own.validate_name(name, prefix).unwrap_or_else(|| self.rules.name.judge(name, prefix))
    }

    fn allow_create_on_update(&self) -> bool {
        self.rules.creates_by_update
    }

    fn allow_unconditional_update(&self) -> bool {
        self.rules.unconditional_update
    }

    fn reset_fields(&self) -> ResetFields {
        static STATUS: OnceLock<FieldSet> = OnceLock::new();
        match self.rules.status {
            Status::Ordinary => ResetFields::None,
            _ => ResetFields::Without(STATUS.get_or_init(|| FieldSet::of(&[&["status"]]))),
        }
    }

    fn returns_deleted_object(&self) -> bool {
        self.rules.returns_deleted_object
    }

    fn orphans_by_default(&self) -> bool {
        self.rules.orphans_by_default
    }

    fn orphaning_warning(&self) -> Option<&'static str> {
        self.own.orphaning_warning()
    }

    fn keeps_deleted(&self, object: &Value) -> bool {
        self.own.keeps_deleted(object)
    }

    fn check_delete(&self, object: &Value) -> Result<(), ApiError> {
        self.own.check_delete(object)
    }

    fn on_marked_for_deletion(&self, object: &mut Value) {
        self.own.on_marked_for_deletion(object);
    }
}

/// The status endpoint of a kind: nothing but the status is taken, and what the row says of metadata.
pub struct StatusEndpoint {
    rules: Rules,
    own: Arc<dyn Own>,
}

impl StatusEndpoint {
    pub fn behaviour(rules: Rules, own: Arc<dyn Own>) -> SubresourceBehaviour {
        SubresourceBehaviour::Part(Arc::new(Self { rules, own }))
    }

    fn keep_metadata(&self, new: &mut Value, old: &Value) {
        let kept: &[&'static str] = match self.rules.status_metadata {
            StatusMetadata::Taken => &[],
            StatusMetadata::LabelsKept => &["labels"],
            StatusMetadata::UserDataKept => &USER_DATA,
            StatusMetadata::AllKept => {
                let Some(mut metadata) = old.get("metadata").cloned() else { return };
                let own = new.get("metadata").and_then(Value::as_object);
                for member in ["managedFields", "resourceVersion"] {
                    let Some(map) = metadata.as_object_mut() else { continue };
                    match own.and_then(|own| own.get(member)) {
                        Some(value) => map.insert(member, value.clone()),
                        None => map.remove(member),
                    };
                }
                new.set(&["metadata"], metadata);
                return;
            }
        };
        let (Some(metadata), Some(before)) = (new.get_mut("metadata"), old.get("metadata")) else { return };
        for member in kept {
            keep(metadata, before, member);
        }
    }
}

const USER_DATA: [&str; 6] =
    ["annotations", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "labels", "ownerReferences"];

impl Strategy for StatusEndpoint {
    fn prepare_for_update(&self, cx: &StrategyContext<'_>, new: &mut Value, old: &Value) {
        let status = new.remove_at(&["status"]);
        let metadata = new.remove_at(&["metadata"]);
        *new = old.clone();
        if let Some(map) = new.as_object_mut() {
            match status {
                Some(status) => map.insert("status", status),
                None => map.remove("status"),
            };
            if let Some(metadata) = metadata {
                map.insert("metadata", metadata);
            }
        }
        self.keep_metadata(new, old);
        self.own.prepare_status(cx, new, old);
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, new: &Value, old: &Value, errors: &mut ErrorList) {
        if self.rules.bare_finalizers {
            validate_bare_finalizers(new, errors);
        }
        self.own.validate_status(cx, new, old, errors);
    }

    fn warnings(&self, _cx: &StrategyContext<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
        old.map(|old| self.own.status_warnings(new, old)).unwrap_or_default()
    }

    /// An update through this endpoint may not end what the kind still holds.
    fn keeps_deleted(&self, object: &Value) -> bool {
        self.own.keeps_deleted(object)
    }

    fn canonicalise(&self, new: &mut Value) {
        self.own.canonicalise(new);
    }

    fn allow_unconditional_update(&self) -> bool {
        self.rules.unconditional_update
    }

    fn reset_fields(&self) -> ResetFields {
        static SPEC: OnceLock<FieldSet> = OnceLock::new();
        static LABELS: OnceLock<FieldSet> = OnceLock::new();
        static METADATA: OnceLock<FieldSet> = OnceLock::new();
        ResetFields::Without(match self.rules.status_metadata {
            StatusMetadata::Taken => SPEC.get_or_init(|| FieldSet::of(&[&["spec"]])),
            StatusMetadata::LabelsKept => LABELS.get_or_init(|| FieldSet::of(&[&["spec"], &["metadata", "labels"]])),
            StatusMetadata::UserDataKept | StatusMetadata::AllKept => {
                METADATA.get_or_init(|| FieldSet::of(&[&["spec"], &["metadata"]]))
            }
        })
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// A request of nobody in the namespace `ns`.
    pub fn context() -> StrategyContext<'static> {
        static WARNINGS: std::sync::LazyLock<crate::api::warnings::Warnings> =
            std::sync::LazyLock::new(Default::default);
        StrategyContext {
            namespace: "ns",
            now: jiff::Timestamp::UNIX_EPOCH,
            user: "",
            groups: &[],
            warnings: &WARNINGS,
        }
    }

    /// What a kind's own rules say of a write.
    pub fn say(own: &dyn Own, new: &Value, old: Option<&Value>) -> String {
        let mut errors = ErrorList::new();
        own.validate(&context(), new, old, &mut errors);
        errors.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::context, *};
    use crate::{json, registry::builtin::rules};

    fn kind(group: &'static str, plural: &'static str, version: &str, kind: &str) -> Kind {
        Kind::new(rules::of(group, plural), Arc::new(Plain), (group, version, kind))
    }

    #[test]
    fn a_create_has_an_empty_status_as_go_prints_it_and_the_first_generation() {
        let mut new = json!({"metadata": {"name": "a", "generation": 7}, "spec": {}, "status": {"numberReady": 3}});
        kind("apps", "daemonsets", "v1", "DaemonSet").prepare_for_create(&context(), &mut new);
        let status = json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0});
        assert_eq!(new.get("status"), Some(&status));
        assert_eq!(new.i64_at(&["metadata", "generation"]), Some(1));
    }

    #[test]
    fn an_update_keeps_the_status_and_counts_changes_of_the_spec() {
        let old =
            json!({"metadata": {"name": "a", "generation": 3}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
        let kind = kind("apps", "replicasets", "v1", "ReplicaSet");
        let mut new = json!({"metadata": {"name": "a", "generation": 3, "labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 9}});
        kind.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.at(&["status", "replicas"]), Some(&1.into()));
        assert_eq!(new.i64_at(&["metadata", "generation"]), Some(3));
        new.set(&["spec", "replicas"], 2);
        kind.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.i64_at(&["metadata", "generation"]), Some(4));
    }

    #[test]
    fn the_status_endpoint_takes_no_spec_and_only_the_metadata_its_row_allows() {
        let old =
            json!({"metadata": {"name": "a", "labels": {"a": "old"}, "annotations": {"x": "old"}}, "spec": {"v": 1}});
        let sent = json!({"metadata": {"name": "a", "labels": {"a": "new"}, "annotations": {"x": "new"}}, "spec": {"v": 2}, "status": {"s": 1}});
        for (group, plural, labels, annotations) in [
            ("apps", "replicasets", "new", "new"),
            ("apps", "deployments", "old", "new"),
            ("storage.k8s.io", "volumeattachments", "old", "old"),
        ] {
            let endpoint = StatusEndpoint { rules: rules::of(group, plural), own: Arc::new(Plain) };
            let mut new = sent.clone();
            endpoint.prepare_for_update(&context(), &mut new, &old);
            assert_eq!(new.at(&["spec", "v"]), Some(&1.into()), "{plural}");
            assert_eq!(new.at(&["status", "s"]), Some(&1.into()), "{plural}");
            assert_eq!(new.str_at(&["metadata", "labels", "a"]), labels, "{plural}");
            assert_eq!(new.str_at(&["metadata", "annotations", "x"]), annotations, "{plural}");
        }
    }

    #[test]
    fn the_status_endpoint_does_not_end_what_the_kind_still_holds() {
        struct Holding;
        impl Own for Holding {
            fn keeps_deleted(&self, object: &Value) -> bool {
                !object.array_at(&["spec", "finalizers"]).is_empty()
            }
        }
        let endpoint = StatusEndpoint { rules: rules::of("", "namespaces"), own: Arc::new(Holding) };
        assert!(endpoint.keeps_deleted(&json!({"spec": {"finalizers": ["kubernetes"]}})));
        assert!(!endpoint.keeps_deleted(&json!({"spec": {}})));
    }
}
