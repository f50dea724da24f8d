//! The behaviour every back end must show. Each claim is a function over an empty store; a back end's tests
//! run all of them through [`storage_suite!`]. Claims wait for conditions, never for time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Event, EventKind, EventStream, Expect, KeyValue, Op, Page, Revision, Storage, StorageError, Write, WriteOutcome,
};

/// Makes one test per claim; `$open` is an async expression that yields a value whose `.0` is an
/// `Arc<dyn Storage>` and which keeps the store's surroundings alive.
macro_rules! storage_suite {
    ($open:expr) => {
        $crate::storage::suite::storage_suite!(@ $open;
            a_created_key_is_read_back_with_its_revisions
            creating_what_exists_is_a_conflict_that_names_the_revision
            an_update_needs_the_revision_it_was_based_on
            a_deleted_key_is_gone_and_can_be_created_anew
            deleting_what_is_absent_is_a_conflict
            versions_count_the_writes_since_creation
            revisions_grow_by_one_across_keys
            a_list_is_in_key_order_and_stays_under_its_prefix
            pages_join_to_the_whole_list
            an_old_revision_shows_the_store_as_it_was
            a_page_of_an_old_revision_goes_on_where_it_ended
            a_revision_that_is_not_there_yet_is_refused
            an_empty_store_lists_nothing_at_a_revision
            a_watch_replays_then_follows_without_gap_or_double
            a_watch_from_now_sees_only_what_comes
            a_watch_sees_its_prefix_alone
            a_long_replay_is_complete_for_a_slow_reader
            a_slow_watcher_is_ended_and_never_blocks_others
            a_watch_from_a_revision_that_is_not_there_yet_is_refused
            compaction_keeps_what_exists_and_forgets_what_was_superseded
            a_watch_from_before_compaction_ends_with_compacted
            compaction_of_the_future_is_refused_and_of_the_past_is_nothing
            a_key_with_a_ttl_is_deleted_as_an_ordinary_change
            a_put_without_a_ttl_cancels_the_deadline
            one_of_many_concurrent_writers_wins
            concurrent_writers_are_seen_in_one_order_by_every_watcher
            large_values_and_odd_keys_come_back_whole
            a_cancelled_write_still_happens
            a_healthy_store_says_so
        );
    };
    (@ $open:expr; $($claim:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $claim() {
                let ground = $open.await;
                $crate::storage::suite::$claim(&ground.0).await;
            }
        )*
    };
}
pub(crate) use storage_suite;

type Store = Arc<dyn Storage>;

/// Longer than any claim takes on a busy machine: reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("the awaited condition came")
}

pub(crate) fn put(value: impl Into<Bytes>) -> Op {
    Op::Put { value: value.into(), ttl: None }
}

pub(crate) fn write(key: &str, expect: Expect, op: Op) -> Write {
    Write { key: key.into(), expect, op }
}

pub(crate) async fn create(store: &Store, key: &str, value: &str) -> Revision {
    committed(store.write(write(key, Expect::Absent, put(value.to_owned()))).await)
}

pub(crate) async fn update(store: &Store, key: &str, held: Revision, value: &str) -> Revision {
    committed(store.write(write(key, Expect::ModRevision(held), put(value.to_owned()))).await)
}

pub(crate) async fn delete(store: &Store, key: &str, held: Revision) -> Revision {
    committed(store.write(write(key, Expect::ModRevision(held), Op::Delete)).await)
}

pub(crate) fn committed(outcome: Result<WriteOutcome, StorageError>) -> Revision {
    match outcome {
        Ok(WriteOutcome::Committed(revision)) => revision,
        other => panic!("expected a commit, got {other:?}"),
    }
}

async fn get(store: &Store, key: &str, at: Option<Revision>) -> Option<KeyValue> {
    within(store.get(key, at)).await.expect("the read works")
}

async fn list(store: &Store, prefix: &str, start: &str, limit: usize, at: Option<Revision>) -> Page {
    within(store.list(prefix, start, limit, at)).await.expect("the list works")
}

fn keys(page: &Page) -> Vec<&str> {
    page.items.iter().map(|kv| &*kv.key).collect()
}

fn pairs(page: &Page) -> Vec<(&str, &[u8])> {
    page.items.iter().map(|kv| (&*kv.key, &kv.value[..])).collect()
}

