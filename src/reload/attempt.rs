//! One attempt, step by step.

use std::{sync::Arc, time::Duration};

use super::{
    Reloader,
    diff::{Class, Plan, diff},
    report::Report,
    window::Window,
};
use crate::{
    app,
    chain::{Generation, create_server_chain, shared::data_directory},
    options::{self, KeyPath, Problem, Problems, ValidatedOptions, completed::StorageBackend},
    pki::newcomer::Newcomer,
    server::listen::Bound,
};

/// Everything that was made aside and proved itself.
struct Candidate {
    generation: Arc<Generation>,
    own: Option<Newcomer>,
    bound: Bound,
}

impl Reloader {
    pub(super) async fn attempt(&mut self) -> Report {
        let begun = std::time::Instant::now();
        let old = self.generation.options.clone();
        let options = match self.read(old.reload.probe_timeout).await {
            Ok(options) => options,
            Err(problems) => return Report::failed(self.current.generation(), &old, problems.list),
        };
        self.watcher.follow(&options, None);
        let plan = diff(&old, &options);
        if options == old && !self.renewal_due() {
            return Report::unchanged(self.current.generation(), &old);
        }
        let candidate = match self.build(&options).await {
            Ok(candidate) => candidate,
            Err(problem) => return Report::failed(self.current.generation(), &old, vec![problem]),
        };
        if let Err(problem) = self.reopen(&plan, &old, &options).await {
            return Report::failed(self.current.generation(), &old, vec![problem]);
        }
        self.commit(candidate, plan.has(Class::Reopen));
        Report::applied(self.current.generation(), &options, &plan, begun.elapsed())
    }

    async fn read(&mut self, limit: Duration) -> Result<ValidatedOptions, Problems> {
        let invocation = self.invocation.clone();
        let reading = tokio::task::spawn_blocking(move || options::read(&invocation, &super::catalogue::catalogue()));
        let result = match tokio::time::timeout(limit, reading).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(trouble(&format!("reading the configuration failed: {panic}"))),
            Err(_) => Err(trouble(&format!("reading the configuration took longer than {}s; is a file a pipe or on a server that hangs?", limit.as_secs_f64()))),
        };
        if let Err(problems) = &result {
            // What is wrong may be mended in a file that was not looked at before.
            self.watcher.follow(&self.generation.options, Some(&problems.watch));
        }
        result
    }

    /// Whether a certificate that kenter made for itself has to be made anew.
    fn renewal_due(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.renew_at <= std::time::SystemTime::now())
    }

    /// Builds and probes; nothing of it serves yet.
    async fn build(&self, options: &ValidatedOptions) -> Result<Candidate, Problem> {
        let limit = options.reload.probe_timeout;
        let work = async {
            let failed = |key: &str| {
                let key = key.to_owned();
                move |reason: String| located(options, &key, reason)
            };
            let own = app::own_certificates(options).map_err(|error| failed("serving.tls_cert_file")(error.to_string()))?;
            let own_ca = own.as_ref().map(|own| own.authority_pem.as_str());
            let generation = create_server_chain(options, &self.shared, &self.current, own_ca)
                .map_err(|error| failed(error.key)(error.reason))?;
            let specs = app::listener_specs(options, own.as_ref()).map_err(|error| failed("serving.tls_cert_file")(error.to_string()))?;
            let bound = self
                .listeners
                .bind(specs, app::limits(options))
                .map_err(|error| failed("serving.secure_port")(error.to_string()))?;
            self.shared.storage.health().await.map_err(|error| failed("storage.path")(error.to_string()))?;
            Ok(Candidate { generation: Arc::new(generation), own, bound })
        };
        match tokio::time::timeout(limit, work).await {
            Ok(result) => result,
            Err(_) => Err(located(options, "reload.probe_timeout", format!("the new configuration did not prove itself within {}s", limit.as_secs_f64()))),
        }
    }

    /// Handles that cannot exist twice: done before the commit, since it may fail.
    async fn reopen(&self, plan: &Plan, old: &ValidatedOptions, new: &ValidatedOptions) -> Result<(), Problem> {
        let StorageBackend::Embedded(store) = &new.storage.backend;
        let StorageBackend::Embedded(before) = &old.storage.backend;
        let failed = |reason: String| located(new, "storage.path", reason);
        if plan.has(Class::Reopen) && store.path != before.path {
            let directory = data_directory(&store.path).to_owned();
            self.shared.embedded.relocate(directory).await.map_err(|error| failed(error.to_string()))?;
        }
        if store.reserve != before.reserve || new.storage.compaction_interval != old.storage.compaction_interval {
            let tuned = self.shared.embedded.tune(store.reserve, new.storage.compaction_interval).await;
            tuned.map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }

    /// One pointer. Cannot fail.
    fn commit(&mut self, candidate: Candidate, reopened: bool) {
        let Candidate { generation, own, bound } = candidate;
        // A newer commit ends the watching of the one before.
        if let Some(window) = self.window.take() {
            window.finish();
        }
        app::commit(&self.shared, &self.current, &generation);
        let handover = self.listeners.commit(bound);
        if let Err(error) = self.logs.apply(&generation.options.telemetry) {
            tracing::error!(%error, "the log filter could not be changed");
        }
        self.alive.retain(|stack| stack.strong_count() > 0);
        self.alive.push(Arc::downgrade(&generation.stack));
        self.controllers.apply(&generation.options);
        let observe = generation.options.reload.observe;
        let old = std::mem::replace(&mut self.generation, generation);
        let old_own = std::mem::replace(&mut self.own, own);
        self.watcher.follow(&self.generation.options, None);
        // A store that was moved is never moved back by itself.
        if reopened || observe.is_zero() {
            handover.finish();
        } else {
            self.window = Some(Window::new(old, old_own, handover, observe));
        }
    }

    /// Whether what serves now is well: its store answers and it answers itself.
    pub(super) async fn health(&self) -> Result<(), String> {
        let storage = self.shared.storage.health();
        match tokio::time::timeout(self.generation.options.reload.probe_timeout, storage).await {
            Ok(Ok(())) => {}
            // A store that fails is not the new configuration's fault and would not be mended by the old one.
            Ok(Err(_)) | Err(_) => return Ok(()),
        }
        let client = crate::chain::client::InProcess::new(self.current.clone(), "kenter/reload");
        use crate::controllers::ApiClient;
        client.call(::http::Method::GET, "/livez".to_owned(), None).await.map(drop).map_err(|error| error.message.clone())
    }
}

/// A problem with the place its option was set at.
fn located(options: &ValidatedOptions, key: &str, reason: String) -> Problem {
    let path = KeyPath::dotted(key);
    let origin = options.origin(&path);
    Problem::new(path, reason).at(origin)
}

fn trouble(reason: &str) -> Problems {
    let problem = Problem::new(KeyPath::dotted("config"), reason);
    Problems { list: vec![problem], warnings: Vec::new(), watch: Default::default() }
}
