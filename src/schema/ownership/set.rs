//! Sets of fields, held as they are stored: the `fieldsV1` tree.
//!
//! A node of the tree is an object. Its members are named by path elements (see [`super::element`]), and a node that
//! is in the set itself has the member `.`, or none at all when nothing below it is in the set. Two invariants hold for
//! every [`FieldSet`]: names are canonical (so that equal elements have equal names), and there is no node that is
//! neither in the set nor above one that is. Because the stored form is the form that is worked on, reading the sets of
//! a stored object costs nothing. Mirrors structured-merge-diff `fieldpath/set.go` and `serialize.go`.

use std::{cmp::Ordering, fmt};

use super::{
    element::PathElement,
    shape::{Ref, Types},
};
use crate::object::{Key, Map, Value};

/// Marks a node that is in the set and has others below it. Sorts before all path elements.
const SELF: &str = ".";

/// The way to a field, outermost element first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path(pub Vec<PathElement>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

/// A set of paths. The root ("the whole object") is never in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSet(Map);

type Members = [(Key, Value)];

/// What a node says: is it in the set, and what is below it.
fn split(node: &Value) -> (bool, &Members) {
    let members = node.as_object().map_or(&[][..], Map::as_slice);
    match members.split_first() {
        None => (true, &[]),
        Some(((key, _), below)) if key.as_str() == SELF => (true, below),
        Some(_) => (false, members),
    }
}

/// A node while it is being built.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub member: bool,
    pub below: Vec<(Key, Value)>,
}

impl Node {
    pub fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    /// Adds a node below, unless it says nothing. Cheapest in the order of the keys.
    pub fn push(&mut self, key: Key, below: Node) {
        if !below.is_empty() {
            self.below.push((key, below.into_value()));
        }
    }

    /// Adds a member below that has nothing below itself.
    pub fn push_leaf(&mut self, key: Key) {
        self.below.push((key, Value::object()));
    }

    pub fn into_value(mut self) -> Value {
        if self.member && !self.below.is_empty() {
            self.below.insert(0, (Key::from_static(SELF), Value::object()));
        }
        Value::Object(Map::from_members(self.below, |_| {}))
    }

    pub fn into_set(self) -> FieldSet {
        FieldSet(Map::from_members(self.below, |_| {}))
    }
}

/// A node that is in the set itself while it is being built: the cheap form of [`Node`].
pub(super) struct Member(Vec<(Key, Value)>);

impl Member {
    pub fn leaf() -> Value {
        Value::object()
    }

    /// With room for so many below it.
    pub fn with_capacity(below: usize) -> Self {
        let mut members = Vec::with_capacity(below + 1);
        members.push((Key::from_static(SELF), Value::object()));
        Self(members)
    }

    /// Adds one below; they must come in the order of their keys.
    pub fn push(&mut self, key: Key, below: Value) {
        self.0.push((key, below));
    }

    pub fn into_value(self) -> Value {
        if self.0.len() == 1 { Self::leaf() } else { Value::Object(Map::from_sorted(self.0)) }
    }
}

/// The members of two nodes side by side, by name.
pub(super) fn zip<'a>(
    left: &'a Members,
    right: &'a Members,
    mut each: impl FnMut(&'a Key, Option<&'a Value>, Option<&'a Value>),
) {
    let (mut left, mut right) = (left, right);
    loop {
        match (left.split_first(), right.split_first()) {
            (Some(((key, a), rest)), Some(((other, b), other_rest))) => match key.cmp(other) {
                Ordering::Less => {
                    left = rest;
                    each(key, Some(a), None);
                }
                Ordering::Greater => {
                    right = other_rest;
                    each(other, None, Some(b));
                }
                Ordering::Equal => {
                    (left, right) = (rest, other_rest);
                    each(key, Some(a), Some(b));
                }
            },
            (Some(_), None) => return left.iter().for_each(|(key, a)| each(key, Some(a), None)),
            (None, _) => return right.iter().for_each(|(key, b)| each(key, None, Some(b))),
        }
    }
}

/// One of two sets is so much smaller that looking its members up beats walking over both.
fn much_smaller(few: usize, many: usize) -> bool {
    few * 8 < many
}

impl FieldSet {
    pub const fn new() -> Self {
        Self(Map::new())
    }