/// Events until one at `until` was seen.
pub(crate) async fn events_until(stream: &mut EventStream, until: Revision) -> Vec<Event> {
    let mut seen = Vec::new();
    while seen.last().is_none_or(|event: &Event| event.kv.mod_revision < until) {
        let batch = within(stream.recv()).await.expect("the watch goes on").expect("the watch is fine");
        seen.extend(batch.iter().cloned());
    }
    seen
}

/// The error that a watch ends with.
pub(crate) async fn end_of(stream: &mut EventStream) -> StorageError {
    loop {
        match within(stream.recv()).await {
            Some(Ok(_)) => {}
            Some(Err(why)) => {
                assert!(within(stream.recv()).await.is_none(), "an error is the last item");
                return why;
            }
            None => panic!("the watch ended without a word"),
        }
    }
}

/// The same, as the failure it is.
pub(crate) async fn end_of_watch(stream: &mut EventStream) -> Result<(), StorageError> {
    Err(end_of(stream).await)
}

fn assert_contiguous(events: &[Event], after: Revision) {
    let revisions: Vec<_> = events.iter().map(|event| event.kv.mod_revision).collect();
    let expected: Vec<_> = (after + 1..=after + revisions.len() as u64).collect();
    assert_eq!(revisions, expected);
}

pub async fn a_created_key_is_read_back_with_its_revisions(store: &Store) {
    let revision = create(store, "/registry/a", "one").await;
    let expected = KeyValue {
        key: "/registry/a".into(),
        value: "one".into(),
        mod_revision: revision,
        create_revision: revision,
        version: 1,
    };
    assert_eq!(get(store, "/registry/a", None).await, Some(expected.clone()));
    assert_eq!(get(store, "/registry/a", Some(revision)).await, Some(expected));
    assert_eq!(get(store, "/registry/", None).await, None);
    assert_eq!(store.current_revision().await, Ok(revision));
}

pub async fn creating_what_exists_is_a_conflict_that_names_the_revision(store: &Store) {
    let revision = create(store, "/registry/a", "one").await;
    let again = store.write(write("/registry/a", Expect::Absent, put("two"))).await;
    assert_eq!(again, Ok(WriteOutcome::Conflict(Some(revision))));
    assert_eq!(get(store, "/registry/a", None).await.map(|kv| kv.value), Some("one".into()));
    assert_eq!(store.current_revision().await, Ok(revision), "a conflict takes no revision");
}

pub async fn an_update_needs_the_revision_it_was_based_on(store: &Store) {
    let first = create(store, "/registry/a", "one").await;
    let second = update(store, "/registry/a", first, "two").await;
    let late = store.write(write("/registry/a", Expect::ModRevision(first), put("three"))).await;
    assert_eq!(late, Ok(WriteOutcome::Conflict(Some(second))));
    let absent = store.write(write("/registry/b", Expect::ModRevision(first), put("x"))).await;
    assert_eq!(absent, Ok(WriteOutcome::Conflict(None)));
    assert_eq!(get(store, "/registry/a", None).await.map(|kv| kv.value), Some("two".into()));
}

pub async fn a_deleted_key_is_gone_and_can_be_created_anew(store: &Store) {
    let first = create(store, "/registry/a", "one").await;
    let gone = delete(store, "/registry/a", first).await;
    assert_eq!(get(store, "/registry/a", None).await, None);
    assert_eq!(get(store, "/registry/a", Some(gone)).await, None);
    let again = create(store, "/registry/a", "two").await;
    let kv = get(store, "/registry/a", None).await.expect("it is there again");
    assert_eq!((kv.create_revision, kv.version), (again, 1));
    assert_eq!(get(store, "/registry/a", Some(first)).await.map(|kv| kv.value), Some("one".into()));
}

pub async fn deleting_what_is_absent_is_a_conflict(store: &Store) {
    let outcome = store.write(write("/registry/a", Expect::ModRevision(7), Op::Delete)).await;
    assert_eq!(outcome, Ok(WriteOutcome::Conflict(None)));
    let first = create(store, "/registry/a", "one").await;
    let outcome = store.write(write("/registry/a", Expect::ModRevision(first + 7), Op::Delete)).await;
    assert_eq!(outcome, Ok(WriteOutcome::Conflict(Some(first))));
}

pub async fn versions_count_the_writes_since_creation(store: &Store) {
    let created = create(store, "/registry/a", "v1").await;
    let mut held = created;
    for n in 2..=5 {
        held = update(store, "/registry/a", held, &format!("v{n}")).await;
        let kv = get(store, "/registry/a", None).await.expect("it exists");
        assert_eq!((kv.version, kv.create_revision, kv.mod_revision), (n, created, held));
    }
}

