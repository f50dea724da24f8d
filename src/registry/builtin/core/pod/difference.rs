//! What an update that is refused would have changed: a unified diff of the internal types, as upstream shows it
//! (apimachinery `pkg/util/diff` over go-difflib, which is Python's difflib).

use std::collections::HashMap;

use super::internal::indented;
use crate::object::Value;

/// Lines shown around a change.
const CONTEXT: usize = 3;
/// Past this many lines on a side the change is told as one: looking for the best one costs more than it is worth.
const MAX_LINES: usize = 5_000;
/// Lines on a side from which on those that come often do not count for finding what is equal.
const POPULAR_FROM: usize = 200;

/// The diff of two values of an internal type; empty where they show the same.
pub fn unified(old: &Value, new: &Value, form: &str) -> String {
    let (old, new) = (indented(old, form), indented(new, form));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let blocks = if old.len().max(new.len()) > MAX_LINES { ends(&old, &new) } else { matching_blocks(&old, &new) };
    let mut out = String::new();
    for group in grouped(steps(&blocks)) {
        write_group(&mut out, &group, &old, &new);
    }
    out
}

/// Equal lines: where they begin on each side, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    old: usize,
    new: usize,
    size: usize,
}

/// What is equal at the beginning and at the end.
fn ends(old: &[&str], new: &[&str]) -> Vec<Block> {
    let before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let last = Block { old: old.len() - after, new: new.len() - after, size: after };
    let end = Block { old: old.len(), new: new.len(), size: 0 };
    [Block { old: 0, new: 0, size: before }, last].into_iter().filter(|it| it.size > 0).chain([end]).collect()
}

/// The longest block of equal lines, then the same on both sides of it; ends with an empty block.
fn matching_blocks(old: &[&str], new: &[&str]) -> Vec<Block> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    if new.len() >= POPULAR_FROM {
        let most = new.len() / 100 + 1;
        places.retain(|_, at| at.len() <= most);
    }
    let mut found = Vec::new();
    let mut open = vec![(0..old.len(), 0..new.len())];
    while let Some((a, b)) = open.pop() {
        let block = longest(old, new, &places, (a.start, a.end), (b.start, b.end));
        if block.size == 0 {
            continue;
        }
        found.push(block);
        if a.start < block.old && b.start < block.new {
            open.push((a.start..block.old, b.start..block.new));
        }
        if block.old + block.size < a.end && block.new + block.size < b.end {
            open.push((block.old + block.size..a.end, block.new + block.size..b.end));
        }
    }
    found.sort();
    let mut joined: Vec<Block> = Vec::new();
    for block in found {
        match joined.last_mut() {
            Some(last) if last.old + last.size == block.old && last.new + last.size == block.new => {
                last.size += block.size
            }
            _ => joined.push(block),
        }
    }
    joined.push(Block { old: old.len(), new: new.len(), size: 0 });
    joined
}

fn longest(
    old: &[&str],
    new: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    (old_from, old_to): (usize, usize),
    (new_from, new_to): (usize, usize),
) -> Block {
    let mut best = Block { old: old_from, new: new_from, size: 0 };
    // How long the run is that ends with the line before, by the place of its end on the new side.
    let mut runs: HashMap<usize, usize> = HashMap::new();
    for (at, line) in old.iter().enumerate().take(old_to).skip(old_from) {
        let mut next = HashMap::new();
        let here = places.get(line).map_or(&[][..], Vec::as_slice);
        for place in here.iter().copied().skip_while(|it| *it < new_from).take_while(|it| *it < new_to) {
            let run = place.checked_sub(1).and_then(|before| runs.get(&before)).copied().unwrap_or(0) + 1;
            next.insert(place, run);
            if run > best.size {
                best = Block { old: at + 1 - run, new: place + 1 - run, size: run };
            }
        }
        runs = next;
    }
    // Lines that did not count for finding it extend it.
    while best.old > old_from && best.new > new_from && old.get(best.old - 1) == new.get(best.new - 1) {
        best = Block { old: best.old - 1, new: best.new - 1, size: best.size + 1 };
    }
    while best.old + best.size < old_to
        && best.new + best.size < new_to
        && old.get(best.old + best.size) == new.get(best.new + best.size)
    {
        best.size += 1;
    }
    best
}

