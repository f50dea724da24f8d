//! Clients that mean no good, against the whole process: it stays up, answers others, and its memory stays bounded.

use std::{io::Write, path::Path, time::Duration, time::Instant};

use kenter::object::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use crate::support::{ADMIN, CONFIG_MAPS, Daemon, config_map, eventually, tls};

const MIB: usize = 1 << 20;
/// The most a body may have.
const BODY: usize = 3 * MIB;

type Stream = TlsStream<TcpStream>;

impl Daemon {
    /// The most memory it ever had, in bytes.
    fn peak_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel tells");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
    }

    fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("the process runs").count()
    }

    /// Nothing panicked, and it serves.
    async fn is_well(&self, after: &str) {
        let client = self.client();
        assert_eq!(client.get("/readyz").await.status, 200, "after {after}");
        assert_eq!(self.metric("kenter_handler_panics_total").await, 0.0, "after {after}: {}", self.log());
        assert!(!self.log().contains("panicked at"), "after {after}: {}", self.log());
    }
}

/// Sends bytes, closes this side, and reads what comes back for a while.
async fn exchange(mut stream: Stream, bytes: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let both = async {
        // A server may have enough before it has everything.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        let _ = stream.shutdown().await;
        let mut piece = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            answer.extend_from_slice(&piece[..read]);
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), both).await;
    answer
}

fn status(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()).unwrap_or(0)
}

fn head(method: &str, path: &str, more: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN}\r\n{more}\r\n").into_bytes()
}