pub async fn revisions_grow_by_one_across_keys(store: &Store) {
    let start = store.current_revision().await.expect("a revision");
    for n in 1..=20 {
        assert_eq!(create(store, &format!("/registry/{n}"), "x").await, start + n);
    }
}

pub async fn a_list_is_in_key_order_and_stays_under_its_prefix(store: &Store) {
    for key in
        ["/registry/pods/b/1", "/registry/pods/a/2", "/registry/podsx/1", "/registry/pods/a/1", "/registry/nodes/1"]
    {
        create(store, key, key).await;
    }
    let page = list(store, "/registry/pods/", "", 0, None).await;
    assert_eq!(keys(&page), ["/registry/pods/a/1", "/registry/pods/a/2", "/registry/pods/b/1"]);
    assert!(page.items.iter().all(|kv| *kv.value == *kv.key.as_bytes()));
    assert!(!page.more);
    assert_eq!(Ok(page.revision), store.current_revision().await);
    assert_eq!(list(store, "", "", 0, None).await.items.len(), 5);
    let from = list(store, "/registry/pods/", "/registry/pods/a/2", 0, None).await;
    assert_eq!(keys(&from), ["/registry/pods/a/2", "/registry/pods/b/1"]);
    assert_eq!(list(store, "/registry/pods/", "/registry/q", 0, None).await.items, []);
    assert_eq!(list(store, "/registry/pods/", "/registry/a", 0, None).await.items.len(), 3);
}

pub async fn pages_join_to_the_whole_list(store: &Store) {
    for n in 0..10 {
        create(store, &format!("/registry/pods/{n}"), "x").await;
    }
    let (mut start, mut seen) = (String::new(), Vec::new());
    loop {
        let page = list(store, "/registry/pods/", &start, 3, None).await;
        assert!(page.items.len() <= 3);
        seen.extend(page.items.iter().map(|kv| kv.key.to_string()));
        if !page.more {
            break;
        }
        start = format!("{}\0", seen.last().expect("a page that is not the last has items"));
    }
    let expected: Vec<_> = (0..10).map(|n| format!("/registry/pods/{n}")).collect();
    assert_eq!(seen, expected);
    assert!(!list(store, "/registry/pods/", "", 10, None).await.more, "exactly the limit is no more");
}

/// Writes a history over a few keys and returns what the store held at each revision.
async fn history(store: &Store) -> BTreeMap<Revision, BTreeMap<String, String>> {
    let mut state: BTreeMap<String, (Revision, String)> = BTreeMap::new();
    let mut moments = BTreeMap::new();
    for n in 0..60u32 {
        let key = format!("/registry/pods/{}", n * 7 % 5);
        let value = format!("value {n}");
        let revision = match state.get(&key) {
            Some((held, _)) if n % 4 == 3 => {
                let revision = delete(store, &key, *held).await;
                state.remove(&key);
                revision
            }
            Some((held, _)) => {
                let revision = update(store, &key, *held, &value).await;
                state.insert(key, (revision, value));
                revision
            }
            None => {
                let revision = create(store, &key, &value).await;
                state.insert(key, (revision, value));
                revision
            }
        };
        moments.insert(revision, state.iter().map(|(k, (_, v))| (k.clone(), v.clone())).collect());
    }
    moments
}

fn contents(page: &Page) -> BTreeMap<String, String> {
    page.items.iter().map(|kv| (kv.key.to_string(), String::from_utf8_lossy(&kv.value).into_owned())).collect()
}

pub async fn an_old_revision_shows_the_store_as_it_was(store: &Store) {
    let moments = history(store).await;
    for (revision, expected) in &moments {
        let page = list(store, "/registry/", "", 0, Some(*revision)).await;
        assert_eq!(page.revision, *revision);
        assert_eq!(contents(&page), *expected, "at revision {revision}");
        for n in 0..5 {
            let key = format!("/registry/pods/{n}");
            let found = get(store, &key, Some(*revision)).await;
            let found = found.map(|kv| String::from_utf8_lossy(&kv.value).into_owned());
            assert_eq!(found.as_ref(), expected.get(&key), "{key} at revision {revision}");
        }
    }
}

