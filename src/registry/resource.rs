//! The row: everything routes, discovery, documents and storage need to know of a resource.

use std::{future::Future, pin::Pin, sync::Arc};

use futures_util::future::BoxFuture;

use super::{
    printer::Printer,
    strategy::{Lifecycle, Strategy},
};
use crate::{
    api::{ApiError, status::GroupResource},
    object::Value,
    schema::{Table, TypeId},
    storage::Revision,
};

/// A verb as discovery lists it and the authorizer is asked about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// A set of verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verbs(u8);

impl Verbs {
    pub fn of(verbs: &[Verb]) -> Self {
        Self(verbs.iter().fold(0, |set, verb| set | 1 << *verb as u8))
    }
    pub fn has(self, verb: Verb) -> bool {
        self.0 & (1 << verb as u8) != 0
    }
    pub fn iter(self) -> impl Iterator<Item = Verb> {
        Verb::ALL.into_iter().filter(move |verb| self.has(*verb))
    }
}

/// A column of the Table form, as discovery of the printers has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    /// Custom resources: where the cell's value is. Built-in kinds have printers.
    pub json_path: Option<String>,
}

/// What one version of a resource does with documents. Built-in kinds and custom resources each have one
/// implementation; nothing above asks which it is.
pub trait VersionSchema: Send + Sync {
    /// The type in its table: drives ownership and strategic merge.
    fn typed(&self) -> (&Table, TypeId);

    /// Checks types, drops unknown members and brings the tree to the form in which it is stored. Answers what was
    /// dropped, as upstream words it: `unknown field "spec.foo"`. `source` is the JSON text the tree came from, for the
    /// order of errors.
    ///
    /// # Errors
    /// The cause as upstream words it, without the sentence around it.
    fn decode(&self, object: &mut Value, source: Option<&[u8]>) -> Result<Vec<String>, String>;

    /// The same for what an apply made, which was checked against the type already.
    ///
    /// # Errors
    /// As [`Self::decode`].
    fn decode_applied(&self, object: &mut Value) -> Result<(), String> {
        self.decode(object, None).map(drop)
    }

    /// What an object that nobody wrote looks like in this version: that of bookmarks.
    fn blank(&self, object: &mut Value) {
        // Brings the members that the kind always shows; nothing is unknown in what was made here.
        let _ = self.decode(object, None);
    }

    /// Fills defaults, in place.
    fn default(&self, object: &mut Value);

    /// The schema as its author wrote it (`openAPIV3Schema`), descriptions included: published documents are made of it.
    /// `None` for built-in kinds and for custom resources without one.
    fn written_schema(&self) -> Option<Value> {
        None
    }

    /// Differs where [`Self::written_schema`] does; costs nothing.
    fn written_digest(&self) -> [u8; 32] {
        [0; 32]
    }
}

/// Which selectable fields a version has and how it words one that it has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selectable {
    pub labels: Vec<String>,
    /// With `%s` for the label; `known-only` for the generic wording.
    pub unsupported: String,
}

/// One served version of a resource.
#[derive(Clone)]
pub struct Version {
    pub name: Arc<str>,
    /// `v1` or `apps/v1`.
    pub group_version: Arc<str>,
    pub schema: Arc<dyn VersionSchema>,
    pub columns: Arc<[Column]>,
    /// Makes an object's row in the Table form, a cell for each column.
    pub printer: Printer,
    pub selectable: Selectable,
    pub subresources: Vec<Subresource>,
    /// The policy of writes through this version where it is not the resource's: custom resources are judged by the
    /// schema of the version they are written in.
    pub strategy: Option<Arc<dyn Strategy>>,
    /// Sent as a `Warning` with every answer, for deprecated versions.
    pub deprecation: Option<String>,
    pub storage_version_hash: String,
}

/// A part of an object with an endpoint of its own.
#[derive(Clone)]
pub struct Subresource {
    pub name: Arc<str>,
    /// The kind of its documents, which may be of another group: `autoscaling/v1 Scale`.
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub kind: Arc<str>,
    pub verbs: Verbs,
    pub behaviour: SubresourceBehaviour,
}

#[derive(Clone)]
pub enum SubresourceBehaviour {
    /// The same object through another strategy: status, finalize, approval, ephemeralcontainers, resize.
    Part(Arc<dyn Strategy>),
    /// A Scale made of the object and written back into it.
    Scale(Arc<ScalePaths>),
    /// A call that is answered by code: binding, eviction, token.
    Call(Arc<dyn Call>),
    /// A stream to somewhere else: log, exec, attach, portforward, proxy.
    Connect(&'static str),
}

/// Where an object keeps what a Scale shows: member names from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: Vec<String>,
    pub status_replicas: Vec<String>,
    /// A LabelSelector object (apps) or a selector's text or map.
    pub selector: Option<Vec<String>>,
    /// Replicas shown where the object has none: 1 for `apps`. `None`: such an object has no Scale (custom resources).
    pub default_replicas: Option<i64>,
}

/// What a call may use besides its body.
pub struct CallContext<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub user: &'a crate::auth::user::UserInfo,
    pub dry_run: bool,
    pub now: jiff::Timestamp,
    /// Who owns fields that the call writes.
    pub manager: &'a str,
    pub warnings: &'a crate::api::warnings::Warnings,
}

pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<(u16, Value), ApiError>> + Send + 'a>>;

/// A document that is judged and answered, never stored: reviews, bindings, evictions, tokens.
pub trait Call: Send + Sync {
    /// `body` is decoded and defaulted. Answers the status code and the document.
    fn call<'a>(&'a self, cx: CallContext<'a>, body: Value) -> CallFuture<'a>;
}

/// How a resource's objects come about.
#[derive(Clone)]
pub enum Behaviour {
    Stored {
        strategy: Arc<dyn Strategy>,
        lifecycle: Option<Arc<dyn Lifecycle>>,
    },
    /// Create-only documents.
    Call(Arc<dyn Call>),
    /// Made up when they are read (componentstatuses).
    Computed(Arc<dyn Compute>),
}

/// Objects that exist only while somebody looks at them.
pub trait Compute: Send + Sync {
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Value>>;

    /// All of them, by name.
    fn list(&self) -> BoxFuture<'_, Vec<Value>>;
}

/// Brings an object of this resource from one served version to another.
pub type Convert = Arc<dyn Fn(&mut Value, &str, &str) -> Result<(), ApiError> + Send + Sync>;

/// What a row made at run time knows of the objects that were stored before it was made.
pub trait Revive: Send + Sync {
    /// Whether what is stored at this revision is what is shown, so that nobody has to look at it.
    fn is_current(&self, revision: Revision) -> bool;

    /// Brings a stored object to what the schema of the version it is stored in says today.
    fn revive(&self, object: &mut Value);
}

/// A resource: one group and plural with all its served versions.
#[derive(Clone)]
pub struct Resource {
    pub group: Arc<str>,
    pub plural: Arc<str>,
    pub singular: Arc<str>,
    pub kind: Arc<str>,
    pub list_kind: Arc<str>,
    pub short_names: Vec<Arc<str>>,
    pub categories: Vec<Arc<str>>,
    pub namespaced: bool,
    pub verbs: Verbs,
    /// Served versions, the preferred first.
    pub versions: Vec<Version>,
    /// `apiVersion` and kind of what is stored; may belong to another group (events).
    pub storage_group_version: Arc<str>,
    /// Keys begin with it: `/registry/pods/`. Empty for what is not stored.
    pub prefix: Arc<str>,
    pub behaviour: Behaviour,
    /// `None` where all served versions have one shape.
    pub convert: Option<Convert>,
    /// Items of lists carry kind and apiVersion (custom resources do, built-in kinds do not).
    pub typed_items: bool,
    /// Strategic merge patches are accepted.
    pub strategic_merge: bool,
    /// Rows made at run time: what is stored may be from an earlier schema.
    pub revive: Option<Arc<dyn Revive>>,
    /// The definition is being deleted: nothing new is created, and discovery shows fewer verbs.
    pub terminating: bool,
    /// Discovery and documents show it. Custom resources are served a moment before: from the acceptance of their names
    /// on, and listed from when their definition is established.
    pub listed: bool,
    /// Numbers rows made at run time, so that a replaced row differs from its predecessor; 0 for built-in ones.
    pub revision: u64,
}

impl Resource {
    pub fn group_resource(&self) -> GroupResource<'_> {
        GroupResource::new(&self.group, &self.plural)
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// The strategy of the main resource; `None` for what is not stored.
    pub fn strategy(&self) -> Option<&Arc<dyn Strategy>> {
        match &self.behaviour {
            Behaviour::Stored { strategy, .. } => Some(strategy),
            _ => None,
        }
    }

    /// The storage key of an object.
    pub fn key(&self, namespace: &str, name: &str) -> Arc<str> {
        if self.namespaced {
            format!("{}{namespace}/{name}", self.prefix).into()
        } else {
            format!("{}{name}", self.prefix).into()
        }
    }

    /// The version in which a write through `version` is judged, strategies and admission included: the storage version
    /// for built-in kinds, the request's own for custom resources.
    pub fn hub<'a>(&'a self, version: &'a Version) -> &'a str {
        if self.typed_items { &version.group_version } else { &self.storage_group_version }
    }

    /// The verbs that discovery shows, in its order.
    pub fn discovery_verbs(&self) -> Vec<&'static str> {
        match (self.typed_items, self.terminating) {
            (true, true) => vec!["delete", "deletecollection", "get", "list", "watch"],
            (true, false) => vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            _ => self.verbs.iter().map(Verb::as_str).collect(),
        }
    }

    /// Brings `object` from `from` to `to` (both `apiVersion` texts) and sets its apiVersion. A custom resource is in the
    /// version that it says itself, since objects stay stored in the version they were written in.
    pub fn convert(&self, object: &mut Value, from: &str, to: &str) -> Result<(), ApiError> {
        if from == to && self.revive.is_none() {
            return Ok(());
        }
        if let Some(convert) = &self.convert {
            convert(object, from, to)?;
        }
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion", to);
        }
        Ok(())
    }
}

impl Version {
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| &*subresource.name == name)
    }
}
