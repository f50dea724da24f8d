//! What each of the three servers is made of: rows, their endpoints, documents and plain paths
//! (apiserver `pkg/server/genericapiserver.go`).

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{
    context::Exchange,
    endpoints::{Endpoints, unknown_resource},
    http::Response,
    respond,
};
use crate::registry::catalog::Catalog;

/// Rows of one server. Those of custom resources change while a generation serves; a request takes what is there once.
pub type Rows = Arc<ArcSwap<Catalog>>;

pub struct GenericApiServer {
    pub name: &'static str,
    pub rows: Rows,
    pub endpoints: Arc<Endpoints>,
}

impl GenericApiServer {
    /// Answers a request about a resource of a group that is installed here; `None` where the group is not.
    pub async fn resource(&self, cx: &mut Exchange) -> Option<Response> {
        if !cx.info.resource_request || !is_routed(&cx.info.path) {
            return None;
        }
        let rows = self.rows.load_full();
        rows.group(&cx.info.group)?;
        let Some((row, version)) = rows.get_version(&cx.info.group, &cx.info.version, &cx.info.resource) else {
            return Some(respond::error(cx, &unknown_resource()));
        };
        Some(self.endpoints.serve(cx, row, version).await)
    }
}

/// Whether a path begins as those of resources do; more slashes mean the same, but lead nowhere.
fn is_routed(path: &str) -> bool {
    path.starts_with("/api/") || path.starts_with("/apis/") && !path.starts_with("/apis//")
}
