use super::*;

#[tokio::test]
async fn nothing_is_answered_before_the_first_list_is_in() {
    let memory = Arc::new(Memory::default());
    memory.put("/registry/pods/a/1", &pod("1", "", ""));
    memory.set_down(true);
    let cache = Cache::start(memory.clone(), CacheOptions::default()).expect("a thread");
    let pods = cache.resource(PODS, Arc::new(PodAttributes));
    assert!(matches!(pods.any(), Err(CacheError::NotReady { .. })));
    assert!(matches!(pods.not_older_than(1).await, Err(CacheError::NotReady { .. })));
    assert!(matches!(pods.watch(WatchStart::Now, everything(), 10), Err(CacheError::NotReady { .. })));
    assert!(pods.exact(1).is_none());
    assert!(!cache.is_ready());
    memory.set_down(false);
    cache.ready().await;
    assert_eq!(paths(&pods.any().expect("ready")), ["a/1"]);
}

#[tokio::test]
async fn the_first_list_comes_in_pages_and_is_whole() {
    let memory = Arc::new(Memory::default());
    for i in 0..25 {
        memory.put(&format!("{PODS}ns/p{i:02}"), &pod("p", "", ""));
        memory.put(&format!("/registry/others/o{i:02}"), "{}");
    }
    let options = CacheOptions { page: 7, ..CacheOptions::default() };
    let cache = Cache::start(memory.clone(), options).expect("a thread");
    cache.ready().await;
    let pods = cache.resource(PODS, Arc::new(PodAttributes));
    let list = pods.consistent().await.expect("served");
    assert_eq!((list.len(), list.revision()), (25, 50));
    assert_eq!(cache.unclaimed(), 25);
}

#[tokio::test]
async fn a_consistent_read_sees_every_write_before_it() {
    let setup = setup().await;
    for i in 0..200 {
        let revision = setup.put("ns/a", "", &i.to_string());
        let list = setup.pods.consistent().await.expect("served");
        assert!(list.revision() >= revision);
        assert_eq!(list.find("ns", "a").map(|entry| entry.attrs().label("app") == Some(&i.to_string())), Some(true));
    }
}

#[tokio::test]
async fn a_consistent_read_waits_for_the_feed_and_says_when_it_does_not_come() {
    let options = CacheOptions { wait: Duration::from_millis(30), ..CacheOptions::default() };
    let setup = setup_with(options).await;
    let before = setup.put("ns/a", "", "old");
    setup.reach(before).await;
    setup.memory.hold();
    let asked = setup.put("ns/a", "", "new");
    assert_eq!(setup.pods.consistent().await.err(), Some(CacheError::Behind { asked, current: before }));
    assert_eq!(setup.pods.any().expect("older").revision(), before);
    setup.memory.release();
    assert_eq!(setup.pods.consistent().await.expect("comes").revision(), asked);
    assert!(setup.cache.metrics().waits.get() >= 1);
    assert_eq!(setup.cache.metrics().wait_timeouts.get(), 1);
}

#[tokio::test]
async fn a_revision_that_does_not_come_is_too_large() {
    let options = CacheOptions { wait: Duration::from_millis(10), ..CacheOptions::default() };
    let setup = setup_with(options).await;
    let current = setup.put("ns/a", "", "");
    setup.reach(current).await;
    let error = setup.pods.not_older_than(1000).await.expect_err("not there");
    assert_eq!(error, CacheError::TooLarge { asked: 1000, current });
    assert_eq!(error.to_string(), "Too large resource version: 1000, current: 1");
}

#[tokio::test]
async fn a_storage_that_is_down_fails_consistent_reads_only() {
    let setup = setup().await;
    setup.reach(setup.put("ns/a", "", "")).await;
    setup.memory.set_down(true);
    assert!(matches!(setup.pods.consistent().await, Err(CacheError::Storage(_))));
    assert_eq!(setup.pods.any().expect("served from memory").len(), 1);
}

#[tokio::test]
async fn a_resource_s_revision_goes_on_with_writes_to_other_resources() {
    let setup = setup().await;
    setup.put("ns/a", "", "");
    let revision = setup.memory.put("/registry/secrets/ns/s", "{}");
    setup.reach(revision).await;
    assert_eq!(setup.pods.any().expect("served").revision(), revision);
    assert_eq!(setup.pods.exact(revision).expect("known").len(), 1);
}

#[tokio::test]
async fn a_snapshot_never_changes() {
    let setup = setup().await;
    for i in 0..100 {
        setup.put(&format!("ns/{i:03}"), "", "old");
    }
    let before = setup.pods.consistent().await.expect("served");
    for i in 0..100 {
        setup.put(&format!("ns/{i:03}"), "", "new");
    }
    setup.delete("ns/050");
    let after = setup.pods.consistent().await.expect("served");
    assert!(before.iter().all(|entry| entry.attrs().label("app") == Some("old")));
    assert_eq!((before.len(), after.len()), (100, 99));
    assert!(after.iter().all(|entry| entry.attrs().label("app") == Some("new")));
}

