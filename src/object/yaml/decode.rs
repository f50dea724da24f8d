//! A graph of nodes to a tree, as go-yaml decodes into an empty interface and sigs.k8s.io/yaml makes JSON of that.

use std::collections::{HashMap, HashSet};

use super::{
    nodes::{Content, Node, NodeId},
    resolve::{Scalar, resolve},
    scanner::{Problem, Scan},
};
use crate::object::{Key, MAX_DEPTH, Map, Room, Value, quote};

/// Bytes of text that aliases may copy, several times what a body may have.
const MAX_COPIED: usize = 16 << 20;

pub struct Decoder<'n> {
    nodes: &'n [Node],
    /// Aliases that are being followed.
    following: HashSet<NodeId>,
    steps: u64,
    steps_in_aliases: u64,
    /// Bytes of text that aliases have copied.
    copied: usize,
    /// What a strict reader has against the document.
    pub repeated: Vec<String>,
    room: Room,
}

/// A member's name with the type it had, which tells whether two are the same.
#[derive(Clone, Hash, PartialEq, Eq)]
enum Name {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(u64),
    Str(String),
}

#[derive(Default)]
struct Members {
    list: Vec<(Name, Value)>,
    places: HashMap<Name, usize>,
}

impl Members {
    /// No number is equal to NaN, not even NaN.
    fn has(&self, name: &Name) -> bool {
        let is_nan = matches!(name, Name::Float(bits) if f64::from_bits(*bits).is_nan());
        !is_nan && self.places.contains_key(name)
    }

    /// A name that was there already gets the new value.
    fn set(&mut self, name: Name, value: Value) {
        let known = if self.has(&name) { self.places.get(&name) } else { None };
        match known.and_then(|at| self.list.get_mut(*at)) {
            Some((_, old)) => *old = value,
            None => {
                self.places.insert(name.clone(), self.list.len());
                self.list.push((name, value));
            }
        }
    }
}

impl<'n> Decoder<'n> {
    pub fn new(nodes: &'n [Node]) -> Self {
        Self {
            nodes,
            following: HashSet::new(),
            steps: 0,
            steps_in_aliases: 0,
            copied: 0,
            repeated: Vec::new(),
            room: Room::default(),
        }
    }

    pub fn document(&mut self, root: NodeId) -> Scan<Value> {
        // The document itself is a step.
        self.count()?;
        self.value(root, 0)
    }

