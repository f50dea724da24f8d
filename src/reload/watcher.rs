//! File events to one coalescing trigger.
//!
//! Only folders are watched, never files: a watch on a file is deaf after the file was replaced. For every file that
//! matters, each folder on the way to it is watched for the one name that leads on, and so is the way to the target of
//! each symbolic link among them. So a write, a rename over it, a replaced link and a replaced folder are all noticed,
//! while other names in those folders are nobody's business. Which event it was does not matter, except that opening
//! and closing after reading are none: our own reads make those.
//!
//! Folders are watched by their real path: the kernel knows a folder once, under however many names. What happens
//! before a folder is watched would be missed, so a folder that is new asks for another look.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, ModifyKind},
};
use parking_lot::Mutex;
use tokio::{sync::mpsc, time::Instant};

use crate::options::{ValidatedOptions, WatchPaths};

/// Events that wait to be seen; one is as good as many.
const QUEUE: usize = 1;

/// Longest chain of symbolic links that is followed, as the kernel has it.
const MOST_LINKS: usize = 40;

/// The names in a folder that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Names {
    These(BTreeSet<OsString>),
    All,
}

impl Names {
    fn has(&self, name: &OsStr) -> bool {
        match self {
            Self::These(names) => names.contains(name),
            Self::All => true,
        }
    }
}

/// Real folders and what matters in them.
type Wanted = BTreeMap<PathBuf, Names>;

/// What the thread that gets the events knows and tells.
#[derive(Default)]
struct Seen {
    wanted: Wanted,
    /// Watched folders that were removed or renamed: their watches are gone, or watch something else.
    stale: BTreeSet<PathBuf>,
}

/// Changes that have been noticed and not been acted upon.
#[derive(Clone, Copy)]
struct Unrest {
    quiet: Instant,
    latest: Instant,
}

pub struct FileWatcher {
    /// `None` where the configuration or the kernel says no; SIGHUP, `kenter reload` and the poll are left.
    watcher: Option<RecommendedWatcher>,
    events: mpsc::Receiver<()>,
    seen: Arc<Mutex<Seen>>,
    /// Device and inode of what is watched: a folder that was replaced has the same name.
    watched: BTreeMap<PathBuf, (u64, u64)>,
    unrest: Option<Unrest>,
    debounce: Duration,
    longest: Duration,
    enabled: bool,
}

impl FileWatcher {
    pub fn new(options: &ValidatedOptions) -> Self {
        let (sender, events) = mpsc::channel(QUEUE);
        let seen = Arc::<Mutex<Seen>>::default();
        let handler = {
            let seen = seen.clone();
            move |event: notify::Result<Event>| {
                if matters(&mut seen.lock(), event) {
                    // Full means that somebody will look anyway.
                    let _ = sender.try_send(());
                }
            }
        };
        let watcher = notify::recommended_watcher(handler)
            .inspect_err(|error| tracing::warn!(%error, "files cannot be watched; changes are noticed by SIGHUP, `kenter reload` and the poll"))
            .ok();
        let mut this = Self {
            watcher,
            events,
            seen,
            watched: BTreeMap::new(),
            unrest: None,
            debounce: Duration::ZERO,
            longest: Duration::ZERO,
            enabled: false,
        };
        this.follow(options, None);
        this
    }

    /// Watches what these options were read from, and `also` what a failed reading looked at.
    pub fn follow(&mut self, options: &ValidatedOptions, also: Option<&WatchPaths>) {
        self.enabled = options.reload.watch;
        self.debounce = options.reload.debounce;
        self.longest = options.reload.debounce_max;
        let mut wanted = Wanted::new();
        for paths in std::iter::once(options.watch()).chain(also) {
            collect(paths, &mut wanted);
        }
        let Some(watcher) = &mut self.watcher else { return };
        let stale = {
            let mut seen = self.seen.lock();
            seen.wanted.clone_from(&wanted);
            std::mem::take(&mut seen.stale)
        };
        self.watched.retain(|folder, identity| {
            let keep =
                !stale.contains(folder) && wanted.contains_key(folder) && self::identity(folder) == Some(*identity);
            if !keep {
                // It may be gone from the disk, and its watch with it.
                let _ = watcher.unwatch(folder);
            }
            keep
        });
        let mut fresh = false;
        for folder in wanted.keys() {
            if self.watched.contains_key(folder) {
                continue;
            }
            let Some(identity) = identity(folder) else { continue };
            match watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(folder.clone(), identity);
                    fresh = true;
                }
                Err(error) => tracing::warn!(folder = %folder.display(), %error, "a folder cannot be watched"),
            }
        }
        if fresh {
            self.stir();
        }
    }

    /// Forgets what was noticed so far: everything is about to be read anyway.
    pub fn calm(&mut self) {
        self.unrest = None;
        while self.events.try_recv().is_ok() {}
    }

    fn stir(&mut self) {
        let now = Instant::now();
        let latest = self.unrest.map_or(now + self.longest, |unrest| unrest.latest);
        self.unrest = Some(Unrest { quiet: now + self.debounce, latest });
    }

    /// Waits for a change and then for quiet, at most the longest time. Nothing is lost where the waiting is given up.
    pub async fn settled(&mut self) {
        if !self.enabled {
            return std::future::pending().await;
        }
        loop {
            let event = match self.unrest {
                None => self.events.recv().await,
                Some(unrest) => {
                    match tokio::time::timeout_at(unrest.quiet.min(unrest.latest), self.events.recv()).await {
                        Ok(event) => event,
                        Err(_) => {
                            self.unrest = None;
                            return;
                        }
                    }
                }
            };
            match event {
                Some(()) => self.stir(),
                // No watcher, no events.
                None => match self.unrest {
                    Some(unrest) => tokio::time::sleep_until(unrest.quiet.min(unrest.latest)).await,
                    None => return std::future::pending().await,
                },
            }
        }
    }
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(folder).ok().map(|about| (about.dev(), about.ino()))
}

