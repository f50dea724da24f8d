//! Decides when the answer has to be there (upstream WithRequestDeadline).

use std::time::Duration;

use crate::{
    api::{ApiError, duration::parse_duration},
    server::{
        context::Exchange,
        respond,
        stack::{Layer, LayerFuture, Next},
    },
};

pub struct Deadline {
    /// The longest a request may ask for, and what it gets without asking.
    pub request_timeout: Duration,
}

impl Layer for Deadline {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        if cx.info.long_running() {
            return next.run(cx);
        }
        let asked = match cx.query.first("timeout").filter(|text| !text.is_empty()).map(parse_duration) {
            Some(Err(cause)) => {
                return Box::pin(async move {
                    let text = format!("invalid timeout specified in the request URL - {cause}");
                    respond::error(cx, &ApiError::bad_request(text))
                });
            }
            Some(Ok(asked)) => u64::try_from(asked).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos),
            None => None,
        };
        let timeout = asked.map_or(self.request_timeout, |asked| asked.min(self.request_timeout));
        cx.deadline = Some(tokio::time::Instant::from_std(cx.received) + timeout);
        next.run(cx)
    }
}
