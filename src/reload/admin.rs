//! The admin socket: HTTP over a unix socket for the operator on the machine. `POST /reload` waits for the attempt,
//! `GET /config` shows what serves. The peer has to be root or the daemon's own user.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::{Report, Trigger};
use crate::{
    chain::Shared,
    object::{Value, to_vec},
    server::{
        current::{Serve, ServeFuture},
        http::{Body, Request, Response},
        respond,
    },
};

pub struct Admin {
    pub triggers: mpsc::Sender<Trigger>,
    pub shared: Arc<Shared>,
}

impl Serve for Admin {
    fn serve(&self, request: Request) -> ServeFuture {
        let (triggers, shared) = (self.triggers.clone(), self.shared.clone());
        Box::pin(async move {
            if !trusted(request.conn.peer_uid) {
                return respond::text_error(403, "only root and the daemon's own user may do this");
            }
            match (request.parts.method.as_str(), request.parts.uri.path()) {
                ("POST", "/reload") => reload(triggers).await,
                ("GET", "/config") => json(200, &shared.config_report.load()),
                _ => respond::text_error(404, "POST /reload or GET /config"),
            }
        })
    }
}

fn trusted(uid: Option<u32>) -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    let own = unsafe { libc::geteuid() };
    uid.is_some_and(|uid| uid == 0 || uid == own)
}

async fn reload(triggers: mpsc::Sender<Trigger>) -> Response {
    let (answer, report) = oneshot::channel();
    if triggers.send(Trigger::Admin(answer)).await.is_err() {
        return respond::text_error(503, "the server is stopping");
    }
    match report.await {
        Ok(report) => json(status(&report), &report.to_value()),
        Err(_) => respond::text_error(503, "the server is stopping"),
    }
}

fn status(report: &Report) -> u16 {
    if report.outcome.good() { 200 } else { 422 }
}

fn json(status: u16, value: &Value) -> Response {
    respond::response(status, "application/json", Body::Full(to_vec(value).into()))
}
