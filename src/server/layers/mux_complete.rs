//! Notes whether all paths were installed when the request came (upstream WithMuxAndDiscoveryComplete), so that the
//! end of the chain can tell "not found" from "try later".

use std::sync::Arc;

use crate::server::{
    context::Exchange,
    lifecycle::Lifecycle,
    stack::{Layer, LayerFuture, Next},
};

pub struct MuxComplete {
    pub lifecycle: Arc<Lifecycle>,
}

impl Layer for MuxComplete {
    fn name(&self) -> &'static str {
        "mux-complete"
    }

    fn call<'a>(&'a self, cx: &'a mut Exchange, next: Next<'a>) -> LayerFuture<'a> {
        cx.paths_complete = self.lifecycle.paths_complete.is_fired();
        next.run(cx)
    }
}
