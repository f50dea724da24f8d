//! The handle to what serves now. Reload puts a chain in it, the listener takes it out once per request.
//!
//! A request keeps the [`Serving`] it loaded from its first layer to its last, so it sees one generation from
//! start to finish. A watch keeps nothing of it: it waits on [`Current::commits`] and asks whatever is current
//! then for its right. This module knows neither chains nor configuration.

use std::{future::Future, pin::Pin, sync::Arc};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::http::{Request, Response};

pub type ServeFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Whatever answers requests: the whole chain behind its layers, or a stub in a test.
pub trait Serve: Send + Sync {
    /// Answers every request, refusals and errors included. Dropping the future abandons the request: the
    /// client has gone.
    fn serve(&self, request: Request) -> ServeFuture;
}

impl<F> Serve for F
where
    F: Fn(Request) -> ServeFuture + Send + Sync,
{
    fn serve(&self, request: Request) -> ServeFuture {
        self(request)
    }
}

/// One generation as the listener sees it.
pub struct Serving {
    /// Counts commits from 1; only ever grows, also when an older chain is put back.
    pub generation: u64,
    serve: Arc<dyn Serve>,
}

impl Serving {
    pub fn serve(&self, request: Request) -> ServeFuture {
        self.serve.serve(request)
    }

    /// The chain itself, to be put back with [`Current::store`].
    pub fn chain(&self) -> Arc<dyn Serve> {
        self.serve.clone()
    }
}

/// What serves now. Clones are the same handle.
#[derive(Clone)]
pub struct Current(Arc<Inner>);

struct Inner {
    serving: ArcSwap<Serving>,
    commits: watch::Sender<u64>,
}

impl Current {
    /// A handle on `serve`, which answers until the first commit; that one is generation 1.
    pub fn new(serve: Arc<dyn Serve>) -> Self {
        Self(Arc::new(Inner {
            serving: ArcSwap::from_pointee(Serving { generation: 0, serve }),
            commits: watch::Sender::new(0),
        }))
    }

    /// What serves at this moment. Take it once per request and keep it to the end.
    pub fn load(&self) -> Arc<Serving> {
        self.0.serving.load_full()
    }

    /// The number of what serves at this moment.
    pub fn generation(&self) -> u64 {
        self.0.serving.load().generation
    }

    /// Makes `serve` current and tells everyone waiting on [`Self::commits`]. Cannot fail. Returns what served
    /// before. Commits are made by one task at a time; two at once would both succeed, in either order.
    pub fn store(&self, serve: Arc<dyn Serve>) -> Arc<Serving> {
        let mut before = None;
        self.0.commits.send_modify(|generation| {
            *generation += 1;
            before = Some(self.0.serving.swap(Arc::new(Serving { generation: *generation, serve: serve.clone() })));
        });
        // `send_modify` always runs its closure; loading is what an observer would see otherwise.
        before.unwrap_or_else(|| self.load())
    }

    /// Changes with every commit; the value is the generation's number. A fresh receiver has seen the current one.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.0.commits.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::http::Body;

    fn saying(text: &'static str) -> Arc<dyn Serve> {
        Arc::new(move |_: Request| -> ServeFuture {
            Box::pin(async move { Response::new(Body::Full(bytes::Bytes::from_static(text.as_bytes()))) })
        })
    }

    #[tokio::test]
    async fn a_commit_is_seen_by_the_next_load_and_by_every_waiter_but_not_by_who_loaded_before() {
        let current = Current::new(saying("one"));
        let held = current.load();
        let mut commits = current.commits();
        assert!(!commits.has_changed().unwrap());

        let before = current.store(saying("two"));

        assert_eq!((held.generation, before.generation, current.load().generation), (0, 0, 1));
        commits.changed().await.unwrap();
        assert_eq!(*commits.borrow_and_update(), 1);

        current.store(before.chain());
        assert_eq!(current.generation(), 2);
        assert!(Arc::ptr_eq(&current.load().chain(), &held.chain()));
    }
}