    /// The set of some fields, each given by the names on the way to it: `FieldSet::of(&[&["status"]])`.
    pub fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&Path(path.iter().map(|name| PathElement::Field(Key::new(name))).collect()));
        }
        set
    }

    /// Reads a `fieldsV1` value that others wrote: names are brought into canonical form, elements of unknown kinds are
    /// dropped, as upstream does.
    ///
    /// Errors: what is wrong with it, for the log (clients never see it).
    pub fn from_fields_v1(value: &Value) -> Result<Self, String> {
        Ok(read_node(value)?.into_set())
    }

    /// Takes a `fieldsV1` value that is canonical, having been written by this module or by upstream.
    pub(super) fn from_canonical(value: Value) -> Self {
        match value {
            Value::Object(map) => Self(map),
            _ => Self::new(),
        }
    }

    /// The `fieldsV1` value.
    pub fn into_fields_v1(self) -> Value {
        Value::Object(self.0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one field; its parents are not added.
    pub fn insert(&mut self, path: &Path) {
        insert_below(&mut self.0, &path.0);
    }

    pub fn has(&self, path: &Path) -> bool {
        let Some((last, parents)) = path.0.split_last() else { return false };
        let mut map = &self.0;
        for element in parents {
            match map.get(&element.to_key()).and_then(Value::as_object) {
                Some(below) => map = below,
                None => return false,
            }
        }
        map.get(&last.to_key()).is_some_and(|node| split(node).0)
    }

    pub(super) fn as_map(&self) -> &Map {
        &self.0
    }

    /// Adds all fields of `other`. O(n + m), O(m log n) where `other` is small.
    pub fn unite(&mut self, other: FieldSet) {
        unite_maps(&mut self.0, other.0);
    }

    pub fn union(mut self, other: FieldSet) -> Self {
        self.unite(other);
        self
    }

    /// The fields that are in both.
    pub fn intersection(&self, other: &FieldSet) -> Self {
        intersect(self.0.as_slice(), other.0.as_slice()).into_set()
    }

    /// Whether all fields of the set are in the other too.
    pub fn is_within(&self, other: &FieldSet) -> bool {
        fn within(members: &Members, others: Option<&Map>) -> bool {
            members.iter().all(|(key, node)| {
                let (member, below) = split(node);
                match others.and_then(|others| others.get(key)) {
                    None => false,
                    Some(other) => {
                        (!member || split(other).0) && (below.is_empty() || within(below, other.as_object()))
                    }
                }
            })
        }
        within(self.0.as_slice(), Some(&other.0))
    }

    /// Takes the fields of `other` away, but none below them.
    pub fn subtract(&mut self, other: &FieldSet) {
        subtract_members(&mut self.0, other.0.as_slice(), false);
    }

    pub fn difference(mut self, other: &FieldSet) -> Self {
        self.subtract(other);
        self
    }

    /// Takes the fields of `other` away with all that is below them.
    pub fn subtract_recursively(&mut self, other: &FieldSet) {
        subtract_members(&mut self.0, other.0.as_slice(), true);
    }

    /// The fields that have none below them.
    pub fn leaves(&self) -> Self {
        fn leaves(members: &Members) -> Node {
            let mut out = Node::default();
            for (key, node) in members {
                let (member, below) = split(node);
                let mut kept = leaves(below);
                kept.member = member && below.is_empty();
                out.push(key.clone(), kept);
            }
            out
        }
        leaves(self.0.as_slice()).into_set()
    }

    /// The set with all members of structs that lie on the way to a field; members of maps and items are left alone.
    pub(super) fn ensure_named_fields(&self, types: &Types<'_>, ty: Ref) -> Self {
        fn ensure(types: &Types<'_>, ty: Ref, members: &Members) -> Node {
            let atom = types.resolve(ty);
            let mut out = Node::default();
            for (key, node) in members {
                let (member, below) = split(node);
                let (below_type, named) = atom.below(types, key);
                let mut kept = ensure(types, below_type, below);
                kept.member = member || (named && !below.is_empty());
                out.push(key.clone(), kept);
            }
            out
        }
        ensure(types, ty, self.0.as_slice()).into_set()
    }

    /// All fields in the order of messages: those of one level, then what is below each.
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::new();
        collect(self.0.as_slice(), &mut Path::default(), &mut out);
        out
    }
}

fn collect(members: &Members, prefix: &mut Path, out: &mut Vec<Path>) {
    let mut elements: Vec<(PathElement, &Value)> =
        members.iter().filter_map(|(key, node)| Some((PathElement::parse(key).ok()??, node))).collect();
    elements.sort_by(|a, b| a.0.order(&b.0));
    for (element, node) in &elements {
        if split(node).0 {
            prefix.0.push(element.clone());
            out.push(prefix.clone());
            prefix.0.pop();
        }
    }
    for (element, node) in elements {
        let below = split(node).1;
        if !below.is_empty() {
            prefix.0.push(element);
            collect(below, prefix, out);
            prefix.0.pop();
        }
    }
}

