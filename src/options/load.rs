//! Reads the layers and every file they refer to, and remembers where each value was written. The one place of
//! options that touches the disk; what comes out is judged by plain functions.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use figment::{
    Figment,
    error::Kind,
    value::{Dict, Tag, Value},
};

use super::{
    command_line::{self, CommandLine},
    flags::{self, Flag, Status},
    invocation::Invocation,
    layers::{self, Layer, insert},
    problem::{KeyPath, Origin, Problem, Warning, nearest},
    raw::RawOptions,
    schema,
    types::{FORMAT_FILE, FORMAT_PATH, REDACTED},
};

/// What was written, before defaults: the raw phase. Problems found on the way are kept, so that those found
/// later join them.
#[derive(Clone, Debug)]
pub struct ServerRunOptions {
    pub(super) invocation: Invocation,
    pub(super) raw: RawOptions,
    /// The place of every value that was written.
    pub(super) origins: BTreeMap<KeyPath, Origin>,
    /// How each written option reads, secrets masked.
    pub(super) shown: BTreeMap<KeyPath, String>,
    /// Contents of referenced files that could be read.
    pub(super) files: BTreeMap<PathBuf, Arc<[u8]>>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Warning>,
    pub(super) watch: WatchPaths,
}

/// What to watch for changes of the configuration, existing or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchPaths {
    /// The main file, drop-ins, and every file they refer to.
    pub files: BTreeSet<PathBuf>,
    /// Folders whose listing matters.
    pub folders: BTreeSet<PathBuf>,
}

/// Longest configuration file and longest referenced file.
const CONFIG_LIMIT: u64 = 4 << 20;
const FILE_LIMIT: u64 = 16 << 20;

impl ServerRunOptions {
    /// Reads everything the invocation names. Never fails: what is wrong is among the problems.
    pub fn load(invocation: &Invocation) -> Self {
        let line = command_line::parse(&invocation.command, &invocation.arguments, &invocation.directory);
        let CommandLine { config, layer: flag_layer, problems, warnings, .. } = line;
        let mut options = Self {
            invocation: invocation.clone(),
            raw: RawOptions::default(),
            origins: BTreeMap::new(),
            shown: BTreeMap::new(),
            files: BTreeMap::new(),
            problems,
            warnings,
            watch: WatchPaths::default(),
        };
        let named = config.or_else(|| {
            let name = invocation.environment.get("KENTER_CONFIG").filter(|name| !name.is_empty())?;
            Some(invocation.directory.join(name))
        });
        let mut layers = options.read_config(named);
        let directory = &invocation.directory;
        let (problems, warnings) = (&mut options.problems, &mut options.warnings);
        layers.push(layers::environment(&invocation.environment, directory, problems, warnings));
        layers.push(flag_layer);
        options.take(layers);
        options
    }

    /// Reads one TOML text as the whole configuration, with no file, variable or flag; for tools and tests.
    pub fn from_toml(invocation: &Invocation, path: &Path, text: &str) -> Self {
        let quiet = Invocation {
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            default_config: PathBuf::new(),
            ..invocation.clone()
        };
        let mut options = Self::load(&quiet);
        let layer = layers::toml(path, text, &mut options.problems);
        options.take(vec![layer]);
        options
    }

    fn read_config(&mut self, named: Option<PathBuf>) -> Vec<Layer> {
        let main = named.clone().unwrap_or_else(|| self.invocation.default_config.clone());
        if main.as_os_str().is_empty() {
            return Vec::new();
        }
        let mut layers = Vec::new();
        self.watch.files.insert(main.clone());
        match read_text(&main) {
            Ok(text) => layers.push(layers::toml(&main, &text, &mut self.problems)),
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.problems.push(unreadable(KeyPath::default(), &main, &error)),
        }
        let folder = main.parent().unwrap_or(Path::new("/")).join("kenter.d");
        self.watch.folders.insert(folder.clone());
        for path in self.drop_ins(&folder) {
            self.watch.files.insert(path.clone());
            match read_text(&path) {
                Ok(text) => layers.push(layers::toml(&path, &text, &mut self.problems)),
                Err(error) => self.problems.push(unreadable(KeyPath::default(), &path, &error)),
            }
        }
        layers
    }

