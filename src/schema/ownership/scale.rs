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
#[derive(Clone, Copy, Debug)]
pub struct Replicas<'a> {
    /// Each version that is served with the names on the way to the replicas; `None` where it has no Scale.
    pub versions: &'a [(&'a str, Option<&'a [&'a str]>)],
    /// The version that the Scale is a subresource of.
    pub version: &'a str,
}

fn path(names: &[&str]) -> Path {
    Path(names.iter().map(|name| PathElement::Field(Key::new(name))).collect())
}

impl Replicas<'_> {
    /// `None`: not served; `Some(None)`: no Scale.
    fn path(&self, version: &str) -> Option<Option<Path>> {
        self.versions.iter().find(|(served, _)| *served == version).map(|(_, names)| names.map(path))
    }

    /// The `managedFields` of the Scale of an object with these.
    pub fn to_scale(&self, parent: Option<&Value>) -> Option<Value> {
        let mut entries = decode(parent?.clone(), Written::ByServer).ok()?;
        entries.retain(|entry| {
            self.path(&entry.api_version).flatten().is_some_and(|replicas| entry.fields.has(&replicas))
        });
        for entry in &mut entries {
            entry.api_version = SCALE.into();
            entry.fields = FieldSet::of(&[&["spec", "replicas"]]);
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
            let Some(replicas) = self.path(&entry.api_version) else { continue };
            if let Some(replicas) = replicas.filter(|replicas| entry.fields.has(replicas)) {
                match scale.iter().position(|other| other.is(&entry)) {
                    Some(at) => {
                        scale.remove(at);
                    }
                    None => {
                        let mut taken = FieldSet::new();
                        taken.insert(&replicas);
                        entry.fields.subtract(&taken);
                    }
                }
            }
            if !entry.fields.is_empty() {
                entries.push(entry);
            }
        }
        let in_scale = path(&["spec", "replicas"]);
        let here = self.path(self.version).flatten();
        for mut entry in scale.into_iter().filter(|entry| entry.fields.has(&in_scale)) {
            let Some(here) = &here else { continue };
            entry.fields = FieldSet::new();
            entry.fields.insert(here);
            entry.api_version = self.version.into();
            entry.time = None;
            entries.push(entry);
        }
        encode(entries)
    }
}
