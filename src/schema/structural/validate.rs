//! Judges values by the schema, as kube-openapi `pkg/validation/validate` does and in its words.
//!
//! The order of checks at a node is upstream's, since it decides which branch of an `anyOf` comes closest: every check
//! that applies counts as a match, and the errors shown are those of the branch with the most.

use std::{cell::Cell, fmt};

use super::{
    correlate::Correlated,
    formats::{self, Format},
    go_regex,
    node::Node,
};
use crate::{
    api::{
        ErrorList, FieldError,
        field::{ErrorType, quote},
    },
    object::{Value, to_string},
    schema::{
        patch::go_print,
        table::{Nested, Validation},
    },
};

/// Judges `value`, which stands at `path` (`""` for the object itself). With `old`, what is wrong in a part that has
/// not changed is not told.
pub fn validate(node: Node<'_>, value: &Value, old: Option<Correlated<'_, '_>>, path: &str, errors: &mut ErrorList) {
    let mut seen = std::collections::HashSet::new();
    let room = Cell::new(MAX_TOLD);
    for problem in judge(node, value, Place::Root(&room), old).problems {
        // Upstream reports each text once.
        if seen.insert(problem.message.clone()) {
            errors.push(problem.told_at(path));
        }
    }
}

/// Bytes of paths and lists of values that are written out for one object, and problems that are kept: an object is
/// invalid after the first.
const MAX_TOLD: usize = 16 << 20;
const MAX_PROBLEMS: usize = 10_000;

