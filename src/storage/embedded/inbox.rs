//! How callers reach the writer thread: two bounded channels, so that a flood of reads cannot hold up writes.

use std::time::Instant;

use tokio::sync::mpsc::Receiver;

use super::{Ask, Request};
use crate::storage::Op;

/// Writes and bytes that one commit takes; beyond that everybody waits longer for little more throughput.
const BATCH: usize = 128;
const BATCH_BYTES: usize = 1 << 20;

pub(super) struct Inbox {
    writes: Receiver<Request>,
    asks: Receiver<Ask>,
    /// What woke the writer.
    write: Option<Request>,
    ask: Option<Ask>,
}

impl Inbox {
    pub fn new(writes: Receiver<Request>, asks: Receiver<Ask>) -> Self {
        Self { writes, asks, write: None, ask: None }
    }

    pub fn is_empty(&self) -> bool {
        self.write.is_none() && self.ask.is_none() && self.writes.is_empty() && self.asks.is_empty()
    }

    /// Waits for something to come or for `deadline`. False: nobody can send any more.
    pub async fn wait(&mut self, deadline: Option<Instant>) -> bool {
        let timer = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            write = self.writes.recv() => {
                self.write = write;
                // Closed: what was asked before is still answered.
                if self.write.is_none() {
                    self.ask = self.asks.recv().await;
                }
            }
            ask = self.asks.recv() => {
                self.ask = ask;
                if self.ask.is_none() {
                    self.write = self.writes.recv().await;
                }
            }
            () = timer => return true,
        }
        self.write.is_some() || self.ask.is_some()
    }

    /// The writes that wait now, in order, up to the size of a commit.
    pub fn writes(&mut self) -> Vec<Request> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        let first = self.write.take();
        let rest = std::iter::from_fn(|| self.writes.try_recv().ok());
        for request in first.into_iter().chain(rest) {
            if let Op::Put { value, .. } = &request.write.op {
                bytes += value.len();
            }
            batch.push(request);
            if batch.len() == BATCH || bytes >= BATCH_BYTES {
                break;
            }
        }
        batch
    }

    pub fn ask(&mut self) -> Option<Ask> {
        self.ask.take().or_else(|| self.asks.try_recv().ok())
    }
}
