//! What an update that is refused would have changed, for a person to read.

use crate::object::{Style, Value, write_json};

/// Lines shown around a change.
const CONTEXT: usize = 3;

/// A unified diff of one hunk. Upstream shows the internal structs with all they could hold; this shows the objects
/// as clients know them.
pub fn unified(old: &Value, new: &Value) -> String {
    let print = |value: &Value| {
        let mut out = Vec::new();
        write_json(&mut out, value, Style::Indented);
        String::from_utf8(out).unwrap_or_default()
    };
    let (old, new) = (print(old), print(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    if before == old.len() && before == new.len() {
        return String::new();
    }
    let start = before.saturating_sub(CONTEXT);
    let (old_end, new_end) = (old.len() - after, new.len() - after);
    let shown_after = after.min(CONTEXT);
    let mut out = format!(
        "@@ -{},{} +{},{} @@\n",
        start + 1,
        old_end + shown_after - start,
        start + 1,
        new_end + shown_after - start
    );
    let mut put = |mark: char, lines: &[&str]| {
        for line in lines {
            out.push(mark);
            out.push_str(line);
            out.push('\n');
        }
    };
    put(' ', old.get(start..before).unwrap_or(&[]));
    put('-', old.get(before..old_end).unwrap_or(&[]));
    put('+', new.get(before..new_end).unwrap_or(&[]));
    put(' ', old.get(old_end..old_end + shown_after).unwrap_or(&[]));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn only_what_differs_is_marked() {
        let of = |image: &str| json!({"a": 1, "image": image, "z": [1, 2]});
        assert_eq!(
            unified(&of("x"), &of("y")),
            "@@ -1,6 +1,6 @@\n {\n   \"a\": 1,\n-  \"image\": \"x\",\n+  \"image\": \"y\",\n   \"z\": [\n     1,\n     2\n"
        );
        assert_eq!(unified(&of("x"), &of("x")), "");
    }
}