pub async fn a_page_of_an_old_revision_goes_on_where_it_ended(store: &Store) {
    for n in 0..6 {
        create(store, &format!("/registry/{n}"), "old").await;
    }
    let at = store.current_revision().await.expect("a revision");
    let first = list(store, "/registry/", "", 4, Some(at)).await;
    assert_eq!((first.items.len(), first.more), (4, true));
    for item in &list(store, "/registry/", "", 0, None).await.items {
        delete(store, &item.key, item.mod_revision).await;
    }
    create(store, "/registry/55", "new").await;
    let second = list(store, "/registry/", "/registry/3\0", 4, Some(at)).await;
    assert_eq!(pairs(&second), [("/registry/4", &b"old"[..]), ("/registry/5", b"old")]);
    assert_eq!((second.more, second.revision), (false, at));
}

pub async fn a_revision_that_is_not_there_yet_is_refused(store: &Store) {
    let current = create(store, "/registry/a", "x").await;
    let future = Err(StorageError::Future { asked: current + 1, current });
    assert_eq!(store.get("/registry/a", Some(current + 1)).await.map(drop), future);
    assert_eq!(store.list("/registry/", "", 0, Some(current + 1)).await.map(drop), future);
}

pub async fn an_empty_store_lists_nothing_at_a_revision(store: &Store) {
    let page = list(store, "/registry/", "", 0, None).await;
    assert_eq!(page.items, []);
    assert!(!page.more);
    assert!(page.revision > 0, "0 is before everything, and a client may not be given it");
}

pub async fn a_watch_replays_then_follows_without_gap_or_double(store: &Store) {
    let start = store.current_revision().await.expect("a revision");
    let moments = history(store).await;
    let mut stream = store.watch("/registry/", start, 16).await.expect("a watch");
    let last = *moments.keys().last().expect("a history");
    let live = create(store, "/registry/live", "x").await;
    let gone = delete(store, "/registry/live", live).await;
    let events = events_until(&mut stream, gone).await;
    assert_contiguous(&events, start);
    assert_eq!(events.len() as u64, gone - start);

    let mut replayed: BTreeMap<String, String> = BTreeMap::new();
    for event in &events {
        let key = event.kv.key.to_string();
        match event.kind {
            EventKind::Put => drop(replayed.insert(key, String::from_utf8_lossy(&event.kv.value).into_owned())),
            EventKind::Delete => {
                assert!(event.kv.value.is_empty());
                assert!(replayed.remove(&key).is_some(), "only what exists is deleted");
            }
        }
        if let Some(expected) = moments.get(&event.kv.mod_revision) {
            assert_eq!(replayed, *expected);
        }
    }
    assert!(last < live);
    let put = events.iter().find(|event| event.kv.mod_revision == live).expect("the live event");
    assert_eq!((put.kv.create_revision, put.kv.version, &put.kv.value[..]), (live, 1, &b"x"[..]));
}

pub async fn a_watch_from_now_sees_only_what_comes(store: &Store) {
    let now = create(store, "/registry/a", "x").await;
    let mut stream = store.watch("/registry/", now, 16).await.expect("a watch");
    let next = create(store, "/registry/b", "y").await;
    let events = events_until(&mut stream, next).await;
    assert_eq!(events.iter().map(|e| (&*e.kv.key, e.kv.mod_revision)).collect::<Vec<_>>(), [("/registry/b", next)]);
}

pub async fn a_watch_sees_its_prefix_alone(store: &Store) {
    let start = store.current_revision().await.expect("a revision");
    create(store, "/registry/pods/1", "x").await;
    create(store, "/registry/nodes/1", "x").await;
    let mut stream = store.watch("/registry/pods/", start, 16).await.expect("a watch");
    create(store, "/registry/nodes/2", "x").await;
    let last = create(store, "/registry/pods/2", "x").await;
    let events = events_until(&mut stream, last).await;
    let seen: Vec<_> = events.iter().map(|event| &*event.kv.key).collect();
    assert_eq!(seen, ["/registry/pods/1", "/registry/pods/2"]);
}

