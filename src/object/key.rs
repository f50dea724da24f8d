//! Keys of objects. Names of the type table are static and cost nothing to clone; others are shared.

use std::{
    borrow::Borrow,
    collections::HashSet,
    fmt,
    hash::{BuildHasherDefault, Hash, Hasher},
    ops::Deref,
    sync::{Arc, OnceLock},
};

/// The name of an object's member.
#[derive(Clone)]
pub struct Key(Repr);

#[derive(Clone)]
enum Repr {
    Static(&'static str),
    Shared(Arc<str>),
}

static KNOWN: OnceLock<HashSet<&'static str, BuildHasherDefault<NameHasher>>> = OnceLock::new();

/// A quick hash for names that are known beforehand: what others send is looked up but never added, so nobody can
/// make names collide. Eight bytes at a time.
#[derive(Default)]
struct NameHasher(u64);

impl NameHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.mix(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn finish(&self) -> u64 {
        // The table takes buckets from the low bits and tags from the high ones.
        self.0 ^ (self.0 >> 32)
    }
}

/// Makes [`Key::new`] free for these names. The first call wins; later ones are ignored.
pub fn register_static_keys(names: impl IntoIterator<Item = &'static str>) {
    let _ = KNOWN.set(names.into_iter().collect());
}

/// The names that were registered.
pub fn static_keys() -> impl Iterator<Item = &'static str> {
    KNOWN.get().into_iter().flatten().copied()
}

impl Key {
    pub fn new(name: &str) -> Self {
        match KNOWN.get().and_then(|known| known.get(name)) {
            Some(known) => Self(Repr::Static(known)),
            None => Self(Repr::Shared(name.into())),
        }
    }

    pub const fn from_static(name: &'static str) -> Self {
        Self(Repr::Static(name))
    }

    /// The name of a key that is free to clone.
    pub fn as_static(&self) -> Option<&'static str> {
        if let Repr::Static(name) = self.0 { Some(name) } else { None }
    }

    /// Whether two keys are one text in memory, as registered names are; different texts may still be equal.
    fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.as_str(), other.as_str())
    }

    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Static(name) => name,
            Repr::Shared(name) => name,
        }
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::from_static("")
    }
}

impl Deref for Key {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}
impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}
impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.as_str() == other.as_str()
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if self.is_same(other) { std::cmp::Ordering::Equal } else { self.as_str().cmp(other.as_str()) }
    }
}
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}
impl From<String> for Key {
    fn from(name: String) -> Self {
        Self::new(&name)
    }
}
