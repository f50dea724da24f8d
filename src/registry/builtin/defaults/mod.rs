//! Default values of built-in kinds, one file per group. Each function fills one type, wherever it stands, and is
//! attached to it by its OpenAPI name; the walk and the defaults that are plain constants of the type table are
//! [`crate::schema::defaults`]. Mirrors `pkg/apis/<group>/<version>/defaults.go` of kubernetes.

mod admissionregistration;
mod apps;
mod autoscaling;
mod batch;
mod config;
mod core;
mod extensions;
mod flowcontrol;
mod groups;
mod image;
mod networking;
mod pod;
mod resource;
mod set;
mod storage;

use std::sync::OnceLock;

use jiff::Timestamp;

use crate::{
    object::Value,
    schema::{
        TypeId, builtin,
        defaults::{Context, Defaulter, Hook},
    },
};

pub use image::image_tag;

type Hooks = &'static [(&'static str, Hook)];

const ALL: &[Hooks] = &[
    admissionregistration::HOOKS,
    apps::HOOKS,
    autoscaling::HOOKS,
    batch::HOOKS,
    config::HOOKS,
    core::HOOKS,
    extensions::HOOKS,
    flowcontrol::HOOKS,
    groups::HOOKS,
    networking::HOOKS,
    pod::HOOKS,
    resource::HOOKS,
    storage::HOOKS,
];

/// The node group has no defaulting, so amounts of a runtime class are not rounded.
const APART: &[(&str, &str)] = &[("io.k8s.api.node.v1.Overhead", "podFixed")];

/// Gates that defaulting asks for and that are off unless switched on; all others it asks for are on.
const OFF: &[&str] = &["H2CContainerProbe", "PodGroupPreemptionPolicy", "PodLogsQuerySplitStreams"];

/// The state a feature gate of defaulting has when nobody says otherwise.
pub fn default_gate(name: &str) -> bool {
    !OFF.contains(&name)
}

/// The one defaulter of built-in kinds.
pub fn defaulter() -> &'static Defaulter {
    static DEFAULTER: OnceLock<Defaulter> = OnceLock::new();
    DEFAULTER.get_or_init(|| Defaulter::new(builtin(), ALL.iter().copied().flatten().copied(), APART))
}

/// Defaults an object of a built-in kind in place, under default feature gates. The object must have been decoded
/// ([`crate::schema::decode`]). Unknown kinds are left alone. `now` is the time of the request.
pub fn apply_defaults(group: &str, version: &str, kind: &str, object: &mut Value, now: Timestamp) {
    if let Some(ty) = builtin().kind(group, version, kind) {
        apply_type_defaults(ty, object, &Context { now, gates: &default_gate });
    }
}

/// The same for a type that is looked up once, under the caller's gates.
pub fn apply_type_defaults(ty: TypeId, object: &mut Value, context: &Context) {
    defaulter().apply(ty, object, context);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        object::to_string,
        schema::{decode, normalise, vectors},
    };

    #[test]
    fn every_kind_is_defaulted_as_upstream_does() {
        let cases = vectors::read("defaults.json");
        assert!(cases.len() > 700);
        let now = Timestamp::UNIX_EPOCH;
        let mut wrong = Vec::new();
        for case in &cases {
            let (group, version, kind) = vectors::split_kind(case.str_at(&["kind"]));
            let ty = builtin().kind(group, version, kind).unwrap();
            let mut value = case.get("input").unwrap().clone();
            decode(builtin(), ty, &mut value, None).unwrap();
            apply_defaults(group, version, kind, &mut value, now);
            let unnormalised = to_string(&value);
            normalise(builtin(), ty, &mut value);
            let expected = to_string(case.get("output").unwrap()).replace("\"NOW\"", "\"1970-01-01T00:00:00Z\"");
            let name = format!("{} {}", case.str_at(&["kind"]), case.str_at(&["case"]));
            if to_string(&value) != expected {
                wrong.push(format!("{name}\n    is {}\nwanted {expected}", to_string(&value)));
            } else if to_string(&value) != unnormalised {
                wrong.push(format!("{name} needs no normalising\n    is {unnormalised}"));
            }
        }
        assert!(wrong.is_empty(), "{} of {} differ\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    }

    #[test]
    fn defaulting_twice_changes_nothing() {
        // An empty list of policies keeps defaults out only as long as it is there: printed, it is gone.
        for case in vectors::read("defaults.json").iter().filter(|case| case.str_at(&["case"]) != "behavior-both") {
            let (group, version, kind) = vectors::split_kind(case.str_at(&["kind"]));
            let mut value = case.get("input").unwrap().clone();
            decode(builtin(), builtin().kind(group, version, kind).unwrap(), &mut value, None).unwrap();
            apply_defaults(group, version, kind, &mut value, Timestamp::UNIX_EPOCH);
            let once = to_string(&value);
            apply_defaults(group, version, kind, &mut value, Timestamp::UNIX_EPOCH);
            assert_eq!(to_string(&value), once, "{group}/{version} {kind}");
        }
    }

    #[test]
    fn metadata_is_never_walked() {
        let meta = builtin().named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap();
        assert!(!defaulter().touches(meta));
        assert!(defaulter().touches(builtin().kind("", "v1", "Pod").unwrap()));
        assert!(!defaulter().touches(builtin().kind("coordination.k8s.io", "v1", "Lease").unwrap()));
    }
}
