//! The order of keys: as people count. Letters after anything else, numbers by their value (go-yaml v2 `sorter.go`).

use std::cmp::Ordering;

use crate::object::{Key, Map, Value};

/// The members in their order.
///
/// The order is not transitive (`12` < `1a` < `2` < `12`), so the sort is one that minds nothing.
pub fn sorted(map: &Map) -> Vec<(&Key, &Value)> {
    let mut members: Vec<(&Key, &Value)> = map.iter().collect();
    let mut spare = members.clone();
    merge_sort(&mut members, &mut spare);
    members
}

fn merge_sort<'a>(members: &mut [(&'a Key, &'a Value)], spare: &mut [(&'a Key, &'a Value)]) {
    let middle = members.len() / 2;
    if middle == 0 {
        return;
    }
    let (left, right) = members.split_at_mut(middle);
    let (spare_left, spare_right) = spare.split_at_mut(middle);
    merge_sort(left, spare_left);
    merge_sort(right, spare_right);
    if let (Some(last), Some(first)) = (left.last(), right.first())
        && compare(last.0, first.0).is_le()
    {
        return;
    }
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    for place in spare.iter_mut() {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if compare(a.0, b.0).is_le() => left.next(),
            (_, Some(_)) => right.next(),
            (_, None) => left.next(),
        };
        if let Some(next) = next {
            *place = *next;
        }
    }
    members.copy_from_slice(spare);
}

fn compare(a: &str, b: &str) -> Ordering {
    let (a_chars, b_chars): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a_chars.iter().zip(&b_chars).position(|(a, b)| a != b) else {
        return a_chars.len().cmp(&b_chars.len());
    };
    let (Some(x), Some(y)) = (a_chars.get(at), b_chars.get(at)) else { return Ordering::Equal };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero counts only behind a digit that is none.
    let before = a_chars.get(..at).unwrap_or_default().iter().rev().take_while(|c| c.is_ascii_digit());
    let start = i64::from((*x == '0' || *y == '0') && before.into_iter().any(|c| *c != '0'));
    let (m, i) = number(&a_chars, at, start);
    let (n, j) = number(&b_chars, at, start);
    m.cmp(&n).then(i.cmp(&j)).then(x.cmp(y))
}

/// The number whose digits begin here, and where they end. Wraps as Go's does.
fn number(chars: &[char], at: usize, start: i64) -> (i64, usize) {
    let digits = chars.iter().skip(at).map_while(|c| c.to_digit(10));
    let (number, count) = digits
        .fold((start, 0), |(number, count), digit| (number.wrapping_mul(10).wrapping_add(i64::from(digit)), count + 1));
    (number, at + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_people_count() {
        let keys = ["a10", "a2", "b", "a-1", "A", "a", "a01", "a1", ".", "1", "f:x", "f:", "k:{\"p\":1}", "_"];
        let map: Map = Map::from_members(keys.iter().map(|key| (Key::new(key), Value::Null)).collect(), |_| {});
        let shown: Vec<&str> = sorted(&map).iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(shown, [".", "_", "1", "A", "a", "a-1", "a1", "a01", "a2", "a10", "b", "f:", "f:x", "k:{\"p\":1}"]);
    }

    #[test]
    fn an_order_that_is_none_is_no_trouble() {
        let keys: Vec<String> = (0..500).map(|n| if n % 3 == 0 { format!("{n}a") } else { n.to_string() }).collect();
        let map: Map = Map::from_members(keys.iter().map(|key| (Key::new(key), Value::Null)).collect(), |_| {});
        assert_eq!(sorted(&map).len(), 500);
    }
}
