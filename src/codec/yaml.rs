//! A tree to YAML text as sigs.k8s.io/yaml (go-yaml v2) writes it: block style, keys in its natural order, two spaces a
//! level, lists not indented below their key, text quoted only where it would read as something else, lines folded at
//! the first space beyond column 80.

mod order;
mod scalar;
mod words;

use crate::object::{Map, Value, print_float, to_string};

use scalar::Place;

pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut writer = Writer { out: String::with_capacity(1024), column: 0 };
    match value {
        Value::Object(map) if !map.is_empty() => writer.mapping(map, 0),
        Value::Array(items) if !items.is_empty() => writer.sequence(items, 0),
        other => writer.leaf(other, 2),
    }
    if writer.column > 0 {
        writer.newline(0);
    }
    writer.out.into_bytes()
}

/// What lies further in is written on one line, as JSON, which YAML takes as well: an item of two bytes would stand behind
/// thousands of spaces.
const DEEPEST_INDENT: usize = 128;

/// Keys longer than this stand after a `?`.
const LONGEST_SIMPLE_KEY: usize = 128;

struct Writer {
    out: String,
    /// Characters on this line.
    column: usize,
}

impl Writer {
    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    /// Text without line breaks.
    fn put_text(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn newline(&mut self, indent: usize) {
        self.out.push('\n');
        self.column = 0;
        self.pad(indent);
    }

    /// Spaces up to a column.
    fn pad(&mut self, column: usize) {
        while self.column < column {
            self.put(' ');
        }
    }

    /// To the beginning of an item at this indentation: a new line unless this one has nothing on it but what leads there.
    fn item(&mut self, indent: usize, first: bool) {
        // A literal ends with a line of its own.
        if first || self.column == 0 {
            self.pad(indent);
        } else {
            self.newline(indent);
        }
    }

    /// A mapping whose first key stands where the writer is.
    fn mapping(&mut self, map: &Map, indent: usize) {
        for (at, (key, value)) in order::sorted(map).into_iter().enumerate() {
            self.item(indent, at == 0);
            if key.len() <= LONGEST_SIMPLE_KEY && !scalar::is_multiline(key) {
                self.scalar(key, Place::Key);
                self.put(':');
                self.member(value, indent);
                continue;
            }
            self.put_text("? ");
            self.scalar(key, Place::Value { indent: indent + 2 });
            self.item(indent, false);
            self.put(':');
            match value {
                Value::Object(map) if !map.is_empty() && indent < DEEPEST_INDENT => self.mapping(map, indent + 2),
                Value::Array(items) if !items.is_empty() && indent < DEEPEST_INDENT => self.sequence(items, indent + 2),
                other => {
                    self.put(' ');
                    self.leaf(other, indent + 2);
                }
            }
        }
    }

    /// What stands after a key of a mapping at this indentation.
    fn member(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() && indent < DEEPEST_INDENT => {
                self.newline(indent + 2);
                self.mapping(map, indent + 2);
            }
            Value::Array(items) if !items.is_empty() && indent < DEEPEST_INDENT => {
                self.newline(indent);
                self.sequence(items, indent);
            }
            other => {
                self.put(' ');
                self.leaf(other, indent + 2);
            }
        }
    }

    fn sequence(&mut self, items: &[Value], indent: usize) {
        for (at, item) in items.iter().enumerate() {
            self.item(indent, at == 0);
            self.put_text("- ");
            match item {
                Value::Object(map) if !map.is_empty() && indent < DEEPEST_INDENT => self.mapping(map, indent + 2),
                Value::Array(items) if !items.is_empty() && indent < DEEPEST_INDENT => self.sequence(items, indent + 2),
                other => self.leaf(other, indent + 2),
            }
        }
    }

    /// Anything on one line, or text that goes on at this indentation.
    fn leaf(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.put_text("null"),
            Value::Bool(it) => self.put_text(if *it { "true" } else { "false" }),
            Value::Int(it) => self.put_text(&it.to_string()),
            Value::Float(it) => self.put_text(&float(*it)),
            Value::Str(text) => self.scalar(text, Place::Value { indent }),
            Value::Array(_) | Value::Object(_) => self.put_text(&to_string(value)),
        }
    }
}

