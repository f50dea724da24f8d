//! One reader of a resource's changes: a bounded queue with the past in front of it.
//!
//! The dispatcher pushes into the queue and never waits: a queue that is full ends its watcher. A watch that starts in
//! the past holds a part of the ring and filters it on its own task.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

use super::{entry::Entry, error::WatchEnd, event::WatchEvent, resource::ResourceCache, ring::Backlog};
use crate::storage::Revision;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// With the next change.
    Now,
    /// With the first change above this revision; if it is in the future, what comes until then is skipped.
    After(Revision),
}

/// Which changes a watcher is woken for. Selectors are not judged here: they belong to the reader's own task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchScope {
    pub namespace: Option<Box<str>>,
    pub name: Option<Box<str>>,
    /// A selectable field and the value it has to have before or after the change, e.g. `spec.nodeName`. A field that
    /// an object does not have counts as empty. Worth it where many watchers divide a resource among them.
    pub index: Option<(Box<str>, Box<str>)>,
}

impl WatchScope {
    fn concerns(&self, event: &WatchEvent) -> bool {
        event.subject().is_some_and(|entry| self.names(entry)) && self.indexes(event)
    }

    pub(super) fn names(&self, entry: &Entry) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| namespace == entry.namespace())
            && self.name.as_deref().is_none_or(|name| name == entry.name())
    }

    fn indexes(&self, event: &WatchEvent) -> bool {
        let Some((field, value)) = &self.index else { return true };
        let has = |entry: &Arc<Entry>| entry.attrs().field(field).unwrap_or_default() == &**value;
        event.current().is_some_and(has) || event.previous().is_some_and(has)
    }
}

/// What the dispatcher knows of a watcher.
pub(super) struct Line {
    pub(super) id: u64,
    pub(super) scope: WatchScope,
    /// Changes up to here are not for this watcher.
    after: Revision,
    most_events: usize,
    most_bytes: usize,
    queue: Mutex<Queue>,
}

struct Queue {
    events: Vec<Arc<WatchEvent>>,
    bytes: usize,
    /// The newest event ever queued.
    newest: Revision,
    waker: Option<Waker>,
    end: Option<WatchEnd>,
}

impl Line {
    pub(super) fn new(id: u64, scope: WatchScope, after: Revision, most_events: usize, most_bytes: usize) -> Arc<Self> {
        let queue = Queue { events: Vec::new(), bytes: 0, newest: after, waker: None, end: None };
        Arc::new(Self { id, scope, after, most_events: most_events.max(1), most_bytes, queue: Mutex::new(queue) })
    }

    /// Queues the event; the reader's waker, if it waits, goes to `wakers`. `false`: the watcher did not keep up and
    /// is ended.
    pub(super) fn push(&self, event: &Arc<WatchEvent>, wakers: &mut Vec<Waker>) -> bool {
        if event.revision() <= self.after {
            return true;
        }
        let mut queue = self.queue.lock();
        let bytes = queue.bytes.saturating_add(event.size());
        let full = queue.events.len() >= self.most_events || (bytes > self.most_bytes && !queue.events.is_empty());
        wakers.extend(queue.waker.take());
        if full {
            queue.end = Some(WatchEnd::SlowConsumer { resume_after: queue.newest });
            return false;
        }
        queue.events.push(Arc::clone(event));
        queue.bytes = bytes;
        queue.newest = event.revision();
        true
    }

    pub(super) fn end(&self, end: WatchEnd, wakers: &mut Vec<Waker>) {
        let mut queue = self.queue.lock();
        wakers.extend(queue.waker.take());
        queue.end.get_or_insert(end);
    }

