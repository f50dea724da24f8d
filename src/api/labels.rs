//! Label selectors: text and `metav1.LabelSelector` objects to requirements, and matching.
//!
//! A parsed selector is immutable, its requirements are sorted by key and their values sorted. Parsing costs its
//! length (times a logarithm), matching one look-up a requirement. Mirrors apimachinery `pkg/labels/selector.go`
//! with its error texts, which clients see.

use std::fmt;

use super::{
    field::{ErrorList, FieldError, Path},
    names::{is_qualified_name, is_valid_label_value},
};
use crate::object::{Map, Value};

/// Where a requirement looks up the label it asks for.
pub trait Labels {
    fn label(&self, key: &str) -> Option<&str>;
}

/// Pairs sorted by key.
impl Labels for [(Box<str>, Box<str>)] {
    fn label(&self, key: &str) -> Option<&str> {
        let at = self.binary_search_by(|pair| pair.0.as_ref().cmp(key)).ok()?;
        self.get(at).map(|pair| pair.1.as_ref())
    }
}

/// `metadata.labels` of an object.
impl Labels for Map {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

impl<L: Labels + ?Sized> Labels for Option<&L> {
    fn label(&self, key: &str) -> Option<&str> {
        (*self)?.label(key)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl Operator {
    /// Upstream's name (apimachinery `pkg/selection`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::Exists => "exists",
            Self::DoesNotExist => "!",
            Self::GreaterThan => "gt",
            Self::LessThan => "lt",
        }
    }
}

/// Why a selector is none; the text upstream gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError(pub String);

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SelectorError {}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    /// Sorted; as many as the operator wants.
    values: Vec<Box<str>>,
}

impl Requirement {
    /// Checks key, number of values and values; all problems in one text.
    pub fn new(key: &str, operator: Operator, values: &[&str]) -> Result<Self, SelectorError> {
        let mut errors = ErrorList::new();
        if let Some(why) = joined(is_qualified_name(key)) {
            errors.push(FieldError::invalid(&Path::new("key"), key, &why));
        }
        let path = Path::new("values");
        if let Some(why) = wrong_count(operator, values.len()) {
            let shown: Value = if values.is_empty() { Value::Null } else { values.to_vec().into() };
            errors.push(FieldError::invalid(&path, shown, why));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (at, value) in values.iter().enumerate().filter(|(_, value)| integer(value).is_none()) {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(&path.index(at), *value, why));
            }
        }
        for (at, value) in values.iter().enumerate() {
            if let Some(why) = joined(is_valid_label_value(value)) {
                errors.push(FieldError::invalid(&path.index(at).key(key), *value, &why));
            }
        }
        if !errors.is_empty() {
            return Err(SelectorError(errors.to_string()));
        }
        let mut values: Vec<Box<str>> = values.iter().map(|v| Box::from(*v)).collect();
        values.sort();
        Ok(Self { key: key.into(), operator, values })
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// Sorted.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(AsRef::as_ref)
    }

    fn has(&self, value: &str) -> bool {
        self.values.binary_search_by(|it| it.as_ref().cmp(value)).is_ok()
    }

    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let found = labels.label(&self.key);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => found.is_some_and(|it| self.has(it)),
            Operator::NotIn | Operator::NotEquals => !found.is_some_and(|it| self.has(it)),
            Operator::Exists => found.is_some(),
            Operator::DoesNotExist => found.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let limit = self.values.first().and_then(|it| integer(it));
                match (found.and_then(integer), limit) {
                    (Some(value), Some(limit)) if self.operator == Operator::GreaterThan => value > limit,
                    (Some(value), Some(limit)) => value < limit,
                    _ => false,
                }
            }
        }
    }
}

/// Go's ParseInt in base 10: a sign, digits, 64 bits.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn joined(messages: super::names::Messages) -> Option<String> {
    (!messages.is_empty()).then(|| messages.join("; "))
}

fn wrong_count(operator: Operator, count: usize) -> Option<&'static str> {
    let (fine, why) = match operator {
        Operator::In | Operator::NotIn => (count > 0, "for 'in', 'notin' operators, values set can't be empty"),
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => {
            (count == 1, "exact-match compatibility requires one single value")
        }
        Operator::Exists | Operator::DoesNotExist => {
            (count == 0, "values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan => {
            (count == 1, "for 'Gt', 'Lt' operators, exactly one value is required")
        }
    };
    (!fine).then_some(why)
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.join(",");
        let key = &self.key;
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

/// What labels must be like. The default matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl Selector {
    pub fn everything() -> Self {
        Self::default()
    }

    pub fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    pub fn from_requirements(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements, nothing: false }
    }

    /// Parses the text of `labelSelector`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Parser { tokens: scan(text), at: 0 }.selector().map(Self::from_requirements)
    }

    /// A `metav1.LabelSelector`: nothing where absent or null, everything where empty.
    pub fn from_object(selector: Option<&Value>) -> Result<Self, SelectorError> {
        let selector = match selector {
            None | Some(Value::Null) => return Ok(Self::nothing()),
            Some(selector) => selector,
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.object_at(&["matchLabels"]).into_iter().flat_map(Map::iter) {
            requirements.push(Requirement::new(key, Operator::Equals, &[value.as_str().unwrap_or("")])?);
        }
        for expression in selector.array_at(&["matchExpressions"]) {
            let operator = match expression.str_at(&["operator"]) {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let quoted = super::field::quote(other);
                    return Err(SelectorError(format!("{quoted} is not a valid label selector operator")));
                }
            };
            let values: Vec<&str> = expression.array_at(&["values"]).iter().map(|v| v.as_str().unwrap_or("")).collect();
            requirements.push(Requirement::new(expression.str_at(&["key"]), operator, &values)?);
        }
        Ok(Self::from_requirements(requirements))
    }

    /// A plain map, as in a Service's `spec.selector`: every pair must be there. Not checked, as upstream's
    /// SelectorFromSet.
    pub fn from_set(set: Option<&Map>) -> Self {
        let pairs = set.into_iter().flat_map(Map::iter);
        Self::from_requirements(
            pairs
                .map(|(key, value)| Requirement {
                    key: key.as_str().into(),
                    operator: Operator::Equals,
                    values: vec![value.as_str().unwrap_or("").into()],
                })
                .collect(),
        )
    }

    /// True where every object matches.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        !self.nothing && self.requirements.iter().all(|it| it.matches(labels))
    }

    /// The one value the first requirement on `key` lets pass, if it is of that kind.
    pub fn requires_exact_match(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|it| it.key() == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [only]) => Some(only),
            _ => None,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Symbol(&'static str),
    /// `in` and `notin` are words too: what they mean depends on where they stand.
    Word(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::End => "",
            Self::Symbol(text) => text,
            Self::Word(text) => text,
        }
    }
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\n')
}