pub async fn a_long_replay_is_complete_for_a_slow_reader(store: &Store) {
    let start = store.current_revision().await.expect("a revision");
    let writers = (0..16).map(|writer| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for n in 0..100 {
                create(&store, &format!("/registry/{writer}/{n}"), "x").await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("the writer is done");
    }
    // One batch fits; the replay has to wait for the reader many times.
    let mut stream = store.watch("/registry/", start, 1).await.expect("a watch");
    let events = events_until(&mut stream, start + 1600).await;
    assert_contiguous(&events, start);
    let next = create(store, "/registry/next", "x").await;
    assert_eq!(events_until(&mut stream, next).await.len(), 1, "it is live now");
}

pub async fn a_slow_watcher_is_ended_and_never_blocks_others(store: &Store) {
    let start = store.current_revision().await.expect("a revision");
    let mut slow = store.watch("/registry/", start, 2).await.expect("a watch");
    let mut quick = store.watch("/registry/", start, 2).await.expect("a watch");
    let mut last = start;
    for n in 0..10 {
        last = within(create(store, &format!("/registry/{n}"), "x")).await;
        assert_eq!(events_until(&mut quick, last).await.len(), 1);
    }
    assert_eq!(last, start + 10);
    let mut seen = start;
    let why = loop {
        match within(slow.recv()).await {
            Some(Ok(batch)) => {
                for event in batch.iter() {
                    seen += 1;
                    assert_eq!(event.kv.mod_revision, seen, "what it got is in order and whole");
                }
            }
            Some(Err(why)) => break why,
            None => panic!("the watch ended without a word"),
        }
    };
    assert!(matches!(why, StorageError::Unavailable(_)), "{why}");
    assert!(seen < last);
    assert!(within(slow.recv()).await.is_none());
}

pub async fn a_watch_from_a_revision_that_is_not_there_yet_is_refused(store: &Store) {
    let current = create(store, "/registry/a", "x").await;
    let refused = store.watch("/registry/", current + 5, 4).await.map(drop);
    assert_eq!(refused, Err(StorageError::Future { asked: current + 5, current }));
}

pub async fn compaction_keeps_what_exists_and_forgets_what_was_superseded(store: &Store) {
    let moments = history(store).await;
    let revisions: Vec<_> = moments.keys().copied().collect();
    let middle = revisions[revisions.len() / 2];
    within(store.compact(middle)).await.expect("compaction works");
    for (revision, expected) in &moments {
        let page = within(store.list("/registry/", "", 0, Some(*revision))).await;
        if *revision < middle {
            assert_eq!(page.map(drop), Err(StorageError::Compacted(middle)), "at revision {revision}");
        } else {
            assert_eq!(contents(&page.expect("kept")), *expected, "at revision {revision}");
        }
    }
    let last = *revisions.last().expect("a history");
    within(store.compact(last)).await.expect("compaction works");
    let now = list(store, "/registry/", "", 0, None).await;
    assert_eq!(Some(&contents(&now)), moments.get(&last));
    assert_eq!(store.current_revision().await, Ok(last), "compaction takes no revision");
    assert_eq!(create(store, "/registry/new", "x").await, last + 1);
}

pub async fn a_watch_from_before_compaction_ends_with_compacted(store: &Store) {
    let first = create(store, "/registry/a", "1").await;
    let second = update(store, "/registry/a", first, "2").await;
    let third = update(store, "/registry/a", second, "3").await;
    within(store.compact(second)).await.expect("compaction works");
    let mut old = store.watch("/registry/", first, 4).await.expect("the stream tells");
    assert_eq!(end_of(&mut old).await, StorageError::Compacted(second));
    let mut kept = store.watch("/registry/", second, 4).await.expect("a watch");
    assert_eq!(events_until(&mut kept, third).await.len(), 1);
}

pub async fn compaction_of_the_future_is_refused_and_of_the_past_is_nothing(store: &Store) {
    let first = create(store, "/registry/a", "1").await;
    let current = update(store, "/registry/a", first, "2").await;
    assert_eq!(store.compact(current + 1).await, Err(StorageError::Future { asked: current + 1, current }));
    assert_eq!(within(store.compact(current)).await, Ok(()));
    assert_eq!(within(store.compact(first)).await, Ok(()));
    assert_eq!(get(store, "/registry/a", None).await.map(|kv| kv.value), Some("2".into()));
}

pub async fn a_key_with_a_ttl_is_deleted_as_an_ordinary_change(store: &Store) {
    let op = Op::Put { value: "x".into(), ttl: Some(Duration::from_secs(1)) };
    let put = committed(store.write(write("/registry/events/1", Expect::Absent, op)).await);
    let kept = create(store, "/registry/events/2", "y").await;
    let mut stream = store.watch("/registry/", kept, 4).await.expect("a watch");
    let events = events_until(&mut stream, kept + 1).await;
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0].kind, &*events[0].kv.key), (&EventKind::Delete, "/registry/events/1"));
    assert_eq!(get(store, "/registry/events/1", None).await, None);
    assert!(get(store, "/registry/events/1", Some(put)).await.is_some(), "history still has it");
    assert_eq!(keys(&list(store, "/registry/", "", 0, None).await), ["/registry/events/2"]);
}