/// Where a value stands, written out only where there is something to say of it: a long name would be written for all
/// that stands below it.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// With what is left of [`MAX_TOLD`].
    Root(&'a Cell<usize>),
    Property(&'a Place<'a>, &'a str),
    /// A member that the schema does not name; upstream puts a dot before it even at the root.
    Member(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn is_root(self) -> bool {
        matches!(self, Self::Root(_))
    }

    /// Takes room for text.
    fn charge(self, bytes: usize) -> bool {
        let mut place = self;
        let room = loop {
            match place {
                Self::Root(room) => break room,
                Self::Property(above, _) | Self::Member(above, _) | Self::Item(above, _) => place = *above,
            }
        };
        let left = room.get();
        room.set(left.saturating_sub(bytes));
        left > 0
    }

    /// The path, or dots where more was told than anybody reads.
    fn text(self) -> String {
        if !self.charge(64) {
            return "...".into();
        }
        let text = self.to_string();
        self.charge(text.len() * 4);
        text
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut place = self;
        while let Self::Property(above, _) | Self::Member(above, _) | Self::Item(above, _) = place {
            steps.push(place);
            place = above;
        }
        let mut first = true;
        for step in steps.into_iter().rev() {
            match step {
                Self::Property(_, name) if first => f.write_str(name)?,
                Self::Property(_, name) | Self::Member(_, name) => write!(f, ".{name}")?,
                Self::Item(_, at) => write!(f, "[{at}]")?,
                Self::Root(_) => {}
            }
            first = false;
        }
        Ok(())
    }
}

/// What one node has to say.
#[derive(Default)]
struct Outcome {
    problems: Vec<Problem>,
    matches: usize,
}

struct Problem {
    kind: ErrorType,
    /// Where, relative to what is judged; `None` for what upstream tells without a place.
    name: Option<String>,
    /// The value as it is shown.
    shown: Option<String>,
    detail: String,
    /// Upstream's own text, which tells problems apart.
    message: String,
}

impl Problem {
    /// A problem whose detail is its message.
    fn at(kind: ErrorType, name: String, shown: String, message: String) -> Self {
        Self { kind, name: Some(name), shown: Some(shown), detail: message.clone(), message }
    }

    fn invalid(place: Place<'_>, value: &Value, says: impl FnOnce(&str) -> String) -> Self {
        let path = place.text();
        let (shown, message) = (show(value), says(&path));
        place.charge(shown.len() + message.len());
        Self::at(ErrorType::Invalid, path, shown, message)
    }

    fn wrong_type(place: Place<'_>, wanted: &str, found: &str) -> Self {
        let path = place.text();
        let message = format!("{path} in body must be of type {wanted}: {}", quote(found));
        Self::at(ErrorType::TypeInvalid, path, quote(found), message)
    }

    /// A problem of the whole, which upstream tells without its place.
    fn composite(message: String) -> Self {
        let detail = message.clone();
        Self { kind: ErrorType::Invalid, name: None, shown: Some(quote("")), detail, message }
    }

    fn told_at(self, path: &str) -> FieldError {
        let name = self.name.as_deref().filter(|name| *name != ".").unwrap_or("");
        let name = name.strip_prefix('.').unwrap_or(name);
        let field = match (path, name) {
            ("", "") => "<nil>".to_owned(),
            ("", name) => name.to_owned(),
            (path, "") => path.to_owned(),
            (path, name) => format!("{path}.{name}"),
        };
        let shown = self.shown;
        match self.kind {
            ErrorType::TypeInvalid => FieldError::type_invalid(&field, shown.unwrap_or_default(), &self.detail),
            ErrorType::Invalid => FieldError::invalid_shown(&field, shown.unwrap_or_default(), &self.detail),
            kind => {
                // Kinds whose text is theirs alone.
                let mut error = FieldError::required(&field, &self.detail);
                error.kind = kind;
                let beginning = match kind {
                    ErrorType::NotSupported => "Unsupported value",
                    ErrorType::TooLong => "Too long",
                    ErrorType::TooMany => "Too many",
                    _ => return error,
                };
                let value = shown.map(|shown| format!(": {shown}")).unwrap_or_default();
                error.body = format!("{beginning}{value}: {}", self.detail);
                error
            }
        }
    }
}

/// A value as Go's `%v` and `%q` show scalars, and as JSON what is larger.
fn show(value: &Value) -> String {
    match value {
        Value::Str(text) => quote(text),
        Value::Float(_) => go_print::plain(value),
        other => to_string(other),
    }
}

impl Outcome {
    fn add(&mut self, problem: Problem) {
        self.add_all([problem]);
    }

    fn add_all(&mut self, problems: impl IntoIterator<Item = Problem>) {
        let room = MAX_PROBLEMS.saturating_sub(self.problems.len());
        self.problems.extend(problems.into_iter().take(room));
    }

    fn merge(&mut self, other: Outcome) {
        self.add_all(other.problems);
        self.matches += other.matches;
    }

    fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Judges a part, and forgives what is wrong where it has not changed.
fn judge(node: Node<'_>, value: &Value, path: Place<'_>, old: Option<Correlated<'_, '_>>) -> Outcome {
    let mut outcome = judge_strictly(node, value, path, old);
    if !outcome.is_valid() && old.is_some_and(Correlated::is_equal) {
        outcome.problems.clear();
    }
    outcome
}

fn judge_strictly(node: Node<'_>, value: &Value, path: Place<'_>, old: Option<Correlated<'_, '_>>) -> Outcome {
    static NOTHING: std::sync::OnceLock<Validation> = std::sync::OnceLock::new();
    let rules = node.validation().unwrap_or_else(|| NOTHING.get_or_init(Validation::default));
    let mut outcome = Outcome::default();
    let format_name = rules.format.as_deref().unwrap_or("");
    let types = node.types();
    let format = formats::of(types.only(), format_name);
    let format_name = if format.is_some() { format_name } else { "" };
    if !types.is_empty() || !format_name.is_empty() || value.is_null() {
        match type_problem(node, format_name, value, path) {
            Some(problem) => outcome.add(problem),
            None => outcome.matches += 1,
        }
        outcome.matches += usize::from(!value.is_null());
    }
    if value.is_null() {
        outcome.add_all(enum_problem(rules, value, path));
        return outcome;
    }
    outcome.merge(junctors(rules, value, path));
    outcome.matches += 1;
    match value {
        Value::Str(text) => {
            outcome.add_all(string_problem(rules, text, path));
            outcome.matches += 1;
            if let Some(Format::Text(takes)) = format {
                if !takes(text) {
                    outcome.add(Problem::wrong_type(path, format_name, text));
                }
                outcome.matches += 1;
            }
        }
        Value::Int(_) | Value::Float(_) => {
            numbers(rules, types.only(), format, value, path, &mut outcome.problems);
            outcome.matches += 2;
        }
        Value::Array(items) => {
            if let Some(item_node) = node.item() {
                for (at, item) in items.iter().enumerate() {
                    let old = old.and_then(|old| old.index(at));
                    outcome.merge(judge(item_node, item, Place::Item(&path, at), old));
                }
            }
            sizes_of_list(rules, items, path, &mut outcome.problems);
            outcome.matches += 2;
        }
        _ => {}
    }
    outcome.add_all(enum_problem(rules, value, path));
    outcome.matches += 1;
    if let Value::Object(_) = value {
        outcome.merge(members(node, rules, value, path, old));
        outcome.matches += 1;
    }
    outcome.matches += 1;
    outcome
}

/// What Go knows of a JSON value: its type and the format of its numbers.
fn json_kind(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Int(_) => ("integer", "int64"),
        Value::Float(_) => ("number", "float64"),
        Value::Str(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn type_problem(node: Node<'_>, format: &str, value: &Value, path: Place<'_>) -> Option<Problem> {
    let types = node.types();
    let (kind, own_format) = json_kind(value);
    if value.is_null() {
        return (!types.is_empty() && !node.nullable()).then(|| Problem::wrong_type(path, &types.joined(), "null"));
    }
    let whole = matches!(value, Value::Float(number) if is_whole(*number)) && types.has("integer");
    let fits = types.has(kind) || whole || (kind == "integer" && types.has("number"));
    let texts = matches!(value, Value::Str(_) | Value::Array(_));
    if !texts && !format.is_empty() && !fits && own_format != format {
        return Some(Problem::wrong_type(path, format, own_format));
    }
    if texts && !format.is_empty() && !(types.has("number") || types.has("integer")) {
        return None;
    }
    (!fits && !types.is_empty()).then(|| Problem::wrong_type(path, &types.joined(), kind))
}

/// Whether a number is an integer that every JSON reader keeps (go-openapi/swag `IsFloat64AJSONInteger`).
fn is_whole(number: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if !number.is_finite() || number.abs() > LARGEST {
        return false;
    }
    let rounded = number.round();
    number == rounded || (rounded != 0.0 && (number - rounded).abs() < 1e-9 * rounded.abs())
}

fn junctors(rules: &Validation, value: &Value, path: Place<'_>) -> Outcome {
    let mut outcome = Outcome { matches: 1, ..Outcome::default() };
    let branch = |nested: &Nested| judge_strictly(Node::Nested(nested), value, path, None);
    if !rules.any_of.is_empty() {
        let (valid, best) = any_of(rules.any_of.iter().map(branch), true);
        if valid == 0 {
            outcome
                .add(Problem::composite(format!("{} must validate at least one schema (anyOf)", quote(&path.text()))));
        }
        outcome.merge(best);
    }
    if !rules.one_of.is_empty() {
        let (valid, best) = any_of(rules.one_of.iter().map(branch), false);
        let found = match valid {
            0 => Some("Found none valid".to_owned()),
            1 => None,
            many => Some(format!("Found {many} valid alternatives")),
        };
        if let Some(found) = found {
            let message = format!("{} must validate one and only one schema (oneOf). {found}", quote(&path.text()));
            outcome.add(Problem::composite(message));
        }
        if valid < 2 {
            outcome.merge(best);
        }
    }
    if !rules.all_of.is_empty() {
        let mut valid = 0;
        for result in rules.all_of.iter().map(branch) {
            valid += usize::from(result.is_valid());
            outcome.merge(result);
        }
        if valid < rules.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.add(Problem::composite(format!(
                "{} must validate all the schemas (allOf){none}",
                quote(&path.text())
            )));
        }
    }
    if rules.not.as_deref().is_some_and(|nested| branch(nested).is_valid()) {
        outcome.add(Problem::composite(format!("{} must not validate the schema (not)", quote(&path.text()))));
    }
    outcome
}

/// How many branches are valid (with `first`, one is enough), and the first valid one or else the one that came
/// closest.
fn any_of(branches: impl Iterator<Item = Outcome>, first: bool) -> (usize, Outcome) {
    let mut valid = 0;
    let mut best: Option<Outcome> = None;
    for result in branches {
        if result.is_valid() {
            valid += 1;
            if valid == 1 {
                best = Some(result);
            }
            if first {
                break;
            }
        } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    (valid, best.unwrap_or_default())
}

fn string_problem(rules: &Validation, text: &str, path: Place<'_>) -> Option<Problem> {
    let length = if rules.max_length.is_some() || rules.min_length.is_some() { text.chars().count() as i64 } else { 0 };
    if let Some(most) = rules.max_length.filter(|most| length > *most) {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let path = path.text();
        let message = format!("{path} in body should be at most {most} chars long");
        let detail = format!("may not be more than {most} {unit}");
        return Some(Problem { kind: ErrorType::TooLong, name: Some(path), shown: None, detail, message });
    }
    let value = || Value::from(text);
    if let Some(least) = rules.min_length.filter(|least| length < *least) {
        let says = |path: &str| format!("{path} in body should be at least {least} chars long");
        return Some(Problem::invalid(path, &value(), says));
    }
    let pattern = rules.pattern.as_deref()?;
    match go_regex::compiled(pattern) {
        Ok(regex) if regex.is_match(text.as_bytes()) => None,
        Ok(_) => Some(Problem::invalid(path, &value(), |path| format!("{path} in body should match '{pattern}'"))),
        Err(why) => {
            let says = |path: &str| format!("{path} in body should match '{pattern}, but pattern is invalid: {why}'");
            Some(Problem::invalid(path, &value(), says))
        }
    }
}

/// A bound or factor as it is printed.
struct Bound(f64, bool);

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 { write!(f, "{}", self.0 as i64) } else { f.write_str(&go_print::plain(&Value::Float(self.0))) }
    }
}

fn numbers(
    rules: &Validation,
    kind: &str,
    format: Option<Format>,
    value: &Value,
    path: Place<'_>,
    problems: &mut Vec<Problem>,
) {
    problems.extend(range_problem(value, kind, format, "Checked", path));
    let number = value.as_f64().unwrap_or(0.0);
    // A rule that the type cannot hold is applied in floating point.
    let mut rule = |bound: Option<f64>, prefix: &str| {
        let bound = bound?;
        let unfit = range_problem(&Value::Float(bound), kind, format, prefix, path);
        let whole = unfit.is_none() && matches!(value, Value::Int(_));
        problems.extend(unfit);
        Some((bound, whole))
    };
    let factor = rule(rules.multiple_of, "MultipleOf");
    let least = rule(rules.minimum, "Minimum boundary");
    let most = rule(rules.maximum, "Maximum boundary");
    let invalid = |problem: String| Problem::invalid(path, value, |path| format!("{path} in body should be {problem}"));
    if let Some((factor, whole)) = factor {
        let bound = Bound(factor, whole);
        let multiple = match value {
            Value::Int(number) if whole => factor as i64 > 0 && number % factor as i64 == 0,
            _ if factor < 1.0 => is_whole(1.0 / factor * number),
            _ => is_whole(number / factor),
        };
        if (if whole { (factor as i64) as f64 } else { factor }) <= 0.0 {
            let path = path.text();
            let message = format!("factor MultipleOf declared for {path} must be positive: {bound}");
            problems.push(Problem::at(ErrorType::Invalid, path, bound.to_string(), message));
        } else if !multiple {
            problems.push(invalid(format!("a multiple of {bound}")));
        }
    }
    if let Some((least, whole)) = least {
        let order = compare(value, least, whole);
        if order.is_lt() || (rules.exclusive_minimum && order.is_eq()) {
            let words = if rules.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            problems.push(invalid(format!("{words} {}", Bound(least, whole))));
        }
    }
    if let Some((most, whole)) = most {
        let order = compare(value, most, whole);
        if order.is_gt() || (rules.exclusive_maximum && order.is_eq()) {
            let words = if rules.exclusive_maximum { "less than" } else { "less than or equal to" };
            problems.push(invalid(format!("{words} {}", Bound(most, whole))));
        }
    }
}

fn compare(value: &Value, bound: f64, whole: bool) -> std::cmp::Ordering {
    match value {
        Value::Int(number) if whole => number.cmp(&(bound as i64)),
        other => other.as_f64().unwrap_or(0.0).total_cmp(&bound),
    }
}

/// Whether a number can be of the type at all.
fn range_problem(value: &Value, kind: &str, format: Option<Format>, prefix: &str, path: Place<'_>) -> Option<Problem> {
    let whole = match value {
        Value::Int(number) => Some(*number),
        // By its shortest digits, as Go prints and reads them again.
        Value::Float(number) => number.to_string().parse().ok(),
        _ => None,
    };
    let (fits, name) = match (kind, format) {
        ("integer", Some(Format::Int32)) => (whole.is_some_and(|number| i32::try_from(number).is_ok()), "int32"),
        ("integer", Some(Format::Int64)) => (whole.is_some(), "int64"),
        ("integer", _) => (whole.is_some(), ""),
        ("number", Some(Format::Float)) => ((value.as_f64().unwrap_or(0.0) as f32).is_finite(), "float"),
        _ => (true, ""),
    };
    let message = match (fits, name) {
        (true, _) => return None,
        (false, "") => format!("{prefix} value must be of type {kind} (default format) in {}", path.text()),
        (false, format) => format!("{prefix} value must be of type {kind} with format {format} in {}", path.text()),
    };
    Some(Problem::composite(message))
}

fn sizes_of_list(rules: &Validation, items: &[Value], path: Place<'_>, problems: &mut Vec<Problem>) {
    let size = items.len() as i64;
    if let Some(least) = rules.min_items.filter(|least| size < *least) {
        let says = |path: &str| format!("{path} in body should have at least {least} items");
        problems.push(Problem::invalid(path, &size.into(), says));
    }
    if let Some(most) = rules.max_items.filter(|most| size > *most) {
        problems.push(too_many(path, size, most, "items"));
    }
    if rules.unique_items {
        let mut seen = std::collections::HashSet::new();
        if !items.iter().all(|item| seen.insert(to_string(item))) {
            let says = |path: &str| format!("{path} in body shouldn't contain duplicates");
            problems.push(Problem { shown: Some(quote("")), ..Problem::invalid(path, &Value::Null, says) });
        }
    }
}

fn too_many(path: Place<'_>, size: i64, most: i64, what: &str) -> Problem {
    let unit = if most == 1 { "item" } else { "items" };
    let path = path.text();
    let message = format!("{path} in body should have at most {most} {what}");
    Problem {
        kind: ErrorType::TooMany,
        name: Some(path),
        shown: Some(size.to_string()),
        detail: format!("must have at most {most} {unit}"),
        message,
    }
}

/// Whether Go would find the value equal to a listed one, if need be after converting it to the listed one's type.
fn is_listed(value: &Value, listed: &Value) -> bool {
    match (value, listed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Int(number), Value::Float(listed)) => *number as f64 == *listed,
        (Value::Float(number), Value::Int(listed)) => *number as i64 == *listed,
        (Value::Int(code), Value::Str(listed)) => {
            let c = u32::try_from(*code).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
            listed.chars().eq([c])
        }
        (value, listed) => value == listed,
    }
}

fn enum_problem(rules: &Validation, value: &Value, path: Place<'_>) -> Option<Problem> {
    let allowed = &rules.enumeration;
    if allowed.is_empty() || allowed.iter().any(|listed| is_listed(value, listed)) {
        return None;
    }
    let place = path;
    let path = place.text();
    if !place.charge(1) {
        // Told often enough what is allowed.
        return Some(Problem { kind: ErrorType::NotSupported, ..Problem::composite(path) });
    }
    let text = |listed: &Value| match listed {
        Value::Str(text) => quote(text),
        other => quote(&to_string(other)),
    };
    let names: Vec<String> = allowed.iter().map(text).collect();
    let (shown, message) = (show(value), format!("{path} in body should be one of {names:?}"));
    place.charge(shown.len() + 2 * message.len());
    Some(Problem {
        kind: ErrorType::NotSupported,
        name: Some(path),
        shown: Some(shown),
        detail: format!("supported values: {}", names.join(", ")),
        message,
    })
}

fn members(
    node: Node<'_>,
    rules: &Validation,
    value: &Value,
    path: Place<'_>,
    old: Option<Correlated<'_, '_>>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(map) = value.as_object() else { return outcome };
    let size = map.len() as i64;
    if let Some(least) = rules.min_properties.filter(|least| size < *least) {
        let says = |path: &str| format!("{path} in body should have at least {least} properties");
        outcome.add(Problem::invalid(path, &size.into(), says));
    }
    if let Some(most) = rules.max_properties.filter(|most| size > *most) {
        outcome.add(too_many(path, size, most, "properties"));
    }
    for (name, member) in map.iter() {
        // Which type an object has is the same before and after.
        let fixed = path.is_root() && matches!(name.as_str(), "kind" | "apiVersion");
        let old = old.filter(|_| !fixed).and_then(|old| old.key(name));
        if let Some(property) = node.property(name) {
            outcome.merge(judge(property, member, Place::Property(&path, name), old));
        } else if rules.forbids_additional {
            let says = |path: &str| format!("{path}.{name} in body is a forbidden property");
            outcome.add(Problem::invalid(path, &name.as_str().into(), says));
        } else if let Some(additional) = node.additional() {
            outcome.merge(judge(additional, member, Place::Member(&path, name), old));
        }
    }
    for name in rules.required.iter().filter(|name| !map.contains_key(name)) {
        let name = Place::Member(&path, name).text();
        let message = format!("{name} in body is required");
        outcome.add(Problem {
            kind: ErrorType::Required,
            name: Some(name),
            shown: None,
            detail: String::new(),
            message,
        });
    }
    outcome
}