    /// `*.toml` in name order; hidden files are editors' and are left alone.
    fn drop_ins(&mut self, folder: &Path) -> Vec<PathBuf> {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                self.problems.push(unreadable(KeyPath::default(), folder, &error));
                return Vec::new();
            }
        };
        let mut paths = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let name = entry.file_name();
                    let name = name.to_string_lossy();
                    if name.ends_with(".toml") && !name.starts_with('.') {
                        paths.push(entry.path());
                    }
                }
                Err(error) => self.problems.push(unreadable(KeyPath::default(), folder, &error)),
            }
        }
        paths.sort();
        paths
    }

    /// Merges the layers and takes every value that is good.
    fn take(&mut self, mut layers: Vec<Layer>) {
        let mut figment = Figment::new();
        for (index, layer) in layers.iter_mut().enumerate() {
            layer.index = index;
            figment = figment.merge(&*layer);
        }
        let merged = match figment.find_value("") {
            Ok(value) => value,
            Err(error) => {
                self.problems.push(Problem::new(KeyPath::default(), error.to_string()));
                return;
            }
        };
        let Some(sections) = merged.into_dict() else { return };
        let mut taker = Taker { options: self, layers: &layers, figment: &figment, good: Dict::new() };
        for (section, value) in sections {
            taker.section(&section, value);
        }
        let good = Value::Dict(Tag::Default, taker.good);
        match good.deserialize() {
            Ok(raw) => self.raw = raw,
            Err(error) => self.problems.push(Problem::new(KeyPath::default(), error.to_string())),
        }
        self.read_files();
    }

    /// Reads every file that the options refer to.
    fn read_files(&mut self) {
        for (key, path) in file_references(&self.raw) {
            self.watch.files.insert(path.clone());
            if self.files.contains_key(&path) {
                continue;
            }
            match read_bounded(&path, FILE_LIMIT) {
                Ok(bytes) => {
                    self.files.insert(path, bytes.into());
                }
                Err(error) => {
                    let origin = self.origins.get(&key).cloned().unwrap_or_default();
                    self.problems.push(unreadable(key, &path, &error).at(origin));
                }
            }
        }
    }
}

/// Takes merged values one option at a time, so that one mistake hides no other.
struct Taker<'a> {
    options: &'a mut ServerRunOptions,
    layers: &'a [Layer],
    figment: &'a Figment,
    good: Dict,
}

