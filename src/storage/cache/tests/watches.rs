use super::*;

#[tokio::test]
async fn a_watch_gives_every_later_change_once_and_in_order() {
    let setup = setup().await;
    setup.put("ns/a", "", "1");
    let start = setup.put("ns/b", "", "1");
    setup.reach(start).await;
    let mut now = setup.pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    let mut past = setup.pods.watch(WatchStart::After(1), everything(), 100).expect("starts");
    setup.put("ns/a", "", "2");
    setup.delete("ns/b");
    let end = setup.put("ns/b", "", "3");
    let later = ["MODIFIED ns/a @3", "DELETED ns/b @4", "ADDED ns/b @5"];
    assert_eq!(seen_until(&mut now, end).await, later);
    assert_eq!(seen_until(&mut past, end).await[1..], later);
}

#[tokio::test]
async fn an_event_shows_the_object_as_the_client_gets_it() {
    let setup = setup().await;
    let mut watcher = setup.pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    setup.put("ns/a", "n", "x");
    let mut events = Vec::new();
    watcher.next(&mut events).await.expect("comes");
    let framed = events[0].framed(EventType::Added).expect("has that state");
    let object = pod("a", "n", "x").replace(r#""metadata":{"#, r#""metadata":{"resourceVersion":"1","#);
    assert_eq!(framed, format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"));
    let other = setup.pods.any().expect("served");
    assert_eq!(other.find("ns", "a").expect("there").value().as_ptr(), framed[25..].as_ptr(), "one memory for all");
}

#[tokio::test]
async fn a_list_and_its_watch_meet_without_a_gap() {
    let setup = Arc::new(setup().await);
    let writer = {
        let setup = setup.clone();
        std::thread::spawn(move || {
            for i in 0..2000u32 {
                setup.put(&format!("ns/{}", i % 50), "", &i.to_string());
            }
        })
    };
    for _ in 0..50 {
        let (list, mut watcher) = setup.pods.list_and_watch(everything(), 5000).expect("starts");
        let mut state: std::collections::BTreeMap<String, u64> =
            list.iter().map(|entry| (entry.path().to_owned(), entry.mod_revision())).collect();
        let target = setup.pods.consistent().await.expect("served");
        let mut events = Vec::new();
        while watcher.progress() < target.revision() {
            let _ = tokio::time::timeout(Duration::from_millis(20), watcher.next(&mut events)).await;
        }
        for event in &events {
            assert!(event.revision() > list.revision());
            state.insert(event.subject().expect("an object").path().into(), event.revision());
        }
        let last = events.last().map_or(list.revision(), |event| event.revision()).max(target.revision());
        let expected = setup.pods.exact(last).expect("kept");
        let expected = expected.iter().map(|entry| (entry.path().to_owned(), entry.mod_revision())).collect();
        assert_eq!(state, expected);
    }
    writer.join().expect("no panic");
}

#[tokio::test]
async fn a_scope_is_kept_in_the_past_and_in_the_present() {
    let setup = setup().await;
    let write = |text: &str| {
        setup.put("x/a", "n1", text);
        setup.put("x/b", "n2", text);
        setup.put("y/a", "n1", text)
    };
    setup.reach(write("1")).await;
    let named = WatchScope { name: Some("a".into()), ..everything() };
    let one = WatchScope { name: Some("a".into()), ..in_namespace("x") };
    let both = WatchScope { namespace: Some("y".into()), ..on_node("n1") };
    let scopes = [everything(), in_namespace("x"), named, one, on_node("n1"), both, on_node("n3")];
    let start = |scope: &WatchScope| setup.pods.watch(WatchStart::After(0), scope.clone(), 100).expect("starts");
    let mut watchers: Vec<_> = scopes.iter().map(start).collect();
    let end = write("2");
    let mut counts = Vec::new();
    for watcher in &mut watchers {
        let seen = seen_until(watcher, end).await;
        let (past, present) = seen.split_at(seen.len() / 2);
        let plain = |line: &String| line.split(' ').nth(1).map(str::to_owned);
        assert_eq!(past.iter().map(plain).collect::<Vec<_>>(), present.iter().map(plain).collect::<Vec<_>>());
        counts.push(past.len());
    }
    assert_eq!(counts, [3, 2, 2, 1, 2, 1, 0]);
}

#[tokio::test]
async fn an_object_that_moves_between_indexed_values_is_seen_from_both() {
    let setup = setup().await;
    let mut old = setup.pods.watch(WatchStart::Now, on_node(""), 100).expect("starts");
    let mut new = setup.pods.watch(WatchStart::Now, on_node("n1"), 100).expect("starts");
    setup.put("ns/a", "", "");
    setup.put("ns/a", "n1", "");
    setup.put("ns/a", "n1", "more");
    let end = setup.delete("ns/a");
    assert_eq!(seen_until(&mut old, end).await, ["ADDED ns/a @1", "MODIFIED ns/a @2"]);
    assert_eq!(seen_until(&mut new, end).await, ["MODIFIED ns/a @2", "MODIFIED ns/a @3", "DELETED ns/a @4"]);
}

#[tokio::test]
async fn a_start_that_is_no_longer_kept_is_too_old() {
    let ring = RingLimits { min_events: 5, max_events: 5, ..RingLimits::default() };
    let setup = setup_with(CacheOptions { ring, ..CacheOptions::default() }).await;
    for i in 0..20 {
        setup.put("ns/a", "", &i.to_string());
    }
    setup.reach(20).await;
    let error = setup.pods.watch(WatchStart::After(3), everything(), 10).expect_err("too old");
    assert_eq!(error.to_string(), "too old resource version: 3 (15)");
    let mut watcher = setup.pods.watch(WatchStart::After(15), everything(), 10).expect("starts");
    assert_eq!(seen_until(&mut watcher, 20).await.len(), 5);
}

#[tokio::test]
async fn a_start_in_the_future_waits_for_it() {
    let setup = setup().await;
    let mut watcher = setup.pods.watch(WatchStart::After(3), everything(), 10).expect("starts");
    for i in 1..=5 {
        setup.put("ns/a", "", &i.to_string());
    }
    let mut events = Vec::new();
    while events.len() < 2 {
        watcher.next(&mut events).await.expect("comes");
    }
    assert_eq!(events.iter().map(|event| event.revision()).collect::<Vec<_>>(), [4, 5]);
}

#[tokio::test]
async fn a_long_past_is_handed_out_in_parts_and_in_order() {
    let setup = setup().await;
    for i in 0..5000u32 {
        setup.put(&format!("ns/{}", i % 3), "", &i.to_string());
    }
    setup.reach(5000).await;
    let mut watcher = setup.pods.watch(WatchStart::After(0), everything(), 10).expect("starts");
    let mut rare = setup.pods.watch(WatchStart::After(0), on_node("nowhere"), 10).expect("starts");
    let (mut seen, mut events) = (0, Vec::new());
    while seen < 5000 {
        assert_eq!(watcher.progress(), seen);
        watcher.next(&mut events).await.expect("comes");
        assert!(events.len() <= 256);
        for event in events.drain(..) {
            seen += 1;
            assert_eq!(event.revision(), seen);
        }
    }
    assert_eq!(watcher.progress(), 5000);
    assert_eq!(seen_until(&mut rare, 5000).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_slow_watcher_is_ended_and_never_blocks_others() {
    let setup = setup().await;
    let mut slow = setup.pods.watch(WatchStart::Now, everything(), 10).expect("starts");
    let mut others: Vec<_> = [everything(), in_namespace("ns")]
        .into_iter()
        .map(|scope| setup.pods.watch(WatchStart::Now, scope, 100_000).expect("starts"))
        .collect();
    for i in 0..1000 {
        setup.put("ns/a", "", &i.to_string());
    }
    for other in &mut others {
        assert_eq!(seen_until(other, 1000).await.len(), 1000);
    }
    assert_eq!(setup.pods.stats().watchers, 2, "it is already gone from the dispatcher");
    let (mut seen, mut events) = (0, Vec::new());
    let end = loop {
        if let Err(end) = slow.next(&mut events).await {
            break end;
        }
        for event in events.drain(..) {
            seen += 1;
            assert_eq!(event.revision(), seen, "what was queued comes first");
        }
    };
    assert_eq!(end, WatchEnd::SlowConsumer { resume_after: seen });
    assert_eq!(slow.next(&mut events).await, Err(end));
    let mut resumed = setup.pods.watch(WatchStart::After(seen), everything(), 10).expect("starts");
    assert_eq!(seen_until(&mut resumed, 1000).await.len() as u64, 1000 - seen);
    assert_eq!(setup.cache.metrics().slow_watchers.get(), 1);
    drop((slow, others, resumed));
    assert_eq!(setup.cache.metrics().watchers.get(), 0);
}

#[tokio::test]
async fn bytes_bound_a_queue_too_but_one_event_always_fits() {
    let setup = setup_with(CacheOptions { watch_bytes: 1000, ..CacheOptions::default() }).await;
    let large = "x".repeat(5000);
    let mut watcher = setup.pods.watch(WatchStart::Now, everything(), 1000).expect("starts");
    setup.reach(setup.put("ns/a", "", &large)).await;
    let mut events = Vec::new();
    watcher.next(&mut events).await.expect("one fits");
    setup.put("ns/a", "", &large);
    setup.reach(setup.put("ns/a", "", &large)).await;
    events.clear();
    watcher.next(&mut events).await.expect("one fits");
    assert_eq!(events.len(), 1);
    assert_eq!(watcher.next(&mut events).await, Err(WatchEnd::SlowConsumer { resume_after: 2 }));
}

#[tokio::test]
async fn ten_thousand_watchers_of_other_namespaces_cost_nothing() {
    let setup = setup().await;
    let start = |i: usize| setup.pods.watch(WatchStart::Now, in_namespace(&format!("ns{i}")), 100).expect("starts");
    let mut watchers: Vec<_> = (0..10_000).map(start).collect();
    let on_nodes: Vec<_> =
        (0..1000).map(|i| setup.pods.watch(WatchStart::Now, on_node(&format!("n{i}")), 100).expect("starts")).collect();
    for i in 0..50 {
        setup.put("ns77/a", "n5", &i.to_string());
    }
    assert_eq!(seen_until(&mut watchers[77], 50).await.len(), 50);
    assert_eq!(setup.cache.metrics().touches.get(), 100, "one namespace and one node per event");
    assert_eq!(setup.pods.stats().watchers, 11_000);
    drop((watchers, on_nodes));
    assert_eq!(setup.pods.stats().watchers, 0);
}

#[tokio::test]
async fn a_waiting_watcher_is_woken_and_a_cancelled_wait_loses_nothing() {
    let setup = setup().await;
    let mut watcher = setup.pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    let mut events = Vec::new();
    for i in 1..=20 {
        let waited = tokio::time::timeout(Duration::from_millis(1), watcher.next(&mut events)).await;
        assert!(waited.is_err() && events.is_empty());
        setup.put("ns/a", "", &i.to_string());
        watcher.next(&mut events).await.expect("comes");
        assert_eq!(events.drain(..).map(|event| event.revision()).collect::<Vec<_>>(), [i]);
    }
}

#[tokio::test]
async fn progress_goes_on_without_changes_and_never_past_what_is_queued() {
    let setup = setup().await;
    let mut watcher = setup.pods.watch(WatchStart::Now, in_namespace("ns"), 100).expect("starts");
    let other = setup.put("other/a", "", "");
    setup.reach(other).await;
    assert_eq!(watcher.progress(), other);
    setup.put("ns/a", "", "");
    setup.reach(setup.put("other/a", "", "2")).await;
    assert_eq!(watcher.progress(), other, "the change in the queue is not handed out yet");
    let mut events = Vec::new();
    watcher.next(&mut events).await.expect("comes");
    assert_eq!(watcher.progress(), 3);
}

#[tokio::test]
async fn dropping_the_resource_or_the_cache_ends_its_watches() {
    let setup = setup().await;
    let mut watcher = setup.pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    setup.cache.drop_resource(PODS);
    assert_eq!(watcher.next(&mut Vec::new()).await, Err(WatchEnd::Closed));
    assert_eq!(setup.pods.watch(WatchStart::Now, everything(), 10).err(), Some(CacheError::Closed));
    let pods = setup.cache.resource(PODS, Arc::new(PodAttributes));
    let mut watcher = pods.watch(WatchStart::Now, everything(), 100).expect("starts");
    drop(setup.cache);
    assert_eq!(watcher.next(&mut Vec::new()).await, Err(WatchEnd::Closed));
    assert_eq!(pods.any().expect("reads go on").len(), 0);
}

#[tokio::test]
async fn readers_of_attributes_may_be_replaced_while_watches_run() {
    let setup = setup().await;
    setup.reach(setup.put("ns/a", "n1", "x")).await;
    let entry = setup.pods.any().expect("served").find("ns", "a").expect("there").clone();
    assert_eq!(entry.attrs().field("spec.nodeName"), Some("n1"));
    let mut watcher = setup.pods.watch(WatchStart::Now, on_node(""), 10).expect("starts");
    setup.cache.resource(PODS, Arc::new(NoAttributes));
    assert_eq!(entry.attrs().field("spec.nodeName"), None);
    let end = setup.put("ns/a", "n2", "x");
    assert_eq!(seen_until(&mut watcher, end).await.len(), 1, "without the field all count as empty");
}
