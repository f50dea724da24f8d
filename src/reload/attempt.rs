//! One attempt, step by step.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;

use super::{
    Reloader, catalogue,
    diff::{Class, Plan, diff},
    report::Report,
    window::{Hands, Window, retire},
};
use crate::{
    app,
    chain::{Generation, Shared, client::InProcess, create_server_chain},
    controllers::ApiClient,
    options::{self, KeyPath, Problem, Problems, ValidatedOptions, completed::StorageBackend},
    pki::newcomer::Prepared,
    server::{
        current::Current,
        listen::{Bound, Listeners},
    },
};

/// Everything that was made aside and proved itself.
pub(super) struct Candidate {
    generation: Arc<Generation>,
    own: Option<Prepared>,
    bound: Bound,
    admin: Bound,
}

impl Reloader {
    /// `asked`: somebody waits for it, so that what was taken back before is tried again.
    pub(super) async fn attempt(&mut self, asked: bool) -> Report {
        let begun = Instant::now();
        self.watcher.calm();
        let old = self.running.generation.options.clone();
        let options = match self.read(old.reload.probe_timeout).await {
            Ok(options) => options,
            Err(problems) => return self.failed(problems.list),
        };
        self.watcher.follow(&old, Some(options.watch()));
        if options == old && !self.renewal_due() {
            self.rejected = None;
            return Report::unchanged(self.running.current.generation(), &old);
        }
        if !asked && self.rejected.as_ref() == Some(&options) {
            return self.last.clone();
        }
        self.announce();
        let plan = diff(&old, &options);
        let candidate = match self.build(&options).await {
            Ok(candidate) => candidate,
            Err(problem) => return self.failed(vec![problem]),
        };
        let moved = match self.reopen(&plan, &options).await {
            Ok(moved) => moved,
            Err(problem) => return self.failed(vec![problem]),
        };
        self.commit(candidate, moved);
        Report::applied(self.running.current.generation(), &options, &plan, begun.elapsed())
    }

    fn failed(&mut self, problems: Vec<Problem>) -> Report {
        self.announce();
        Report::failed(self.running.current.generation(), &self.running.generation.options, problems)
    }

    /// Reads and judges. A disk that hangs costs the time limit and one thread, whoever asks how often.
    async fn read(&mut self, limit: Duration) -> Result<ValidatedOptions, Problems> {
        let invocation = self.running.invocation.clone();
        let reading = move || options::read(&invocation, &catalogue::catalogue());
        let result = match within(&mut self.reading, limit, reading).await {
            Ok(result) => result,
            Err(Stuck::Panic(panic)) => Err(trouble(&format!("reading the configuration failed: {panic}"))),
            Err(Stuck::Late) => Err(hangs(limit)),
        };
        if let Err(problems) = &result {
            // What is wrong may be mended in a file that was not looked at before.
            self.watcher.follow(&self.running.generation.options, Some(&problems.watch));
        }
        result
    }

    /// Whether a certificate that kenter made for itself has to be made anew.
    fn renewal_due(&self) -> bool {
        self.running.own.as_ref().is_some_and(|own| own.renew_at <= std::time::SystemTime::now())
    }

    /// Builds and probes; nothing of it serves yet. Keys are made and files read on the way, so that this too happens
    /// on a thread of its own.
    async fn build(&mut self, options: &ValidatedOptions) -> Result<Candidate, Problem> {
        let limit = options.reload.probe_timeout;
        let begun = Instant::now();
        let late = || {
            let reason = format!("the new configuration did not prove itself within {}s", limit.as_secs_f64());
            located(options, "reload.probe_timeout", reason)
        };
        let building = {
            let workshop = Workshop {
                shared: self.running.shared.clone(),
                current: self.running.current.clone(),
                listeners: self.running.listeners.clone(),
                admin: self.running.admin.clone(),
            };
            let options = options.clone();
            move || workshop.build(&options)
        };
        let candidate = match within(&mut self.building, limit, building).await {
            Ok(result) => result.map_err(|problem| *problem)?,
            Err(Stuck::Late) => return Err(late()),
            Err(Stuck::Panic(panic)) => {
                let reason = format!("building the new configuration failed: {panic}");
                return Err(Problem::new(KeyPath::dotted("config"), reason));
            }
        };
        let rest = limit.saturating_sub(begun.elapsed());
        match tokio::time::timeout(rest, self.running.shared.storage.health()).await {
            Ok(Ok(())) => Ok(candidate),
            Ok(Err(error)) => Err(located(options, "storage.path", error.to_string())),
            Err(_) => Err(late()),
        }
    }

    /// Handles that cannot exist twice: done before the commit, since it may fail. The move is the last of it; says
    /// whether there was one.
    async fn reopen(&self, plan: &Plan, new: &ValidatedOptions) -> Result<bool, Problem> {
        self.tune(new).await?;
        let StorageBackend::Embedded(store) = &new.storage.backend;
        let embedded = &self.running.shared.embedded;
        if !plan.has(Class::Reopen) || embedded.directory() == store.path {
            return Ok(false);
        }
        let Err(error) = embedded.relocate(store.path.clone()).await else { return Ok(true) };
        if let Err(problem) = self.tune(&self.running.generation.options).await {
            tracing::error!(%problem, "the store could not be tuned back");
        }
        Err(located(new, "storage.path", error.to_string()))
    }

    /// What the store takes while it is open.
    pub(super) async fn tune(&self, options: &ValidatedOptions) -> Result<(), Problem> {
        let StorageBackend::Embedded(store) = &options.storage.backend;
        let tuned = self.running.shared.embedded.tune(store.reserve, options.storage.compaction_interval).await;
        tuned.map_err(|error| located(options, "storage.reserve", error.to_string()))
    }