/// A float as Go prints it with `%g` and as few digits as it needs; whole ones that JSON writes as integers stay that.
fn float(value: f64) -> String {
    let json = print_float(value);
    if let Ok(whole) = json.parse::<i128>()
        && (i64::try_from(whole).is_ok() || u64::try_from(whole).is_ok())
    {
        return whole.to_string();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..=5 => format!("{value}"),
        exponent => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::parse;

    fn yaml(json: &str) -> String {
        String::from_utf8(to_vec(&parse(json.as_bytes()).expect("test JSON"))).expect("text")
    }

    #[test]
    fn text_is_gos_yaml() {
        assert_eq!(
            yaml(
                r#"{"a":{"b":[1,{"c":"x","d":[]},"yes"]},"e":"1","f":"a: b","g":"l1\nl2\n","h":null,"i":"2020-01-01","j":"it's","k":"- x"}"#
            ),
            "a:\n  b:\n  - 1\n  - c: x\n    d: []\n  - \"yes\"\ne: \"1\"\nf: 'a: b'\ng: |\n  l1\n  l2\nh: null\ni: \"2020-01-01\"\nj: it's\nk: '- x'\n"
        );
    }

    #[test]
    fn what_is_written_reads_back() {
        let value = parse(br#"{"a":"","b":"no","c":"0x1F","d":" x","e":"a\tb","f":"\u0001","g":{},"h":[[1,[2]],{"x":{"y":"z"}}],"i":" x\ny","j":"a\n\n","k":"\n"}"#).expect("test JSON");
        let text = String::from_utf8(to_vec(&value)).expect("text");
        assert_eq!(crate::object::yaml::parse(text.as_bytes()).expect("YAML").value, value, "{text}");
    }

    #[test]
    fn long_lines_fold_at_the_first_space_beyond_the_width() {
        let words = "word ".repeat(30);
        let text = yaml(&format!(r#"{{"a":{{"b":"{}"}}}}"#, words.trim_end()));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("a:"));
        let first = lines.next().expect("a line");
        assert_eq!((first.len(), &first[..8]), (84, "  b: wor"));
        assert!(lines.next().is_some_and(|line| line.starts_with("    word")));
        // Keys never fold, and neither does text without a space.
        assert_eq!(yaml(&format!(r#"{{"{}":1}}"#, words.trim_end().split_at(120).0)).lines().count(), 1);
        assert_eq!(yaml(&format!(r#"["{}"]"#, "x".repeat(200))).lines().count(), 1);
    }

    #[test]
    fn text_of_lines_is_literal_unless_spaces_would_be_lost() {
        assert_eq!(yaml(r#"["a\nb"]"#), "- |-\n  a\n  b\n");
        assert_eq!(yaml(r#"["a\nb\n\n"]"#), "- |+\n  a\n  b\n\n");
        assert_eq!(yaml(r#"[" a\nb\n", 1]"#), "- |2\n   a\n  b\n- 1\n");
        assert_eq!(yaml(r#"["a \nb"]"#), "- \"a \\nb\"\n");
        assert_eq!(yaml(r#"["a\tb\nc"]"#), "- \"a\\tb\\nc\"\n");
    }

    #[test]
    fn numbers_are_gos() {
        for (json, expected) in [
            ("1.5", "1.5"),
            ("1e3", "1000"),
            ("0.00001", "1e-05"),
            ("1234567.5", "1.2345675e+06"),
            ("123456.5", "123456.5"),
            ("1e21", "1e+21"),
            ("0.0001", "0.0001"),
        ] {
            assert_eq!(yaml(&format!("[{json}]")), format!("- {expected}\n"), "{json}");
        }
    }

    #[test]
    fn what_lies_deep_stands_on_one_line_as_json() {
        let deep = |depth: usize| format!("{}[1,\"no\"]{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let text = yaml(&deep(200));
        assert!(text.lines().all(|line| line.len() - line.trim_start().len() <= DEEPEST_INDENT), "{text}");
        let last = text.lines().last().expect("a line").trim_start();
        assert_eq!(last.strip_prefix("a: "), Some(deep(200 - 65).as_str()));
    }

    #[test]
    fn long_keys_stand_after_a_question_mark() {
        let key = "k".repeat(129);
        assert_eq!(
            yaml(&format!(r#"{{"{key}":[1,2],"a":{{"{key}":"v"}}}}"#)),
            format!("a:\n  ? {key}\n  : v\n? {key}\n: - 1\n  - 2\n")
        );
    }
}
