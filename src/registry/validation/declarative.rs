//! Declarative rules: those upstream generates out of `+k8s:` tags (apimachinery `pkg/api/validate`).
//!
//! They run on the object in the version of the request, print a replaced value as null, and on update leave alone
//! what did not change ([`changed`]). The caller gathers them in a list of their own and joins it to the hand-written
//! errors with [`merge`]: declarative errors come last, and a hand-written error that is marked as covered gives way
//! to the declarative one about the same thing. Only enforced rules (standard and beta) belong here; alpha rules
//! are never seen by clients.

use std::collections::HashSet;

use crate::{
    api::{
        ErrorList, FieldError, Path,
        field::ErrorType,
        names::{
            Messages, is_c_identifier, is_long_name, is_long_name_caseless, is_path_segment_name,
            is_prefixed_label_key, is_qualified_name, is_short_name, is_valid_label_value,
        },
    },
    object::{Value, to_string},
};

/// Appends `declarative` to the hand-written `errors`, of which those it says anew are dropped.
pub fn merge(errors: &mut ErrorList, declarative: ErrorList) {
    let said: HashSet<(&'static str, &str, &'static str)> =
        declarative.iter().map(|it| (it.kind.reason(), it.field.as_str(), it.origin)).collect();
    // An Invalid without an origin could be about anything.
    let named = |it: &FieldError| it.kind != ErrorType::Invalid || !it.origin.is_empty();
    errors.retain(|it| !(it.covered && named(it) && said.contains(&(it.kind.reason(), it.field.as_str(), it.origin))));
    errors.extend(declarative);
}

/// Whether a value has to be judged: always on create (`old_object` is `None`), on update where it is another one.
pub fn changed(new: Option<&Value>, old_object: Option<&Value>, old: Option<&Value>) -> bool {
    old_object.is_none() || !same(new, old)
}

fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    a.filter(|it| !it.is_null()) == b.filter(|it| !it.is_null())
}

/// Missing, or the zero value: empty text, 0, false, an empty list or map.
pub fn is_zero(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false) | Value::Int(0)) => true,
        Some(Value::Str(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => false,
    }
}

/// Missing or null: what a pointer's zero value is.
pub fn is_unset(value: Option<&Value>) -> bool {
    value.is_none_or(Value::is_null)
}

/// `+k8s:required`. Says whether the value is there, so that the other rules of the field can be left out.
pub fn required(value: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    let there = !is_zero(value);
    if !there {
        errors.push(FieldError::required(path, ""));
    }
    there
}

/// `+k8s:required` of a pointer: any value that is not null is there, `{}` and 0 too.
pub fn required_pointer(value: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    if is_unset(value) {
        errors.push(FieldError::required(path, ""));
    }
    !is_unset(value)
}

/// `+k8s:forbidden`.
pub fn forbidden(value: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    if !is_zero(value) {
        errors.push(FieldError::forbidden(path, ""));
    }
}

/// `+k8s:immutable`; call on update.
pub fn immutable(new: Option<&Value>, old: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    if !same(new, old) {
        errors.push(FieldError::invalid_ref(path, &Value::Null, "field is immutable").with_origin("immutable"));
    }
}

/// `+k8s:update=…`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// May not be given once the object exists.
    NoSet,
    /// May not be taken away.
    NoUnset,
    /// May not become another.
    NoModify,
}

/// `+k8s:update`; call on update, with the rules in their order.
pub fn update(new: Option<&Value>, old: Option<&Value>, rules: &[Update], path: &Path<'_>, errors: &mut ErrorList) {
    if same(new, old) {
        return;
    }
    for rule in rules {
        let why = match (rule, is_zero(old), is_zero(new)) {
            (Update::NoSet, true, false) => "field cannot be set once created",
            (Update::NoUnset, false, true) => "field cannot be cleared once set",
            (Update::NoModify, false, false) => "field cannot be modified once set",
            _ => continue,
        };
        errors.push(FieldError::invalid_ref(path, &Value::Null, why).with_origin("update"));
    }
}

/// `+k8s:minimum`.
pub fn minimum(value: i64, minimum: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if value < minimum {
        let why = format!("must be greater than or equal to {minimum}");
        errors.push(FieldError::invalid(path, value, &why).with_origin("minimum"));
    }
}

/// `+k8s:maximum`.
pub fn maximum(value: i64, maximum: i64, path: &Path<'_>, errors: &mut ErrorList) {
    if value > maximum {
        let why = format!("must be less than or equal to {maximum}");
        errors.push(FieldError::invalid(path, value, &why).with_origin("maximum"));
    }
}