fn http1_attacks() -> Vec<(&'static str, Vec<u8>)> {
    let post = |more: &str, body: &[u8]| [&head("POST", CONFIG_MAPS, more)[..], body].concat();
    let bomb = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let zeros = vec![b' '; MIB];
        (0..512).for_each(|_| encoder.write_all(&zeros).expect("written"));
        encoder.finish().expect("written")
    };
    vec![
        ("no request", b"\x16\x03\x01 nothing like HTTP\r\n\r\n".to_vec()),
        ("bytes", (0..4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
        ("an endless line", b"GET /".iter().copied().chain(std::iter::repeat_n(b'a', 4 * MIB)).collect()),
        ("an endless header", head("GET", "/api", &format!("x: {}\r\n", "y".repeat(4 * MIB)))),
        ("too many headers", head("GET", "/api", &"x-y: z\r\n".repeat(100_000))),
        ("headers without names", head("GET", "/api", ": x\r\n\r\n: y\r\n")),
        ("a folded header", head("GET", "/api", "x: a\r\n b\r\n")),
        ("NUL in a header", head("GET", "/api", "x: a\0b\r\n")),
        ("two lengths", post("content-length: 2\r\ncontent-length: 3\r\n", b"{}x")),
        ("a negative length", post("content-length: -1\r\n", b"{}")),
        ("a length beyond numbers", post("content-length: 99999999999999999999999\r\n", b"{}")),
        ("a length that is a lie", post("content-length: 10737418240\r\n", &vec![b' '; 4 * MIB])),
        ("length and chunks", post("content-length: 2\r\ntransfer-encoding: chunked\r\n", b"0\r\n\r\n")),
        ("chunks of no size", post("transfer-encoding: chunked\r\n", b"zz\r\n{}\r\n0\r\n\r\n")),
        ("chunks of any size", post("transfer-encoding: chunked\r\n", b"ffffffffffffffff\r\n{}\r\n0\r\n\r\n")),
        (
            "a chunk's endless extension",
            post("transfer-encoding: chunked\r\n", &[b"1;".to_vec(), vec![b'x'; 2 * MIB]].concat()),
        ),
        (
            "endless trailers",
            post("transfer-encoding: chunked\r\n", &[b"0\r\n".to_vec(), b"t: x\r\n".repeat(300_000)].concat()),
        ),
        ("tiny chunks without end", post("transfer-encoding: chunked\r\n", &b"1\r\n \r\n".repeat(1_000_000))),
        ("an unknown coding", post("transfer-encoding: gzip\r\n", b"x")),
        ("half a body", post("content-type: application/json\r\ncontent-length: 100\r\n", b"{\"metadata\":")),
        ("a compressed body", post(&format!("content-encoding: gzip\r\ncontent-length: {}\r\n", bomb.len()), &bomb)),
        ("a method", head("\"\"", "/", "")),
        ("CONNECT", head("CONNECT", "localhost:1", "")),
        ("a path of escapes", head("GET", &format!("/api/v1/namespaces/{}", "%00%ff%2f".repeat(10_000)), "")),
        ("a path that climbs", head("GET", &"/../".repeat(10_000), "")),
        (
            "an upgrade to nothing",
            head(
                "GET",
                &format!("{CONFIG_MAPS}?watch=1"),
                "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\n",
            ),
        ),
        ("HTTP/2 without its protocol", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec()),
        ("requests in one go", head("GET", "/version", "").repeat(2_000)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_http1_breaks_nothing_but_itself() {
    let daemon = Daemon::start(&[]).await;
    let (before, files) = (daemon.peak_memory(), daemon.open_files());
    for (what, bytes) in http1_attacks() {
        let sent: Vec<_> = (0..4)
            .map(|_| {
                let (bytes, port) = (bytes.clone(), daemon.port);
                tokio::spawn(async move { exchange(tls::connect(port).await.expect("a connection"), &bytes).await })
            })
            .collect();
        for exchange in sent {
            let answer = exchange.await.expect("no panic");
            let refused = matches!(status(&answer), 0 | 400..=499 | 501 | 505);
            assert!(
                refused || ["requests in one go", "a folded header", "a path that climbs"].contains(&what),
                "{what}: {}",
                String::from_utf8_lossy(&answer)
            );
        }
        daemon.is_well(what).await;
    }
    let grown = daemon.peak_memory() - before;
    assert!(grown < 256 * MIB, "{} MiB", grown / MIB);
    eventually("their connections are gone", || async { daemon.open_files() < files + 20 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_slow_or_leaves_halfway_holds_up_nobody() {
    let daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    let files = daemon.open_files();
    let body = kenter::object::to_string(&config_map("slow", "x"));
    let mut held = Vec::new();
    for n in 0..100 {
        // A head that never ends, a body that never comes, and one that comes later.
        let mut stream = tls::connect(daemon.port).await.expect("a connection");
        let begun = match n % 3 {
            0 => b"GET /api HTTP/1.1\r\nhost: x\r\nx-y: ".to_vec(),
            1 => head("POST", CONFIG_MAPS, "content-type: application/json\r\ncontent-length: 1000\r\n"),
            _ => head("GET", &format!("{CONFIG_MAPS}?watch=1"), ""),
        };
        stream.write_all(&begun).await.expect("written");
        stream.flush().await.expect("sent");
        held.push(stream);
    }
    let slow = tls::Begun::post(daemon.port, CONFIG_MAPS, &body).await;
    for n in 0..20 {
        assert_eq!(client.post(CONFIG_MAPS, &config_map(&format!("c{n}"), "x")).await.status, 201);
    }
    assert_eq!(slow.finish().await, 201);
    // One that closes its side while it waits is taken for gone.
    exchange(tls::connect(daemon.port).await.expect("a connection"), &head("GET", "/version", "")).await;
    drop(held);
    eventually("their connections are gone", || async { daemon.open_files() < files + 20 }).await;
    daemon.is_well("slow clients").await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `GET /` in HPACK.
const GET: &[u8] = b"\x82\x84\x87\x41\x09localhost";

fn http2_attacks() -> Vec<(&'static str, Vec<u8>)> {
    let many = |count: u32, each: &dyn Fn(u32) -> Vec<u8>| (0..count).flat_map(each).collect::<Vec<u8>>();
    let literal = |size: usize| {
        // A header of this many bytes: name "x", its length in HPACK's way.
        let mut out = b"\x00\x01x\x7f".to_vec();
        let mut rest = size - 127;
        while rest >= 128 {
            out.push(0x80 | (rest & 0x7f) as u8);
            rest >>= 7;
        }
        out.push(rest as u8);
        out.extend(std::iter::repeat_n(b'y', size));
        out
    };
    let large = literal(60_000);
    vec![
        ("nothing after the preface", Vec::new()),
        ("bytes", (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
        ("a frame that is too large", frame(DATA, 0, 1, &vec![0; 200_000])),
        ("half a frame", frame(HEADERS, END_HEADERS, 1, GET)[..12].to_vec()),
        ("an unknown frame", many(10_000, &|n| frame(200, 0xff, n, b"x"))),
        ("settings without end", many(20_000, &|_| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0xff, 0xff]))),
        ("settings that cannot be", frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])),
        ("pings without end", many(50_000, &|_| frame(PING, 0, 0, &[0; 8]))),
        ("priorities without end", many(50_000, &|n| frame(PRIORITY, 0, 2 * n + 1, &[0, 0, 0, 0, 1]))),
        (
            "empty data without end",
            [
                frame(HEADERS, END_HEADERS, 1, b"\x83\x84\x87\x41\x09localhost"),
                many(50_000, &|_| frame(DATA, 0, 1, b"")),
            ]
            .concat(),
        ),
        (
            "streams that are reset at once",
            many(20_000, &|n| {
                [frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, GET), frame(RESET, 0, 2 * n + 1, &[0, 0, 0, 8])]
                    .concat()
            }),
        ),
        ("more streams than there may be", many(5_000, &|n| frame(HEADERS, END_HEADERS, 2 * n + 1, GET))),
        (
            "continuations without end",
            [frame(HEADERS, 0, 1, GET), many(500, &|_| frame(CONTINUATION, 0, 1, &large[..16_000]))].concat(),
        ),
        (
            "empty continuations without end",
            [frame(HEADERS, 0, 1, GET), many(50_000, &|_| frame(CONTINUATION, 0, 1, b""))].concat(),
        ),
        ("a header as large as a frame", frame(HEADERS, END_HEADERS | END_STREAM, 1, &[GET, &large].concat())),
        (
            "a table as large as can be said",
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[b"\x3f\xff\xff\xff\xff\x07", GET].concat()),
        ),
        ("an index that is none", frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xff\xff\xff\xff\xff\xff\x7f")),
        // One entry of the table named again and again: a byte becomes thousands.
        ("an entry that is named again and again", {
            let entry = [b"\x40\x01x\x7f\xa1\x1e".to_vec(), vec![b'y'; 4_000]].concat();
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[GET, &entry, &[0xbe; 10_000]].concat())
        }),
        ("a window beyond all windows", many(4, &|_| frame(WINDOW, 0, 0, &0x7fff_ffffu32.to_be_bytes()))),
        ("data for no stream", many(1_000, &|n| frame(DATA, 0, 2 * n + 1, b"x"))),
        ("a stream of the server's", frame(HEADERS, END_HEADERS, 2, GET)),
        ("pseudo-headers at the end", frame(HEADERS, END_HEADERS | END_STREAM, 1, &[b"\x00\x01x\x01y", GET].concat())),
        ("a frame on the wrong stream", [frame(SETTINGS, 0, 1, b""), frame(PING, 0, 1, &[0; 8])].concat()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_http2_breaks_nothing_but_itself() {
    let daemon = Daemon::start(&[]).await;
    let (before, files) = (daemon.peak_memory(), daemon.open_files());
    for (what, frames) in http2_attacks() {
        let bytes = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(SETTINGS, 0, 0, b"")[..], &frames].concat();
        let sent: Vec<_> = (0..4)
            .map(|_| {
                let (bytes, port) = (bytes.clone(), daemon.port);
                tokio::spawn(async move {
                    exchange(tls::connect_for(port, &["h2"]).await.expect("a connection"), &bytes).await
                })
            })
            .collect();
        for exchange in sent {
            exchange.await.expect("no panic");
        }
        daemon.is_well(what).await;
    }
    let grown = daemon.peak_memory() - before;
    assert!(grown < 256 * MIB, "{} MiB", grown / MIB);
    eventually("their connections are gone", || async { daemon.open_files() < files + 20 }).await;
}

/// Bodies that were made to be expensive: content type, path, body.
fn bombs() -> Vec<(&'static str, &'static str, &'static str, String, Vec<u8>)> {
    let a = format!("{CONFIG_MAPS}/a");
    let nested = |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    let wrap =
        |data: &str| format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{data}}}"#);
    let members = |count: usize| (0..count).rev().map(|n| format!("\"k{n}\":\"\"")).collect::<Vec<_>>().join(",");
    let (json, merge) = ("application/json", "application/merge-patch+json");
    let (patch, strategic) = ("application/json-patch+json", "application/strategic-merge-patch+json");
    let apply = "application/apply-patch+yaml";
    let forced = format!("{a}?fieldManager=x&force=true");
    let long = "n".repeat(BODY / 2);
    let mut aliases =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx0: &x0 [a,a,a,a,a,a,a,a,a,a]\n".to_owned();
    for n in 1..20 {
        aliases.push_str(&format!("x{n}: &x{n} [{}]\n", vec![format!("*x{}", n - 1); 10].join(",")));
    }
    vec![
        ("a path nobody needs", "PATCH", patch, a.clone(), format!(r#"[{{"op":"add","path":"/data","value":5,"from":"{}"}}]"#, "/a".repeat(BODY / 2 - 100)).into()),
        ("nesting", "PATCH", apply, forced.clone(), wrap(&nested("{\"a\":", "}", 400_000)).into()),
        ("nesting as deep as is taken", "PATCH", apply, forced.clone(), wrap(&nested("{\"a\":", "}", 990)).into()),
        ("nesting in a merge", "PATCH", merge, a.clone(), wrap(&nested("{\"a\":", "}", 990)).into()),
        ("nesting in a strategic merge", "PATCH", strategic, a.clone(), wrap(&nested("{\"a\":", "}", 990)).into()),
        ("nesting in YAML", "POST", "application/yaml", CONFIG_MAPS.into(), "- ".repeat(BODY / 2).into()),
        ("aliases", "POST", "application/yaml", CONFIG_MAPS.into(), aliases.clone().into()),
        ("aliases in an apply", "PATCH", apply, forced.clone(), aliases.into()),
        ("many members", "PATCH", merge, a.clone(), wrap(&format!("{{{}}}", members(200_000))).into()),
        ("many members in a strategic merge", "PATCH", strategic, a.clone(), wrap(&format!("{{{}}}", members(200_000))).into()),
        ("many members in an apply", "PATCH", apply, forced, wrap(&format!("{{{}}}", members(200_000))).into()),
        ("many operations", "PATCH", patch, a.clone(), format!("[{}]", vec![r#"{"op":"copy","from":"","path":"/x"}"#; 60_000].join(",")).into()),
        ("copies of copies", "PATCH", patch, a.clone(), format!("[{}]", vec![r#"{"op":"copy","from":"/data","path":"/data/x"}"#; 9_999].join(",")).into()),
        ("unknown members below a long name", "POST", json, format!("{CONFIG_MAPS}?fieldValidation=Strict"), format!(r#"{{"metadata":{{"name":"b"}},"{long}":[{}]}}"#, vec![r#"{"a":1,"a":2}"#; 100_000].join(",")).into()),
        ("invalid names", "POST", json, CONFIG_MAPS.into(), format!(r#"{{"metadata":{{"name":"b","labels":{{{}}}}}}}"#, (0..200_000).map(|n| format!("\"-{n}\":\"-\"")).collect::<Vec<_>>().join(",")).into()),
        ("invalid items", "POST", json, "/api/v1/namespaces/it/pods".into(), format!(r#"{{"metadata":{{"name":"b"}},"spec":{{"containers":[{}]}}}}"#, vec!["{}"; 500_000].join(",")).into()),
        ("the same variable again and again", "POST", json, "/api/v1/namespaces/it/pods".into(), format!(r#"{{"metadata":{{"name":"b"}},"spec":{{"containers":[{{"name":"c","image":"i","env":[{}]}}]}}}}"#, vec![r#"{"name":"A"}"#; 200_000].join(",")).into()),
        ("quantities", "POST", json, "/api/v1/namespaces/it/pods".into(), format!(r#"{{"metadata":{{"name":"q"}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"limits":{{{}}}}}}}]}}}}"#, (0..60_000).map(|n| format!("\"x.io/{n}\":\"1e1000000000\"")).collect::<Vec<_>>().join(",")).into()),
        ("a schema of schemas", "POST", json, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(), format!(r#"{{"metadata":{{"name":"foos.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced","names":{{"plural":"foos","kind":"Foo"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{}}}}}]}}}}"#, nested("{\"type\":\"object\",\"properties\":{\"a\":", "}}", 450).replace('1', "{\"type\":\"string\",\"pattern\":\"((a{1000}){1000}){1000}\"}")).into()),
        ("a body that is too large", "POST", json, CONFIG_MAPS.into(), vec![b' '; 4 * MIB]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_made_to_be_expensive_are_answered() {
    let daemon = Daemon::start(&[]).await;
    let client = daemon.client();
    assert_eq!(client.post(CONFIG_MAPS, &config_map("a", "x")).await.status, 201);
    for (what, method, content_type, path, body) in bombs() {
        let began = Instant::now();
        let answer = client.call_with(method, &path, content_type, body).await;
        let answer = answer.unwrap_or_else(|| panic!("{what}: no answer: {}", daemon.log()));
        eprintln!("{what}: {} after {:?}", answer.status, began.elapsed());
        assert!((200..=500).contains(&answer.status), "{what}: {}", answer.text());
        daemon.is_well(what).await;
    }
    let peak = daemon.peak_memory();
    eprintln!("{} MiB", peak / MIB);
    assert!(peak < 1536 * MIB, "{} MiB", peak / MIB);
}

/// A recorded request that is sent as it is or nearly so.
struct Recorded {
    method: String,
    path: String,
    content_type: String,
    body: Vec<u8>,
}

fn recorded() -> Vec<Recorded> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/recordings");
    let mut requests = Vec::new();
    for area in ["machinery", "reads", "kinds", "extensions", "security"] {
        let mut files: Vec<_> =
            std::fs::read_dir(root.join(area)).expect("recordings").flatten().map(|it| it.path()).collect();
        files.sort();
        for file in files {
            let cases = kenter::object::parse(&std::fs::read(&file).expect("read")).expect("JSON");
            for step in cases.as_array().expect("cases").iter().flat_map(|case| case.array_at(&["steps"])) {
                requests.extend(request(step));
            }
        }
    }
    requests
}

fn request(step: &Value) -> Option<Recorded> {
    let path = step.str_at(&["path"]);
    // What streams does not end, and what stops the process is another test's.
    let streams = ["watch", "exec", "attach", "portforward", "proxy", "log"].iter().any(|word| path.contains(word));
    if path.is_empty() || streams || step.at(&["query", "watch"]).is_some() {
        return None;
    }
    let text = |value: &Value| value.as_str().map_or_else(|| kenter::object::to_string(value), str::to_owned);
    let query = step.object_at(&["query"]).into_iter().flat_map(kenter::object::Map::iter);
    let query: Vec<String> = query.map(|(name, value)| format!("{name}={}", text(value))).collect();
    let headers = step.object_at(&["headers"]).into_iter().flat_map(kenter::object::Map::iter);
    let mut types = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let fill = |text: String| text.replace("{{ns}}", "it").replace("{{id}}", "x");
    Some(Recorded {
        method: step.str_at(&["method"]).into(),
        path: fill(format!("{path}?{}", query.join("&"))),
        content_type: types.next().map_or_else(|| "application/json".into(), |(_, value)| text(value)),
        body: step.get("body").map(|body| fill(text(body)).into_bytes()).unwrap_or_default(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_with_changes_never_make_a_handler_panic() {
    use crate::fuzz::library::mutate::{Random, mutate};
    let daemon = Daemon::start(&[]).await;
    let requests = recorded();
    assert!(requests.len() > 3_000);
    let bodies: Vec<Vec<u8>> =
        requests.iter().map(|it| it.body.clone()).filter(|it| !it.is_empty() && it.len() < 8192).collect();
    let (client, seed) = (daemon.client(), crate::model::seed());
    eprintln!("KENTER_PROPERTY_SEED={seed}");
    let (mut random, until) = (Random::new(seed), Instant::now() + crate::model::seconds());
    let (mut sent, mut taken) = (0, 0);
    while Instant::now() < until {
        let Some(request) = random.pick(&requests) else { break };
        let body = match random.below(4) {
            0 => request.body.clone(),
            1 => mutate(&bodies, &mut random),
            _ => mutate(std::slice::from_ref(&request.body), &mut random),
        };
        let changed = |text: &str, random: &mut Random| {
            let bytes = mutate(&[text.as_bytes().to_vec()], random);
            String::from_utf8_lossy(&bytes).replace(|c: char| !c.is_ascii_graphic(), "%41")
        };
        let path =
            if random.one_in(8) { format!("/{}", changed(&request.path, &mut random)) } else { request.path.clone() };
        let path = path.replace(|c: char| !c.is_ascii_graphic() || c == '#', "%20");
        if path.parse::<http::Uri>().is_err() || path.contains("watch") {
            continue;
        }
        sent += 1;
        let call = client.call_with(&request.method, &path, &request.content_type, body.clone());
        // Else a header that cannot be sent, or a stream.
        if let Ok(Some(answer)) = tokio::time::timeout(Duration::from_secs(20), call).await {
            taken += u32::from(answer.status < 300);
            assert!(
                !answer.text().contains("caused apiserver to panic"),
                "{} {path} ({}): {}\n{}",
                request.method,
                request.content_type,
                String::from_utf8_lossy(&body),
                daemon.log().lines().rev().take(5).collect::<Vec<_>>().join("\n")
            );
        }
    }
    eprintln!("{sent} requests, {taken} succeeded");
    daemon.is_well("all of them").await;
}