    /// One pointer. Cannot fail.
    fn commit(&mut self, candidate: Candidate, moved: bool) {
        let Candidate { generation, own, bound, admin } = candidate;
        // A newer commit ends the watching of the one before.
        if let Some(window) = self.window.take() {
            window.finish();
        }
        let running = &mut self.running;
        app::commit(&running.shared, &running.current, &generation);
        let hands = Hands { listeners: running.listeners.commit(bound), admin: running.admin.commit(admin) };
        if let Err(error) = running.logs.apply(&generation.options.telemetry) {
            tracing::error!(%error, "the log filter could not be changed");
        }
        app::admin_link::point(&generation.options, Some(&running.generation.options));
        let observe = generation.options.reload.observe;
        let old = std::mem::replace(&mut running.generation, generation);
        let old_own = std::mem::replace(&mut running.own, own.and_then(written));
        running.controllers.apply(&running.generation.options, running.own.as_ref());
        self.watcher.follow(&running.generation.options, None);
        self.rejected = None;
        // A store that was moved is never moved back by itself.
        if moved || observe.is_zero() {
            hands.finish();
            retire(&old);
        } else {
            self.window = Some(Window::new(old, old_own, hands, observe));
        }
    }

    /// Whether what serves now is well: its store answers and it answers itself.
    pub(super) async fn health(&self) -> Result<(), String> {
        let limit = self.running.generation.options.reload.probe_timeout;
        match tokio::time::timeout(limit, self.running.shared.storage.health()).await {
            Ok(Ok(())) => {}
            // A store that fails is not the new configuration's fault and would not be mended by the old one.
            Ok(Err(_)) | Err(_) => return Ok(()),
        }
        // Neither are hooks that have not finished yet, and `/livez` fails until they have.
        if !self.running.shared.hooks.all_done() {
            return Ok(());
        }
        let client = InProcess::new(self.running.current.clone(), "kenter/reload");
        let answer = client.call(::http::Method::GET, "/livez".to_owned(), None);
        match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer.map(drop).map_err(|error| error.message.clone()),
            Err(_) => Err(format!("/livez did not answer within {}s", limit.as_secs_f64())),
        }
    }
}

/// What a candidate is made with.
struct Workshop {
    shared: Arc<Shared>,
    current: Current,
    listeners: Listeners,
    admin: Listeners,
}

impl Workshop {
    fn build(&self, options: &ValidatedOptions) -> Result<Candidate, Box<Problem>> {
        let failed = |key: &str| {
            let key = key.to_owned();
            move |reason: String| Box::new(located(options, &key, reason))
        };
        let own = app::own_certificates(options).map_err(|error| failed("serving.cert_dir")(error.to_string()))?;
        let made = own.as_ref().map(Prepared::newcomer);
        let own_ca = made.map(|own| own.authority_pem.as_str());
        let generation = create_server_chain(options, &self.shared, &self.current, own_ca)
            .map_err(|error| failed(error.key)(error.reason))?;
        let specs =
            app::listener_specs(options, made).map_err(|error| failed("serving.tls_cert_file")(error.to_string()))?;
        let bound = self
            .listeners
            .bind(specs, app::limits(options))
            .map_err(|error| failed("serving.secure_port")(error.to_string()))?;
        let admin =
            app::bind_admin(&self.admin, options).map_err(|error| failed("state.admin_socket")(error.to_string()))?;
        Ok(Candidate { generation: Arc::new(generation), own, bound, admin })
    }
}

/// Why work on a thread of its own has no result.
enum Stuck {
    Late,
    Panic(String),
}

/// Does `work` on a thread of its own and waits that long for it. Work that takes longer goes on and keeps its `place`:
/// nothing else begins before it has ended, so that a disk that hangs costs one thread, whoever asks how often.
async fn within<T: Send + 'static>(
    place: &mut Option<JoinHandle<T>>,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stuck> {
    if let Some(before) = place {
        if tokio::time::timeout(limit, before).await.is_err() {
            return Err(Stuck::Late);
        }
        *place = None;
    }
    let mut working = tokio::task::spawn_blocking(work);
    match tokio::time::timeout(limit, &mut working).await {
        Ok(result) => result.map_err(|panic| Stuck::Panic(panic.to_string())),
        Err(_) => {
            *place = Some(working);
            Err(Stuck::Late)
        }
    }
}

/// Writes what was made for ourselves. It serves from memory already, so a disk that refuses it is told and no more.
fn written(prepared: Prepared) -> Option<crate::pki::newcomer::Newcomer> {
    let newcomer = prepared.newcomer().clone();
    Some(prepared.write().unwrap_or_else(|error| {
        tracing::error!(%error, "self-made certificates could not be written");
        newcomer
    }))
}

/// A problem with the place its option was set at.
fn located(options: &ValidatedOptions, key: &str, reason: String) -> Problem {
    let path = KeyPath::dotted(key);
    let origin = options.origin(&path);
    Problem::new(path, reason).at(origin)
}

fn hangs(limit: Duration) -> Problems {
    let limit = limit.as_secs_f64();
    trouble(&format!("reading the configuration took longer than {limit}s; is a file on a server that hangs?"))
}

fn trouble(reason: &str) -> Problems {
    let problem = Problem::new(KeyPath::dotted("config"), reason);
    Problems { list: vec![problem], warnings: Vec::new(), watch: Default::default() }
}