impl Taker<'_> {
    fn section(&mut self, section: &str, value: Value) {
        let path = KeyPath(vec![section.to_owned()]);
        let node = schema::child(schema::root(), section);
        if node.is_none() && !flags::all().any(|flag| flag.section == section) {
            let known = schema::properties(schema::root()).into_iter().flatten().map(|(name, _)| name.as_str());
            // What upstream writes as a flag is first tried without a section.
            let near = nearest(section, known).map(str::to_owned).or_else(|| nearest_key("", section));
            self.unknown(&path, &value, "unknown section", near);
            return;
        }
        let origin = self.origin(&path, &value);
        let Some(entries) = value.into_dict() else {
            let reason = format!("expected a table: [{section}]");
            self.options.problems.push(Problem::new(path, reason).at(origin));
            return;
        };
        for (key, value) in entries {
            let path = path.child(&key);
            match node.and_then(|node| schema::child(node, &key)) {
                Some(node) => self.option(path, value, node),
                None => match flags::find_by_key(section, &key) {
                    Some(flag) => self.judge(flag, path, &value),
                    None => {
                        let near = nearest_key(section, &key);
                        self.unknown(&path, &value, "unknown key", near);
                    }
                },
            }
        }
    }

    fn option(&mut self, path: KeyPath, value: Value, node: &serde_json::Value) {
        let Some(value) = self.clean(value, node, &path) else { return };
        let shown = show(&value, node);
        let mut alone = Dict::new();
        insert(&mut alone, &path.0, value.clone());
        if let Err(error) = Value::Dict(Tag::Default, alone).deserialize::<RawOptions>() {
            self.misfit(&path, &value, node, &error);
            return;
        }
        if let [section, key] = path.0.as_slice()
            && let Some(Flag { status: Status::Partly(missing), .. }) = flags::find_by_key(section, key)
        {
            let origin = self.options.origins.get(&path).cloned().unwrap_or_default();
            self.options.warnings.push(Warning { key: path.clone(), origin, text: (*missing).to_owned() });
        }
        self.options.shown.insert(path.clone(), shown);
        insert(&mut self.good, &path.0, value);
    }

    /// Reports a value that its option cannot take, at the innermost place that is known.
    fn misfit(&mut self, path: &KeyPath, value: &Value, node: &serde_json::Value, error: &figment::Error) {
        let (mut at, mut inner, mut form) = (path.clone(), value, node);
        for part in error.path.iter().skip(path.0.len()) {
            let next = match inner {
                Value::Dict(_, entries) => entries.get(part).zip(schema::child(form, part)),
                Value::Array(_, entries) => {
                    part.parse().ok().and_then(|i: usize| entries.get(i)).zip(schema::items(form))
                }
                _ => None,
            };
            let Some(next) = next else { break };
            (at, (inner, form)) = (at.child(part), next);
        }
        let origin = self.options.origins.get(&at).or_else(|| self.options.origins.get(path)).cloned();
        let reason = reason(&error.kind, form);
        let problem = Problem::new(at, reason).at(origin.unwrap_or_default());
        // What was put in the wrong place may be the secret itself: nothing of such an option is shown.
        let shown = if schema::holds_secret(node) { masked() } else { show(inner, form) };
        self.options.problems.push(problem.value(shown));
    }

    /// Notes the place of a value and of what is in it, refuses unknown keys, makes paths absolute.
    fn clean(&mut self, value: Value, node: &serde_json::Value, path: &KeyPath) -> Option<Value> {
        let origin = self.origin(path, &value);
        self.options.origins.insert(path.clone(), origin.clone());
        match value {
            Value::Dict(tag, entries) => {
                let mut kept = Dict::new();
                for (key, value) in entries {
                    let at = path.child(&key);
                    match schema::child(node, &key) {
                        Some(node) => {
                            kept.extend(self.clean(value, node, &at).map(|value| (key, value)));
                        }
                        None if schema::properties(node).is_some() => {
                            let known = schema::properties(node).into_iter().flatten().map(|(name, _)| name.as_str());
                            self.unknown(&at, &value, "unknown key", nearest(&key, known).map(str::to_owned));
                        }
                        None => {
                            kept.insert(key, value);
                        }
                    }
                }
                Some(Value::Dict(tag, kept))
            }
            Value::Array(tag, entries) => {
                let item = schema::items(node).unwrap_or(&serde_json::Value::Null);
                let mut kept = Vec::with_capacity(entries.len());
                for (i, entry) in entries.into_iter().enumerate() {
                    kept.extend(self.clean(entry, item, &path.child(&i.to_string())));
                }
                Some(Value::Array(tag, kept))
            }
            Value::String(tag, text) if matches!(schema::format(node), Some(FORMAT_FILE | FORMAT_PATH)) => {
                if text.is_empty() {
                    let reason = "a path cannot be empty; leave the key out instead";
                    self.options.problems.push(Problem::new(path.clone(), reason).at(origin).value("\"\""));
                    return None;
                }
                let absolute = self.layer(tag).map_or_else(|| PathBuf::from(&text), |layer| layer.base.join(&text));
                match absolute.into_os_string().into_string() {
                    Ok(absolute) => Some(Value::String(tag, absolute)),
                    Err(_) => {
                        let reason = "the path is not Unicode once it is absolute";
                        self.options.problems.push(Problem::new(path.clone(), reason).at(origin).value(text));
                        None
                    }
                }
            }
            other => Some(other),
        }
    }

    /// A key that the flag table knows and kenter does nothing with.
    fn judge(&mut self, flag: &Flag, path: KeyPath, value: &Value) {
        let origin = self.origin(&path, value);
        let text = plain(value);
        if text.is_empty() || flag.quiet.contains(&text.as_str()) {
            return;
        }
        match flag.status {
            Status::Refused(reason) => {
                let problem = Problem::new(path, reason).at(origin).value(format!("{text:?}"));
                self.options.problems.push(problem.hint("leave it out to start without it"));
            }
            Status::Ignored(instead) => {
                let text = format!("{path} has no effect: {instead}");
                self.options.warnings.push(Warning { key: path, origin, text });
            }
            Status::Works | Status::Partly(_) | Status::NoOp => {}
        }
    }

    fn unknown(&mut self, path: &KeyPath, value: &Value, what: &str, near: Option<String>) {
        let origin = self.origin(path, value);
        let mut problem = Problem::new(path.clone(), what).at(origin);
        problem.hint = near.map(|near| format!("did you mean {near}?"));
        self.options.problems.push(problem);
    }

    fn layer(&self, tag: Tag) -> Option<&Layer> {
        let index: usize = self.figment.get_metadata(tag)?.name.parse().ok()?;
        self.layers.get(index)
    }

    fn origin(&self, path: &KeyPath, value: &Value) -> Origin {
        match self.layer(value.tag()) {
            Some(layer) if layer.places.contains_key(path) => layer.origin(path),
            // A table that several layers fill has no layer of its own.
            _ => self
                .layers
                .iter()
                .rev()
                .find_map(|layer| layer.places.get(path).cloned())
                .unwrap_or_else(|| self.layer(value.tag()).map(|layer| layer.origin(path)).unwrap_or_default()),
        }
    }
}

