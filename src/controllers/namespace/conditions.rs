//! What a look at a namespace's contents found, as its conditions say it (kubernetes
//! `pkg/controller/namespace/deletion/status_condition_utils.go`).

use std::{collections::BTreeMap, time::Duration};

use super::super::work::Outcome;
use crate::{api::duration::format_time, object::Value};

/// Finalizers are waited for at most this long before the next look.
const FINALIZER_WAIT: Duration = Duration::from_secs(8);

/// Type, reason and text of each condition that is well, in upstream's order.
const WELL: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

#[derive(Debug, Default)]
pub struct Findings {
    /// Groups whose resources could not be asked for, and why.
    pub undiscovered: BTreeMap<String, String>,
    pub failures: Vec<String>,
    /// `resource.group` to how many of it are left.
    pub remaining: BTreeMap<String, usize>,
    /// How many objects a finalizer keeps.
    pub finalizers: BTreeMap<String, usize>,
    /// The longest grace period anything was given.
    pub grace: Duration,
}

impl Findings {
    /// Whether the namespace cannot go yet.
    pub fn remain(&self) -> bool {
        !self.undiscovered.is_empty() || !self.failures.is_empty() || !self.remaining.is_empty()
    }

    /// When to look again.
    pub fn outcome(&self) -> Outcome {
        if self.undiscovered.is_empty() && self.failures.is_empty() && !self.grace.is_zero() {
            return Outcome::After(self.grace.min(FINALIZER_WAIT));
        }
        Outcome::Again
    }

    fn found(&self, condition: &str) -> Option<(&'static str, String)> {
        match condition {
            "NamespaceDeletionDiscoveryFailure" if !self.undiscovered.is_empty() => {
                let groups: Vec<String> =
                    self.undiscovered.iter().map(|(group, why)| format!("{group}: {why}")).collect();
                let text = format!(
                    "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
                    groups.len(),
                    groups.join(", ")
                );
                Some(("DiscoveryFailed", text))
            }
            "NamespaceDeletionContentFailure" if !self.failures.is_empty() => {
                let mut failures = self.failures.clone();
                failures.sort();
                let text = format!(
                    "Failed to delete all resource types, {} remaining: {}",
                    failures.len(),
                    failures.join(", ")
                );
                Some(("ContentDeletionFailed", text))
            }
            "NamespaceContentRemaining" if !self.remaining.is_empty() => {
                let text = counts(&self.remaining, "has", "resource instances");
                Some(("SomeResourcesRemain", format!("Some resources are remaining: {text}")))
            }
            "NamespaceFinalizersRemaining" if !self.finalizers.is_empty() => {
                let text = counts(&self.finalizers, "in", "resource instances");
                let text = format!("Some content in the namespace has finalizers remaining: {text}");
                Some(("SomeFinalizersRemain", text))
            }
            _ => None,
        }
    }

    /// Brings the namespace's conditions to what was found; whether that changes them.
    pub fn write_into(&self, namespace: &mut Value, now: jiff::Timestamp) -> bool {
        let conditions = namespace.make(&["status", "conditions"]);
        if conditions.as_array().is_none() {
            *conditions = Value::Array(Vec::new());
        }
        let Some(conditions) = conditions.as_array_mut() else { return false };
        let mut changes = false;
        for (kind, reason, text) in WELL {
            let found = self.found(kind);
            let status = if found.is_some() { "True" } else { "False" };
            let (reason, text) = found.unwrap_or((reason, text.to_owned()));
            let Some(old) = conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == kind) else {
                conditions.push(Value::from([
                    ("type", kind),
                    ("status", status),
                    ("lastTransitionTime", &format_time(now)),
                    ("reason", reason),
                    ("message", &text),
                ]));
                changes = true;
                continue;
            };
            let same = [("status", status), ("reason", reason), ("message", &text)];
            if same.iter().all(|(member, value)| old.str_at(&[member]) == *value) {
                continue;
            }
            if old.str_at(&["status"]) != status {
                old.set(&["lastTransitionTime"], format_time(now));
            }
            for (member, value) in same {
                old.set(&[member], value);
            }
            changes = true;
        }
        changes
    }
}

fn counts(of: &BTreeMap<String, usize>, verb: &str, unit: &str) -> String {
    of.iter().map(|(name, count)| format!("{name} {verb} {count} {unit}")).collect::<Vec<_>>().join(", ")
}
