//! What the versions of one custom resource do with documents: decoding, defaults, reviving what is stored, the
//! conversion between versions that only changes the apiVersion.

use std::{
    io::{Read, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};

use crate::{
    api::ApiError,
    object::{Value, parse, to_vec},
    registry::resource::{Revive, VersionSchema},
    schema::{
        Table, TypeId,
        prune::{Malformed, coerce, drop_nulls, fill_defaults, prune},
        structural::{self, node::Node},
    },
    storage::Revision,
};

/// One version's schema.
pub struct CustomSchema {
    /// `example.com/v1`.
    pub api_version: Arc<str>,
    table: Table,
    ty: TypeId,
    /// Nothing is pruned (`spec.preserveUnknownFields` of definitions from before pruning).
    keeps_everything: bool,
    /// Whether there are `x-kubernetes-validations` anywhere.
    pub has_rules: bool,
    /// The schema as it was written, compressed: documents are made of it, seldom.
    written: Option<Box<[u8]>>,
}

/// The names a schema is made for.
pub struct Names<'a> {
    pub group: &'a str,
    pub kind: &'a str,
    pub list_kind: &'a str,
}

impl CustomSchema {
    pub fn new(names: &Names<'_>, version: &str, schema: Option<&Value>, keeps_everything: bool) -> Self {
        let (table, ty) = structural::custom_resource(names.group, version, names.kind, names.list_kind, schema);
        let api_version = format!("{}/{version}", names.group).into();
        let has_rules = schema.is_some_and(has_rules);
        Self { api_version, table, ty, keeps_everything, has_rules, written: schema.and_then(compress) }
    }

    /// The root, for judging.
    pub fn root(&self) -> Node<'_> {
        Node::of(&self.table, self.ty)
    }

    /// Checks metadata and kinds; the unknown members of metadata that were dropped.
    fn coerce(&self, object: &mut Value) -> Result<Vec<String>, String> {
        coerce(&self.table, self.ty, object, Malformed::Refuse).map_err(|refused| match &*refused.field {
            // The object's own metadata is decoded, not validated: Go's words stand alone.
            "metadata" => refused.cause,
            _ => refused.below("").to_string(),
        })
    }

    /// What the schema takes away: unknown members, and nulls that may not be. Returns the paths of the members.
    fn prune(&self, object: &mut Value) -> Vec<String> {
        if self.keeps_everything {
            return Vec::new();
        }
        let unknown = prune(&self.table, self.ty, object);
        drop_nulls(&self.table, self.ty, object);
        unknown
    }

    /// The form of an object that is not from a client: what does not fit is dropped.
    fn tidy(&self, object: &mut Value) {
        // Dropping what is malformed cannot fail.
        let _ = coerce(&self.table, self.ty, object, Malformed::Drop);
        self.prune(object);
    }
}

impl VersionSchema for CustomSchema {
    fn typed(&self) -> (&Table, TypeId) {
        (&self.table, self.ty)
    }

    fn decode(&self, object: &mut Value, _source: Option<&[u8]>) -> Result<Vec<String>, String> {
        let metadata = self.coerce(object)?;
        let (mut unknown, embedded): (Vec<String>, Vec<String>) =
            metadata.into_iter().partition(|path| path.starts_with("metadata."));
        let mut pruned = self.prune(object);
        pruned.sort_unstable();
        unknown.extend(pruned);
        unknown.extend(embedded);
        Ok(unknown)
    }

    /// Nulls that an apply leaves where it took the last member away stay, to be judged.
    fn decode_applied(&self, object: &mut Value) -> Result<(), String> {
        self.coerce(object).map(drop)
    }

    fn default(&self, object: &mut Value) {
        fill_defaults(&self.table, self.ty, object);
    }

    fn written_schema(&self) -> Option<Value> {
        let mut text = Vec::new();
        ZlibDecoder::new(&**self.written.as_ref()?).read_to_end(&mut text).ok()?;
        parse(&text).ok()
    }
}

fn compress(schema: &Value) -> Option<Box<[u8]>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Memory takes whatever is written.
    encoder.write_all(&to_vec(schema)).ok()?;
    encoder.finish().ok().map(Vec::into_boxed_slice)
}

/// Looks for rules where schemas are; values (enum, default, example) have none.
fn has_rules(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    map.iter().any(|(key, value)| match (key.as_str(), value) {
        ("x-kubernetes-validations", Value::Array(rules)) => !rules.is_empty(),
        ("properties", Value::Object(members)) => members.values().any(has_rules),
        ("items" | "additionalProperties", inner) => has_rules(inner),
        _ => false,
    })
}

/// The schemas of all versions, served or not.
pub struct Schemas {
    versions: Vec<Arc<CustomSchema>>,
    /// What was written after this revision was written through these schemas.
    settled: AtomicU64,
}

impl Schemas {
    /// `settled`: the revision after which everything was written through these schemas; `u64::MAX` where that is not
    /// known yet ([`Schemas::settle`]).
    pub fn new(versions: Vec<Arc<CustomSchema>>, settled: Revision) -> Arc<Self> {
        Arc::new(Self { versions, settled: settled.into() })
    }

    pub fn settle(&self, revision: Revision) {
        self.settled.store(revision, Ordering::Release);
    }

    pub fn settled(&self) -> Revision {
        self.settled.load(Ordering::Acquire)
    }

    pub fn version(&self, api_version: &str) -> Option<&Arc<CustomSchema>> {
        self.versions.iter().find(|it| &*it.api_version == api_version)
    }

    /// Brings an object to another version.
    ///
    /// # Errors
    /// 500 for a version that the definition does not have (any more).
    pub fn convert(&self, object: &mut Value, to: &str) -> Result<(), ApiError> {
        let from = object.str_at(&["apiVersion"]);
        if from == to {
            return Ok(());
        }
        let unknown = |way: &str, version: &str| {
            ApiError::unmapped(format!("request to convert CR {way} an invalid group/version: {version}"))
        };
        let target = self.version(to).ok_or_else(|| unknown("to", to))?;
        if self.version(from).is_none() {
            return Err(unknown("from", from));
        }
        object.set(&["apiVersion"], to);
        target.tidy(object);
        Ok(())
    }
}

impl Revive for Schemas {
    fn is_current(&self, revision: Revision) -> bool {
        revision > self.settled()
    }

    fn revive(&self, object: &mut Value) {
        let Some(schema) = self.version(object.str_at(&["apiVersion"])) else { return };
        schema.tidy(object);
        if object.i64_at(&["metadata", "generation"]).unwrap_or(0) == 0 {
            object.set(&["metadata", "generation"], 1);
        }
        schema.default(object);
    }
}