/// Every file that raw options refer to, with its key.
pub(super) fn file_references(raw: &RawOptions) -> Vec<(KeyPath, PathBuf)> {
    let mut found = Vec::new();
    if let Ok(value) = serde_json::to_value(raw) {
        collect_files(&value, schema::root(), &KeyPath::default(), &mut found);
    }
    found
}

fn collect_files(
    value: &serde_json::Value,
    node: &serde_json::Value,
    path: &KeyPath,
    found: &mut Vec<(KeyPath, PathBuf)>,
) {
    match value {
        serde_json::Value::Object(entries) => {
            for (key, value) in entries {
                if let Some(node) = schema::child(node, key) {
                    collect_files(value, node, &path.child(key), found);
                }
            }
        }
        serde_json::Value::Array(entries) => {
            for (i, value) in entries.iter().enumerate() {
                if let Some(node) = schema::items(node) {
                    collect_files(value, node, &path.child(&i.to_string()), found);
                }
            }
        }
        serde_json::Value::String(text) if schema::format(node) == Some(FORMAT_FILE) => {
            found.push((path.clone(), PathBuf::from(text)));
        }
        _ => {}
    }
}

/// The nearest key of the section, or the same key of another section.
fn nearest_key(section: &str, key: &str) -> Option<String> {
    let sections = || schema::properties(schema::root()).into_iter().flatten();
    let elsewhere = sections().find(|(_, node)| schema::child(node, key).is_some()).map(|(name, _)| name.as_str());
    let elsewhere = elsewhere.or_else(|| {
        flags::all()
            .find(|flag| flag.key().split_once('.').is_some_and(|(_, last)| last == key))
            .map(|flag| flag.section)
    });
    if let Some(other) = elsewhere {
        return Some(format!("{other}.{key}"));
    }
    let own = schema::child(schema::root(), section).and_then(schema::properties);
    nearest(key, own.into_iter().flatten().map(|(name, _)| name.as_str())).map(str::to_owned)
}

/// Why a value was not taken; the value itself, which may be secret, is not in it.
fn reason(kind: &Kind, form: &serde_json::Value) -> String {
    match kind {
        Kind::InvalidType(..) => match schema::format(form) {
            Some("duration") => "expected a duration in quotes, such as \"1m30s\"".to_owned(),
            _ => format!("expected {}", super::reference::kind(form)),
        },
        Kind::UnknownVariant(..) => format!("expected {}", super::reference::kind(form)),
        Kind::InvalidValue(_, expected) => format!("out of range: expected {expected}"),
        other => other.to_string(),
    }
}

fn masked() -> String {
    format!("{REDACTED:?}")
}

/// A value as TOML would have it; an option with a secret in it is masked as a whole, whatever was written.
fn show(value: &Value, node: &serde_json::Value) -> String {
    match value {
        _ if schema::holds_secret(node) => masked(),
        Value::String(_, text) => format!("{text:?}"),
        Value::Dict(_, entries) => {
            let null = serde_json::Value::Null;
            let parts = entries.iter().map(|(key, value)| {
                format!("{} = {}", KeyPath(vec![key.clone()]), show(value, schema::child(node, key).unwrap_or(&null)))
            });
            format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
        }
        Value::Array(_, entries) => {
            let item = schema::items(node).unwrap_or(&serde_json::Value::Null);
            format!("[{}]", entries.iter().map(|entry| show(entry, item)).collect::<Vec<_>>().join(", "))
        }
        other => plain(other),
    }
}

/// A value as a flag would have it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(_, text) => text.clone(),
        Value::Char(_, c) => c.to_string(),
        Value::Bool(_, flag) => flag.to_string(),
        Value::Num(_, number) => match number.to_i128() {
            Some(whole) => whole.to_string(),
            None => number.to_f64().unwrap_or_default().to_string(),
        },
        Value::Empty(..) => String::new(),
        Value::Array(_, entries) => entries.iter().map(plain).collect::<Vec<_>>().join(","),
        Value::Dict(_, entries) => {
            entries.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect::<Vec<_>>().join(",")
        }
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bounded(path, CONFIG_LIMIT)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))
}

/// Reads a regular file of bearable size; anything else (a pipe, a device) could keep us waiting for ever. Opened without
/// waiting and looked at after that, since the name may be another thing's by then.
fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {} MiB", limit >> 20)));
    }
    Ok(bytes)
}

fn unreadable(key: KeyPath, path: &Path, error: &io::Error) -> Problem {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    Problem::new(key, format!("open {}: {reason}", path.display()))
}