#[tokio::test]
async fn an_older_list_is_what_the_storage_says_it_was() {
    let setup = setup().await;
    let mut random = model::Random(7);
    for _ in 0..300 {
        let path = format!("ns/{}", random.below(20));
        match random.below(4) {
            0 => setup.delete(&path),
            1 => setup.memory.put(&format!("/registry/others/{path}"), "{}"),
            _ => setup.put(&path, "", &random.below(1000).to_string()),
        };
    }
    let newest = setup.pods.consistent().await.expect("served").revision();
    // Twice, since the second time comes from what the first has left.
    for revision in (0..=newest).chain((0..=newest).rev()) {
        let kept = setup.pods.exact(revision).expect("within the ring");
        let stored = setup.memory.list(PODS, "", 0, Some(revision)).await.expect("stored").items;
        let kept: Vec<_> = kept.iter().map(|entry| (entry.key().clone(), entry.mod_revision())).collect();
        let stored: Vec<_> = stored.into_iter().map(|row| (row.key, row.mod_revision)).collect();
        assert_eq!(kept, stored, "at {revision}");
    }
    assert!(setup.pods.exact(newest + 1).is_none());
}

#[tokio::test]
async fn an_older_list_that_is_no_longer_kept_is_left_to_the_storage() {
    let ring = RingLimits { min_events: 5, max_events: 5, ..RingLimits::default() };
    let setup = setup_with(CacheOptions { ring, ..CacheOptions::default() }).await;
    for i in 0..20 {
        setup.put("ns/a", "", &i.to_string());
    }
    setup.reach(20).await;
    assert!(setup.pods.exact(14).is_none());
    assert_eq!(setup.pods.exact(15).map(|list| list.revision()), Some(15));
    assert_eq!(setup.pods.stats().ring_floor, 15);
}

#[tokio::test]
async fn a_resource_registered_late_finds_its_rows_and_only_those() {
    let setup = setup().await;
    for key in ["example.com/widgets/ns/a", "example.com/widgets/ns/b", "example.com/widgetsx/ns/c", "example.com/z"] {
        setup.memory.put(&format!("/registry/{key}"), r#"{"metadata":{"name":"x"}}"#);
    }
    setup.reach(4).await;
    assert_eq!(setup.cache.unclaimed(), 4);
    let widgets = setup.cache.resource("/registry/example.com/widgets/", Arc::new(NoAttributes));
    let list = widgets.any().expect("served");
    assert_eq!(paths(&list), ["ns/a", "ns/b"]);
    assert_eq!(list.find("ns", "a").map(|entry| entry.namespace().to_owned()), Some("ns".into()));
    assert_eq!(setup.cache.unclaimed(), 2);
    let again = setup.cache.resource("/registry/example.com/widgets/", Arc::new(NoAttributes));
    assert!(Arc::ptr_eq(&widgets, &again));
    let revision = setup.memory.put("/registry/example.com/widgets/ns/c", "{}");
    assert_eq!(widgets.not_older_than(revision).await.expect("served").len(), 3);
}

#[tokio::test]
async fn a_dropped_resource_answers_closed_and_its_rows_stay() {
    let setup = setup().await;
    setup.reach(setup.put("ns/a", "", "")).await;
    setup.cache.drop_resource(PODS);
    assert_eq!(setup.pods.any().err(), Some(CacheError::Closed));
    assert_eq!(setup.pods.consistent().await.err(), Some(CacheError::Closed));
    assert!(setup.pods.exact(1).is_none());
    setup.memory.put(&format!("{PODS}ns/b"), "{}");
    let again = setup.cache.resource(PODS, Arc::new(PodAttributes));
    assert_eq!(paths(&again.consistent().await.expect("served")), ["ns/a", "ns/b"]);
    assert_eq!(setup.cache.unclaimed(), 0);
}

#[tokio::test]
async fn the_longest_prefix_owns_a_key() {
    let setup = setup().await;
    let outer = setup.cache.resource("/registry/a/", Arc::new(NoAttributes));
    let inner = setup.cache.resource("/registry/a/b/", Arc::new(NoAttributes));
    setup.memory.put("/registry/a/x", "{}");
    let revision = setup.memory.put("/registry/a/b/y", "{}");
    assert_eq!(paths(&inner.not_older_than(revision).await.expect("served")), ["y"]);
    assert_eq!(paths(&outer.any().expect("served")), ["x"]);
}
