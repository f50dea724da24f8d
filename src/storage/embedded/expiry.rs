//! Which keys the store deletes by itself, and when.
//!
//! Kept in memory only: the deadline is a column of the row, so a restart finds it again. Time is the system's
//! clock in whole seconds, since a deadline has to mean the same after a restart.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Keys with a deadline, ordered by it.
#[derive(Clone, Debug, Default)]
pub(super) struct Expiry {
    by_time: BTreeSet<(u64, Arc<str>)>,
    by_key: HashMap<Arc<str>, u64>,
}

impl Expiry {
    /// Sets the deadline of `key` in seconds since 1970; 0 takes it away.
    pub fn set(&mut self, key: &Arc<str>, expires: u64) {
        self.forget(key);
        if expires > 0 {
            self.by_key.insert(Arc::clone(key), expires);
            self.by_time.insert((expires, Arc::clone(key)));
        }
    }

    pub fn forget(&mut self, key: &str) {
        if let Some((key, expires)) = self.by_key.remove_entry(key) {
            self.by_time.remove(&(expires, key));
        }
    }

    /// The first deadline.
    pub fn next(&self) -> Option<u64> {
        self.by_time.first().map(|(expires, _)| *expires)
    }

    /// Keys whose deadline has come at `now`, at most `limit`. They stay until their deletion is committed.
    pub fn due(&self, now: u64, limit: usize) -> Vec<Arc<str>> {
        self.by_time
            .iter()
            .take_while(|(expires, _)| *expires <= now)
            .take(limit)
            .map(|(_, key)| Arc::clone(key))
            .collect()
    }
}

/// Seconds since 1970, by the system's clock.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The deadline of a write made now; a fraction of a second counts as a whole one, so nothing dies early.
pub(super) fn deadline(ttl: Option<Duration>) -> u64 {
    match ttl {
        None => 0,
        Some(ttl) => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let at = since.saturating_add(ttl);
            (at.as_secs() + u64::from(at.subsec_nanos() > 0)).min(i64::MAX as u64)
        }
    }
}

/// How long until `expires`, at least a moment and at most a minute, so that a clock that is set is noticed.
pub(super) fn wait_for(expires: u64) -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(expires).saturating_sub(since).clamp(Duration::from_millis(1), Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_deadline_replaces_the_earlier_one() {
        let mut expiry = Expiry::default();
        let key: Arc<str> = "a".into();
        expiry.set(&key, 10);
        expiry.set(&key, 20);
        assert_eq!(expiry.due(15, 10), Vec::<Arc<str>>::new());
        assert_eq!(expiry.due(20, 10), vec![key.clone()]);
        expiry.set(&key, 0);
        assert_eq!(expiry.next(), None);
        assert!(expiry.by_key.is_empty() && expiry.by_time.is_empty());
    }
}
