//! The dialect of JSONPath that printer columns and selectable fields are written in (client-go `util/jsonpath`),
//! without `range`. Missing keys select nothing.

use std::borrow::Cow;

use crate::{
    object::{Value, to_string},
    schema::patch::go_print,
};

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Node>);

/// A path that cannot be read, or does not fit the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathError;

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Field(String),
    Wildcard,
    Recursive,
    /// Start, end and step; the end may follow from the start (a plain index).
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        derived: bool,
        step: Option<i64>,
    },
    Union(Vec<Vec<Node>>),
    Filter {
        left: Vec<Node>,
        operator: String,
        right: Vec<Node>,
    },
    Literal(Value),
}

type Selected<'a> = Vec<Cow<'a, Value>>;

/// A path that selects more fails: several `..` multiply.
const MOST: usize = 100_000;

impl JsonPath {
    /// Reads a path as it stands between braces: `.spec.replicas`.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        let text = format!("{path}}}");
        let mut reader = Reader { text: &text, at: 0 };
        reader.action().map(Self)
    }

    /// All values at the path.
    pub fn find<'a>(&self, value: &'a Value) -> Result<Selected<'a>, PathError> {
        walk(&self.0, vec![Cow::Borrowed(value)])
    }

    /// The first value at the path.
    pub fn first<'a>(&self, value: &'a Value) -> Option<Cow<'a, Value>> {
        self.find(value).ok()?.into_iter().next()
    }
}

