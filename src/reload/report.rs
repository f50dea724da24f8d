//! What came of an attempt, and everywhere it is told.

use std::time::Duration;

use super::diff::Plan;
use crate::{
    api::{clock, duration::format_time},
    chain::Shared,
    object::{Map, Value, parse},
    options::{self, Problem, ValidatedOptions},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The first configuration of the process.
    Started,
    Applied,
    Unchanged,
    Failed,
    /// Applied, turned bad in its first seconds, and taken back.
    Reverted,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Failed => "failed",
            Self::Reverted => "reverted",
        }
    }

    pub fn good(self) -> bool {
        matches!(self, Self::Started | Self::Applied | Self::Unchanged)
    }
}

/// One attempt's result. Secrets are masked in its texts.
#[derive(Clone, Debug)]
pub struct Report {
    pub outcome: Outcome,
    /// The generation that serves now.
    pub generation: u64,
    /// Hash of what serves now.
    pub hash: String,
    /// What changed, or what is wrong: one line each.
    pub lines: Vec<String>,
    /// From reading the files to the commit; zero where there was none.
    pub took: Duration,
    pub at: jiff::Timestamp,
    /// The newest change that was applied, be it this one.
    pub last_applied: Option<Applied>,
}

/// A change that serves: when it came in and what differs, one line each.
#[derive(Clone, Debug)]
pub struct Applied {
    pub at: jiff::Timestamp,
    pub lines: Vec<String>,
}

impl Report {
    fn new(outcome: Outcome, generation: u64, options: &ValidatedOptions, lines: Vec<String>) -> Self {
        Self {
            outcome,
            generation,
            hash: options.hash().to_owned(),
            lines,
            took: Duration::ZERO,
            at: clock::now(),
            last_applied: None,
        }
    }

    pub fn started(generation: u64, options: &ValidatedOptions) -> Self {
        Self::new(Outcome::Started, generation, options, Vec::new())
    }

    pub fn unchanged(generation: u64, options: &ValidatedOptions) -> Self {
        Self::new(Outcome::Unchanged, generation, options, Vec::new())
    }

    pub fn applied(generation: u64, options: &ValidatedOptions, plan: &Plan, took: Duration) -> Self {
        let lines = plan.to_string().lines().map(str::to_owned).collect();
        Self { took, ..Self::new(Outcome::Applied, generation, options, lines) }
    }

    pub fn failed(generation: u64, serving: &ValidatedOptions, problems: Vec<Problem>) -> Self {
        let lines = problems.iter().map(ToString::to_string).collect();
        Self::new(Outcome::Failed, generation, serving, lines)
    }

    pub fn reverted(generation: u64, serving: &ValidatedOptions, cause: &str) -> Self {
        let line = format!("the new configuration was taken back: {cause}");
        Self::new(Outcome::Reverted, generation, serving, vec![line])
    }

    /// Whether it would be the same news to an operator.
    pub fn tells_the_same_as(&self, other: &Self) -> bool {
        (self.outcome, self.generation, &self.lines) == (other.outcome, other.generation, &other.lines)
    }

    fn log(&self) {
        let text = self.lines.join("\n");
        match self.outcome {
            outcome if outcome.good() => {
                tracing::info!(
                    outcome = outcome.as_str(),
                    generation = self.generation,
                    hash = self.hash,
                    changes = text,
                    "configuration"
                );
            }
            outcome => tracing::error!(
                outcome = outcome.as_str(),
                generation = self.generation,
                problems = text,
                "the old configuration serves on"
            ),
        }
    }

    /// Log (not where `log` is false: it would be no news), metrics, `/kenter/config` and the supervisor's status.
    pub fn publish(&self, shared: &Shared, serving: &ValidatedOptions, log: bool) {
        if log {
            self.log();
        }
        let metrics = shared.metrics;
        metrics.config_last_reload_successful.set(i64::from(self.outcome.good()));
        metrics.config_last_reload_timestamp_seconds.set(self.at.as_millisecond() as f64 / 1000.0);
        metrics.config_generation.set(i64::try_from(self.generation).unwrap_or(i64::MAX));
        metrics.config_hash.clear();
        metrics.config_hash.with([&self.hash]).set(1);
        if self.outcome != Outcome::Started {
            metrics.config_reloads_total.with([self.outcome.as_str()]).inc();
        }
        if self.outcome == Outcome::Applied {
            metrics.config_reload_seconds.observe(self.took.as_secs_f64());
        }
        let mut shown = self.to_value();
        let effective = options::show_json(serving, true);
        shown.set(&["configuration"], parse(effective.as_bytes()).unwrap_or_default());
        shared.config_report.store(std::sync::Arc::new(shown));
        let first = self.lines.first().map_or("", String::as_str);
        let status = match self.outcome {
            Outcome::Failed | Outcome::Reverted => format!("reload {}: {first}", self.outcome.as_str()),
            _ => format!("serving configuration {} (generation {})", self.hash, self.generation),
        };
        crate::app::supervisor::status(&status);
    }

    /// What `kenter reload` shows; `/kenter/config` adds the configuration that serves, secrets masked.
    pub fn to_value(&self) -> Value {
        let lines: Vec<Value> = self.lines.iter().map(|line| Value::from(line.as_str())).collect();
        let mut last = Map::from([
            ("outcome", Value::from(self.outcome.as_str())),
            ("time", format_time(self.at).into()),
            ("seconds", self.took.as_secs_f64().into()),
        ]);
        last.insert(if self.outcome.good() { "changes" } else { "problems" }, Value::Array(lines));
        let mut shown = Value::from([
            ("generation", Value::from(i64::try_from(self.generation).unwrap_or(i64::MAX))),
            ("hash", self.hash.as_str().into()),
            ("lastReload", last.into()),
        ]);
        if let Some(applied) = &self.last_applied {
            let lines = applied.lines.iter().map(|line| Value::from(line.as_str())).collect();
            let applied = [("time", Value::from(format_time(applied.at))), ("changes", Value::Array(lines))];
            shown.set(&["lastApplied"], Value::from(applied));
        }
        shown
    }
}
