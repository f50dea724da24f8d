//! Finds members of a tree again in the JSON text it came from, to tell which came first and how a number was written.
//! Only called when there is something to report; one pass over the text.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use crate::object::{self, MAX_DEPTH};

/// A member by its path, or the second of that path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub path: String,
    pub repeated: bool,
}

impl Wanted {
    pub fn first(path: String) -> Self {
        Self { path, repeated: false }
    }
    pub fn second(path: String) -> Self {
        Self { path, repeated: true }
    }
}

/// Paths in the order in which their members begin in the text; those not found come last.
pub(super) fn in_order(text: &[u8], paths: Vec<String>) -> Vec<String> {
    let mut wanted: Vec<Wanted> = paths.into_iter().map(Wanted::first).collect();
    sort(text, &mut wanted);
    wanted.into_iter().map(|wanted| wanted.path).collect()
}

pub(super) fn sort(text: &[u8], wanted: &mut [Wanted]) {
    let found = Scan::run(text, wanted.iter().map(|wanted| wanted.path.clone()));
    wanted.sort_by_key(|wanted| {
        let places = found.get(&wanted.path);
        places.and_then(|it| it.get(usize::from(wanted.repeated))).map_or(usize::MAX, |place| place.start)
    });
}

/// Where the values of the members stand (of repeated members the last, which is the one that counts).
pub(super) fn locate(text: &[u8], paths: impl Iterator<Item = String>) -> Vec<Option<Range<usize>>> {
    let paths: Vec<String> = paths.collect();
    let found = Scan::run(text, paths.iter().cloned());
    paths.iter().map(|path| found.get(path)?.last().cloned()).collect()
}

type Found = HashMap<String, Vec<Range<usize>>>;

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    path: String,
    /// Length and hash of the path at each level above, and here. A hash goes on from the one above, so that a long name
    /// is not read again for everything below it.
    levels: Vec<(usize, u64)>,
    /// Hashes of the paths that are looked for.
    hashes: HashSet<u64>,
    found: Found,
}

/// FNV-1a, from where it stopped.
fn hash(state: u64, text: &str) -> u64 {
    text.bytes().fold(state, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

const HASH_OF_NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

impl<'a> Scan<'a> {
    fn run(text: &'a [u8], paths: impl Iterator<Item = String>) -> Found {
        let found: Found = paths.map(|path| (path, Vec::new())).collect();
        let hashes = found.keys().map(|path| hash(HASH_OF_NOTHING, path)).collect();
        let mut scan = Scan { text, at: 0, path: String::new(), levels: vec![(0, HASH_OF_NOTHING)], hashes, found };
        // The text was parsed before, so an end that comes too early only means that nothing more is found.
        let _ = scan.value(0);
        scan.found
    }

    /// Goes a level down; `step` is as paths print it ([`object::FieldPath`]).
    fn enter(&mut self, step: &str) {
        let (_, above) = self.levels.last().copied().unwrap_or((0, HASH_OF_NOTHING));
        self.path.push_str(step);
        self.levels.push((self.path.len(), hash(above, step)));
    }

    fn leave(&mut self) {
        self.levels.pop();
        self.path.truncate(self.levels.last().map_or(0, |(length, _)| *length));
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.text.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn space(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.space()? {
            b'{' => self.members(depth),
            b'[' => self.items(depth),
            b'"' => self.string(),
            _ => {
                while !matches!(self.text.get(self.at), None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
                {
                    self.at += 1;
                }
                Some(())
            }
        }
    }

    fn members(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        loop {
            match self.space()? {
                b'}' => break,
                b',' => self.at += 1,
                _ => {
                    let start = self.at;
                    self.string()?;
                    let key = object::parse(self.text.get(start..self.at)?).ok()?;
                    let key = key.as_str()?;
                    if self.levels.len() > 1 {
                        self.enter(&format!(".{key}"));
                    } else {
                        self.enter(key);
                    }
                    self.space()?;
                    self.at += 1;
                    self.recorded(depth)?;
                }
            }
        }
        self.at += 1;
        Some(())
    }

    fn items(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        let mut index = 0;
        loop {
            match self.space()? {
                b']' => break,
                b',' => self.at += 1,
                _ => {
                    self.enter(&format!("[{index}]"));
                    index += 1;
                    self.recorded(depth)?;
                }
            }
        }
        self.at += 1;
        Some(())
    }

    /// The value at the path just entered; leaves the path. The place is taken down before what is below it, and its
    /// end corrected after.
    fn recorded(&mut self, depth: usize) -> Option<()> {
        self.space()?;
        let start = self.at;
        self.value(depth + 1)?;
        let wanted = self.levels.last().is_some_and(|(_, hash)| self.hashes.contains(hash));
        if wanted && let Some(places) = self.found.get_mut(&self.path) {
            places.push(start..self.at);
        }
        self.leave();
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_in_the_order_of_the_text() {
        let text = br#"{"z":{"y":1.50,"a":[{"k":2},3]},"b":{"x":"}\""},"z":7}"#;
        let paths = ["z.a[0].k", "b", "z.y", "z.a[1]", "no"].map(str::to_owned);
        assert_eq!(in_order(text, paths.to_vec()), ["z.y", "z.a[0].k", "z.a[1]", "b", "no"]);
        let places = locate(text, ["z.y".to_owned(), "z".to_owned()].into_iter());
        let shown = |at: usize| std::str::from_utf8(&text[places[at].clone().unwrap()]).unwrap();
        assert_eq!((shown(0), shown(1)), ("1.50", "7"));
    }
}
