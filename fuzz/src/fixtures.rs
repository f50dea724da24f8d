//! What targets need around their input.

use std::{collections::BTreeMap, path::PathBuf, sync::OnceLock};

use kenter::{
    options::{Catalogue, Invocation},
    schema::{
        Table, TypeId, builtin,
        ownership::{FieldFilter, WriteContext},
    },
};

pub const NOW: &str = "2026-01-01T00:00:00Z";

/// Group, version and name of `v1/Pod` or `apps/v1/Deployment`.
pub fn split_kind(kind: &str) -> Option<(&str, &str, &str)> {
    let (api_version, name) = kind.rsplit_once('/')?;
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    Some((group, version, name))
}

/// The type of a built-in kind; a Pod for everything else.
pub fn kind(text: &[u8]) -> (&'static Table, TypeId, &str) {
    let known = std::str::from_utf8(text).ok().and_then(|text| {
        let (group, version, name) = split_kind(text)?;
        Some((builtin().kind(group, version, name)?, text))
    });
    let (ty, name) =
        known.or_else(|| Some((builtin().kind("", "v1", "Pod")?, "v1/Pod"))).unwrap_or((TypeId::ANY, "v1/Pod"));
    (builtin(), ty, name)
}

/// A write of one manager to a kind.
pub fn write_context<'a>(manager: &'a str, kind: &'a str) -> WriteContext<'a> {
    let api_version = kind.rsplit_once('/').map_or("v1", |(version, _)| version);
    WriteContext { manager, subresource: "", api_version, now: NOW, reset: FieldFilter::All, versions: None }
}

/// An invocation in which nothing but the text at hand decides.
pub fn invocation() -> Invocation {
    Invocation {
        command: "kenter run".into(),
        arguments: Vec::new(),
        environment: BTreeMap::new(),
        directory: PathBuf::from("/nonexistent"),
        root: false,
        host_address: None,
        default_config: PathBuf::new(),
    }
}

pub fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(kenter::reload::catalogue::catalogue)
}
