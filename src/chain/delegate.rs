//! Delegation by value.

use std::{future::Future, pin::Pin};

use crate::server::{context::Exchange, http::Response};

/// What a server makes of a request.
pub enum Answer {
    Handled(Response),
    /// Nothing here answers to that path; the next server is asked with the request as it was.
    NotMine,
}

pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// One server of the chain.
pub trait Delegate: Send + Sync {
    /// Its name in logs and tests.
    fn name(&self) -> &'static str;

    /// Decides by path before it touches the body, so that "not mine" leaves the request whole.
    fn handle<'a>(&'a self, cx: &'a mut Exchange) -> AnswerFuture<'a>;
}
