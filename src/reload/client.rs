//! `kenter reload`: asks the daemon over its admin socket, waits, prints what came of it.
//!
//! Asked is at the socket that the configuration names; where nobody answers there, at the one the daemon of this state
//! directory was last at (`admin.link`, see `app::admin_link`), since a configuration that moves the socket is not the
//! daemon's yet. Only where the command line says nothing, also at the service's.

use std::{path::PathBuf, process::ExitCode};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::{Outcome, catalogue::catalogue};
use crate::{
    app::admin_link,
    object::{Value, parse},
    options::{self, CommandLine, Invocation, KeyPath},
};

/// The configuration that was asked for does not serve.
const FAILED: u8 = 1;
/// The daemon could not be asked, or the command line asks for what this command cannot do.
const UNREACHABLE: u8 = 2;

/// Where the packaged service listens.
const SERVICE: &str = "/run/kenter/admin.sock";

/// Makes the daemon reload; the exit code says whether what is written serves now.
pub fn reload(invocation: &Invocation) -> ExitCode {
    let Invocation { command, arguments, directory, .. } = invocation;
    let complaints = complaints(&options::parse_command_line(command, arguments, directory));
    if !complaints.is_empty() {
        complaints.iter().for_each(|complaint| eprintln!("error: {complaint}"));
        return ExitCode::from(UNREACHABLE);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return unreachable(&error.to_string()),
    };
    let answer = runtime.block_on(async {
        let stream = connect(&sockets(invocation)).await?;
        ask(stream).await
    });
    match answer {
        Ok((status, body)) => show(status, &body),
        Err(error) => unreachable(&error),
    }
}

/// What is wrong with the flags: those that do not say where to ask would change nothing, and whoever gave them expects
/// that they do.
fn complaints(line: &CommandLine) -> Vec<String> {
    let mut complaints: Vec<_> = line.problems.iter().map(ToString::to_string).collect();
    for (key, flag) in line.layer.places.iter().filter(|(key, _)| **key != KeyPath::dotted("state.dir")) {
        complaints.push(format!(
            "{flag} has no effect on a running kenter, which reads its files again and keeps the flags it was started \
             with: write {key} into the configuration file, or start kenter anew with the flag (`kenter reload` takes \
             --config and --state-dir, which say where to ask)"
        ));
    }
    complaints
}

/// Where to ask, the likeliest first.
fn sockets(invocation: &Invocation) -> Vec<PathBuf> {
    let state = options::state(invocation, &catalogue());
    let mut sockets = vec![state.admin_socket];
    sockets.extend(admin_link::follow(&state.dir));
    if invocation.arguments.is_empty() {
        sockets.push(SERVICE.into());
    }
    let mut seen = Vec::new();
    sockets.retain(|socket| {
        !seen.contains(socket) && {
            seen.push(socket.clone());
            true
        }
    });
    sockets
}

/// The first that answers; otherwise why none does.
async fn connect(sockets: &[PathBuf]) -> Result<UnixStream, String> {
    let mut causes = Vec::new();
    for socket in sockets {
        match UnixStream::connect(socket).await {
            Ok(stream) => return Ok(stream),
            Err(error) => causes.push(format!("{}: {error}", socket.display())),
        }
    }
    Err(causes.join("; "))
}

fn unreachable(cause: &str) -> ExitCode {
    eprintln!("kenter reload: the daemon does not answer: {cause} (is it running, with the same --state-dir?)");
    ExitCode::from(UNREACHABLE)
}

async fn ask(stream: UnixStream) -> Result<(u16, Bytes), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_do_not_say_where_to_ask_are_refused() {
        let line = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            complaints(&options::parse_command_line("kenter reload", &words, std::path::Path::new("/")))
        };
        assert_eq!(line(&["--config=k.toml", "--state-dir", "s"]), [""; 0]);
        let refused = line(&["--secure-port=7644", "--state-dir=s", "-v=2"]);
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert!(
            refused
                .iter()
                .any(|it| it.starts_with("--secure-port has no effect") && it.contains("serving.secure_port"))
        );
        assert_eq!(line(&["--nothing"]), ["unknown flag: --nothing"]);
    }
}
