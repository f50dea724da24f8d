//! The loop under controllers that look after one thing at a time: a set of names to look at, each name by one worker at
//! a time, failures again later.
//!
//! A name that is told while it is being worked on is worked on once more. What waits is a set, so memory is bounded by
//! how many names there are, and a change costs the name it is about and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    future::Future,
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt,
    stream::{BoxStream, FuturesUnordered, select_all},
};
use tokio::time::Instant;

/// Names worked on at once.
const WORKERS: usize = 8;
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// What came of looking at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to do until it is told again.
    Done,
    /// Again later, each time a little later.
    Again,
    /// Again after this long.
    After(Duration),
}

/// Names that changed; the first batches are those that are there.
pub type Names<'a> = BoxStream<'a, Vec<Arc<str>>>;

/// Works on every name the sources tell until they end, which they do not while the server lives.
pub async fn run<F, Fut>(sources: Vec<Names<'_>>, work: F)
where
    F: Fn(Arc<str>) -> Fut,
    Fut: Future<Output = Outcome>,
{
    let mut told = select_all(sources);
    let mut queue = Queue::default();
    let mut working = FuturesUnordered::new();
    loop {
        queue.wake(Instant::now());
        while working.len() < WORKERS
            && let Some(name) = queue.next()
        {
            let work = work(name.clone());
            working.push(async move { (name, work.await) });
        }
        let alarm = queue.alarm();
        tokio::select! {
            names = told.next() => match names {
                Some(names) => names.into_iter().for_each(|name| queue.add(name)),
                None => return,
            },
            Some((name, outcome)) = working.next(), if !working.is_empty() => queue.finish(name, outcome, Instant::now()),
            () = sleep_until(alarm) => {}
        }
    }
}

async fn sleep_until(alarm: Option<Instant>) {
    match alarm {
        Some(alarm) => tokio::time::sleep_until(alarm).await,
        None => std::future::pending().await,
    }
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Arc<str>>,
    queued: HashSet<Arc<str>>,
    working: HashSet<Arc<str>>,
    /// Told while they were being worked on.
    told_again: HashSet<Arc<str>>,
    later: BTreeSet<(Instant, Arc<str>)>,
    /// When a name is due, so that a newer time replaces it.
    due: BTreeMap<Arc<str>, Instant>,
    failures: HashMap<Arc<str>, u32>,
}

impl Queue {
    fn add(&mut self, name: Arc<str>) {
        if self.working.contains(&name) {
            self.told_again.insert(name);
            return;
        }
        self.forget_later(&name);
        if self.queued.insert(name.clone()) {
            self.ready.push_back(name);
        }
    }

    fn forget_later(&mut self, name: &Arc<str>) {
        if let Some(at) = self.due.remove(name) {
            self.later.remove(&(at, name.clone()));
        }
    }

    fn next(&mut self) -> Option<Arc<str>> {
        let name = self.ready.pop_front()?;
        self.queued.remove(&name);
        self.working.insert(name.clone());
        Some(name)
    }

    fn finish(&mut self, name: Arc<str>, outcome: Outcome, now: Instant) {
        self.working.remove(&name);
        let delay = match outcome {
            Outcome::Done => {
                self.failures.remove(&name);
                None
            }
            Outcome::After(delay) => {
                self.failures.remove(&name);
                Some(delay)
            }
            Outcome::Again => {
                let failures = self.failures.entry(name.clone()).or_default();
                let delay = FIRST_RETRY.saturating_mul(1 << (*failures).min(16)).min(LONGEST_RETRY);
                *failures = failures.saturating_add(1);
                Some(delay)
            }
        };
        if self.told_again.remove(&name) {
            self.add(name);
        } else if let Some(delay) = delay {
            let at = now + delay;
            self.due.insert(name.clone(), at);
            self.later.insert((at, name));
        }
    }

    fn alarm(&self) -> Option<Instant> {
        self.later.first().map(|(at, _)| *at)
    }

    /// Makes ready what is due.
    fn wake(&mut self, now: Instant) {
        while let Some((at, name)) = self.later.first().cloned() {
            if at > now {
                return;
            }
            self.later.remove(&(at, name.clone()));
            self.due.remove(&name);
            if self.queued.insert(name.clone()) {
                self.ready.push_back(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, stream};
    use parking_lot::Mutex;

    use super::*;

    fn names(batches: &[&[&str]]) -> Names<'static> {
        let batches: Vec<Vec<Arc<str>>> =
            batches.iter().map(|batch| batch.iter().map(|name| Arc::from(*name)).collect()).collect();
        Box::pin(stream::iter(batches).chain(stream::pending()))
    }

    #[test]
    fn a_name_told_twice_before_it_is_looked_at_is_looked_at_once() {
        let seen = Mutex::new(Vec::new());
        let running = run(vec![names(&[&["a", "b", "a"]])], |name| {
            seen.lock().push(name.to_string());
            async { Outcome::Done }
        });
        assert!(running.now_or_never().is_none());
        assert_eq!(*seen.lock(), ["a", "b"]);
    }

    #[test]
    fn what_fails_is_tried_again_later_and_later_and_success_forgives() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let mut fail = |outcome| {
            queue.add("a".into());
            let name = queue.next().unwrap();
            queue.finish(name, outcome, now);
            queue.alarm().map(|at| at - now)
        };
        let waits: Vec<_> = (0..3).map(|_| fail(Outcome::Again).unwrap()).collect();
        assert!(waits.windows(2).all(|pair| pair[1] > pair[0]), "{waits:?}");
        assert_eq!(fail(Outcome::Done), None);
        assert_eq!(fail(Outcome::Again), Some(waits[0]));
        assert!((0..40).all(|_| fail(Outcome::Again).unwrap() <= LONGEST_RETRY));
        assert_eq!(queue.next(), None);
        queue.wake(now + LONGEST_RETRY);
        assert_eq!(queue.next().as_deref(), Some("a"));
    }

    #[test]
    fn a_name_told_while_it_is_worked_on_is_worked_on_once_more() {
        let mut queue = Queue::default();
        queue.add("a".into());
        let name = queue.next().unwrap();
        queue.add("a".into());
        assert_eq!(queue.next(), None);
        queue.finish(name, Outcome::Done, Instant::now());
        assert_eq!(queue.next().as_deref(), Some("a"));
        assert!(queue.alarm().is_none());
    }

    #[test]
    fn the_loop_ends_with_its_sources() {
        let source: Names<'static> = Box::pin(stream::iter([vec![Arc::from("a")]]));
        assert!(run(vec![source], |_| async { Outcome::Done }).now_or_never().is_some());
    }
}
