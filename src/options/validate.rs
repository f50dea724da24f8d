//! The last phase: the value that exists only when nothing was found wrong, and how it is told from another.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
};

use aws_lc_rs::digest::{SHA256, digest};

use super::{
    complete::CompletedOptions,
    completed::Sections,
    load::{WatchPaths, file_references},
    problem::{KeyPath, Origin, Problem, Warning},
    raw::RawOptions,
};
use crate::api::hex;

/// Options that passed every check. Cheap to clone, never changed, equal only if every option and the contents of
/// every referenced file are equal; where they were written does not count.
#[derive(Clone, Debug)]
pub struct ValidatedOptions(Arc<Heart>);

#[derive(Debug)]
struct Heart {
    sections: Sections,
    raw: RawOptions,
    origins: BTreeMap<KeyPath, Origin>,
    /// SHA-256 of each referenced file.
    files: BTreeMap<PathBuf, String>,
    warnings: Vec<Warning>,
    watch: WatchPaths,
    hash: String,
}

/// Everything found wrong; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    pub list: Vec<Problem>,
    pub warnings: Vec<Warning>,
    /// What to watch for the repair.
    pub watch: WatchPaths,
}

impl std::fmt::Display for Problems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, problem) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}
impl std::error::Error for Problems {}

impl CompletedOptions {
    /// The validated value, or every problem found since reading began.
    pub fn validate(self) -> Result<ValidatedOptions, Problems> {
        let Self { sections, raw, origins, files, mut problems, warnings, watch } = self;
        places_of_its_own(&sections, &origins, &mut problems);
        if !problems.is_empty() {
            in_reading_order(&mut problems);
            return Err(Problems { list: problems, warnings, watch });
        }
        let files =
            files.into_iter().map(|(path, bytes)| (path, hex::encode(digest(&SHA256, &bytes).as_ref()))).collect();
        let hash = hash(&raw, &files);
        Ok(ValidatedOptions(Arc::new(Heart { sections, raw, origins, files, warnings, watch, hash })))
    }
}

/// Those in files first, from top to bottom; the rest as they were found.
fn in_reading_order(problems: &mut [Problem]) {
    problems.sort_by(|a, b| match (&a.origin, &b.origin) {
        (Origin::File { .. }, Origin::File { .. }) => a.origin.cmp(&b.origin),
        (a, b) => matches!(b, Origin::File { .. }).cmp(&matches!(a, Origin::File { .. })),
    });
}

/// What kenter writes must not be one and the same file.
fn places_of_its_own(sections: &Sections, origins: &BTreeMap<KeyPath, Origin>, problems: &mut Vec<Problem>) {
    let super::completed::StorageBackend::Embedded(store) = &sections.storage.backend;
    let places: [(&str, &Path); 3] = [
        ("storage.path", &store.path),
        ("state.kubeconfig", &sections.state.kubeconfig),
        ("state.admin_socket", &sections.state.admin_socket),
    ];
    for (i, (key, path)) in places.iter().enumerate() {
        if let Some((other, _)) = places.iter().take(i).find(|(_, other)| other == path) {
            let reason = format!("{}: {other} is the same file", path.display());
            let key = KeyPath::dotted(key);
            let origin = origins.get(&key).cloned().unwrap_or_default();
            problems.push(Problem::new(key, reason).at(origin));
        }
    }
}

impl ValidatedOptions {
    /// The options in the words of the file, defaults included; secrets mask themselves when it is written out.
    pub fn raw(&self) -> &RawOptions {
        &self.0.raw
    }
    /// Where the value of a key was written; `Default` for one that was not.
    pub fn origin(&self, key: &KeyPath) -> Origin {
        self.0.origins.get(key).cloned().unwrap_or_default()
    }
    /// Every key that was written, with its place.
    pub fn origins(&self) -> &BTreeMap<KeyPath, Origin> {
        &self.0.origins
    }
    pub fn warnings(&self) -> &[Warning] {
        &self.0.warnings
    }
    /// What to watch for changes.
    pub fn watch(&self) -> &WatchPaths {
        &self.0.watch
    }
    /// Every referenced file with the key that names it, entries of lists numbered.
    pub fn referenced_files(&self) -> Vec<(KeyPath, PathBuf)> {
        file_references(&self.0.raw)
    }
    /// SHA-256 in hex of a referenced file's contents.
    pub fn file_hash(&self, path: &Path) -> Option<&str> {
        self.0.files.get(path).map(String::as_str)
    }
    /// Identifies the configuration: SHA-256 in hex over every option and the contents of every referenced file. The
    /// same on every machine and version that knows the same options.
    pub fn hash(&self) -> &str {
        &self.0.hash
    }
}

impl Deref for ValidatedOptions {
    type Target = Sections;
    fn deref(&self) -> &Sections {
        &self.0.sections
    }
}

impl PartialEq for ValidatedOptions {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.0, &other.0);
        Arc::ptr_eq(a, b) || (a.raw == b.raw && a.files == b.files && a.sections == b.sections)
    }
}

fn hash(raw: &RawOptions, files: &BTreeMap<PathBuf, String>) -> String {
    // serde_json keeps keys of structs in declaration order and of maps sorted, so the text is the same each time.
    let mut text = serde_json::to_string(raw).unwrap_or_default();
    for entry in raw.authentication.tokens.iter().flatten() {
        let _ = write!(text, "\n{}", hex::encode(digest(&SHA256, entry.token.reveal().as_bytes()).as_ref()));
    }
    for (key, path) in file_references(raw) {
        let _ = write!(text, "\n{key} {}", files.get(&path).map_or("", String::as_str));
    }
    hex::encode(digest(&SHA256, text.as_bytes()).as_ref())
}
