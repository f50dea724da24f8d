//! Random writes against a plain model: whatever a watch began with, replaying it gives the list.

use std::collections::BTreeMap;

use super::*;

/// A small generator of numbers (xorshift), so that a failure can be repeated from its seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

type State = BTreeMap<String, Revision>;

fn state(snapshot: &Snapshot, scope: &WatchScope) -> State {
    let in_scope = snapshot.iter().filter(|entry| matches(entry, scope));
    in_scope.map(|entry| (entry.path().to_owned(), entry.mod_revision())).collect()
}

fn matches(entry: &Entry, scope: &WatchScope) -> bool {
    let field = |(field, value): &(Box<str>, Box<str>)| entry.attrs().field(field).unwrap_or_default() == &**value;
    scope.names(entry) && scope.index.as_ref().is_none_or(field)
}

struct Replay {
    watcher: Watcher,
    state: State,
    last: Revision,
}

impl Replay {
    fn take(&mut self, event: &WatchEvent) {
        assert!(event.revision() >= self.last, "in order");
        self.last = event.revision();
        let scope = self.scope();
        let path = event.subject().expect("an object").path().to_owned();
        match event.shown(|entry| matches(entry, &scope)).expect("only what is in the scope") {
            EventType::Added => assert_eq!(self.state.insert(path, event.revision()), None, "{event:?}"),
            EventType::Modified => {
                let before = self.state.insert(path, event.revision());
                assert_eq!(before, event.previous().map(|entry| entry.mod_revision()), "{event:?}");
            }
            EventType::Deleted => assert!(self.state.remove(&path).is_some(), "{event:?}"),
        }
    }

    fn scope(&self) -> WatchScope {
        self.watcher.scope().clone()
    }

    async fn reach(&mut self, revision: Revision) {
        let mut events = Vec::new();
        while self.watcher.progress() < revision {
            if let Ok(next) = tokio::time::timeout(Duration::from_millis(20), self.watcher.next(&mut events)).await {
                next.expect("not ended");
            }
            for event in events.drain(..) {
                self.take(&event);
            }
        }
    }
}

fn write(setup: &Setup, random: &mut Random) -> Revision {
    let path = format!("ns{}/p{}", random.below(3), random.below(8));
    match random.below(10) {
        0..=2 => setup.delete(&path),
        3 => setup.memory.put(&format!("/registry/secrets/{path}"), "{}"),
        _ => setup.put(&path, &format!("n{}", random.below(3)), &random.below(100).to_string()),
    }
}

fn scope(random: &mut Random) -> WatchScope {
    let mut scope = everything();
    if random.below(2) == 0 {
        scope.namespace = Some(format!("ns{}", random.below(3)).into());
    }
    if random.below(3) == 0 {
        scope.name = Some(format!("p{}", random.below(8)).into());
    }
    if random.below(2) == 0 {
        scope.index = Some(("spec.nodeName".into(), format!("n{}", random.below(3)).into()));
    }
    scope
}

/// A watch from a random revision that is kept, with the state the storage says there was.
fn start(setup: &Setup, random: &mut Random) -> Replay {
    let scope = scope(random);
    if random.below(2) == 0 {
        let (list, watcher) = setup.pods.list_and_watch(scope.clone(), 100_000).expect("starts");
        return Replay { state: state(&list, &scope), last: list.revision(), watcher };
    }
    let (watcher, list, revision) = loop {
        let floor = setup.pods.stats().ring_floor;
        let revision = floor + random.below(setup.pods.applied() - floor + 1);
        // Not where the feed was lost.
        let Some(list) = setup.pods.exact(revision) else { continue };
        let watcher = setup.pods.watch(WatchStart::After(revision), scope.clone(), 100_000).expect("starts");
        break (watcher, list, revision);
    };
    Replay { state: state(&list, &scope), last: revision, watcher }
}

async fn run(seed: u64, gaps: bool) {
    let setup = setup().await;
    let random = &mut Random(seed);
    let mut replays: Vec<Replay> = Vec::new();
    let mut newest = 0;
    for round in 0..30 {
        if gaps && round % 5 == 4 {
            setup.memory.set_down(true);
            setup.memory.break_feeds();
        }
        for _ in 0..random.below(60) {
            newest = write(&setup, random);
        }
        setup.memory.set_down(false);
        // Some watches begin while changes are still on their way.
        replays.extend((0..4).map(|_| start(&setup, random)));
    }
    let list = setup.pods.not_older_than(newest).await.expect("comes");
    let stored = setup.memory.list(PODS, "", 0, None).await.expect("stored").items;
    let stored: State = stored.iter().map(|row| (row.key[PODS.len()..].to_owned(), row.mod_revision)).collect();
    assert_eq!(state(&list, &everything()), stored, "seed {seed}");
    for replay in &mut replays {
        replay.reach(newest).await;
        assert_eq!(replay.watcher.end(), None);
        assert_eq!(replay.state, state(&list, &replay.scope()), "seed {seed}, {:?}", replay.watcher);
    }
}

#[tokio::test]
async fn a_list_equals_the_replay_of_any_watch() {
    for seed in 1..=20 {
        run(seed * 0x9E37_79B9, false).await;
    }
}

#[tokio::test]
async fn a_list_equals_the_replay_of_any_watch_across_lost_feeds() {
    for seed in 1..=20 {
        run(seed * 0x9E37_79B9, true).await;
    }
}