    fn node(&self, id: NodeId) -> Scan<&'n Node> {
        self.nodes.get(id).ok_or_else(|| Problem::plain("unknown problem parsing YAML content"))
    }

    /// Bounds what aliases multiply.
    fn count(&mut self) -> Scan<()> {
        const LOW: f64 = 400_000.0;
        const HIGH: f64 = 4_000_000.0;
        self.steps += 1;
        if !self.following.is_empty() {
            self.steps_in_aliases += 1;
        }
        if self.steps_in_aliases <= 100 || self.steps <= 1_000 {
            return Ok(());
        }
        let steps = self.steps as f64;
        let allowed = 0.99 - 0.89 * ((steps - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
        if self.steps_in_aliases as f64 / steps > allowed {
            return Err(Problem::plain("document contains excessive aliasing"));
        }
        Ok(())
    }

    fn value(&mut self, id: NodeId, depth: usize) -> Scan<Value> {
        self.count()?;
        if depth > MAX_DEPTH {
            return Err(Problem::plain("exceeded max depth"));
        }
        let node = self.node(id)?;
        match &node.content {
            Content::Alias { name, target } => {
                self.follow(id, name)?;
                let value = self.value(*target, depth + 1);
                self.following.remove(&id);
                value
            }
            Content::Scalar { .. } => scalar_value(self.scalar(node)?),
            Content::Sequence(children) => {
                children.iter().map(|child| self.value(*child, depth + 1)).collect::<Scan<_>>().map(Value::Array)
            }
            Content::Mapping(children) => {
                let mut members = Members::default();
                self.mapping(children, &mut members, depth)?;
                json_object(members)
            }
        }
    }

    fn follow(&mut self, id: NodeId, name: &str) -> Scan<()> {
        if !self.following.insert(id) {
            return Err(Problem::plain(format!("anchor '{name}' value contains itself")));
        }
        Ok(())
    }

    fn scalar(&mut self, node: &Node) -> Scan<Scalar> {
        let Content::Scalar { value, implicit } = &node.content else { return Ok(Scalar::Null) };
        // Go's texts share their bytes, these do not.
        if !self.following.is_empty() {
            self.copied += value.len();
            if self.copied > MAX_COPIED {
                return Err(Problem::plain("document contains excessive aliasing"));
            }
        }
        if node.tag.is_empty() && !implicit {
            return Ok(Scalar::Str(value.clone()));
        }
        resolve(&node.tag, value).map_err(Problem::plain)
    }

    fn mapping(&mut self, children: &[NodeId], members: &mut Members, depth: usize) -> Scan<()> {
        for pair in children.chunks(2) {
            let [key, value] = pair else { continue };
            if is_merge(self.node(*key)?) {
                self.merge(*value, members, depth)?;
                continue;
            }
            let name = self.name(*key, depth)?;
            let line = self.node(*value)?.line;
            let value = self.value(*value, depth + 1)?;
            if members.has(&name) {
                let shown = show_name(&name);
                self.repeated
                    .extend(self.room.take(&format_args!("line {}: key {shown} already set in map", line + 1)));
            }
            members.set(name, value);
        }
        Ok(())
    }

    fn name(&mut self, id: NodeId, depth: usize) -> Scan<Name> {
        let node = self.node(id)?;
        let scalar = match &node.content {
            Content::Alias { name, target } => {
                self.count()?;
                self.follow(id, name)?;
                let key = self.name(*target, depth + 1);
                self.following.remove(&id);
                return key;
            }
            Content::Scalar { .. } => {
                self.count()?;
                self.scalar(node)?
            }
            Content::Sequence(_) | Content::Mapping(_) => {
                let value = self.value(id, depth + 1)?;
                return Err(Problem::plain(format!("invalid map key: {}", go_syntax(&value))));
            }
        };
        Ok(match scalar {
            Scalar::Null => Name::Null,
            Scalar::Bool(it) => Name::Bool(it),
            Scalar::Int(it) => Name::Int(it),
            Scalar::Uint(it) => Name::Uint(it),
            Scalar::Float(it) => Name::Float(it.to_bits()),
            Scalar::Str(it) => Name::Str(it),
        })
    }

    /// `<<`: the members of a mapping, or of several, the first of which wins.
    fn merge(&mut self, id: NodeId, members: &mut Members, depth: usize) -> Scan<()> {
        let wrong = || Problem::plain("map merge requires map or sequence of maps as the value");
        match &self.node(id)?.content {
            Content::Sequence(children) => {
                for child in children.iter().rev() {
                    match &self.node(*child)?.content {
                        Content::Sequence(_) | Content::Scalar { .. } => return Err(wrong()),
                        _ => self.merge_one(*child, members, depth)?,
                    }
                }
                Ok(())
            }
            Content::Scalar { .. } => Err(wrong()),
            _ => self.merge_one(id, members, depth),
        }
    }

    fn merge_one(&mut self, id: NodeId, members: &mut Members, depth: usize) -> Scan<()> {
        self.count()?;
        if depth > MAX_DEPTH {
            return Err(Problem::plain("exceeded max depth"));
        }
        match &self.node(id)?.content {
            Content::Mapping(children) => self.mapping(children, members, depth + 1),
            Content::Alias { name, target } => {
                if !matches!(self.node(*target)?.content, Content::Mapping(_)) {
                    return Err(Problem::plain("map merge requires map or sequence of maps as the value"));
                }
                self.follow(id, name)?;
                let merged = self.merge_one(*target, members, depth + 1);
                self.following.remove(&id);
                merged
            }
            Content::Scalar { .. } | Content::Sequence(_) => Ok(()),
        }
    }
}

fn is_merge(node: &Node) -> bool {
    match &node.content {
        Content::Scalar { value, implicit } => value == "<<" && (*implicit || node.tag == "tag:yaml.org,2002:merge"),
        _ => false,
    }
}

/// What Go's JSON makes of a scalar: a double without a fraction is an integer in its text.
fn scalar_value(scalar: Scalar) -> Scan<Value> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(it) => Value::Bool(it),
        Scalar::Int(it) => Value::Int(it),
        Scalar::Uint(it) => Value::Float(it as f64),
        Scalar::Str(it) => Value::Str(it),
        Scalar::Float(it) if it.is_nan() => return Err(Problem::other("json: unsupported value: NaN")),
        Scalar::Float(it) if it.is_infinite() => {
            let sign = if it > 0.0 { '+' } else { '-' };
            return Err(Problem::other(format!("json: unsupported value: {sign}Inf")));
        }
        // Beyond this Go writes an exponent, which is no integer.
        Scalar::Float(it) if it.fract() == 0.0 && it.abs() < 9e18 => Value::Int(it as i64),
        Scalar::Float(it) => Value::Float(it),
    })
}

