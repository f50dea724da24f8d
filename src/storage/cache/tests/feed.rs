use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Loses the feed, writes while nobody follows, and waits until the cache has found out.
async fn with_a_gap(setup: &Setup, write: impl FnOnce() -> Revision) -> Revision {
    setup.memory.set_down(true);
    setup.memory.break_feeds();
    let revision = write();
    setup.memory.set_down(false);
    setup.reach(revision).await;
    revision
}

#[tokio::test]
async fn after_a_lost_feed_watchers_see_what_changed_meanwhile() {
    let setup = setup().await;
    for path in ["ns/changed", "ns/deleted", "ns/remade", "ns/same"] {
        setup.put(path, "", "1");
    }
    setup.reach(4).await;
    let mut watcher = setup.pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    let end = with_a_gap(&setup, || {
        setup.put("ns/changed", "", "2"); // 5
        setup.put("ns/changed", "", "3"); // 6
        setup.delete("ns/deleted"); // 7
        setup.delete("ns/remade"); // 8
        setup.put("ns/remade", "", "2"); // 9
        setup.put("ns/passing", "", "1"); // 10
        setup.delete("ns/passing"); // 11
        setup.put("ns/new", "", "1") // 12
    })
    .await;
    assert_eq!(end, 12);
    assert_eq!(
        seen_until(&mut watcher, end).await,
        [
            "MODIFIED ns/changed @6",
            "DELETED ns/remade @8",
            "ADDED ns/remade @9",
            "ADDED ns/new @12",
            "DELETED ns/deleted @12"
        ]
    );
    assert_eq!(paths(&setup.pods.any().expect("served")), ["ns/changed", "ns/new", "ns/remade", "ns/same"]);
    assert_eq!(setup.cache.metrics().lists.get(), 2);
    let end = setup.put("ns/new", "", "2");
    assert_eq!(seen_until(&mut watcher, end).await, ["MODIFIED ns/new @13"]);
}

#[tokio::test]
async fn what_was_between_is_not_made_up_after_a_lost_feed() {
    let setup = setup().await;
    setup.reach(setup.put("ns/a", "", "1")).await;
    let end = with_a_gap(&setup, || {
        setup.put("ns/a", "", "2"); // 2
        setup.put("ns/passing", "", "1"); // 3
        setup.delete("ns/passing"); // 4
        setup.put("ns/a", "", "3"); // 5
        setup.memory.put("/registry/others/b", "{}") // 6
    })
    .await;
    for revision in 2..end {
        assert!(setup.pods.exact(revision).is_none(), "at {revision}");
        let watch = setup.pods.watch(WatchStart::After(revision), everything(), 10);
        assert_eq!(watch.err(), Some(CacheError::TooOld { asked: revision, floor: end }));
    }
    assert_eq!(setup.pods.exact(1).map(|list| list.iter().map(|entry| entry.mod_revision()).sum()), Some(1));
    assert_eq!(setup.pods.exact(end).map(|list| list.iter().map(|entry| entry.mod_revision()).sum()), Some(5));
    let mut watcher = setup.pods.watch(WatchStart::After(1), everything(), 10).expect("starts");
    assert_eq!(seen_until(&mut watcher, end).await, ["MODIFIED ns/a @5"]);
}

#[tokio::test]
async fn a_compacted_start_of_the_feed_is_a_fresh_list() {
    let setup = setup().await;
    setup.reach(setup.put("ns/a", "", "1")).await;
    let mut watcher = setup.pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    let end = with_a_gap(&setup, || {
        setup.put("ns/a", "", "2");
        setup.put("ns/a", "", "3")
    })
    .await;
    setup.memory.compact(end).await.expect("compacts");
    let end = with_a_gap(&setup, || setup.put("ns/a", "", "4")).await;
    assert_eq!(seen_until(&mut watcher, end).await, ["MODIFIED ns/a @3", "MODIFIED ns/a @4"]);
}

#[tokio::test]
async fn a_gap_without_changes_goes_unnoticed() {
    let setup = setup().await;
    setup.reach(setup.put("ns/a", "", "1")).await;
    let mut watcher = setup.pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    setup.memory.break_feeds();
    until(|| setup.memory.feeds() == 1).await;
    let end = setup.put("ns/a", "", "2");
    assert_eq!(seen_until(&mut watcher, end).await, ["MODIFIED ns/a @2"]);
}

#[tokio::test]
async fn a_feed_that_cannot_begin_after_the_first_list_loses_no_watch() {
    let memory = Arc::new(Memory::default());
    memory.refuse_watches(true);
    let cache = Cache::start(memory.clone(), CacheOptions::default()).expect("a thread");
    cache.ready().await;
    let pods = cache.resource(PODS, Arc::new(PodAttributes));
    let mut watcher = pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    let end = memory.put(&format!("{PODS}ns/a"), &pod("a", "", ""));
    until(|| cache.metrics().lists.get() > 1).await;
    memory.refuse_watches(false);
    assert_eq!(seen_until(&mut watcher, end).await, ["ADDED ns/a @1"]);
}

#[tokio::test]
async fn a_replaced_history_ends_watches_and_forgets_the_past() {
    let setup = setup().await;
    for i in 0..10 {
        setup.put(&format!("ns/{i}"), "", "1");
    }
    setup.reach(10).await;
    let mut watcher = setup.pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    setup.memory.set_down(true);
    setup.memory.break_feeds();
    setup.memory.restore(5);
    setup.memory.set_down(false);
    assert_eq!(watcher.next(&mut Vec::new()).await, Err(WatchEnd::HistoryLost));
    let list = setup.pods.consistent().await.expect("served");
    assert_eq!((list.len(), list.revision()), (5, 5));
    assert!(matches!(
        setup.pods.watch(WatchStart::After(4), everything(), 10),
        Err(CacheError::TooOld { asked: 4, floor: 5 })
    ));
    let end = setup.put("ns/new", "", "1");
    let mut watcher = setup.pods.watch(WatchStart::After(5), everything(), 10).expect("starts");
    assert_eq!(seen_until(&mut watcher, end).await, ["ADDED ns/new @6"]);
}

struct PanicsOnce(AtomicBool);

impl Attributes for PanicsOnce {
    fn attributes(&self, value: &[u8]) -> Attrs {
        assert!(self.0.swap(true, Ordering::Relaxed), "this object cannot be read");
        PodAttributes.attributes(value)
    }
}

#[tokio::test]
async fn a_panic_while_reading_attributes_costs_the_watches_and_not_the_cache() {
    let setup = setup().await;
    setup.cache.resource(PODS, Arc::new(PanicsOnce(AtomicBool::new(false))));
    let mut watcher = setup.pods.watch(WatchStart::Now, on_node("n1"), 100).expect("starts");
    setup.put("ns/a", "n1", "1");
    assert_eq!(watcher.next(&mut Vec::new()).await, Err(WatchEnd::HistoryLost));
    let end = setup.put("ns/b", "n1", "1");
    setup.reach(end).await;
    assert_eq!(paths(&setup.pods.any().expect("served")), ["ns/a", "ns/b"]);
}

#[tokio::test]
async fn rows_of_no_resource_and_of_no_kind_are_kept_as_they_are() {
    let setup = setup().await;
    let revision = setup.memory.put("/registry/ranges/serviceips", "k8s\0not json");
    setup.reach(revision).await;
    let ranges = setup.cache.resource("/registry/ranges/", Arc::new(NoAttributes));
    let list = ranges.any().expect("served");
    assert_eq!(list.find("", "serviceips").map(|entry| entry.value()), Some("k8s\0not json".into()));
}
