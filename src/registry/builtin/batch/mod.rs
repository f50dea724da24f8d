//! The group `batch`.

use std::sync::Arc;

use super::kind::Own;
use crate::registry::builtin::Wiring;

mod cron;
mod cron_job;
mod indexes;
mod job;
mod job_status;
mod policies;
mod spec;

pub const GROUP: &str = "batch";

/// What a kind of this group has of its own.
pub fn own(wiring: &Wiring, plural: &str) -> Option<Arc<dyn Own>> {
    let pods = wiring.pods;
    Some(match plural {
        "cronjobs" => Arc::new(cron_job::CronJob { pods }),
        "jobs" => Arc::new(job::Job { pods }),
        _ => return None,
    })
}
