//! The owners of the one field that a Scale shares with its object (apimachinery `managedfields/scalehandler.go`).
//!
//! Who scales an object owns its replicas through the subresource `scale`. A Scale is therefore given the entries that
//! own the replicas, is written like any object (as `autoscaling/v1`), and what has become of its entries is carried
//! back. As upstream, an entry that comes back has no time.

use super::{
    element::PathElement,
    managers::{Entry, Written, decode, encode},
    set::{FieldSet, Path},
};
use crate::object::{Key, Value};

const SCALE: &str = "autoscaling/v1";

/// Where an object has its replicas, by its versions.
#[derive(Clone, Debug)]
pub struct Replicas {
    version: String,
    served: Vec<(String, Option<Path>)>,
}

impl Replicas {
    /// For a Scale that is a subresource of `version` (`apps/v1`).
    pub fn of(version: &str) -> Self {
        Self { version: version.into(), served: Vec::new() }
    }

    /// Adds a version that is served, with the names on the way to its replicas (none: it has no Scale).
    pub fn serve<S: AsRef<str>>(&mut self, version: &str, names: Option<&[S]>) {
        let field = |name: &S| PathElement::Field(Key::new(name.as_ref()));
        self.served.push((version.into(), names.map(|names| Path(names.iter().map(field).collect()))));
    }

    /// `None`: not served; `Some(None)`: no Scale.
    fn path(&self, version: &str) -> Option<Option<&Path>> {
        self.served.iter().find(|(served, _)| served == version).map(|(_, path)| path.as_ref())
    }

    /// The `managedFields` of the Scale of an object with these.
    pub fn to_scale(&self, parent: Option<&Value>) -> Option<Value> {
        let mut entries = decode(parent?.clone(), Written::ByServer).ok()?;
        entries.retain(|entry| self.path(&entry.api_version).flatten().is_some_and(|path| entry.fields.has(path)));
        for entry in &mut entries {
            entry.api_version = SCALE.into();
            entry.fields = in_scale();
        }
        encode(entries)
    }

    /// The `managedFields` of the object after its Scale was written with these.
    pub fn to_parent(&self, parent: Option<&Value>, scale: Option<&Value>) -> Option<Value> {
        let read =
            |list: Option<&Value>| decode(list.cloned().unwrap_or_default(), Written::ByServer).unwrap_or_default();
        let mut scale = read(scale);
        let mut entries: Vec<Entry> = Vec::new();
        for mut entry in read(parent) {
            let Some(path) = self.path(&entry.api_version) else { continue };
            if let Some(path) = path.filter(|path| entry.fields.has(path)) {
                match scale.iter().position(|other| other.is(&entry)) {
                    Some(at) => drop(scale.remove(at)),
                    None => entry.fields.subtract(&only(path)),
                }
            }
            if !entry.fields.is_empty() {
                entries.push(entry);
            }
        }
        let here = self.path(&self.version).flatten();
        for mut entry in scale.into_iter().filter(|entry| !entry.fields.intersection(&in_scale()).is_empty()) {
            let Some(here) = here else { continue };
            entry.fields = only(here);
            entry.api_version.clone_from(&self.version);
            entry.time = None;
            entries.push(entry);
        }
        encode(entries)
    }
}

fn in_scale() -> FieldSet {
    FieldSet::of(&[&["spec", "replicas"]])
}

fn only(path: &Path) -> FieldSet {
    let mut set = FieldSet::new();
    set.insert(path);
    set
}