/// A value as the dialect prints it: text as it is, lists and objects as JSON.
pub fn print(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".into(),
        Value::Array(_) | Value::Object(_) => to_string(value),
        other => go_print::plain(other),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

/// Whether a name ends before this character.
fn ends_name(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn since(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Up to the closing brace.
    fn action(&mut self) -> Result<Vec<Node>, PathError> {
        let mut nodes = Vec::new();
        loop {
            if self.rest().starts_with('}') {
                return Ok(nodes);
            }
            if self.rest().starts_with("[?(") {
                nodes.push(self.filter()?);
                continue;
            }
            if self.rest().starts_with("..") {
                if nodes.last() == Some(&Node::Recursive) {
                    return Err(PathError);
                }
                self.at += 2;
                nodes.push(Node::Recursive);
                if self.peek().is_some_and(|c| c == '_' || c.is_alphanumeric()) {
                    nodes.push(self.field());
                }
                continue;
            }
            let start = self.at;
            match self.next().ok_or(PathError)? {
                ' ' | '@' | '$' => {}
                '[' => self.array(start, &mut nodes)?,
                quote @ ('"' | '\'') => nodes.push(Node::Literal(self.quoted(start, quote)?.into())),
                '.' => nodes.push(self.field()),
                c if c == '+' || c == '-' || c.is_numeric() => nodes.push(self.number(start)?),
                c if c == '_' || c.is_alphanumeric() => {
                    while self.peek().is_some_and(|c| !ends_name(c)) {
                        self.next();
                    }
                    nodes.push(match self.since(start) {
                        "true" => Node::Literal(true.into()),
                        "false" => Node::Literal(false.into()),
                        _ => return Err(PathError),
                    });
                }
                _ => return Err(PathError),
            }
        }
    }

    /// A name whose dot is read; what a backslash precedes belongs to it.
    fn field(&mut self) -> Node {
        let start = self.at;
        while let Some(c) = self.peek().filter(|c| !ends_name(*c)) {
            self.next();
            if c == '\\' {
                self.next();
            }
        }
        match self.since(start) {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn number(&mut self, start: usize) -> Result<Node, PathError> {
        while self.peek().is_some_and(|c| c == '.' || c.is_numeric()) {
            self.next();
        }
        let text = self.since(start);
        let plain = text.strip_prefix('+').unwrap_or(text);
        let whole = plain.parse::<i64>().map(Value::from);
        let value = whole.or_else(|_| plain.parse::<f64>().map(Value::from)).map_err(|_| PathError)?;
        Ok(Node::Literal(value))
    }

    fn quoted(&mut self, start: usize, quote: char) -> Result<String, PathError> {
        loop {
            match self.next() {
                None | Some('\n') => return Err(PathError),
                Some(c) if c == quote && !self.since(start).trim_end_matches(quote).ends_with('\\') => break,
                Some(_) => {}
            }
        }
        let text = self.since(start);
        let inner = text.get(1..text.len() - 1).ok_or(PathError)?;
        unescape(inner, quote)
    }

    /// What stands in brackets, of which the opening one is read.
    fn array(&mut self, start: usize, nodes: &mut Vec<Node>) -> Result<(), PathError> {
        loop {
            match self.next() {
                None | Some('\n') => return Err(PathError),
                Some(']') => break,
                Some(_) => {}
            }
        }
        let inner = self.since(start);
        let inner = inner.get(1..inner.len() - 1).ok_or(PathError)?;
        let inner = if inner == "*" { ":" } else { inner };
        if inner.contains(',') {
            let branches: Result<Vec<Vec<Node>>, PathError> =
                inner.split(',').map(|part| Ok(JsonPath::parse(&format!("[{}]", part.trim_matches(' ')))?.0)).collect();
            nodes.push(Node::Union(branches?));
            return Ok(());
        }
        if let Some(key) =
            inner.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).filter(|key| !key.contains('\''))
        {
            // Upstream reads the key as a path, so that a dot in it has to be escaped here too.
            nodes.extend(JsonPath::parse(&format!(".{key}"))?.0);
            return Ok(());
        }
        nodes.push(slice(inner)?);
        Ok(())
    }

    fn filter(&mut self) -> Result<Node, PathError> {
        self.at += 3;
        let start = self.at;
        let mut quote = None;
        let mut closed = false;
        loop {
            let before = self.text.get(..self.at).and_then(|text| text.chars().last());
            match self.next() {
                None | Some('\n') => return Err(PathError),
                Some(c @ ('"' | '\'')) => match quote {
                    None => quote = Some(c),
                    Some(open) => closed |= open == c && before != Some('\\'),
                },
                Some(')') if quote.is_some() == closed => break,
                Some(_) => {}
            }
        }
        let text = self.since(start);
        let text = text.get(..text.len() - 1).ok_or(PathError)?;
        if self.next() != Some(']') {
            return Err(PathError);
        }
        let comparing = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let operator = text.find(comparing).filter(|at| *at > 0).and_then(|at| {
            let (left, rest) = text.split_at(at);
            let length = rest.find(|c| !comparing(c)).unwrap_or(rest.len());
            let (operator, right) = rest.split_at(length);
            // The right side takes at least one character, if need be from the operator.
            match right.is_empty() {
                false => Some((left, operator, right)),
                true if length > 1 => {
                    let (operator, right) = rest.split_at(length - 1);
                    Some((left, operator, right))
                }
                true => None,
            }
        });
        Ok(match operator {
            Some((left, operator, right)) => Node::Filter {
                left: JsonPath::parse(left)?.0,
                operator: operator.to_owned(),
                right: JsonPath::parse(right)?.0,
            },
            None => Node::Filter { left: JsonPath::parse(text)?.0, operator: "exists".into(), right: Vec::new() },
        })
    }
}

/// Go's escapes in a quoted text.
fn unescape(text: &str, quote: char) -> Result<String, PathError> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let c = match chars.next().ok_or(PathError)? {
            'x' => code_of(&mut chars, 2)?,
            'u' => code_of(&mut chars, 4)?,
            'U' => code_of(&mut chars, 8)?,
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' => '\\',
            other if other == quote => other,
            _ => return Err(PathError),
        };
        out.push(c);
    }
    Ok(out)
}

fn code_of(chars: &mut std::str::Chars<'_>, digits: u32) -> Result<char, PathError> {
    let code = (0..digits).try_fold(0, |code, _| Some(code * 16 + chars.next()?.to_digit(16)?));
    code.and_then(char::from_u32).ok_or(PathError)
}

/// `start:end:step`, each of which may be missing.
fn slice(text: &str) -> Result<Node, PathError> {
    let mut parts = text.split(':');
    let number = |part: Option<&str>| match part {
        None | Some("") => Ok(None),
        Some(text) => text.parse::<i64>().map(Some).map_err(|_| PathError),
    };
    let start = number(parts.next())?;
    let second = parts.next();
    let derived = second.is_none();
    let end = if derived { Some(start.unwrap_or(0) + 1) } else { number(second)? };
    let step = number(parts.next())?;
    if parts.next().is_some() || text.contains('+') {
        return Err(PathError);
    }
    Ok(Node::Slice { start, end, derived, step })
}

fn walk<'a>(nodes: &[Node], mut values: Selected<'a>) -> Result<Selected<'a>, PathError> {
    for node in nodes {
        values = step(node, values)?;
        if values.len() > MOST {
            return Err(PathError);
        }
    }
    Ok(values)
}

fn step<'a>(node: &Node, values: Selected<'a>) -> Result<Selected<'a>, PathError> {
    let mut found = Vec::new();
    match node {
        Node::Literal(value) => found.extend(values.iter().map(|_| Cow::Owned(value.clone()))),
        Node::Field(name) => {
            for value in values {
                match value {
                    Cow::Borrowed(value) => found.extend(value.get(name).map(Cow::Borrowed)),
                    Cow::Owned(value) => found.extend(value.get(name).cloned().map(Cow::Owned)),
                }
            }
        }
        Node::Wildcard | Node::Recursive => {
            for value in values {
                match node {
                    Node::Wildcard => found.extend(children(value)),
                    _ => descend(value, &mut found),
                }
                if found.len() > MOST {
                    return Err(PathError);
                }
            }
        }
        Node::Slice { start, end, derived, step } => {
            for value in values.into_iter().filter(|value| !value.is_null()) {
                let Value::Array(items) = &*value else { return Err(PathError) };
                let places = places(items.len() as i64, *start, *end, *derived, *step)?;
                let items: Vec<Cow<'a, Value>> = children(value);
                found.extend(places.filter_map(|at| items.get(at).cloned()));
            }
        }
        Node::Union(branches) => {
            for branch in branches {
                found.extend(walk(branch, values.clone())?);
                if found.len() > MOST {
                    return Err(PathError);
                }
            }
        }
        Node::Filter { left, operator, right } => {
            for value in values {
                if !matches!(&*value, Value::Array(_)) {
                    return Err(PathError);
                }
                for item in children(value) {
                    if passes(&item, left, operator, right)? {
                        found.push(item);
                    }
                }
            }
        }
    }
    Ok(found)
}