/// `+k8s:maxItems`. Says whether the list is short enough for the other rules.
pub fn max_items(items: &[Value], max: usize, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    if items.len() > max {
        errors.push(FieldError::too_many(path, items.len(), max).with_origin("maxItems"));
    }
    items.len() <= max
}

/// `+k8s:maxLength`, in characters.
pub fn max_length(value: &str, max: usize, path: &Path<'_>, errors: &mut ErrorList) {
    if value.chars().count() > max {
        errors.push(FieldError::too_long_characters(path, max).with_origin("maxLength"));
    }
}

/// `+k8s:maxBytes`.
pub fn max_bytes(value: &str, max: usize, path: &Path<'_>, errors: &mut ErrorList) {
    if value.len() > max {
        errors.push(FieldError::too_long(path, max).with_origin("maxBytes"));
    }
}

/// `+k8s:enum`; `allowed` has to be sorted.
pub fn one_of(value: &str, allowed: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    if !allowed.contains(&value) {
        errors.push(FieldError::not_supported(path, value, allowed));
    }
}

/// `+k8s:listType=map` and `+k8s:unique=map`: items with equal keys, from the second on.
pub fn unique_map(items: &[Value], keys: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    unique_by(items, path, errors, |item| {
        keys.iter().map(|key| item.get(key).map(to_string).unwrap_or_default()).collect::<Vec<_>>()
    });
}

/// `+k8s:listType=set` and `+k8s:unique=set`.
pub fn unique_set(items: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    unique_by(items, path, errors, to_string);
}

fn unique_by<K: std::hash::Hash + Eq>(
    items: &[Value],
    path: &Path<'_>,
    errors: &mut ErrorList,
    key: impl Fn(&Value) -> K,
) {
    let mut seen = HashSet::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if !seen.insert(key(item)) {
            errors.push(FieldError::duplicate(&path.index(index), item.clone()));
        }
    }
}

/// What a union asks of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Union {
    /// `+k8s:unionMember`
    ExactlyOne,
    /// `+k8s:zeroOrOneOfMember`
    AtMostOne,
}

/// Members of a union in the order of the type. On update (`old` is there) a union whose members come and go the
/// same as before is left alone.
pub fn union(new: &Value, old: Option<&Value>, kind: Union, members: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    let set = |object: &Value, member: &&str| !is_unset(object.get(member));
    if old.is_some_and(|old| members.iter().all(|member| set(new, member) == set(old, member))) {
        return;
    }
    let given: Vec<&str> = members.iter().filter(|member| set(new, member)).copied().collect();
    let all = members.iter().map(|member| format!("`{member}`")).collect::<Vec<_>>().join(", ");
    let (why, shown, origin) = match (kind, given.len()) {
        (Union::ExactlyOne, 0) => ("must specify one of", String::new(), "union"),
        (Union::ExactlyOne, 2..) => ("must specify exactly one of", format!("{{{}}}", given.join(", ")), "union"),
        (Union::AtMostOne, 2..) => ("must specify at most one of", format!("{{{}}}", given.join(", ")), "zeroOrOneOf"),
        _ => return,
    };
    errors.push(FieldError::invalid(path, shown, &format!("{why}: {all}")).with_origin(origin));
}

/// A member that one mode of its struct wants and the others forbid (`+k8s:ifMode("M")=required`).
pub fn member_of_mode(
    object: &Value,
    old: Option<&Value>,
    discriminator: &str,
    mode: &str,
    member: &str,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    let same_as_before = |old: &Value| {
        object.str_at(&[discriminator]) == old.str_at(&[discriminator]) && same(object.get(member), old.get(member))
    };
    if old.is_some_and(same_as_before) {
        return;
    }
    let path = path.child(member);
    if object.str_at(&[discriminator]) == mode {
        required_pointer(object.get(member), &path, errors);
    } else if !is_unset(object.get(member)) {
        errors.push(FieldError::forbidden(&path, ""));
    }
}

/// `+k8s:dependentRequired`: `dependent` has to be there where `trigger` is.
pub fn dependent_required(object: &Value, trigger: &str, dependent: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if !is_zero(object.get(trigger)) && is_zero(object.get(dependent)) {
        let why = format!("must be set when {trigger} is set");
        errors.push(FieldError::required(&path.child(dependent), &why).with_origin("dependentRequired"));
    }
}

/// `+k8s:dependentForbidden`: `dependent` may not be there where `trigger` is.
pub fn dependent_forbidden(object: &Value, trigger: &str, dependent: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if !is_zero(object.get(trigger)) && !is_zero(object.get(dependent)) {
        let why = format!("may not be set when {trigger} is set");
        errors.push(FieldError::forbidden(&path.child(dependent), &why).with_origin("dependentForbidden"));
    }
}

