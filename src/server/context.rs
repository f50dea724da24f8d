//! One request on its way through the layers: what was sent, what the layers found out, what the answer gets.

use std::{sync::Arc, time::Instant};

use ::http::request::Parts;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use super::{
    http::{BodyStream, ConnInfo, Request},
    query::Query,
    request_info::RequestInfo,
};
pub use crate::api::warnings::Warnings;
use crate::{api::ApiError, auth::user::UserInfo, codec::Format};

/// The most a body may have where nothing else was configured; more is 413.
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// Marks a request of the server itself: its user is decided. No client can put an extension on a request.
#[derive(Clone)]
pub struct ActAs(pub Arc<UserInfo>);

/// A request, owned by the task that answers it. Layers fill it from the outside in; an endpoint runs only after
/// `info`, `user` and the deadline are set.
pub struct Exchange {
    pub parts: Parts,
    pub body: Option<BodyStream>,
    /// The most the body may have, in bytes.
    pub max_body_bytes: usize,
    /// The formats that bodies may have, in the order of preference.
    pub formats: &'static [Format],
    pub conn: Arc<ConnInfo>,
    pub upgrade: Option<hyper::upgrade::OnUpgrade>,
    pub query: Query,
    pub info: RequestInfo,
    pub received: Instant,
    pub audit_id: String,
    /// Set by authentication, replaced by impersonation.
    pub user: Option<Arc<UserInfo>>,
    pub warnings: Warnings,
    /// When the answer has to be there; `None` for long-running requests.
    pub deadline: Option<tokio::time::Instant>,
    /// A row that is served answers; set by the chain.
    pub routed: bool,
    /// All paths were installed when the request came, so that an unknown one is really unknown.
    pub paths_complete: bool,
}

impl Exchange {
    pub fn new(request: Request) -> Self {
        // Only code in this process can have put it there.
        let user = request.parts.extensions.get::<ActAs>().map(|it| it.0.clone());
        let query = Query::parse(request.parts.uri.query().unwrap_or(""));
        Self {
            parts: request.parts,
            body: Some(request.body),
            max_body_bytes: MAX_BODY_BYTES,
            formats: Format::USUAL,
            conn: request.conn,
            upgrade: request.upgrade,
            query,
            info: RequestInfo::default(),
            received: Instant::now(),
            audit_id: String::new(),
            user,
            warnings: Warnings::default(),
            deadline: None,
            routed: false,
            paths_complete: true,
        }
    }

    /// A header's text; "" where absent or no text.
    pub fn header(&self, name: &str) -> &str {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// Reads the whole body, once.
    ///
    /// # Errors
    /// 413 past the limit, 400 where the client breaks off.
    pub async fn read_body(&mut self) -> Result<Bytes, ApiError> {
        let Some(mut stream) = self.body.take() else { return Ok(Bytes::new()) };
        let mut whole: Option<Bytes> = None;
        let mut joined = BytesMut::new();
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| ApiError::bad_request(error.to_string()))?;
            if joined.len() + piece.len() + whole.as_ref().map_or(0, Bytes::len) > self.max_body_bytes {
                return Err(ApiError::request_entity_too_large(&format!("limit is {}", self.max_body_bytes)));
            }
            // Most bodies arrive in one piece and are not copied.
            match whole.take() {
                None if joined.is_empty() => whole = Some(piece),
                None => joined.extend_from_slice(&piece),
                Some(first) => {
                    joined.extend_from_slice(&first);
                    joined.extend_from_slice(&piece);
                }
            }
        }
        Ok(whole.unwrap_or_else(|| joined.freeze()))
    }
}