fn children(value: Cow<'_, Value>) -> Selected<'_> {
    match value {
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(map)) => map.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        Cow::Owned(Value::Object(map)) => map.into_iter().map(|(_, value)| Cow::Owned(value)).collect(),
        _ => Vec::new(),
    }
}

/// A value that has something in it, and all such values below.
fn descend<'a>(value: Cow<'a, Value>, found: &mut Selected<'a>) {
    let below = children(value.clone());
    if !below.is_empty() {
        found.push(value);
        below.into_iter().for_each(|value| descend(value, found));
    }
}

fn places(
    length: i64,
    start: Option<i64>,
    end: Option<i64>,
    derived: bool,
    step: Option<i64>,
) -> Result<impl Iterator<Item = usize>, PathError> {
    let mut start = start.unwrap_or(0);
    if start < 0 {
        start += length;
    }
    let mut end = end.unwrap_or(length);
    if end < 0 || (end == 0 && derived) {
        end += length;
    }
    let step = step.unwrap_or(1);
    if start != end {
        let inside = (0..length).contains(&start) && (0..=length).contains(&end) && start <= end;
        if !inside || step <= 0 {
            return Err(PathError);
        }
    }
    Ok((start.max(0) as usize..end.max(0) as usize).step_by(step.max(1) as usize))
}

fn passes(item: &Value, left: &[Node], operator: &str, right: &[Node]) -> Result<bool, PathError> {
    let lefts = walk(left, vec![Cow::Borrowed(item)]);
    if operator == "exists" {
        return Ok(lefts.is_ok_and(|found| !found.is_empty()));
    }
    let (lefts, rights) = (lefts?, walk(right, vec![Cow::Borrowed(item)])?);
    let (left, right) = match (lefts.as_slice(), rights.as_slice()) {
        ([], _) | (_, []) => return Ok(false),
        ([left], [right]) => (left, right),
        _ => return Err(PathError),
    };
    use std::cmp::Ordering;
    let order = match (&**left, &**right) {
        (Value::Bool(left), Value::Bool(right)) if matches!(operator, "==" | "!=") => left.cmp(right),
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right).unwrap_or(Ordering::Less),
        (Value::Str(left), Value::Str(right)) => left.cmp(right),
        _ => return Err(PathError),
    };
    Ok(match operator {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        ">" => order.is_gt(),
        "<=" => order.is_le(),
        ">=" => order.is_ge(),
        _ => return Err(PathError),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn select(path: &str) -> Option<String> {
        let value = json!({"spec": {
            "l": [{"n": "1", "t": "y"}, {"n": "2", "t": "x"}, {"n": "3", "q": true}],
            "k.y": "dot", "o": {"a": 1, "b": [true, null, 1.5]}, "null": null, "num": 5}});
        let found = JsonPath::parse(path).ok()?.find(&value).ok()?;
        Some(found.iter().map(|value| print(value)).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn paths_select_what_kubectls_do() {
        for (path, expected) in [
            (".spec.l[0].n", Some("1")),
            (".spec.l[-1].n", Some("3")),
            (".spec.l[*].n", Some("1 2 3")),
            (".spec.l[0:2].n", Some("1 2")),
            (".spec.l[::2].n", Some("1 3")),
            (".spec.l[0,2].n", Some("1 3")),
            (".spec.l[5].n", None),
            (r#".spec.l[?(@.t=="x")].n"#, Some("2")),
            (".spec.l[?(@.q)].n", Some("3")),
            (r#".spec.l[?(@.n>"1")].n"#, Some("2 3")),
            (".spec.l[?(@.n>1)].n", None),
            ("..n", Some("1 2 3")),
            (".spec.k\\.y", Some("dot")),
            (".spec['k\\.y']", Some("dot")),
            (".spec['k.y']", Some("")),
            (".spec['o']", Some(r#"{"a":1,"b":[true,null,1.5]}"#)),
            (".spec.o.b[2]", Some("1.5")),
            (".spec.null", Some("<no value>")),
            (".spec.none.deep", Some("")),
            (".spec.num[0]", None),
            (".spec[", None),
            (".spec[?(@.a", None),
            ("{", None),
            (".spec.l[a]", None),
        ] {
            assert_eq!(select(path).as_deref(), expected, "{path}");
        }
    }
}