/// `+k8s:format=…`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    ShortName,
    LongName,
    LongNameCaseless,
    LabelKey,
    PrefixedLabelKey,
    LabelValue,
    PathSegmentName,
    Uuid,
    ResourcePoolName,
    ResourceFullyQualifiedName,
    ExtendedResourceName,
}

impl Format {
    /// The origin of its errors.
    pub fn origin(self) -> &'static str {
        match self {
            Self::ShortName => "format=k8s-short-name",
            Self::LongName => "format=k8s-long-name",
            Self::LongNameCaseless => "format=k8s-long-name-caseless",
            Self::LabelKey => "format=k8s-label-key",
            Self::PrefixedLabelKey => "format=k8s-prefixed-label-key",
            Self::LabelValue => "format=k8s-label-value",
            Self::PathSegmentName => "format=k8s-path-segment-name",
            Self::Uuid => "format=k8s-uuid",
            Self::ResourcePoolName => "format=k8s-resource-pool-name",
            Self::ResourceFullyQualifiedName => "format=k8s-resource-fully-qualified-name",
            Self::ExtendedResourceName => "format=k8s-extended-resource-name",
        }
    }
}

/// `+k8s:format`.
pub fn format(value: &str, format: Format, path: &Path<'_>, errors: &mut ErrorList) {
    let mut found = ErrorList::new();
    let mut push = |messages: Messages| {
        found.extend(messages.iter().map(|message| FieldError::invalid(path, value, message)));
    };
    match format {
        Format::ShortName => push(is_short_name(value)),
        Format::LongName => push(is_long_name(value)),
        Format::LongNameCaseless => push(is_long_name_caseless(value)),
        Format::LabelKey => push(is_qualified_name(value)),
        Format::PrefixedLabelKey => push(is_prefixed_label_key(value)),
        Format::LabelValue => push(is_valid_label_value(value)),
        Format::PathSegmentName => push(is_path_segment_name(value)),
        Format::Uuid if is_uuid(value) => {}
        Format::Uuid => push(vec!["must be a lowercase UUID in 8-4-4-4-12 format".into()]),
        Format::ResourcePoolName => resource_pool_name(value, path, &mut found),
        Format::ResourceFullyQualifiedName => resource_fully_qualified_name(value, path, &mut found),
        Format::ExtendedResourceName => push(extended_resource_name(value)),
    }
    errors.extend(found.into_iter().map(|error| error.with_origin(format.origin())));
}

fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
        })
}

fn resource_pool_name(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if value.len() > 253 {
        errors.push(FieldError::too_long(path, 253));
    }
    for (index, segment) in value.split('/').enumerate() {
        if segment.is_empty() {
            errors.push(FieldError::invalid(path, value, &format!("segment {index}: must not be empty")));
        }
        for message in is_long_name(segment).iter().filter(|_| !segment.is_empty()) {
            errors.push(FieldError::invalid(path, segment, &format!("segment {index}: {message}")));
        }
    }
}

/// A domain, a slash, a C identifier.
fn resource_fully_qualified_name(value: &str, path: &Path<'_>, errors: &mut ErrorList) {
    match value.split('/').collect::<Vec<_>>().as_slice() {
        [name] => resource_name(name, path, errors),
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push(FieldError::invalid(path, "", "prefix must not be empty"));
            } else {
                if prefix.len() > 63 {
                    errors.push(FieldError::too_long(path, 63));
                }
                for message in is_long_name(prefix) {
                    errors.push(FieldError::invalid(path, *prefix, &format!("prefix: {message}")));
                }
            }
            if name.is_empty() {
                errors.push(FieldError::invalid(path, "", "name must not be empty"));
            } else {
                resource_name(name, path, errors);
            }
        }
        _ => {}
    }
    if !value.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid(path, value, why));
    }
}

fn resource_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if name.len() > 32 {
        errors.push(FieldError::too_long(path, 32));
    }
    errors.extend(is_c_identifier(name).iter().map(|message| FieldError::invalid(path, name, message)));
}

fn extended_resource_name(value: &str) -> Messages {
    let mut messages = Messages::new();
    if !value.contains('/') {
        messages.push("a name must be a domain-prefixed path, such as 'example.com/my-prop'".into());
    } else if value.contains("kubernetes.io/") {
        messages.push("must not have \"kubernetes.io/\" domain".into());
    }
    if value.starts_with("requests.") {
        messages.push("must not have \"requests.\" prefix".into());
    }
    messages.extend(is_qualified_name(&format!("requests.{value}")));
    messages
}
