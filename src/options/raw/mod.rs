//! What may be written, section by section: every field optional, nothing computed, unknown keys refused by the
//! loader. Keys are kube-apiserver's flag names in snake case, so that who knows the flag knows the key.
//!
//! The documentation of a field is its entry in the reference (`kenter config reference`) and in the JSON Schema:
//! first line what it is, then unit, range, default and class, then what it mirrors. `Class` says how a change
//! comes in: live (with the next request), rebind (listeners are bound anew), reopen (a handle is closed and
//! opened).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod admission;
mod api;
mod authentication;
mod authorization;
mod controllers;
mod features;
mod insecure_serving;
mod network;
mod reload;
mod serving;
mod state;
mod storage;
mod telemetry;

pub use admission::Admission;
pub use api::{Api, ApiProfile};
pub use authentication::{Authentication, InlineToken};
pub use authorization::Authorization;
pub use controllers::Controllers;
pub use features::Features;
pub use insecure_serving::InsecureServing;
pub use network::Network;
pub use reload::Reload;
pub use serving::{Serving, SniEntry};
pub use state::State;
pub use storage::Storage;
pub use telemetry::Telemetry;

/// kenter's configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RawOptions {
    pub state: State,
    pub serving: Serving,
    pub insecure_serving: InsecureServing,
    pub storage: Storage,
    pub authentication: Authentication,
    pub authorization: Authorization,
    pub admission: Admission,
    pub api: Api,
    pub network: Network,
    pub controllers: Controllers,
    pub features: Features,
    pub telemetry: Telemetry,
    pub reload: Reload,
}