fn read_node(value: &Value) -> Result<Node, String> {
    let members = match value {
        Value::Null => return Ok(Node { member: true, ..Node::default() }),
        Value::Object(members) => members,
        other => return Err(format!("expect {{ or n, but found {}", other.json_type())),
    };
    let mut node = Node::default();
    for (name, below) in members.iter() {
        if name.as_str() == SELF {
            node.member = true;
            continue;
        }
        let Some(element) = PathElement::parse(name)? else { continue };
        node.push(element.to_key(), read_node(below)?);
    }
    node.member |= node.below.is_empty();
    // Names that differ in writing only may be the same element: the later one wins.
    node.below.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(node)
}

fn insert_below(map: &mut Map, path: &[PathElement]) {
    let Some((first, rest)) = path.split_first() else { return };
    let key = first.to_key();
    match map.get_mut(&key) {
        None => {
            let chain = rest.iter().rev().fold(Value::object(), |below, element| [(element.to_key(), below)].into());
            map.insert(key, chain);
        }
        Some(node) => {
            let node = node.make_object();
            // Either the node is a leaf that gets something below it, or one with something below that becomes a member.
            if node.is_empty() != rest.is_empty() {
                node.insert(Key::from_static(SELF), Value::object());
            }
            insert_below(node, rest);
        }
    }
}

fn unite_maps(map: &mut Map, other: Map) {
    if map.is_empty() {
        *map = other;
        return;
    }
    if much_smaller(other.len(), map.len()) {
        let mut new = Vec::new();
        for (key, node) in other {
            match map.get_mut(&key) {
                Some(mine) => unite_nodes(mine, node),
                None => new.push((key, node)),
            }
        }
        map.insert_all(new);
        return;
    }
    let mut out: Vec<(Key, Value)> = Vec::with_capacity(map.len() + other.len());
    let (mut mine, mut others) = (std::mem::take(map).into_iter().peekable(), other.into_iter().peekable());
    loop {
        let order = match (mine.peek(), others.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        match order {
            Ordering::Less => out.extend(mine.next()),
            Ordering::Greater => out.extend(others.next()),
            Ordering::Equal => {
                if let (Some((key, mut node)), Some((_, other))) = (mine.next(), others.next()) {
                    unite_nodes(&mut node, other);
                    out.push((key, node));
                }
            }
        }
    }
    *map = Map::from_members(out, |_| {});
}

fn unite_nodes(node: &mut Value, other: Value) {
    let (mine, _) = split(node);
    let (others, _) = split(&other);
    let (Value::Object(map), Value::Object(other)) = (node, other) else { return };
    if map.is_empty() && other.is_empty() {
        return;
    }
    unite_maps(map, other);
    if mine || others {
        map.insert(Key::from_static(SELF), Value::object());
    }
}

fn intersect(left: &Members, right: &Members) -> Node {
    let mut out = Node::default();
    let mut both = |key: &Key, a: &Value, b: &Value| {
        let ((a_member, a_below), (b_member, b_below)) = (split(a), split(b));
        let mut node = intersect(a_below, b_below);
        node.member = a_member && b_member;
        out.push(key.clone(), node);
    };
    zip(left, right, |key, a, b| {
        if let (Some(a), Some(b)) = (a, b) {
            both(key, a, b);
        }
    });
    out
}

fn subtract_members(map: &mut Map, other: &Members, recursively: bool) {
    if other.is_empty() || map.is_empty() {
        return;
    }
    if much_smaller(other.len(), map.len()) {
        let mut gone = Vec::new();
        for (key, theirs) in other {
            if let Some(node) = map.get_mut(key)
                && !subtract_node(node, theirs, recursively)
            {
                gone.push(key);
            }
        }
        map.remove_all(&gone);
        return;
    }
    let mut at = 0;
    map.retain(|key, node| {
        while other.get(at).is_some_and(|(theirs, _)| theirs < key) {
            at += 1;
        }
        match other.get(at) {
            Some((theirs, other)) if theirs == key => subtract_node(node, other, recursively),
            _ => true,
        }
    });
}

/// Whether anything is left of the node.
fn subtract_node(node: &mut Value, other: &Value, recursively: bool) -> bool {
    let (theirs, below) = split(other);
    if theirs && recursively {
        return false;
    }
    let (mine, _) = split(node);
    let Value::Object(map) = node else { return false };
    if map.is_empty() {
        return !theirs;
    }
    if mine {
        map.remove(SELF);
    }
    subtract_members(map, below, recursively);
    match (mine && !theirs, map.is_empty()) {
        (false, empty) => !empty,
        (true, true) => true,
        (true, false) => {
            map.insert(Key::from_static(SELF), Value::object());
            true
        }
    }
}
