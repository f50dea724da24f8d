//! Inputs made of other inputs, the same ones for the same number.

use kenter::object::{Key, Map, Value, parse, to_vec};

/// SplitMix64: small, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `limit`; 0 where that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() % limit as u64) as usize }
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// What trips readers: limits, escapes, halves of things.
const WORDS: [&str; 58] = [
    "null",
    "true",
    "-0",
    "1e1000000000",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "1e400",
    "1.0",
    "0.1e-400",
    "{}",
    "[]",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\u{0}",
    "\u{2028}",
    "\u{feff}",
    "é",
    "😀",
    "\r\n",
    "\t",
    "~0",
    "~1",
    "/-",
    "/",
    "-1",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "&a",
    "*a",
    "<<: *a",
    "!!binary",
    "|2",
    "? ",
    "--- ",
    "%",
    "%2F",
    "..",
    "=",
    "!=",
    " in (",
    ")",
    "!",
    "0777",
    "1:30",
    "Ki",
    "~",
];

/// An input made of the seeds by one to a few changes.
pub fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.pick(seeds).cloned().unwrap_or_default();
    for _ in 0..=random.below(4) {
        input = match random.below(4) {
            0 | 1 => change_tree(&input, seeds, random),
            _ => change_bytes(input, seeds, random),
        };
        input.truncate(1 << 16);
    }
    input
}

fn change_bytes(mut input: Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let at = random.below(input.len() + 1);
    let longest = 1 << random.below(8);
    let end = (at + random.below(longest)).min(input.len());
    match random.below(8) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        2 => drop(input.drain(at..end)),
        3 => {
            let piece: Vec<u8> = input.get(at..end).unwrap_or_default().to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, piece);
        }
        4 | 5 => {
            let word = random.pick(&WORDS).copied().unwrap_or("");
            input.splice(at..if random.one_in(2) { at } else { end }, word.bytes());
        }
        6 => {
            let other = random.pick(seeds).map_or(&[][..], Vec::as_slice);
            let from = random.below(other.len() + 1);
            input.splice(at.., other.get(from..).unwrap_or_default().iter().copied());
        }
        _ => input.truncate(at),
    }
    input
}

/// Changes one of the NUL-separated parts that is JSON, as JSON.
fn change_tree(input: &[u8], seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut parts: Vec<Vec<u8>> = input.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    let at = random.below(parts.len());
    let donor = random.pick(seeds).and_then(|seed| {
        let parts: Vec<&[u8]> = seed.split(|byte| *byte == 0).collect();
        parse(random.pick(&parts)?).ok()
    });
    if let Some(part) = parts.get_mut(at)
        && let Ok(mut value) = parse(part)
    {
        let mut steps = random.below(nodes(&value));
        change_node(&mut value, &mut steps, &donor.unwrap_or_default(), random);
        *part = to_vec(&value);
    }
    parts.join(&0)
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(map) => map.values().map(nodes).sum(),
        _ => 0,
    }
}

/// Goes to the node that `steps` counts to.
fn change_node(value: &mut Value, steps: &mut usize, donor: &Value, random: &mut Random) -> bool {
    if *steps == 0 {
        change(value, donor, random);
        return true;
    }
    *steps -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| change_node(item, steps, donor, random)),
        Value::Object(map) => map.values_mut().any(|item| change_node(item, steps, donor, random)),
        _ => false,
    }
}

fn change(value: &mut Value, donor: &Value, random: &mut Random) {
    let word = random.pick(&WORDS).copied().unwrap_or("");
    match (random.below(9), &mut *value) {
        (0, Value::Array(items)) => {
            let at = random.below(items.len());
            if let Some(item) = items.get(at).cloned() {
                items.push(item);
            }
        }
        (1, Value::Array(items)) => {
            let at = random.below(items.len() + 1).min(items.len());
            items.truncate(at);
        }
        (0 | 1, Value::Object(map)) => {
            let names: Vec<Key> = map.keys().cloned().collect();
            if let Some(name) = random.pick(&names) {
                map.remove(name);
            }
        }
        (2, Value::Object(map)) => drop(map.insert(Key::new(word), donor.clone())),
        (3, Value::Object(map)) => {
            let names: Vec<Key> = map.keys().cloned().collect();
            if let (Some(from), Some(to)) = (random.pick(&names), random.pick(&names))
                && let Some(moved) = map.get(from).cloned()
            {
                map.insert(to.clone(), moved);
            }
        }
        (2 | 3, Value::Str(text)) => text.push_str(word),
        (4, _) => *value = word.into(),
        (5, _) => *value = any_scalar(random),
        (6, _) => *value = donor.clone(),
        (7, _) => *value = Value::Array(vec![value.take()]),
        _ => {
            let map: Map = [(Key::new(word), value.take())].into_iter().collect();
            *value = map.into();
        }
    }
}

fn any_scalar(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        1 => random.one_in(2).into(),
        2 => (random.next() as i64).into(),
        3 => i64::MIN.into(),
        4 => (random.below(20) as i64 - 10).into(),
        5 => Value::Float(f64::from_bits(random.next())).into_finite(),
        6 => 0.5.into(),
        _ => "".into(),
    }
}

trait Finite {
    fn into_finite(self) -> Self;
}

impl Finite for Value {
    /// Trees hold no other numbers.
    fn into_finite(self) -> Self {
        match self {
            Self::Float(it) if !it.is_finite() => Self::Float(1e300),
            other => other,
        }
    }
}
