//! File events to one coalescing trigger.
//!
//! Only folders are watched, never files: a watch on a file is deaf after the file was replaced. For every file that
//! matters its folder is watched, and so is the folder of each symbolic link on the way to it and the parent of each
//! of those folders, to notice when one is replaced. Which event it was does not matter, except that opening and
//! closing after reading are none: our own reads make those.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};
use tokio::{sync::mpsc, time::Instant};

use crate::options::{ValidatedOptions, WatchPaths};

/// Events that wait to be seen; one is as good as many.
const QUEUE: usize = 1;

/// Longest chain of symbolic links that is followed, as the kernel has it.
const MOST_LINKS: usize = 40;

pub struct FileWatcher {
    /// `None` where the configuration or the kernel says no; SIGHUP, `kenter reload` and the poll are left.
    watcher: Option<RecommendedWatcher>,
    events: mpsc::Receiver<()>,
    watched: BTreeSet<PathBuf>,
    debounce: Duration,
    longest: Duration,
    enabled: bool,
}

impl FileWatcher {
    pub fn new(options: &ValidatedOptions) -> Self {
        let (sender, events) = mpsc::channel(QUEUE);
        let handler = move |event: notify::Result<Event>| {
            if event.as_ref().map_or(true, matters) {
                // Full means that somebody will look anyway.
                let _ = sender.try_send(());
            }
        };
        let watcher = notify::recommended_watcher(handler)
            .inspect_err(|error| tracing::warn!(%error, "files cannot be watched; changes are noticed by SIGHUP, `kenter reload` and the poll"))
            .ok();
        let mut this = Self {
            watcher,
            events,
            watched: BTreeSet::new(),
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
        let mut wanted = folders(options.watch());
        if let Some(also) = also {
            wanted.extend(folders(also));
        }
        let Some(watcher) = &mut self.watcher else { return };
        for gone in self.watched.difference(&wanted).cloned().collect::<Vec<_>>() {
            // It may be gone from the disk, and its watch with it.
            let _ = watcher.unwatch(&gone);
            self.watched.remove(&gone);
        }
        for folder in wanted {
            // A replaced folder has the same name and another inode, so watches are made anew each time.
            if self.watched.contains(&folder) {
                let _ = watcher.unwatch(&folder);
            }
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(folder);
                }
                Err(_) => {
                    self.watched.remove(&folder);
                }
            }
        }
    }

    /// Waits for a change and then for quiet, at most the longest time.
    pub async fn settled(&mut self) {
        if !self.enabled {
            return std::future::pending().await;
        }
        if self.events.recv().await.is_none() {
            return std::future::pending().await;
        }
        let latest = Instant::now() + self.longest;
        loop {
            let quiet = (Instant::now() + self.debounce).min(latest);
            match tokio::time::timeout_at(quiet, self.events.recv()).await {
                Ok(Some(())) if Instant::now() < latest => {}
                _ => return,
            }
        }
    }
}

fn matters(event: &Event) -> bool {
    let read_only = matches!(
        event.kind,
        EventKind::Access(AccessKind::Open(_) | AccessKind::Read | AccessKind::Close(AccessMode::Read))
    );
    event.need_rescan() || !read_only
}

/// Every folder in which a change can change what the paths say.
fn folders(paths: &WatchPaths) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    for folder in &paths.folders {
        add(&mut folders, folder);
    }
    for file in &paths.files {
        let mut at = file.clone();
        for _ in 0..MOST_LINKS {
            let Some(parent) = at.parent() else { break };
            add(&mut folders, parent);
            // Links in the folders on the way count too: a mounted ConfigMap is a file link through a folder link.
            let Some(next) = first_link(&at) else { break };
            at = next;
        }
    }
    folders
}

/// The path with its first symbolic link resolved by one step; also where the link stands is watched by the caller's
/// next round, since the part before it is kept.
fn first_link(path: &Path) -> Option<PathBuf> {
    let mut so_far = PathBuf::new();
    let mut rest = path.components();
    while let Some(component) = rest.next() {
        so_far.push(component);
        if let Ok(target) = std::fs::read_link(&so_far) {
            let base = so_far.parent().unwrap_or(Path::new("/")).to_path_buf();
            let resolved = base.join(target).join(rest.as_path());
            return Some(resolved);
        }
    }
    None
}

/// A folder and its parent, as far as they exist; a folder that is missing is waited for in the nearest one that is.
fn add(folders: &mut BTreeSet<PathBuf>, folder: &Path) {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let existing = folder.ancestors().find(|it| it.is_dir()).unwrap_or(Path::new("/"));
    folders.insert(existing.to_owned());
    if let Some(parent) = existing.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        folders.insert(parent.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_every_link_on_the_way_are_watched() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("..v1")).unwrap();
        std::fs::write(root.join("..v1/token"), "x").unwrap();
        std::os::unix::fs::symlink("..v1", root.join("..data")).unwrap();
        std::os::unix::fs::symlink("..data/token", root.join("token")).unwrap();
        let paths = WatchPaths { files: [root.join("token")].into(), folders: BTreeSet::new() };
        let got = folders(&paths);
        for wanted in [root.clone(), root.join("..v1"), root.parent().unwrap().to_owned()] {
            assert!(got.contains(&wanted), "{} is not watched: {got:?}", wanted.display());
        }
    }

    #[test]
    fn a_missing_folder_is_waited_for_in_the_nearest_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let paths = WatchPaths { files: [root.join("a/b/c.toml")].into(), folders: BTreeSet::new() };
        assert!(folders(&paths).contains(&root));
    }
}