pub async fn a_put_without_a_ttl_cancels_the_deadline(store: &Store) {
    let short = || Some(Duration::from_secs(1));
    let op = Op::Put { value: "x".into(), ttl: short() };
    let first = committed(store.write(write("/registry/a", Expect::Absent, op.clone())).await);
    update(store, "/registry/a", first, "kept").await;
    // A later key with the same time to live: when it is gone, the first would be too.
    let marker = committed(store.write(write("/registry/b", Expect::Absent, op)).await);
    let mut stream = store.watch("/registry/", marker, 4).await.expect("a watch");
    let events = events_until(&mut stream, marker + 1).await;
    assert_eq!(&*events[0].kv.key, "/registry/b");
    assert_eq!(get(store, "/registry/a", None).await.map(|kv| kv.value), Some("kept".into()));
}

pub async fn one_of_many_concurrent_writers_wins(store: &Store) {
    let first = create(store, "/registry/a", "0").await;
    let writers: Vec<_> = (0..32)
        .map(|n| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                store.write(write("/registry/a", Expect::ModRevision(first), put(format!("{n}")))).await
            })
        })
        .collect();
    let mut winners = Vec::new();
    let mut losers = Vec::new();
    for writer in writers {
        match within(writer).await.expect("the writer is done").expect("the store works") {
            WriteOutcome::Committed(revision) => winners.push(revision),
            WriteOutcome::Conflict(held) => losers.push(held),
        }
    }
    assert_eq!(winners, [first + 1]);
    assert!(losers.iter().all(|held| *held == Some(first + 1)), "{losers:?}");
}

pub async fn concurrent_writers_are_seen_in_one_order_by_every_watcher(store: &Store) {
    let start = store.current_revision().await.expect("a revision");
    let early = store.watch("/registry/", start, 4096).await.expect("a watch");
    let writers: Vec<_> = (0..32)
        .map(|writer| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let key = format!("/registry/{writer}");
                let mut held = create(&store, &key, "0").await;
                for n in 1..20 {
                    let next = update(&store, &key, held, &n.to_string()).await;
                    assert!(next > held);
                    held = next;
                }
            })
        })
        .collect();
    // Begins somewhere in the middle of the storm.
    let middle = store.watch("/registry/", start, 4096).await.expect("a watch");
    for writer in writers {
        within(writer).await.expect("the writer is done");
    }
    let last = start + 32 * 20;
    assert_eq!(store.current_revision().await, Ok(last));
    let late = store.watch("/registry/", start, 4096).await.expect("a watch");
    let mut seen = Vec::new();
    for mut stream in [early, middle, late] {
        let events = events_until(&mut stream, last).await;
        assert_contiguous(&events, start);
        seen.push(events);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

pub async fn large_values_and_odd_keys_come_back_whole(store: &Store) {
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let odd = "/registry/größe/\u{1F980} %2F'\"";
    committed(store.write(write(odd, Expect::Absent, put(large.clone()))).await);
    committed(store.write(write("/registry/empty", Expect::Absent, put(""))).await);
    let long = format!("/registry/{}", "k".repeat(1000));
    create(store, &long, "x").await;
    assert_eq!(get(store, odd, None).await.map(|kv| kv.value), Some(large.into()));
    assert_eq!(get(store, "/registry/empty", None).await.map(|kv| kv.value.len()), Some(0));
    let mut expected = ["/registry/empty", odd, &*long];
    expected.sort_unstable();
    assert_eq!(keys(&list(store, "", "", 0, None).await), expected);
}

pub async fn a_cancelled_write_still_happens(store: &Store) {
    let start = store.current_revision().await.expect("a revision");
    let mut stream = store.watch("/registry/", start, 4).await.expect("a watch");
    {
        let mut pending = store.write(write("/registry/a", Expect::Absent, put("x")));
        // Polled until it was handed over, then given up.
        let handed = std::future::poll_fn(|cx| std::task::Poll::Ready(pending.as_mut().poll(cx).is_pending())).await;
        assert!(handed, "a durable write is not done at once");
    }
    assert_eq!(events_until(&mut stream, start + 1).await.len(), 1);
    assert!(get(store, "/registry/a", None).await.is_some());
}

pub async fn a_healthy_store_says_so(store: &Store) {
    assert_eq!(within(store.health()).await, Ok(()));
}