    /// Moves what is queued behind `into`, or says why nothing will come any more, or leaves the waker.
    fn poll_take(&self, context: &Context<'_>, into: &mut Vec<Arc<WatchEvent>>) -> Poll<Result<(), WatchEnd>> {
        let mut queue = self.queue.lock();
        if !queue.events.is_empty() {
            queue.bytes = 0;
            if into.is_empty() && into.capacity() <= KEPT_CAPACITY {
                std::mem::swap(into, &mut queue.events);
            } else {
                into.append(&mut queue.events);
                queue.events.shrink_to(KEPT_CAPACITY);
            }
            return Poll::Ready(Ok(()));
        }
        if let Some(end) = &queue.end {
            return Poll::Ready(Err(end.clone()));
        }
        if queue.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            return Poll::Pending;
        }
        let before = queue.waker.replace(context.waker().clone());
        // Dropping a waker may run code of others, so not under the lock.
        drop(queue);
        drop(before);
        Poll::Pending
    }

    /// Whether everything up to what is applied was taken: one that was ended misses what came after.
    fn is_current(&self) -> bool {
        let queue = self.queue.lock();
        queue.events.is_empty() && queue.end.is_none()
    }

    fn end_reason(&self) -> Option<WatchEnd> {
        self.queue.lock().end.clone()
    }
}

/// Room for events an idle watcher may keep.
const KEPT_CAPACITY: usize = 32;
/// Events of the past looked at before other tasks get a turn.
const SCANNED_AT_ONCE: usize = 1024;
/// Events of the past handed out at once.
const HANDED_AT_ONCE: usize = 256;

/// Yields the changes of a resource in order, each once, then why it ended.
pub struct Watcher {
    line: Arc<Line>,
    resource: Arc<ResourceCache>,
    backlog: Option<Backlog>,
    seen: Revision,
}

impl Watcher {
    pub(super) fn new(line: Arc<Line>, resource: Arc<ResourceCache>, backlog: Option<Backlog>) -> Self {
        let seen = line.after;
        Self { line, resource, backlog, seen }
    }

    /// Waits for changes in the scope and appends them to `into`, at least one, in order. Giving back the same emptied
    /// vector each time saves the allocations. Cancelling loses nothing. After an error the same error comes again.
    pub async fn next(&mut self, into: &mut Vec<Arc<WatchEvent>>) -> Result<(), WatchEnd> {
        poll_fn(|context| self.poll_next(context, into)).await
    }

    /// As [`Self::next`], for use in a stream.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        into: &mut Vec<Arc<WatchEvent>>,
    ) -> Poll<Result<(), WatchEnd>> {
        let before = into.len();
        if self.backlog.is_some() {
            self.scan_backlog(into);
            if into.len() == before && self.backlog.is_some() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        if into.len() == before {
            let taken = self.line.poll_take(context, into);
            if !matches!(taken, Poll::Ready(Ok(()))) {
                return taken;
            }
        }
        self.seen = into.last().map_or(self.seen, |event| event.revision());
        Poll::Ready(Ok(()))
    }

    fn scan_backlog(&mut self, into: &mut Vec<Arc<WatchEvent>>) {
        let Some(backlog) = &mut self.backlog else { return };
        let mut handed = 0;
        for _ in 0..SCANNED_AT_ONCE {
            let Some(event) = backlog.next() else {
                self.backlog = None;
                return;
            };
            if self.line.scope.concerns(&event) {
                into.push(event);
                handed += 1;
                if handed == HANDED_AT_ONCE {
                    break;
                }
            }
        }
        if backlog.remaining() == 0 {
            self.backlog = None;
        }
    }

    /// Why the watch ended, if it did; there may still be events to take.
    pub fn end(&self) -> Option<WatchEnd> {
        self.line.end_reason()
    }

    pub fn scope(&self) -> &WatchScope {
        &self.line.scope
    }

    /// Every change in the scope up to this revision has been handed out: what a bookmark may say. Never goes back.
    pub fn progress(&mut self) -> Revision {
        if self.backlog.is_none() {
            // Read before the queue is looked at: the dispatcher queues first and moves on after.
            let applied = self.resource.applied();
            if self.line.is_current() {
                self.seen = self.seen.max(applied);
            }
        }
        self.seen
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.resource.leave(&self.line);
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").field("scope", &self.line.scope).field("seen", &self.seen).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_watcher_is_small() {
        let size = size_of::<Watcher>() + size_of::<Line>();
        assert!(size <= 512, "{size}");
    }
}
