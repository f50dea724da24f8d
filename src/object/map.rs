//! The members of an object: a vector sorted by key, keys unique.

use super::{Key, Value};

/// So many members are set or taken out one by one: moving what stands behind them is cheaper than a new vector.
const FEW: usize = 8;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(Vec<(Key, Value)>);

impl Map {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn with_capacity(members: usize) -> Self {
        Self(Vec::with_capacity(members))
    }

    /// Sorts members in the order they were written; the last of several with one key wins, and each key that
    /// came more than once is told to `duplicate` (once for each repetition). O(n log n), O(n) when sorted.
    pub fn from_members(members: Vec<(Key, Value)>, mut duplicate: impl FnMut(&Key)) -> Self {
        Self::from_members_replacing(members, |key, _| duplicate(key))
    }

    /// The same; `replaced` gets the values that lost, in the order they were written.
    pub fn from_members_replacing(mut members: Vec<(Key, Value)>, mut replaced: impl FnMut(&Key, Value)) -> Self {
        if members.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Self(members);
        }
        members.sort_by(|a, b| a.0.cmp(&b.0));
        let mut unique: Vec<(Key, Value)> = Vec::with_capacity(members.len());
        for member in members {
            match unique.last_mut() {
                Some(last) if last.0 == member.0 => {
                    replaced(&member.0, std::mem::replace(&mut last.1, member.1));
                }
                _ => unique.push(member),
            }
        }
        Self(unique)
    }

    /// Takes members that are sorted and unique already.
    pub fn from_sorted(members: Vec<(Key, Value)>) -> Self {
        debug_assert!(members.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted and unique");
        Self(members)
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|member| member.0.as_str().cmp(key))
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.find(key).ok().map(|at| &self.0[at].1)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.find(key).ok().map(|at| &mut self.0[at].1)
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_ok()
    }

    /// Sets a member and returns what it replaced.
    pub fn insert(&mut self, key: impl Into<Key>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.find(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Sets many members in one pass, the last of several with one key; O(n + m log m), where one by one is O(n m).
    pub fn insert_all(&mut self, members: Vec<(Key, Value)>) {
        if members.len() <= FEW {
            for (key, value) in members {
                self.insert(key, value);
            }
            return;
        }
        let new = Self::from_members(members, |_| {}).0;
        if self.0.last().is_none_or(|last| new.first().is_some_and(|first| last.0 < first.0)) {
            self.0.extend(new);
            return;
        }
        let mut merged = Vec::with_capacity(self.0.len() + new.len());
        let mut old = std::mem::take(&mut self.0).into_iter().peekable();
        for member in new {
            while let Some(before) = old.next_if(|old| old.0 < member.0) {
                merged.push(before);
            }
            old.next_if(|old| old.0 == member.0);
            merged.push(member);
        }
        merged.extend(old);
        self.0 = merged;
    }

    /// Takes many members out in one pass. `keys` are sorted.
    pub fn remove_all(&mut self, keys: &[&Key]) {
        debug_assert!(keys.is_sorted(), "sorted");
        if keys.len() <= FEW {
            keys.iter().for_each(|key| drop(self.remove(key)));
            return;
        }
        let mut gone = keys.iter().peekable();
        self.0.retain(|(key, _)| {
            while gone.next_if(|gone| **gone < key).is_some() {}
            gone.peek().is_none_or(|gone| **gone != key)
        });
    }

    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.find(key).ok().map(|at| self.0.remove(at).1)
    }

    /// The member, made with `default` where it is missing.
    pub fn entry_or(&mut self, key: impl Into<Key>, default: impl FnOnce() -> Value) -> &mut Value {
        let key = key.into();
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (key, default()));
                at
            }
        };
        &mut self.0[at].1
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Key, &Value)> + ExactSizeIterator {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&Key, &mut Value)> + ExactSizeIterator {
        self.0.iter_mut().map(|(key, value)| (&*key, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Key> + ExactSizeIterator {
        self.0.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.0.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Value> + ExactSizeIterator {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Keeps the members for which `keep` says so, in one pass.
    pub fn retain(&mut self, mut keep: impl FnMut(&Key, &mut Value) -> bool) {
        self.0.retain_mut(|(key, value)| keep(key, value));
    }

    /// The members as a sorted slice, for walks over two maps side by side.
    pub fn as_slice(&self) -> &[(Key, Value)] {
        &self.0
    }
}

impl IntoIterator for Map {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Into<Key>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        Self::from_members(members.into_iter().map(|(k, v)| (k.into(), v.into())).collect(), |_| {})
    }
}

impl<K: Into<Key>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Map {
    fn from(members: [(K, V); N]) -> Self {
        members.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(keys: impl IntoIterator<Item = u32>, value: i64) -> Map {
        keys.into_iter().map(|key| (Key::new(&format!("{key:04}")), value)).collect()
    }

    #[test]
    fn many_at_once_are_the_same_as_one_by_one() {
        let (step, other) = ([1, 2, 3, 7], [2, 3, 5]);
        for (step, other) in step.into_iter().flat_map(|step| other.map(|other| (step, other))) {
            let before = map((0..100).step_by(step), 1);
            let new: Vec<(Key, Value)> = map((50..150).step_by(other), 2).into_iter().rev().collect();
            let (mut all, mut single) = (before.clone(), before.clone());
            all.insert_all(new.clone());
            new.iter().for_each(|(key, value)| drop(single.insert(key.clone(), value.clone())));
            assert_eq!(all, single);
            let gone = map((0..200).step_by(other), 0);
            all.remove_all(&gone.keys().collect::<Vec<_>>());
            gone.keys().for_each(|key| drop(single.remove(key)));
            assert_eq!(all, single);
        }
    }

    #[test]
    fn the_last_of_several_wins_and_an_empty_map_takes_all() {
        let members: Vec<(Key, Value)> = (0..20).map(|n| (Key::new(&format!("{}", n % 5)), Value::Int(n))).collect();
        let mut map = Map::new();
        map.insert_all(members);
        assert_eq!(
            map.iter().map(|(_, value)| value.as_i64()).collect::<Vec<_>>(),
            (15..20).map(Some).collect::<Vec<_>>()
        );
    }
}