/// A stretch of lines on both sides: equal, or the old replaced by the new.
#[derive(Clone, Debug)]
struct Step {
    equal: bool,
    old: (usize, usize),
    new: (usize, usize),
}

fn steps(blocks: &[Block]) -> Vec<Step> {
    let (mut old, mut new) = (0, 0);
    let mut steps = Vec::new();
    for block in blocks {
        if old < block.old || new < block.new {
            steps.push(Step { equal: false, old: (old, block.old), new: (new, block.new) });
        }
        (old, new) = (block.old + block.size, block.new + block.size);
        if block.size > 0 {
            steps.push(Step { equal: true, old: (block.old, old), new: (block.new, new) });
        }
    }
    steps
}

/// The last lines of an equal stretch.
fn tail(step: &Step) -> Step {
    let cut = |(from, to): (usize, usize)| (from.max(to.saturating_sub(CONTEXT)), to);
    Step { equal: true, old: cut(step.old), new: cut(step.new) }
}

/// The first lines of an equal stretch.
fn head(step: &Step) -> Step {
    let cut = |(from, to): (usize, usize)| (from, to.min(from + CONTEXT));
    Step { equal: true, old: cut(step.old), new: cut(step.new) }
}

/// Changes with the lines around them; those that are near each other stay together.
fn grouped(mut steps: Vec<Step>) -> Vec<Vec<Step>> {
    if let Some(first) = steps.first_mut().filter(|step| step.equal) {
        *first = tail(first);
    }
    if let Some(last) = steps.last_mut().filter(|step| step.equal) {
        *last = head(last);
    }
    let mut groups = Vec::new();
    let mut group: Vec<Step> = Vec::new();
    for step in steps {
        if step.equal && step.old.1 - step.old.0 > 2 * CONTEXT {
            group.push(head(&step));
            groups.push(std::mem::take(&mut group));
            group.push(tail(&step));
        } else {
            group.push(step);
        }
    }
    if group.iter().any(|step| !step.equal) {
        groups.push(group);
    }
    groups
}

fn write_group(out: &mut String, group: &[Step], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let range = |from: usize, to: usize| match to - from {
        1 => format!("{}", from + 1),
        0 => format!("{from},0"),
        length => format!("{},{length}", from + 1),
    };
    out.push_str(&format!("@@ -{} +{} @@\n", range(first.old.0, last.old.1), range(first.new.0, last.new.1)));
    let mut put = |mark: char, lines: &[&str], (from, to): (usize, usize)| {
        for line in lines.get(from..to).unwrap_or(&[]) {
            out.push(mark);
            out.push_str(line);
            out.push('\n');
        }
    };
    for step in group {
        if step.equal {
            put(' ', old, step.old);
        } else {
            put('-', old, step.old);
            put('+', new, step.new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_new_command_is_shown_among_its_neighbours() {
        let old = json!({"containers": [{"name": "c", "image": "j"}]});
        let mut new = old.clone();
        new.set(&["containers"], json!([{"name": "c", "image": "j", "command": ["x"]}]));
        assert_eq!(
            unified(&old, &new, "PodSpec"),
            "@@ -5,7 +5,9 @@\n   {\n    \"Name\": \"c\",\n    \"Image\": \"j\",\n-   \"Command\": null,\n+   \"Command\": [\n+    \"x\"\n+   ],\n    \"Args\": null,\n    \"WorkingDir\": \"\",\n    \"Ports\": null,\n"
        );
        assert_eq!(unified(&old, &old, "PodSpec"), "");
    }

    #[test]
    fn changes_far_from_each_other_are_told_apart() {
        let old = json!({"nodeName": "a", "hostnameOverride": "x"});
        let new = json!({"nodeName": "b", "hostnameOverride": "y"});
        assert_eq!(unified(&old, &new, "PodSpec").matches("@@ -").count(), 2);
    }

    #[test]
    fn what_is_too_long_to_compare_is_told_as_one_change() {
        let command = |first: &str| {
            let words: Vec<Value> = (0..MAX_LINES + 1).map(|_| Value::from("w")).collect();
            let mut words = words;
            words.insert(0, first.into());
            json!({"containers": [{"name": "c", "command": (Value::Array(words))}]})
        };
        let diff = unified(&command("a"), &command("b"), "PodSpec");
        assert!(diff.contains("-    \"a\",\n+    \"b\",\n"), "{diff}");
        assert_eq!(diff.lines().count(), 9, "{diff}");
    }
}
