//! Writes that would change nothing but times (apiserver `pkg/endpoints/handlers/fieldmanager/equality.go`).

use crate::object::{Map, Value};

const METADATA: &str = "metadata";
const MANAGED_FIELDS: &str = "managedFields";
const TIME: &str = "time";

/// Where `new` differs from `old` in nothing but the times of `managedFields`, gives it the old times, so that the write
/// is none. Otherwise leaves it alone. Says whether it did.
pub fn keep_times(old: &Value, new: &mut Value) -> bool {
    let lists = (old.array_at(&[METADATA, MANAGED_FIELDS]), new.array_at(&[METADATA, MANAGED_FIELDS]));
    let (theirs, ours) = lists;
    let same_entries = theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(a, b)| same_but(a, b, TIME));
    let same_times = theirs.iter().zip(ours).all(|(a, b)| a.get(TIME) == b.get(TIME));
    if ours.is_empty() || !same_entries || same_times || !same_object(old, new) {
        return false;
    }
    if let (Some(list), Some(old)) = (new.at_mut(&[METADATA, MANAGED_FIELDS]), old.at(&[METADATA, MANAGED_FIELDS])) {
        list.clone_from(old);
    }
    true
}

/// Equal apart from one member.
fn same_but(a: &Value, b: &Value, member: &str) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    members_but(a, member).eq(members_but(b, member))
}

fn members_but<'m>(map: &'m Map, member: &'m str) -> impl Iterator<Item = (&'m crate::object::Key, &'m Value)> {
    map.iter().filter(move |(name, _)| name.as_str() != member)
}

/// Equal apart from `managedFields`.
fn same_object(a: &Value, b: &Value) -> bool {
    let same_metadata = match (a.get(METADATA), b.get(METADATA)) {
        (Some(a), Some(b)) => same_but(a, b, MANAGED_FIELDS),
        (a, b) => a == b,
    };
    same_metadata && same_but(a, b, METADATA)
}
