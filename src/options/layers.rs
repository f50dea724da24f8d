//! The layers as figment providers: a TOML file with the place of every key, the environment typed by the schema,
//! and flags. figment merges them and remembers which layer each value came from; each layer knows the exact place.
//!
//! figment's own providers are not used: its TOML reader loses positions, takes a missing file for an empty one, and
//! its environment reader guesses types ("1.3" becomes a number where text is wanted).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use figment::{
    Metadata, Profile, Provider,
    value::{Dict, Map, Num, Tag, Value},
};
use toml::de::{DeTable, DeValue};

use super::{
    flags,
    problem::{KeyPath, Origin, Problem, Warning, nearest},
    schema,
};

/// One layer of values with the place of each.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    pub values: Dict,
    pub places: BTreeMap<KeyPath, Origin>,
    /// Where relative paths of this layer start.
    pub base: PathBuf,
    /// Its number among the layers, by which merged values find back to it.
    pub index: usize,
}

impl Layer {
    /// The place of a value, or of the nearest table around it.
    pub fn origin(&self, key: &KeyPath) -> Origin {
        let mut at = Some(key.clone());
        while let Some(key) = at {
            if let Some(origin) = self.places.get(&key) {
                return origin.clone();
            }
            at = key.parent();
        }
        Origin::Default
    }

    /// Puts a value at a key, making tables on the way. A value that is in the way is replaced.
    pub fn insert(&mut self, key: &KeyPath, value: Value, origin: Origin) {
        self.places.insert(key.clone(), origin);
        insert(&mut self.values, &key.0, value);
    }
}

impl Provider for &Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.index.to_string())
    }
    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// Puts a value at a path of keys.
pub fn insert(dict: &mut Dict, path: &[String], value: Value) {
    match path {
        [] => {}
        [last] => {
            dict.insert(last.clone(), value);
        }
        [first, rest @ ..] => {
            let slot = dict.entry(first.clone()).or_insert_with(|| Value::Dict(Tag::Default, Dict::new()));
            if !matches!(slot, Value::Dict(..)) {
                *slot = Value::Dict(Tag::Default, Dict::new());
            }
            if let Value::Dict(_, inner) = slot {
                insert(inner, rest, value);
            }
        }
    }
}

/// Reads one TOML text; what cannot be read is reported with its place, the rest is kept.
pub fn toml(path: &Path, text: &str, problems: &mut Vec<Problem>) -> Layer {
    let lines = Lines::new(path, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut errors: Vec<_> =
        errors.iter().map(|error| (error.span().map_or(0, |span| span.start), error.message())).collect();
    errors.sort();
    let mut broken = BTreeSet::new();
    for (offset, message) in errors {
        broken.insert(lines.line(offset));
        problems.push(Problem::new(KeyPath::default(), message.trim()).at(lines.origin(offset)));
    }
    let base = path.parent().map(Path::to_owned).unwrap_or_default();
    let mut layer = Layer { base, ..Layer::default() };
    let mut reader = TomlReader { lines: &lines, broken, places: &mut layer.places, problems };
    layer.values = reader.table(table.get_ref(), &KeyPath::default());
    layer
}

struct TomlReader<'a> {
    lines: &'a Lines<'a>,
    /// Lines with a syntax error: what was recovered there is not what was meant.
    broken: BTreeSet<usize>,
    places: &'a mut BTreeMap<KeyPath, Origin>,
    problems: &'a mut Vec<Problem>,
}

impl TomlReader<'_> {
    fn table(&mut self, table: &DeTable<'_>, path: &KeyPath) -> Dict {
        let mut dict = Dict::new();
        for (key, value) in table {
            if self.broken.contains(&self.lines.line(key.span().start)) {
                continue;
            }
            let at = path.child(key.get_ref());
            self.places.insert(at.clone(), self.lines.origin(key.span().start));
            if let Some(value) = self.value(value.get_ref(), &at) {
                dict.insert(key.get_ref().to_string(), value);
            }
        }
        dict
    }

    fn value(&mut self, value: &DeValue<'_>, path: &KeyPath) -> Option<Value> {
        Some(match value {
            DeValue::String(text) => Value::from(text.to_string()),
            DeValue::Boolean(flag) => Value::from(*flag),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::Num(Tag::Default, Num::I64(number)),
                Err(_) => return self.refuse(path, "the number does not fit 64 bits"),
            },
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => Value::Num(Tag::Default, Num::F64(number)),
                Err(_) => return self.refuse(path, "not a number"),
            },
            DeValue::Datetime(_) => return self.refuse(path, "no option is a date; put text in quotes"),
            DeValue::Array(entries) => {
                let mut values = Vec::with_capacity(entries.len());
                for (i, entry) in entries.iter().enumerate() {
                    let at = path.child(&i.to_string());
                    self.places.insert(at.clone(), self.lines.origin(entry.span().start));
                    values.extend(self.value(entry.get_ref(), &at));
                }
                Value::Array(Tag::Default, values)
            }
            DeValue::Table(table) => Value::Dict(Tag::Default, self.table(table, path)),
        })
    }

    fn refuse(&mut self, path: &KeyPath, reason: &str) -> Option<Value> {
        let origin = self.places.get(path).cloned().unwrap_or_default();
        self.problems.push(Problem::new(path.clone(), reason).at(origin));
        None
    }
}

