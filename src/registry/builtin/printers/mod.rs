//! Printers of the built-in kinds: what `kubectl get` shows of them (kubernetes `pkg/printers/internalversion`, with
//! those of definitions and API services beside their servers).
//!
//! The columns of a kind are data (`data/resources.json`); here are the cells, in the same order and wide ones
//! included, since the client decides which it shows. Objects come in the version they are stored in, decoded and
//! defaulted; whatever is missing all the same prints as Go's zero value would. Kinds without a printer show their name and
//! the time they were made.

mod autoscaling;
mod cluster;
mod core;
mod extension;
mod flowcontrol;
mod lifecycle;
mod networking;
mod pod;
mod rbac;
mod resource;
mod scheduling;
mod storage;
mod text;
mod workloads;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::{
    object::Value,
    registry::{
        printer::{Cell, Printer},
        resource::Column,
    },
};

/// A row of these cells.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$($crate::registry::printer::Cell::from($cell)),*] };
}
use cells;

type Cells = Vec<Cell>;

/// The printer of a kind.
pub fn printer(group: &str, kind: &str) -> Printer {
    let own = match group {
        "" => core::printer(kind),
        "events.k8s.io" => core::printer("Event"),
        "apps" | "batch" => workloads::printer(kind),
        "autoscaling" => autoscaling::printer(kind),
        "networking.k8s.io" | "discovery.k8s.io" => networking::printer(kind),
        "rbac.authorization.k8s.io" => rbac::printer(kind),
        "storage.k8s.io" => storage::printer(kind),
        "scheduling.k8s.io" => scheduling::printer(kind),
        "resource.k8s.io" => resource::printer(kind),
        "lifecycle.k8s.io" => lifecycle::printer(kind),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::printer(kind),
        "apiextensions.k8s.io" | "apiregistration.k8s.io" | "admissionregistration.k8s.io" => extension::printer(kind),
        _ => cluster::printer(group, kind),
    };
    own.unwrap_or_else(|| Printer::new(name_and_time).gathering())
}

/// Columns and printer of the Scale of built-in kinds, whose name has no format.
pub static SCALE_TABLE: LazyLock<([Column; 4], Printer)> = LazyLock::new(|| {
    let column = |name: &str, kind: &str| Column {
        name: name.into(),
        kind: kind.into(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: None,
    };
    let columns = [
        column("Name", "string"),
        column("Desired", "integer"),
        column("Available", "integer"),
        column("Age", "string"),
    ];
    (columns, Printer::new(autoscaling::scale))
});

fn name_and_time(object: &Value) -> Cells {
    cells![text::name(object), text::created_at(object)]
}
