//! The layers around the chain, outermost first, each with its reason. They run once, on the outermost server only.

use std::{future::Future, pin::Pin, sync::Arc};

use tokio::sync::watch;

use super::{
    context::Exchange,
    current::{Serve, ServeFuture},
    http::{Request, Response},
    layers, respond,
};

pub type LayerFuture<'a> = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;

/// Work around everything further in. A layer may answer by itself; then nothing further in runs.
pub trait Layer: Send + Sync {
    /// The name that tests, metrics and the order's snapshot use.
    fn name(&self) -> &'static str;
    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a>;
}

/// What is behind the last layer: the chain of servers.
pub trait End: Send + Sync {
    fn answer<'a>(&'a self, cx: &'a mut Exchange) -> LayerFuture<'a>;
}

/// The rest of the way in.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    layers: &'a [Box<dyn Layer>],
    end: &'a dyn End,
}

impl<'a> Next<'a> {
    pub fn run(self, cx: &'a mut Exchange) -> LayerFuture<'a> {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.call(cx, Next { layers, end: self.end }),
            None => self.end.answer(cx),
        }
    }
}

/// The layers of one generation around its chain.
pub struct Stack {
    layers: Vec<Box<dyn Layer>>,
    end: Box<dyn End>,
    max_body_bytes: usize,
    formats: &'static [crate::codec::Format],
    /// What still runs in here ends.
    cut: watch::Sender<bool>,
}

/// What the layers are made of; see each layer for what it does with its part.
pub struct StackParts {
    pub hsts: Option<layers::Hsts>,
    pub goaway: Option<layers::Goaway>,
    pub lifecycle: Arc<super::lifecycle::Lifecycle>,
    pub send_retry_after: bool,
    pub request_timeout: std::time::Duration,
    pub cors: Option<layers::Cors>,
    pub authentication: layers::Authentication,
    pub impersonation: layers::Impersonation,
    pub in_flight: layers::InFlight,
    pub authorization: layers::Authorization,
    pub metrics: &'static crate::telemetry::Metrics,
    pub access_log: bool,
    /// The most a request's body may have.
    pub max_body_bytes: usize,
    /// The formats of bodies, in the order of preference.
    pub formats: &'static [crate::codec::Format],
}

impl Stack {
    /// apiserver `pkg/server/config.go` DefaultBuildHandlerChain, read from the network inward.
    pub fn new(parts: StackParts, end: Box<dyn End>) -> Self {
        let mut all: Vec<Box<dyn Layer>> = vec![
            // First, so that every answer carries the id, refusals and panics included.
            Box::new(layers::AuditId),
            // Outside of all that can panic, so that one request's fault is one 500.
            Box::new(layers::PanicGuard { metrics: parts.metrics }),
            // Before anything can wait: whether an unknown path may yet become known.
            Box::new(layers::MuxComplete { lifecycle: parts.lifecycle.clone() }),
            // Everything further in asks what the request means.
            Box::new(layers::Info),
            // Needs the verb and resource for its labels; counts whatever is answered further in.
            Box::new(layers::Access { metrics: parts.metrics, log: parts.access_log }),
        ];
        if parts.send_retry_after {
            // Before the request is counted: a draining server sends it elsewhere.
            all.push(Box::new(layers::RetryAfter { lifecycle: parts.lifecycle.clone() }));
        }
        if let Some(hsts) = parts.hsts {
            all.push(Box::new(hsts));
        }
        // Refusals must not be cached either.
        all.push(Box::new(layers::CacheControl));
        if let Some(goaway) = parts.goaway {
            all.push(Box::new(goaway));
        }
        // From here on shutdown waits for the request.
        all.push(Box::new(layers::WaitGroup { lifecycle: parts.lifecycle.clone() }));
        // Sets what the next layer and all handlers obey.
        all.push(Box::new(layers::Deadline { request_timeout: parts.request_timeout }));
        all.push(Box::new(layers::Timeout));
        // Outside authentication, which may warn too.
        all.push(Box::new(layers::WarningRecorder));
        if let Some(cors) = parts.cors {
            // A preflight carries no credentials, so it is answered before they are asked for.
            all.push(Box::new(cors));
        }
        // Who it is,
        all.push(Box::new(parts.authentication));
        // who they act as, which needs rights of the first,
        all.push(Box::new(parts.impersonation));
        // whether there is room for them,
        all.push(Box::new(parts.in_flight));
        // and whether they may.
        all.push(Box::new(parts.authorization));
        Self {
            layers: all,
            end,
            max_body_bytes: parts.max_body_bytes,
            formats: parts.formats,
            cut: watch::Sender::new(false),
        }
    }

    /// The order, for the snapshot test and for people.
    pub fn names(&self) -> Vec<&'static str> {
        self.layers.iter().map(|layer| layer.name()).collect()
    }

    /// Ends the requests that have no answer yet: the grace of a retired configuration is over.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    async fn is_cut(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.cut.subscribe().wait_for(|cut| *cut).await;
    }

    pub async fn run(&self, request: Request) -> Response {
        let mut cx = Exchange::new(request);
        cx.max_body_bytes = self.max_body_bytes;
        cx.formats = self.formats;
        Next { layers: &self.layers, end: &*self.end }.run(&mut cx).await
    }
}

/// A stack as the listener sees it.
pub struct Served(pub Arc<Stack>);

impl Serve for Served {
    fn serve(&self, request: Request) -> ServeFuture {
        let stack = self.0.clone();
        Box::pin(async move {
            tokio::select! {
                biased;
                response = stack.run(request) => response,
                () = stack.is_cut() => {
                    respond::text_error(503, "the configuration that this request began in was retired; try again")
                }
            }
        })
    }
}