/// Byte offsets to lines and columns.
struct Lines<'a> {
    path: &'a Path,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(path: &'a Path, text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Self { path, text, starts }
    }
    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }
    fn origin(&self, offset: usize) -> Origin {
        let line = self.line(offset);
        let start = line.checked_sub(1).and_then(|i| self.starts.get(i)).copied().unwrap_or(0);
        let column = 1 + self.text.get(start..offset).map_or(0, |before| before.chars().count());
        Origin::File { path: self.path.to_owned(), line, column }
    }
}

/// The prefix of variables that are configuration.
const PREFIX: &str = "KENTER_";

/// Reads `KENTER_SECTION__KEY` variables. Names without `__` are none of ours (a cluster with a Service called kenter
/// sets `KENTER_PORT` and more); those that come very near an option get a warning.
pub fn environment(
    variables: &BTreeMap<String, String>,
    base: &Path,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<Warning>,
) -> Layer {
    let mut layer = Layer { base: base.to_owned(), ..Layer::default() };
    for (name, text) in variables {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        if !rest.contains("__") {
            let meant = meant_by(rest);
            if !meant.is_empty() {
                let text = format!("this variable has no effect: did you mean {}?", meant.join(" or "));
                warnings.push(Warning { key: KeyPath::default(), origin: Origin::Variable(name.clone()), text });
            }
            continue;
        }
        let (key, node) = locate(rest);
        let origin = Origin::Variable(name.clone());
        let Some(node) = node else {
            if is_known_elsewhere(&key) {
                layer.insert(&key, Value::from(text.as_str()), origin);
                continue;
            }
            let mut problem = Problem::new(KeyPath::default(), format!("unknown variable {name}")).at(origin);
            problem.hint = nearest_variable(rest).map(|near| format!("did you mean {near}?"));
            problems.push(problem);
            continue;
        };
        match typed(text, node) {
            Ok(value) => layer.insert(&key, value, origin),
            Err(reason) => {
                let value =
                    if schema::holds_secret(node) { super::types::REDACTED.to_owned() } else { format!("{text:?}") };
                problems.push(Problem::new(key, reason).at(origin).value(value));
            }
        }
    }
    layer
}

/// The key that a variable's name means, and its schema if there is one. Keys of maps keep their case.
fn locate(name: &str) -> (KeyPath, Option<&'static serde_json::Value>) {
    let mut key = KeyPath::default();
    let mut node = Some(schema::root());
    for part in name.split("__") {
        let is_map = node.is_some_and(|node| schema::map_value(node).is_some());
        key.0.push(if is_map { part.to_owned() } else { part.to_lowercase() });
        node = node.and_then(|node| schema::child(node, key.last()));
    }
    (key, node)
}

/// Whether the key is one that the flag table alone knows, which the loader judges.
fn is_known_elsewhere(key: &KeyPath) -> bool {
    matches!(key.0.as_slice(), [section, key] if flags::find_by_key(section, key).is_some())
}

/// The variables of options whose name, with or without its section, is written with single underscores.
fn meant_by(rest: &str) -> Vec<String> {
    let rest = rest.to_lowercase();
    let mut meant = BTreeSet::new();
    let mut compare = |section: &str, key: &str| {
        if rest == key || rest.strip_prefix(section).and_then(|rest| rest.strip_prefix('_')) == Some(key) {
            meant.insert(format!("{PREFIX}{}__{}", section.to_uppercase(), key.to_uppercase()));
        }
    };
    for (section, node) in schema::properties(schema::root()).into_iter().flatten() {
        schema::properties(node).into_iter().flatten().for_each(|(key, _)| compare(section, key));
    }
    for flag in flags::all() {
        if let Some((section, key)) = flag.key().split_once('.') {
            compare(section, key);
        }
    }
    meant.into_iter().collect()
}

fn nearest_variable(rest: &str) -> Option<String> {
    let mut names = Vec::new();
    for (section, node) in schema::properties(schema::root()).into_iter().flatten() {
        for key in schema::properties(node).into_iter().flatten().map(|(key, _)| key) {
            names.push(format!("{}__{}", section.to_uppercase(), key.to_uppercase()));
        }
    }
    nearest(rest, names.iter().map(String::as_str)).map(|near| format!("{PREFIX}{near}"))
}

