//! Post-start hooks: named work that begins once the server listens; readiness waits for each
//! (apiserver `pkg/server/hooks.go`).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::health::Check;

/// One hook's state, shared by its check and whoever runs it.
struct Hook {
    name: &'static str,
    done: AtomicBool,
}

/// The hooks of the process in upstream's order. They run once, whatever is reloaded later.
#[derive(Default)]
pub struct Hooks {
    entries: Mutex<Vec<Entry>>,
    /// Counts hooks that have ended well.
    done: watch::Sender<usize>,
}

enum Entry {
    Hook(Arc<Hook>),
    /// A check that stands among those of the hooks.
    Check(Check),
}

/// Ends with an error only where the server is of no use without the hook's work; the process then ends.
pub type HookResult = Result<(), String>;

impl Hooks {
    /// Makes the hook known, so that readiness waits for it. Call in upstream's order, before anything serves.
    pub fn register(&self, name: &'static str) {
        self.entries.lock().push(Entry::Hook(Arc::new(Hook { name, done: AtomicBool::new(false) })));
    }

    /// Adds a check after the hooks that are registered by now.
    pub fn register_check(&self, check: Check) {
        self.entries.lock().push(Entry::Check(check));
    }

    fn find(&self, name: &str) -> Option<Arc<Hook>> {
        self.hooks().into_iter().find(|hook| hook.name == name)
    }

    fn hooks(&self) -> Vec<Arc<Hook>> {
        let entries = self.entries.lock();
        let hook = |entry: &Entry| if let Entry::Hook(hook) = entry { Some(hook.clone()) } else { None };
        entries.iter().filter_map(hook).collect()
    }

    fn mark(&self, hook: &Hook) {
        hook.done.store(true, Ordering::Release);
        self.done.send_modify(|count| *count += 1);
    }

    /// Runs a registered hook's work; its check passes when the work is done.
    pub fn run(
        self: &Arc<Self>,
        name: &'static str,
        work: BoxFuture<'static, HookResult>,
    ) -> tokio::task::JoinHandle<HookResult> {
        let (hook, this) = (self.find(name), self.clone());
        tokio::spawn(async move {
            let result = work.await;
            match (&result, hook) {
                (Ok(()), Some(hook)) => this.mark(&hook),
                (Ok(()), None) => tracing::error!(name, "a hook ran that nobody registered"),
                (Err(cause), _) => tracing::error!(name, cause, "post-start hook failed"),
            }
            result
        })
    }

    /// Marks hooks whose work is part of what is done before anything serves.
    pub fn finish(&self, name: &'static str) {
        if let Some(hook) = self.find(name) {
            self.mark(&hook);
        }
    }

    pub fn all_done(&self) -> bool {
        self.hooks().iter().all(|hook| hook.done.load(Ordering::Acquire))
    }

    /// Ends when all hooks have ended well.
    pub async fn wait_all(&self) {
        let mut done = self.done.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        while !self.all_done() && done.changed().await.is_ok() {}
    }

    /// One check a hook, and those that stand among them, in the order of registration.
    pub fn checks(&self) -> Vec<Check> {
        let check = |entry: &Entry| match entry {
            Entry::Check(check) => check.clone(),
            Entry::Hook(hook) => {
                let hook = hook.clone();
                Check::immediate(format!("poststarthook/{}", hook.name), move || {
                    if hook.done.load(Ordering::Acquire) { Ok(()) } else { Err("not finished".to_owned()) }
                })
            }
        };
        self.entries.lock().iter().map(check).collect()
    }
}
