//! The API from inside the process: requests through the whole chain of whatever generation serves, without TLS, as the
//! server's own user.

use std::sync::Arc;

use ::http::{Method, Request as HttpRequest};
use bytes::Bytes;
use futures_util::{StreamExt, future::BoxFuture, stream};

use crate::{
    api::{ApiError, Reason},
    auth::user::{User, UserInfo},
    controllers::ApiClient,
    object::{Value, parse, to_vec},
    server::{
        context::ActAs,
        current::Current,
        http::{Body, ConnInfo, Request, Response, Transport},
    },
};

/// What the server's own work says of itself: upstream's name, so that managedFields have the same owner.
pub const SERVER_AGENT: &str = "kube-apiserver/v1.37.2 kenter";

pub struct InProcess {
    current: Current,
    user: User,
    conn: Arc<ConnInfo>,
    agent: &'static str,
}

impl InProcess {
    /// `agent` names the caller in managedFields and logs.
    pub fn new(current: Current, agent: &'static str) -> Self {
        let conn = ConnInfo {
            peer: None,
            local: None,
            transport: Transport::Unix,
            http2: false,
            certificates: Arc::from(Vec::new()),
            peer_uid: None,
            verdict: Default::default(),
            id: 0,
        };
        Self { current, user: Arc::new(UserInfo::apiserver()), conn: Arc::new(conn), agent }
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        media_type: &'static str,
        body: Option<Value>,
    ) -> Result<Response, ApiError> {
        let request = HttpRequest::builder()
            .method(method)
            .uri(path)
            .header("user-agent", self.agent)
            .header("content-type", media_type)
            .body(())
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let (mut parts, ()) = request.into_parts();
        parts.extensions.insert(ActAs(self.user.clone()));
        let bytes = body.map(|body| Bytes::from(to_vec(&body)));
        let body = Box::pin(stream::iter(bytes.map(Ok)));
        Ok(self.current.load().serve(Request { parts, body, conn: self.conn.clone(), upgrade: None }).await)
    }

    async fn ask(
        &self,
        method: Method,
        path: String,
        media_type: &'static str,
        body: Option<Value>,
    ) -> Result<Value, ApiError> {
        read(self.send(method, path, media_type, body).await?).await
    }
}

impl ApiClient for InProcess {
    fn call(&self, method: Method, path: String, body: Option<Value>) -> BoxFuture<'_, Result<Value, ApiError>> {
        Box::pin(self.ask(method, path, "application/json", body))
    }

    fn merge(&self, path: String, patch: Value) -> BoxFuture<'_, Result<(), ApiError>> {
        Box::pin(async move {
            let response = self.send(Method::PATCH, path, "application/merge-patch+json", Some(patch)).await?;
            if response.status().is_success() { Ok(()) } else { read(response).await.map(drop) }
        })
    }

    fn apply(&self, path: String, body: Value) -> BoxFuture<'_, Result<Value, ApiError>> {
        Box::pin(self.ask(Method::PATCH, path, "application/apply-patch+yaml", Some(body)))
    }
}

async fn read(response: Response) -> Result<Value, ApiError> {
    let (head, body) = response.into_parts();
    let mut bytes = Vec::new();
    match body {
        Body::Empty => {}
        Body::Full(all) => bytes.extend_from_slice(&all),
        Body::Chunks(chunks) => chunks.iter().for_each(|chunk| bytes.extend_from_slice(chunk)),
        Body::Stream(mut stream) => {
            while let Some(piece) = stream.next().await {
                bytes.extend_from_slice(&piece.map_err(|error| ApiError::internal(error.to_string()))?);
            }
        }
    }
    let status = head.status.as_u16();
    let value = parse(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
    if head.status.is_success() { Ok(value) } else { Err(failure(status, &value)) }
}

fn failure(code: u16, status: &Value) -> ApiError {
    let message = match status {
        Value::Str(text) => text.trim_end().to_owned(),
        other => other.str_at(&["message"]).to_owned(),
    };
    ApiError::new(code, reason(status.str_at(&["reason"])), message)
}

fn reason(text: &str) -> Reason {
    const ALL: [Reason; 11] = [
        Reason::Unauthorized,
        Reason::Forbidden,
        Reason::NotFound,
        Reason::AlreadyExists,
        Reason::Conflict,
        Reason::Invalid,
        Reason::Timeout,
        Reason::TooManyRequests,
        Reason::BadRequest,
        Reason::InternalError,
        Reason::ServiceUnavailable,
    ];
    ALL.into_iter().find(|reason| reason.as_str() == text).unwrap_or(Reason::Unknown)
}