fn json_object(members: Members) -> Scan<Value> {
    let mut list = Vec::with_capacity(members.list.len());
    for (name, value) in members.list {
        let key = match name {
            Name::Str(it) => Key::new(&it),
            Name::Int(it) => Key::new(&it.to_string()),
            Name::Bool(it) => Key::from_static(if it { "true" } else { "false" }),
            Name::Float(bits) => Key::new(&float_name(f64::from_bits(bits))),
            Name::Null => return Err(unsupported("%!s(<nil>)", "<nil>", &value)),
            Name::Uint(it) => return Err(unsupported("uint64", &format!("{it:#x}"), &value)),
        };
        list.push((key, value));
    }
    Ok(Value::Object(Map::from_members(list, |_| {})))
}

fn unsupported(kind: &str, key: &str, value: &Value) -> Problem {
    let value = if value.is_null() { "<nil>".to_owned() } else { go_syntax(value) };
    Problem::other(format!("unsupported map key of type: {kind}, key: {key}, value: {value}"))
}

/// sigs.k8s.io/yaml's name for a number: Go's `%g` of what single precision leaves of it.
fn float_name(it: f64) -> String {
    match it as f32 {
        single if single.is_nan() => ".nan".into(),
        f32::INFINITY => ".inf".into(),
        f32::NEG_INFINITY => "-.inf".into(),
        single => go_float(&format!("{single:e}"), || single.to_string()),
    }
}

/// Go's `%g`: an exponent below 1e-4 and from 1e6 on.
fn go_float(scientific: &str, plain: impl Fn() -> String) -> String {
    let Some((digits, exponent)) = scientific.split_once('e') else { return plain() };
    match exponent.parse::<i32>() {
        Ok(-4..6) | Err(_) => plain(),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
    }
}

fn go_double(it: f64) -> String {
    match it {
        it if it.is_nan() => "NaN".into(),
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        it => go_float(&format!("{it:e}"), || it.to_string()),
    }
}

fn show_name(name: &Name) -> String {
    match name {
        Name::Null => "<nil>".into(),
        Name::Bool(it) => it.to_string(),
        Name::Int(it) => it.to_string(),
        Name::Uint(it) => format!("{it:#x}"),
        Name::Float(bits) => go_double(f64::from_bits(*bits)),
        Name::Str(it) => quote(it),
    }
}

/// Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Bool(it) => it.to_string(),
        Value::Int(it) => it.to_string(),
        Value::Float(it) => go_double(*it),
        Value::Str(it) => quote(it),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let members = map.iter().map(|(key, value)| format!("{}:{}", quote(key), go_syntax(value)));
            format!("map[interface {{}}]interface {{}}{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}
