//! The end of the chain.

use super::delegate::{Answer, AnswerFuture, Delegate};
use crate::{
    api::{ApiError, status::Details},
    server::{context::Exchange, respond},
};

pub struct NotFound;

impl Delegate for NotFound {
    fn name(&self) -> &'static str {
        "not-found"
    }

    fn handle<'a>(&'a self, cx: &'a mut Exchange) -> AnswerFuture<'a> {
        Box::pin(async move {
            if cx.paths_complete {
                return Answer::Handled(respond::text_error(404, "404 page not found"));
            }
            // It may become known in a moment.
            let message = "the request has been made before all known HTTP paths have been installed, please try again";
            let details = Details { retry_after_seconds: 5, ..Details::default() };
            Answer::Handled(respond::error(cx, &ApiError::service_unavailable(message).with_details(details)))
        })
    }
}