/// What a variable's text is, at a key of that schema: text stays text, lists may be comma separated or TOML.
fn typed(text: &str, node: &serde_json::Value) -> Result<Value, String> {
    let node = schema::resolve(node);
    if schema::is_type(node, "string") || node.get("enum").is_some() || node.get("oneOf").is_some() {
        return Ok(Value::from(text));
    }
    if schema::is_type(node, "array") && !text.trim_start().starts_with('[') {
        let item = schema::items(node);
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let entries = entries.map(|entry| item.map_or(Ok(Value::from(entry)), |item| typed(entry, item)));
        return Ok(Value::Array(Tag::Default, entries.collect::<Result<_, _>>()?));
    }
    let wrapped = format!("value = {}", text.trim());
    let mut problems = Vec::new();
    let mut layer = toml(Path::new(""), &wrapped, &mut problems);
    match (layer.values.remove("value"), problems.is_empty()) {
        (Some(value), true) => Ok(value),
        _ => Err(match () {
            () if schema::is_type(node, "boolean") => "expected true or false".to_owned(),
            () if schema::is_type(node, "integer") => "expected a whole number".to_owned(),
            () if schema::is_type(node, "number") => "expected a number".to_owned(),
            () => "expected a TOML value such as [\"a\", \"b\"] or { a = true }".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(line: usize, column: usize) -> Origin {
        Origin::File { path: "k.toml".into(), line, column }
    }

    #[test]
    fn every_key_of_a_file_knows_its_place() {
        let text = "[serving]\nsecure_port = 1\n  bind = [\"a\",\n \"b\"]\n[[serving.x]]\n\"ü\".\"k.l\" = 2\n";
        let mut problems = Vec::new();
        let layer = toml(Path::new("k.toml"), text, &mut problems);
        assert_eq!(problems, []);
        let at = |parts: &[&str]| layer.places[&KeyPath(parts.iter().map(|p| p.to_string()).collect())].clone();
        assert_eq!(at(&["serving", "secure_port"]), file(2, 1));
        assert_eq!(at(&["serving", "bind"]), file(3, 3));
        assert_eq!(at(&["serving", "bind", "1"]), file(4, 2));
        assert_eq!(at(&["serving", "x", "0", "ü", "k.l"]), file(6, 5));
    }

    #[test]
    fn all_syntax_errors_are_reported_with_their_place() {
        let mut problems = Vec::new();
        toml(Path::new("k.toml"), "[serving]\na = \nb = 1\nc = [1,\n", &mut problems);
        assert!(problems.len() >= 2, "{problems:?}");
        assert!(matches!(problems[0].origin, Origin::File { line: 2, .. }), "{problems:?}");
    }

    #[test]
    fn a_variable_is_what_its_key_wants() {
        let variables = [
            ("KENTER_SERVING__TLS_MIN_VERSION", "1.3"),
            ("KENTER_SERVING__SECURE_PORT", "7443"),
            ("KENTER_SERVING__BIND", "127.0.0.1:1, 127.0.0.1:2"),
            ("KENTER_API__RUNTIME_CONFIG", "{ \"api/all\" = true }"),
            ("KENTER_PORT", "tcp://10.0.0.1:6443"),
        ];
        let variables = variables.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let mut problems = Vec::new();
        let layer = environment(&variables, Path::new("/"), &mut problems, &mut Vec::new());
        assert_eq!(problems, []);
        let root = Value::from(layer.values);
        assert_eq!(root.find_ref("serving.tls_min_version").unwrap().as_str(), Some("1.3"));
        assert_eq!(root.find_ref("serving.secure_port").unwrap().to_i128(), Some(7443));
        assert_eq!(root.find_ref("serving.bind").unwrap().as_array().unwrap().len(), 2);
        assert_eq!(root.find_ref("port"), None);
    }

    #[test]
    fn an_option_with_single_underscores_is_told_its_name_and_what_a_cluster_sets_is_left_alone() {
        let told = |name: &str| {
            let (mut problems, mut warnings) = (Vec::new(), Vec::new());
            environment(&[(name.to_owned(), "1".to_owned())].into(), Path::new("/"), &mut problems, &mut warnings);
            assert_eq!(problems, []);
            warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        for name in ["KENTER_SECURE_PORT", "KENTER_SERVING_SECURE_PORT"] {
            let meant = "this variable has no effect: did you mean KENTER_SERVING__SECURE_PORT?";
            assert_eq!(told(name), format!("${name}: {meant}"));
        }
        let expected = "did you mean KENTER_STORAGE__ETCD_SERVERS?";
        assert!(told("KENTER_ETCD_SERVERS").ends_with(expected));
        for name in [
            "KENTER_CONFIG",
            "KENTER_PORT",
            "KENTER_SERVICE_HOST",
            "KENTER_SERVICE_PORT",
            "KENTER_SERVICE_PORT_HTTPS",
            "KENTER_PORT_6443_TCP",
            "KENTER_PORT_6443_TCP_ADDR",
            "KENTER_PORT_6443_TCP_PORT",
            "KENTER_PORT_6443_TCP_PROTO",
        ] {
            assert_eq!(told(name), "", "{name}");
        }
    }

    #[test]
    fn an_unknown_variable_is_refused_with_the_nearest_name() {
        let variables = [("KENTER_SERVING__SECURE_PROT".to_owned(), "1".to_owned())].into();
        let mut problems = Vec::new();
        environment(&variables, Path::new("/"), &mut problems, &mut Vec::new());
        assert_eq!(
            problems[0].to_string(),
            "$KENTER_SERVING__SECURE_PROT: unknown variable KENTER_SERVING__SECURE_PROT \
             (did you mean KENTER_SERVING__SECURE_PORT?)"
        );
    }
}
