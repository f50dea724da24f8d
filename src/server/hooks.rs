//! Post-start hooks: named work that begins once the server listens; readiness waits for each
//! (apiserver `pkg/server/hooks.go`).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::health::Check;

/// One hook's state, shared by its check and whoever runs it.
struct Hook {
    name: &'static str,
    done: AtomicBool,
}

/// The hooks of the process in upstream's order. They run once, whatever is reloaded later.
#[derive(Default)]
pub struct Hooks(Mutex<Vec<Arc<Hook>>>);

/// Ends with an error only where the server is of no use without the hook's work; the process then ends.
pub type HookResult = Result<(), String>;

impl Hooks {
    /// Makes the hook known, so that readiness waits for it. Call in upstream's order, before anything serves.
    pub fn register(&self, name: &'static str) {
        self.0.lock().push(Arc::new(Hook { name, done: AtomicBool::new(false) }));
    }

    /// Runs a registered hook's work; its check passes when the work is done.
    pub fn run(self: &Arc<Self>, name: &'static str, work: BoxFuture<'static, HookResult>) -> tokio::task::JoinHandle<HookResult> {
        let hook = self.0.lock().iter().find(|hook| hook.name == name).cloned();
        tokio::spawn(async move {
            let result = work.await;
            match (&result, hook) {
                (Ok(()), Some(hook)) => hook.done.store(true, Ordering::Release),
                (Ok(()), None) => tracing::error!(name, "a hook ran that nobody registered"),
                (Err(cause), _) => tracing::error!(name, cause, "post-start hook failed"),
            }
            result
        })
    }

    /// Marks hooks whose work is part of what is done before anything serves.
    pub fn finish(&self, name: &'static str) {
        if let Some(hook) = self.0.lock().iter().find(|hook| hook.name == name) {
            hook.done.store(true, Ordering::Release);
        }
    }

    pub fn all_done(&self) -> bool {
        self.0.lock().iter().all(|hook| hook.done.load(Ordering::Acquire))
    }

    /// One check a hook, in the order of registration.
    pub fn checks(&self) -> Vec<Check> {
        let check = |hook: &Arc<Hook>| {
            let hook = hook.clone();
            Check::immediate(format!("poststarthook/{}", hook.name), move || {
                if hook.done.load(Ordering::Acquire) { Ok(()) } else { Err("not finished".to_owned()) }
            })
        };
        self.0.lock().iter().map(check).collect()
    }
}
