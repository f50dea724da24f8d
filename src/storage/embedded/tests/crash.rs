//! `kill -9` in a write storm, again and again on the same store.
//!
//! The child is this test binary, told by an environment variable what to be. It prints each acknowledgement;
//! whatever was printed must be in the store, whole, and everything must be in one unbroken order.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write as _},
    process::{Command, Stdio},
    time::Instant,
};

use super::*;
use crate::storage::EventKind;

const ROLE: &str = "KENTER_TEST_STORE_ROLE";
const DIRECTORY: &str = "KENTER_TEST_STORE_DIRECTORY";
const SEED: &str = "KENTER_TEST_STORE_SEED";
/// How many times the storm is cut off; the default keeps the suite quick.
const KILLS: &str = "KENTER_TEST_KILLS";
const DEFAULT_KILLS: u32 = 20;

/// This binary in another role, on the store in `dir`.
pub(super) fn child(role: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary has a path"));
    command
        .args(["--exact", "storage::embedded::tests::crash::as_child", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(DIRECTORY, dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a child does; nothing where this is an ordinary run.
#[test]
fn as_child() {
    let (Ok(role), Some(dir)) = (std::env::var(ROLE), std::env::var_os(DIRECTORY)) else {
        return;
    };
    let dir = PathBuf::from(dir);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    match &*role {
        "storm" => runtime.block_on(storm(&dir)),
        "second_daemon" => match Embedded::open(options(&dir)) {
            Ok(_) => println!("opened"),
            Err(why) => println!("refused: {why}"),
        },
        "write_error" => runtime.block_on(write_error(&dir)),
        other => panic!("no such role: {other}"),
    }
}

/// 16 writers over 100 keys, one line per acknowledgement, until killed.
async fn storm(dir: &Path) {
    let store =
        Embedded::open(EmbeddedOptions { retention: Duration::from_millis(60), ..options(dir) }).expect("opens");
    let known = contents(&store).await;
    let seed: usize = std::env::var(SEED).ok().and_then(|n| n.parse().ok()).expect("a seed");
    // On a line of its own: the harness has begun one with the test's name.
    println!("\nopened");
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let store = Arc::clone(&store);
            let mut held: BTreeMap<String, Revision> = known.iter().map(|(key, _, rev)| (key.clone(), *rev)).collect();
            tokio::spawn(async move {
                for n in 0.. {
                    // Each writer has keys of its own, so that it always knows their revisions.
                    let key = format!("/registry/storm/{writer:02}/{}", (n * 7 + seed) % 6);
                    let value = format!("{seed}-{writer}-{n} ").repeat(1 + (n * 37 + seed) % 400);
                    write_one(&store, &mut held, key, value, n % 11 == 10).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer never ends");
    }
}

async fn write_one(
    store: &Arc<Embedded>,
    held: &mut BTreeMap<String, Revision>,
    key: String,
    value: String,
    deletes: bool,
) {
    let (expect, deletes) = match held.get(&key) {
        Some(revision) => (Expect::ModRevision(*revision), deletes),
        None => (Expect::Absent, false),
    };
    let op = if deletes { Op::Delete } else { suite::put(value.clone()) };
    let revision = suite::committed(store.write(suite::write(&key, expect, op)).await);
    let line = if deletes {
        held.remove(&key);
        format!("ack {revision} {key}\n")
    } else {
        held.insert(key.clone(), revision);
        format!("ack {revision} {key} {:08x}\n", crc32c::crc32c(value.as_bytes()))
    };
    std::io::stdout().write_all(line.as_bytes()).expect("the parent listens");
}

/// Acknowledged writes by revision: key, and the checksum of the value where it is no deletion.
type Acknowledged = BTreeMap<Revision, (String, Option<u32>)>;

fn parse(line: &str) -> Option<(Revision, (String, Option<u32>))> {
    // The last line may have been cut off by the kill.
    let mut words = line.strip_suffix('\n')?.strip_prefix("ack ")?.split(' ');
    let revision = words.next()?.parse().ok()?;
    let key = words.next()?.to_owned();
    Some((revision, (key, words.next().and_then(|word| u32::from_str_radix(word, 16).ok()))))
}

#[test]
fn every_acknowledged_write_survives_kill_9() {
    let kills = std::env::var(KILLS).ok().and_then(|n| n.parse().ok()).unwrap_or(DEFAULT_KILLS);
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut acknowledged = Acknowledged::new();
    for kill in 0..kills {
        let before = acknowledged.len();
        storm_and_kill(dir.path(), kill, &mut acknowledged);
        assert!(acknowledged.len() > before, "the storm wrote something before kill {kill}");
        runtime.block_on(check(dir.path(), &acknowledged));
    }
    eprintln!("{kills} kills, {} acknowledged writes, all there", acknowledged.len());
}

fn storm_and_kill(dir: &Path, kill: u32, acknowledged: &mut Acknowledged) {
    let mut command = child("storm", dir);
    let mut storm = command.env(SEED, kill.to_string()).stderr(Stdio::inherit()).spawn().expect("the child runs");
    let mut said = BufReader::new(storm.stdout.take().expect("its output is ours"));
    let mut line = String::new();
    while line != "opened\n" {
        line.clear();
        assert!(said.read_line(&mut line).expect("it speaks") > 0, "the storm did not open the store");
    }
    // Killed at a different point of its work each time, after something was acknowledged.
    let end = Instant::now() + Duration::from_millis(30 + u64::from(kill * 37 % 90));
    let mut seen = 0;
    let mut killed = false;
    loop {
        line.clear();
        if said.read_line(&mut line).expect("it speaks") == 0 {
            break;
        }
        acknowledged.extend(parse(&line));
        seen += 1;
        if !killed && seen > 0 && Instant::now() >= end {
            storm.kill().expect("killed");
            killed = true;
        }
    }
    storm.wait().expect("it is gone");
    assert!(killed, "the storm ended by itself");
}

async fn check(dir: &Path, acknowledged: &Acknowledged) {
    let store = open(dir);
    let compacted = store.compacted_revision();
    let (last, _) = acknowledged.last_key_value().expect("something was acknowledged");
    assert!(store.revision() >= *last, "revision {last} was acknowledged, the store ends at {}", store.revision());

    let mut events = BTreeMap::new();
    if store.revision() > compacted {
        let mut watch = store.watch("", compacted, 64).await.expect("a watch");
        for event in suite::events_until(&mut watch, store.revision()).await {
            let sum = (event.kind == EventKind::Put).then(|| crc32c::crc32c(&event.kv.value));
            events.insert(event.kv.mod_revision, (event.kv.key.to_string(), sum));
        }
    }
    for (revision, write) in acknowledged.range(compacted + 1..) {
        assert_eq!(events.get(revision), Some(write), "revision {revision}");
    }
    // The newest write of each key, be it acknowledged or only begun, is what the store shows.
    let mut newest: BTreeMap<String, (Revision, Option<u32>)> = BTreeMap::new();
    let known = acknowledged.range(..=compacted).chain(&events);
    for (revision, (key, sum)) in known {
        newest.insert(key.clone(), (*revision, *sum));
    }
    let found: BTreeMap<_, _> = contents(&store)
        .await
        .into_iter()
        .map(|(key, value, revision)| (key, (revision, crc32c::crc32c(&value))))
        .collect();
    for (key, (revision, sum)) in &newest {
        match found.get(key) {
            // Begun, not acknowledged, and compacted since: newer than what we know of it.
            Some((later, _)) if later > revision => assert!(*later <= compacted, "{key}"),
            Some(held) => assert_eq!(Some((held.0, Some(held.1))), Some((*revision, *sum)), "{key}"),
            None => assert!(sum.is_none() || *revision <= compacted, "{key} of revision {revision} is gone"),
        }
    }
}

/// The file may not grow beyond a limit (an I/O error, not a full disk), then it may again.
async fn write_error(dir: &Path) {
    limit_file_size(None);
    let store = open(dir);
    fill(&store, 5, 1000).await;
    limit_file_size(Some(256 << 10));
    let why = suite::within(async {
        for n in 0.. {
            let write = suite::write(&format!("/registry/big/{n}"), Expect::Absent, suite::put(value(n, 20_000)));
            if let Err(why) = store.write(write).await {
                return why;
            }
        }
        unreachable!("the limit is reached")
    })
    .await;
    assert!(matches!(why, StorageError::Unavailable(_)), "{why}");
    let refused = suite::within(store.health()).await;
    limit_file_size(None);
    until_committed(&store, "/registry/after", "x").await;
    assert_eq!(store.health().await, Ok(()));
    println!("survived: {why}; {refused:?}");
}

/// Sets the soft limit on the size of files this process writes; the signal that comes with it is ignored, so
/// that the write fails instead.
fn limit_file_size(bytes: Option<u64>) {
    // SAFETY: both calls take plain values; SIG_IGN is a valid disposition; the limit's struct is fully set.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let limit = libc::rlimit { rlim_cur: bytes.unwrap_or(libc::RLIM_INFINITY), rlim_max: libc::RLIM_INFINITY };
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}