fn symbol(rest: &[u8]) -> Option<&'static str> {
    Some(match rest {
        [b'=', b'=', ..] => "==",
        [b'!', b'=', ..] => "!=",
        [b'=', ..] => "=",
        [b'!', ..] => "!",
        [b'(', ..] => "(",
        [b')', ..] => ")",
        [b',', ..] => ",",
        [b'>', ..] => ">",
        [b'<', ..] => "<",
        _ => return None,
    })
}

/// The tokens, ending in [`Token::End`]. As upstream: a NUL ends the text, or the word before it.
fn scan(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(|b| is_space(*b)) {
            at += 1;
        }
        let rest = bytes.get(at..).unwrap_or(&[]);
        if matches!(rest.first(), None | Some(0)) {
            tokens.push(Token::End);
            return tokens;
        }
        if let Some(found) = symbol(rest) {
            tokens.push(Token::Symbol(found));
            at += found.len();
            continue;
        }
        let stop = |b: &u8| *b == 0 || is_space(*b) || symbol(&[*b]).is_some();
        let length = rest.iter().position(stop).unwrap_or(rest.len());
        tokens.push(Token::Word(&text[at..at + length]));
        at += length + usize::from(rest.get(length) == Some(&0));
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

fn found(token: Token<'_>, expected: &str) -> SelectorError {
    SelectorError(format!("found '{}', expected: {expected}", token.text()))
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Word(_) | Token::Symbol("!") => {
                    let requirement = self.requirement();
                    requirements
                        .push(requirement.map_err(|e| SelectorError(format!("unable to parse requirement: {e}")))?);
                    match self.next() {
                        Token::End => return Ok(requirements),
                        Token::Symbol(",") => match self.peek() {
                            Token::Word(_) | Token::Symbol("!") => {}
                            other => return Err(found(other, "identifier after ','")),
                        },
                        other => return Err(found(other, "',' or 'end of string'")),
                    }
                }
                Token::End => return Ok(requirements),
                other => return Err(found(other, "!, identifier, or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let mut token = self.next();
        let negated = token == Token::Symbol("!");
        if negated {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(found(token, "identifier"));
        };
        if let Some(why) = joined(is_qualified_name(key)) {
            return Err(SelectorError(FieldError::invalid(&"<nil>", key, &why).to_string()));
        }
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, &[]);
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Requirement::new(key, Operator::Exists, &[]);
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::new(key, operator, &values)
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        Ok(match self.next() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Symbol("=") => Operator::Equals,
            Token::Symbol("==") => Operator::DoubleEquals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => return Err(found(other, "in, notin, =, ==, !=, gt, lt")),
        })
    }

    /// `(x,,y)`, sorted and without repetitions; a missing value is the empty one.
    fn values(&mut self) -> Result<Vec<&'a str>, SelectorError> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(SelectorError(format!("found '{}' expected: '('", other.text()))),
        }
        let mut values = Vec::new();
        match self.peek() {
            Token::Symbol(")") => values.push(""),
            Token::Word(_) | Token::Symbol(",") => self.value_list(&mut values)?,
            other => return Err(found(other, "',', ')' or identifier")),
        }
        self.next();
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    /// Leaves the parser at the closing parenthesis.
    fn value_list(&mut self, values: &mut Vec<&'a str>) -> Result<(), SelectorError> {
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.push(value);
                    match self.peek() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(()),
                        other => return Err(found(other, "',' or ')'")),
                    }
                }
                Token::Symbol(",") => {
                    let after = self.peek();
                    if values.is_empty() || matches!(after, Token::Symbol(")" | ",")) {
                        values.push("");
                    }
                    if after == Token::Symbol(")") {
                        return Ok(());
                    }
                }
                other => return Err(found(other, "',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<&'a str, SelectorError> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(""),
            Token::Word(value) => {
                self.at += 1;
                Ok(value)
            }
            other => Err(found(other, "identifier")),
        }
    }
}
