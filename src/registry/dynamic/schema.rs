//! What the versions of one custom resource do with documents: decoding, defaults, reviving what is stored, the
//! conversion between versions that only changes the apiVersion.

use std::{
    collections::HashMap,
    io::{Read, Write},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use aws_lc_rs::digest::{SHA256, digest};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use parking_lot::Mutex;

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

/// What a schema was made into. It knows nothing of whose schema it is, so versions and definitions that say the same
/// share one.
struct Compiled {
    table: Table,
    ty: TypeId,
    /// Whether there are `x-kubernetes-validations` anywhere.
    has_rules: bool,
    /// The schema as it was written, compressed: documents are made of it, seldom.
    written: Option<Box<[u8]>>,
    digest: Digest,
}

/// Of a schema's text; all zero where there is none.
type Digest = [u8; 32];

/// The schemas that are in use, by what they say.
#[derive(Default)]
pub struct Pool(Mutex<Pooled>);

#[derive(Default)]
struct Pooled {
    schemas: HashMap<Digest, Weak<Compiled>>,
    /// How many there may be before those out of use are looked for.
    sweep_at: usize,
}

/// Schemas out of use that stay listed at most, besides as many as are in use.
const SWEEP: usize = 64;

impl Pool {
    fn compiled(&self, schema: Option<&Value>) -> Arc<Compiled> {
        let text = schema.map(to_vec);
        let digest = text.as_deref().map_or(Digest::default(), |text| {
            // SHA-256 has 32 bytes.
            digest(&SHA256, text).as_ref().try_into().unwrap_or_default()
        });
        if let Some(known) = self.0.lock().schemas.get(&digest).and_then(Weak::upgrade) {
            return known;
        }
        let (table, ty) = structural::custom_resource(schema);
        let has_rules = schema.is_some_and(has_rules);
        let made = Arc::new(Compiled { table, ty, has_rules, written: text.as_deref().and_then(compress), digest });
        let pooled = &mut *self.0.lock();
        pooled.schemas.insert(digest, Arc::downgrade(&made));
        if pooled.schemas.len() > pooled.sweep_at {
            pooled.schemas.retain(|_, schema| schema.strong_count() > 0);
            pooled.sweep_at = 2 * pooled.schemas.len() + SWEEP;
        }
        made
    }
}

#[cfg(test)]
impl Pool {
    pub fn known(&self) -> usize {
        self.0.lock().schemas.len()
    }
}

/// One version's schema.
pub struct CustomSchema {
    /// `example.com/v1`.
    pub api_version: Arc<str>,
    compiled: Arc<Compiled>,
    /// Nothing is pruned (`spec.preserveUnknownFields` of definitions from before pruning).
    keeps_everything: bool,
}

impl CustomSchema {
    pub fn new(pool: &Pool, group: &str, version: &str, schema: Option<&Value>, keeps_everything: bool) -> Self {
        let api_version = format!("{group}/{version}").into();
        Self { api_version, compiled: pool.compiled(schema), keeps_everything }
    }

    /// Whether there are `x-kubernetes-validations` anywhere.
    pub fn has_rules(&self) -> bool {
        self.compiled.has_rules
    }

    /// Whether both were made from the same schema, and are one in memory.
    #[cfg(test)]
    pub fn shares_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.compiled, &other.compiled)
    }

    /// The root, for judging.
    pub fn root(&self) -> Node<'_> {
        Node::of(&self.compiled.table, self.compiled.ty)
    }

    /// Checks metadata and kinds; the unknown members of metadata that were dropped.
    fn coerce(&self, object: &mut Value) -> Result<Vec<String>, String> {
        coerce(&self.compiled.table, self.compiled.ty, object, Malformed::Refuse).map_err(|refused| {
            match &*refused.field {
                // The object's own metadata is decoded, not validated: Go's words stand alone.
                "metadata" => refused.cause,
                _ => refused.below("").to_string(),
            }
        })
    }

    /// What the schema takes away: unknown members, and nulls that may not be. Returns the paths of the members.
    fn prune(&self, object: &mut Value) -> Vec<String> {
        if self.keeps_everything {
            return Vec::new();
        }
        let Compiled { table, ty, .. } = &*self.compiled;
        let unknown = prune(table, *ty, object);
        drop_nulls(table, *ty, object);
        unknown
    }

    /// The form of an object that is not from a client: what does not fit is dropped.
    fn tidy(&self, object: &mut Value) {
        // Dropping what is malformed cannot fail.
        let _ = coerce(&self.compiled.table, self.compiled.ty, object, Malformed::Drop);
        self.prune(object);
    }
}

impl VersionSchema for CustomSchema {
    fn typed(&self) -> (&Table, TypeId) {
        (&self.compiled.table, self.compiled.ty)
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
        fill_defaults(&self.compiled.table, self.compiled.ty, object);
    }

    fn written_schema(&self) -> Option<Value> {
        let mut text = Vec::new();
        ZlibDecoder::new(&**self.compiled.written.as_ref()?).read_to_end(&mut text).ok()?;
        parse(&text).ok()
    }

    fn written_digest(&self) -> [u8; 32] {
        self.compiled.digest
    }
}

fn compress(schema: &[u8]) -> Option<Box<[u8]>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Memory takes whatever is written.
    encoder.write_all(schema).ok()?;
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
