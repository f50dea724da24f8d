//! Conflicts of an apply and how they are told (apimachinery `pkg/util/managedfields/internal/conflict.go`).

use super::{
    managers::{Entry, Operation},
    set::{FieldSet, Path},
};
use crate::api::{
    ApiError, Reason,
    field::quote,
    status::{Cause, Details},
};

/// The fields of one manager that the apply would change.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    /// Without its fields.
    pub owner: Entry,
    pub fields: FieldSet,
}

impl Conflict {
    fn owner(&self) -> String {
        let mut text = quote(&self.owner.manager);
        if !self.owner.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", quote(&self.owner.subresource)));
        }
        if self.owner.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.owner.api_version));
        }
        text
    }
}

/// The answer: 409 with a cause for each field.
pub(super) fn conflict_error(mut conflicts: Vec<Conflict>) -> ApiError {
    conflicts.sort_by_cached_key(|conflict| conflict.owner.identifier());
    let told: Vec<(String, Vec<Path>)> =
        conflicts.iter().map(|conflict| (conflict.owner(), conflict.fields.paths())).collect();
    let causes: Vec<Cause> = told
        .iter()
        .flat_map(|(owner, paths)| {
            paths.iter().map(move |path| Cause {
                reason: "FieldManagerConflict".into(),
                message: format!("conflict with {owner}"),
                field: path.to_string(),
            })
        })
        .collect();
    let message = match causes.as_slice() {
        [only] => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
        _ => {
            let mut lines = Vec::with_capacity(causes.len() + told.len());
            for (owner, paths) in &told {
                lines.push(format!("conflicts with {owner}:"));
                lines.extend(paths.iter().map(|path| format!("- {path}")));
            }
            format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n"))
        }
    };
    ApiError::new(409, Reason::Conflict, message).with_details(Details { causes, ..Details::default() })
}
