//! `kenter reload`: asks the daemon over its admin socket, waits, prints what came of it.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::{Outcome, catalogue::catalogue};
use crate::{
    object::{Value, parse},
    options::{self, Invocation},
};

/// The configuration that was asked for does not serve.
const FAILED: u8 = 1;
/// The daemon could not be asked.
const UNREACHABLE: u8 = 2;

/// Where the packaged service listens.
const SERVICE: &str = "/run/kenter/admin.sock";

/// The socket to ask at: the one that this command line means, or the service's where it says nothing and there is none.
pub fn socket(invocation: &Invocation) -> PathBuf {
    let socket = options::admin_socket(invocation, &catalogue());
    let service = Path::new(SERVICE);
    if invocation.arguments.is_empty() && !socket.exists() && service.exists() { service.to_owned() } else { socket }
}

/// Makes the daemon reload; the exit code says whether what is written serves now.
pub fn reload(socket: &Path) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return unreachable(socket, &error.to_string()),
    };
    match runtime.block_on(ask(socket)) {
        Ok((status, body)) => show(status, &body),
        Err(error) => unreachable(socket, &error),
    }
}

fn unreachable(socket: &Path, cause: &str) -> ExitCode {
    eprintln!(
        "kenter reload: the daemon does not answer on {}: {cause} (is it running, with the same --state-dir?)",
        socket.display()
    );
    ExitCode::from(UNREACHABLE)
}

async fn ask(socket: &Path) -> Result<(u16, Bytes), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let stream = UnixStream::connect(socket).await.map_err(|error| text(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
    tokio::spawn(connection);
    let request = ::http::Request::post("/reload")
        .header("host", "kenter")
        .body(Empty::<Bytes>::new())
        .map_err(|error| text(&error))?;
    let response = sender.send_request(request).await.map_err(|error| text(&error))?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|error| text(&error))?.to_bytes();
    Ok((status, body))
}

fn show(status: u16, body: &Bytes) -> ExitCode {
    let Ok(report) = parse(body) else {
        eprintln!("kenter reload: {}", String::from_utf8_lossy(body).trim_end());
        return ExitCode::from(FAILED);
    };
    let outcome = report.str_at(&["lastReload", "outcome"]);
    let generation = report.i64_at(&["generation"]).unwrap_or(0);
    let lines = |name: &str| {
        report.array_at(&["lastReload", name]).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    if status == 200 {
        for line in lines("changes") {
            println!("{line}");
        }
        println!("{outcome}: generation {generation}, configuration {}", report.str_at(&["hash"]));
        let before = report.array_at(&["lastApplied", "changes"]);
        if outcome == Outcome::Unchanged.as_str() && !before.is_empty() {
            // The files were read by themselves before we asked.
            println!("applied before, at {}:", report.str_at(&["lastApplied", "time"]));
            before.iter().filter_map(Value::as_str).for_each(|line| println!("{line}"));
        }
        return ExitCode::SUCCESS;
    }
    for line in lines("problems") {
        eprintln!("{line}");
    }
    eprintln!("{outcome}: generation {generation} serves on");
    ExitCode::from(FAILED)
}
