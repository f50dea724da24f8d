//! `/debug/pprof` and `/debug/flags`: what the process does, and how much of it is logged (apiserver
//! `pkg/server/routes/{profiling,flags}.go`).
//!
//! Of Go's profiles there is `goroutine` alone, which counts threads here (see [`threads`]): the others belong to Go's
//! runtime. Served unless `--profiling=false`; who may see it is for authorization.

mod threads;

use ::http::{HeaderValue, Method, header};

use super::{
    context::Exchange,
    http::{Body, Response},
    respond,
};
use crate::{api::field::quote, telemetry::log};

const PPROF: &str = "/debug/pprof/";
const VERBOSITY: &str = "/debug/flags/v";

/// Answers a path below `/debug`; `None` where it is none of these.
pub async fn answer(cx: &mut Exchange) -> Option<Response> {
    let path = cx.path().to_owned();
    match path.as_str() {
        "/debug/pprof" => Some(found(&cx.parts.method, PPROF)),
        VERBOSITY => Some(verbosity(cx).await),
        "/debug/flags" => Some(html(FLAGS)),
        _ if path.starts_with("/debug/flags/") => Some(html(FLAGS)),
        _ => path.strip_prefix(PPROF).map(|profile| pprof(cx, profile)),
    }
}

fn pprof(cx: &Exchange, profile: &str) -> Response {
    let mut response = match profile {
        "" => html(INDEX),
        // Symbols are not looked up here: addresses in profiles come with their names.
        "symbol" => respond::text(200, "num_symbols: 0\n"),
        "goroutine" => {
            let threads = threads::names();
            // As strconv.Atoi, where a mistake is 0.
            match cx.query.first("debug").and_then(|text| text.parse::<i64>().ok()).unwrap_or(0) {
                0 => match threads::profile(&threads) {
                    Ok(bytes) => respond::response(200, "application/octet-stream", Body::Full(bytes.into())),
                    Err(error) => respond::text_error(500, &error.to_string()),
                },
                _ => respond::text(200, threads::text(&threads)),
            }
        }
        _ => respond::text_error(404, "Unknown profile"),
    };
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// As Go's http.Redirect: a body only where the client may read one.
fn found(method: &Method, to: &'static str) -> Response {
    let mut response = match *method {
        Method::GET | Method::HEAD => html(format!("<a href=\"{to}\">Found</a>.\n\n")),
        _ => Response::new(Body::Empty),
    };
    *response.status_mut() = ::http::StatusCode::FOUND;
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(to));
    response
}

/// PUT sets how much is logged until the configuration changes or says otherwise.
async fn verbosity(cx: &mut Exchange) -> Response {
    if cx.parts.method != Method::PUT {
        return plain(406, "unsupported http method");
    }
    let body = match cx.read_body().await {
        Ok(body) => body,
        Err(error) => return plain(400, &format!("error reading request body: {}", error.message)),
    };
    let text = String::from_utf8_lossy(&body);
    let level = match parse_level(&text) {
        Ok(level) => level,
        Err(why) => return plain(400, &format!("strconv.ParseUint: parsing {}: {why}", quote(&text))),
    };
    match log::set_verbosity(u8::try_from(level).unwrap_or(u8::MAX)) {
        Ok(()) => plain(200, &format!("successfully set klog.logging.verbosity to {text}")),
        Err(error) => plain(400, &error.to_string()),
    }
}

/// As strconv.ParseUint with 32 bits.
fn parse_level(text: &str) -> Result<u32, &'static str> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("invalid syntax");
    }
    text.parse().map_err(|_| "value out of range")
}

/// Text with a content type that says no charset, as these handlers write it.
fn plain(status: u16, text: &str) -> Response {
    let mut response = respond::response(status, "text/plain", Body::Full(format!("{text}\n").into()));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn html(text: impl Into<bytes::Bytes>) -> Response {
    respond::response(200, "text/html; charset=utf-8", Body::Full(text.into()))
}

const FLAGS: &str = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n\
                     <table>\n<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";

const INDEX: &str = "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n<br>\n\
                     <p>debug=1 as a query parameter shows a profile as text.</p>\n<ul>\n\
                     <li><a href='goroutine?debug=1'>goroutine</a>: the threads of the process by name</li>\n</ul>\n\
                     </body>\n</html>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_digits_alone_and_fits_32_bits() {
        assert_eq!(parse_level("300"), Ok(300));
        for wrong in ["", "-1", "+3", " 2", "2\n", "0x10", "1_0"] {
            assert_eq!(parse_level(wrong), Err("invalid syntax"), "{wrong:?}");
        }
        assert_eq!(parse_level("5000000000"), Err("value out of range"));
    }
}