fn matters(seen: &mut Seen, event: notify::Result<Event>) -> bool {
    let Ok(event) = event else {
        // Events may have been lost.
        return true;
    };
    if event.need_rescan() {
        return true;
    }
    if matches!(
        event.kind,
        EventKind::Access(AccessKind::Open(_) | AccessKind::Read | AccessKind::Close(AccessMode::Read))
    ) {
        return false;
    }
    let replaced = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    let mut found = false;
    for path in &event.paths {
        if seen.wanted.contains_key(path) {
            found = true;
            if replaced {
                seen.stale.insert(path.clone());
            }
        }
        let names = path.parent().and_then(|folder| seen.wanted.get(folder));
        found |= path.file_name().zip(names).is_some_and(|(name, names)| names.has(name));
    }
    found
}

/// Every folder in which a change can change what the paths say.
fn collect(paths: &WatchPaths, wanted: &mut Wanted) {
    for file in &paths.files {
        way_to(file, wanted);
    }
    for folder in &paths.folders {
        way_to(folder, wanted);
        if let Ok(real) = folder.canonicalize() {
            wanted.insert(real, Names::All);
        }
    }
}

/// The folders on the way to `path`, and on the way to what each symbolic link among them points at.
fn way_to(path: &Path, wanted: &mut Wanted) {
    let mut at = path.to_owned();
    for _ in 0..MOST_LINKS {
        for step in at.ancestors() {
            let (Some(parent), Some(name)) = (step.parent(), step.file_name()) else { break };
            // What is missing is waited for in the nearest folder that is there.
            let Ok(real) = parent.canonicalize() else { continue };
            if let Names::These(names) = wanted.entry(real).or_insert_with(|| Names::These(BTreeSet::new())) {
                names.insert(name.to_owned());
            }
        }
        let Some(next) = first_link(&at) else { break };
        at = next;
    }
}

/// The path with its first symbolic link resolved by one step; `None` where there is none.
fn first_link(path: &Path) -> Option<PathBuf> {
    let mut so_far = PathBuf::new();
    let mut rest = path.components();
    while let Some(component) = rest.next() {
        so_far.push(component);
        if let Ok(target) = std::fs::read_link(&so_far) {
            let base = so_far.parent().unwrap_or(Path::new("/")).to_path_buf();
            return Some(base.join(target).join(rest.as_path()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn wanted(files: &[PathBuf], folders: &[PathBuf]) -> Wanted {
        let paths = WatchPaths { files: files.iter().cloned().collect(), folders: folders.iter().cloned().collect() };
        let mut wanted = Wanted::new();
        collect(&paths, &mut wanted);
        wanted
    }

    fn root() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        (dir, root)
    }

    #[test]
    fn every_name_on_the_way_through_links_is_watched() {
        let (_dir, root) = root();
        std::fs::create_dir(root.join("..v1")).unwrap();
        std::fs::write(root.join("..v1/token"), "x").unwrap();
        symlink("..v1", root.join("..data")).unwrap();
        symlink("..data/token", root.join("token")).unwrap();
        let got = wanted(&[root.join("token")], &[]);
        for name in ["token", "..data", "..v1"] {
            assert!(got[&root].has(OsStr::new(name)), "{name} is not watched: {got:?}");
        }
        assert!(got[&root.join("..v1")].has(OsStr::new("token")));
        assert!(got[root.parent().unwrap()].has(root.file_name().unwrap()));
        assert!(!got[&root].has(OsStr::new("another")));
    }

    #[test]
    fn a_folder_is_watched_once_under_its_real_name() {
        let (_dir, root) = root();
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real", root.join("link")).unwrap();
        let got = wanted(&[root.join("link/deep/file")], &[root.join("link/deep")]);
        assert!(got[&root].has(OsStr::new("link")) && got[&root].has(OsStr::new("real")));
        assert_eq!(got[&root.join("real/deep")], Names::All);
        assert!(!got.contains_key(&root.join("link/deep")));
    }

    #[test]
    fn a_missing_folder_is_waited_for_in_the_nearest_one() {
        let (_dir, root) = root();
        assert!(wanted(&[root.join("a/b/c.toml")], &[])[&root].has(OsStr::new("a")));
        assert!(wanted(&[], &[root.join("a/kenter.d")])[&root].has(OsStr::new("a")));
    }

    #[test]
    fn links_in_a_circle_end() {
        let (_dir, root) = root();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        assert!(wanted(&[root.join("a")], &[])[&root].has(OsStr::new("b")));
    }
}
