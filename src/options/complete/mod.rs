//! Fills in defaults and derived values: from what was written to what it means. A plain function of values; files
//! were read before. Every default is put back into the raw options too, so that what is shown to an operator, and
//! hashed, is the whole configuration in the words of its file.

mod access;
mod network;
mod serving;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

pub use network::port_range;

use super::{
    catalogue::Catalogue,
    completed::{
        CaBundle, CertPair, Controllers, EmbeddedStore, Features, LogFormat, Reload, Sections, State, Storage,
        StorageBackend, Telemetry,
    },
    gates,
    invocation::Invocation,
    load::{ServerRunOptions, WatchPaths},
    problem::{KeyPath, Origin, Problem, Warning, nearest},
    raw::{self, RawOptions},
    types::{ByteSize, FilePath, GoDuration, OwnPath, SecretBytes},
};
use crate::{api::duration::format_duration, pki};

/// Options in which nothing is undecided. `validate()` is the way on.
#[derive(Clone, Debug)]
pub struct CompletedOptions {
    pub(super) sections: Sections,
    /// The same in the words of the file, defaults included.
    pub(super) raw: RawOptions,
    pub(super) origins: BTreeMap<KeyPath, Origin>,
    pub(super) files: BTreeMap<PathBuf, Arc<[u8]>>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Warning>,
    pub(super) watch: WatchPaths,
}

impl ServerRunOptions {
    /// Puts in what was left out. What cannot be understood becomes a problem and takes its default, so that the
    /// rest is still looked at.
    pub fn complete(self, catalogue: &Catalogue) -> CompletedOptions {
        let Self { invocation, mut raw, origins, shown, files, problems, warnings, watch } = self;
        let mut c = Completer { invocation: &invocation, catalogue, origins, shown, files, problems, warnings };
        let state = c.state(&mut raw.state);
        let features = c.features(&mut raw.features);
        let storage = c.storage(&mut raw.storage, &state);
        let serving = c.serving(&mut raw.serving, &mut raw.insecure_serving, &state);
        let authorization = c.authorization(&mut raw.authorization);
        let authentication = c.authentication(&mut raw.authentication, &authorization, &features);
        let admission = c.admission(&mut raw.admission);
        let api = c.api(&mut raw.api);
        let network = c.network(&mut raw.network, &serving);
        let controllers = c.controllers(&mut raw.controllers);
        let telemetry = c.telemetry(&mut raw.telemetry);
        let reload = c.reload(&mut raw.reload);
        let sections = Sections {
            state,
            serving,
            storage,
            authentication,
            authorization,
            admission,
            api,
            network,
            telemetry,
            reload,
            features,
            controllers,
        };
        let Completer { origins, files, problems, warnings, .. } = c;
        CompletedOptions { sections, raw, origins, files, problems, warnings, watch }
    }
}

impl CompletedOptions {
    /// The sections before they are validated, for who must go on with a configuration that is wrong elsewhere.
    pub fn sections(&self) -> &Sections {
        &self.sections
    }
}

struct Completer<'a> {
    invocation: &'a Invocation,
    catalogue: &'a Catalogue,
    origins: BTreeMap<KeyPath, Origin>,
    shown: BTreeMap<KeyPath, String>,
    files: BTreeMap<PathBuf, Arc<[u8]>>,
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
}

/// The bounds of a duration that is kenter's own.
struct Span(Duration, Duration);

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
const fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
const HOUR: Duration = secs(3600);

impl Completer<'_> {
    fn problem(&mut self, key: &str, reason: impl Into<String>) {
        let problem = self.problem_about(key, reason);
        self.problems.push(problem);
    }

    fn problem_about(&self, key: &str, reason: impl Into<String>) -> Problem {
        let key = KeyPath::dotted(key);
        let origin = self.origins.get(&key).cloned().unwrap_or_default();
        let problem = Problem::new(key, reason).at(origin);
        match self.shown.get(&problem.key) {
            Some(value) => problem.value(value),
            None => problem,
        }
    }

    /// A problem whose reason does not say what would be taken: its documentation does.
    fn misfit(&mut self, key: &str, reason: impl Into<String>) {
        let mut problem = self.problem_about(key, reason);
        problem.hint = accepted(key);
        self.problems.push(problem);
    }

    /// A problem with one entry of a list.
    fn entry_problem(&mut self, key: &str, entry: (usize, &str), reason: impl Into<String>) {
        self.entry_misfit(key, entry, reason, None);
    }

    /// The same, with what would be right.
    fn entry_misfit(
        &mut self,
        key: &str,
        (index, entry): (usize, &str),
        reason: impl Into<String>,
        hint: Option<String>,
    ) {
        let list = KeyPath::dotted(key);
        let path = list.child(&index.to_string());
        let origin = self.origins.get(&path).or_else(|| self.origins.get(&list)).cloned().unwrap_or_default();
        let problem = Problem::new(path, reason).at(origin).value(format!("{entry:?}"));
        self.problems.push(Problem { hint, ..problem });
    }

    fn warn(&mut self, key: &str, text: impl Into<String>) {
        let key = KeyPath::dotted(key);
        let origin = self.origins.get(&key).cloned().unwrap_or_default();
        self.warnings.push(Warning { key, origin, text: text.into() });
    }

    /// A duration with upstream's own words for a negative one.
    fn duration(&mut self, key: &str, slot: &mut Option<GoDuration>, default: Duration, negative: &str) -> Duration {
        match u64::try_from(slot.get_or_insert(default.into()).0) {
            Ok(nanos) => Duration::from_nanos(nanos),
            Err(_) => {
                self.problem(key, negative);
                default
            }
        }
    }

    /// A duration of kenter's own, within bounds.
    fn span(&mut self, key: &str, slot: &mut Option<GoDuration>, default: Duration, bounds: Span) -> Duration {
        let Span(low, high) = bounds;
        let value = slot.get_or_insert(default.into()).0;
        match u64::try_from(value).map(Duration::from_nanos) {
            Ok(value) if (low..=high).contains(&value) => value,
            _ => {
                let text = |duration: Duration| format_duration(GoDuration::from(duration).0);
                self.problem(key, format!("must be between {} and {}", text(low), text(high)));
                default
            }
        }
    }

    fn size(&mut self, key: &str, slot: &mut Option<ByteSize>, default: u64, low: u64, high: u64) -> u64 {
        let value = slot.get_or_insert(ByteSize(default)).0;
        if (low..=high).contains(&value) {
            return value;
        }
        self.problem(key, format!("must be between {} and {}", ByteSize(low), ByteSize(high)));
        default
    }

    /// The contents of a referenced file; `None` where reading it already was a problem.
    fn contents(&self, file: &FilePath) -> Option<Arc<[u8]>> {
        self.files.get(&file.0).cloned()
    }

    /// A certificate with its key; both or none must be named. `what` is upstream's name of the pair.
    fn cert_pair(
        &mut self,
        (cert_key, cert): (&str, &Option<FilePath>),
        (key_key, key): (&str, &Option<FilePath>),
        what: &str,
    ) -> Option<CertPair> {
        match (cert, key) {
            (None, None) => None,
            (Some(cert), Some(key)) => self.read_pair(cert_key, cert, key),
            (Some(_), None) => {
                self.problem(cert_key, format!("missing filename for {what} key"));
                None
            }
            (None, Some(_)) => {
                self.problem(key_key, format!("missing filename for {what} cert"));
                None
            }
        }
    }

    fn read_pair(&mut self, key: &str, cert: &FilePath, private: &FilePath) -> Option<CertPair> {
        let (cert_pem, key_pem) = (self.contents(cert)?, self.contents(private)?);
        match pki::check_pair(&cert_pem, &key_pem) {
            Ok(pair) => Some(CertPair {
                cert_file: cert.0.clone(),
                key_file: private.0.clone(),
                cert_pem,
                key_pem: SecretBytes::new(key_pem),
                chain: pair.cert.clone(),
            }),
            Err(error) => {
                let problem =
                    self.problem_about(key, format!("{}, {}: {error}", cert.0.display(), private.0.display()));
                self.problems.push(problem);
                None
            }
        }
    }

    fn ca_bundle(&mut self, key: &str, file: &Option<FilePath>) -> Option<CaBundle> {
        let file = file.as_ref()?;
        let pem = self.contents(file)?;
        match pki::pair::read_certificates(&pem) {
            Ok(certificates) => Some(CaBundle { file: file.0.clone(), pem, certificates }),
            Err(error) => {
                self.problem(key, format!("{}: {error}", file.0.display()));
                None
            }
        }
    }

    fn state(&mut self, raw: &mut raw::State) -> State {
        let dir = own(&mut raw.dir, || {
            let home = |variable: &str, below: &str| {
                let home = self.invocation.environment.get(variable).filter(|home| !home.is_empty())?;
                Some(self.invocation.directory.join(home).join(below))
            };
            self.invocation
                .directory_of("STATE_DIRECTORY")
                .or_else(|| self.invocation.root.then(|| PathBuf::from("/var/lib/kenter")))
                .or_else(|| home("XDG_STATE_HOME", "kenter"))
                .or_else(|| home("HOME", ".local/state/kenter"))
                .unwrap_or_else(|| self.invocation.directory.join("kenter-state"))
        });
        let kubeconfig = own(&mut raw.kubeconfig, || dir.join("admin.conf"));
        let runtime = self.invocation.directory_of("RUNTIME_DIRECTORY");
        let admin_socket = own(&mut raw.admin_socket, || runtime.as_deref().unwrap_or(&dir).join("admin.sock"));
        // sun_path holds 108 bytes with its end.
        if admin_socket.as_os_str().len() > 107 {
            self.problem("state.admin_socket", format!("{}: longer than 107 bytes", admin_socket.display()));
        }
        State { dir, kubeconfig, admin_socket }
    }

    fn storage(&mut self, raw: &mut raw::Storage, state: &State) -> Storage {
        let path = own(&mut raw.path, || state.dir.clone());
        let reserve = self.size("storage.reserve", &mut raw.reserve, 32 << 20, 0, 1 << 30);
        let compaction = &mut raw.etcd_compaction_interval;
        let negative = "--etcd-compaction-interval can not be negative value";
        let compaction_interval = self.duration("storage.etcd_compaction_interval", compaction, secs(300), negative);
        let initialization_timeout = self.duration(
            "storage.storage_initialization_timeout",
            &mut raw.storage_initialization_timeout,
            secs(60),
            "--storage-initialization-timeout can not be negative value",
        );
        let backend = StorageBackend::Embedded(EmbeddedStore { path, reserve });
        Storage { backend, compaction_interval, initialization_timeout }
    }

    fn features(&mut self, raw: &mut raw::Features) -> Features {
        let outcome = gates::resolve(raw.feature_gates.get_or_insert_default());
        let key = |gate: &str| KeyPath(vec!["features".into(), "feature_gates".into(), gate.into()]);
        for (gate, text) in outcome.errors {
            let origin = self.origins.get(&key(&gate)).cloned().unwrap_or_default();
            let near = nearest(&gate, gates::names().filter(|name| *name != gate));
            let hint = near.map(|near| format!("did you mean {near}?")).filter(|_| text.starts_with("unrecognized"));
            self.problems.push(Problem { hint, ..Problem::new(key(&gate), text).at(origin) });
        }
        for gate in outcome.without_effect {
            let origin = self.origins.get(&key(&gate)).cloned().unwrap_or_default();
            let text = format!("feature gate {gate} changes nothing in kenter yet");
            self.warnings.push(Warning { key: key(&gate), origin, text });
        }
        Features { gates: outcome.gates }
    }

    /// kube-controller-manager's reading: "-name" takes away, "name" adds, "*" adds the default ones.
    fn controllers(&mut self, raw: &mut raw::Controllers) -> Controllers {
        let words = raw.controllers.get_or_insert_with(|| vec!["*".to_owned()]).clone();
        let mut enabled = BTreeSet::new();
        if words.iter().any(|word| word == "*") {
            enabled = self.default_controllers();
        }
        for word in words.iter().filter(|word| *word != "*") {
            let (name, on) = word.strip_prefix('-').map_or((word.as_str(), true), |name| (name, false));
            if !self.catalogue.controllers.iter().any(|known| known.name == name) {
                let reason = format!("{name:?} is not in the list of known controllers");
                let mut problem = self.problem_about("controllers.controllers", reason);
                problem.hint = known_names(name, self.catalogue.controllers.iter().map(|known| known.name.as_str()));
                self.problems.push(problem);
            } else if on {
                enabled.insert(name.to_owned());
            } else {
                enabled.remove(name);
            }
        }
        Controllers { enabled }
    }

    fn default_controllers(&self) -> BTreeSet<String> {
        let default = self.catalogue.controllers.iter().filter(|known| known.on_by_default);
        default.map(|known| known.name.clone()).collect()
    }

    fn telemetry(&mut self, raw: &mut raw::Telemetry) -> Telemetry {
        let format = match raw.logging_format.get_or_insert_with(|| "text".to_owned()).as_str() {
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            other => {
                let reason = format!("format: Invalid value: {other:?}: Unsupported log format");
                self.misfit("telemetry.logging_format", reason);
                LogFormat::Text
            }
        };
        let verbosity = u8::try_from(*raw.v.get_or_insert(0)).ok().filter(|v| *v <= 10).unwrap_or_else(|| {
            self.problem("telemetry.v", "must be between 0 and 10");
            0
        });
        if let Some(filter) = &raw.log_filter
            && let Err(error) = tracing_subscriber::EnvFilter::try_new(filter)
        {
            let problem = self.problem_about("telemetry.log_filter", error.to_string());
            self.problems.push(problem.hint("a level, or target=level pairs: \"info,kenter::storage=debug\""));
        }
        Telemetry {
            format,
            verbosity,
            filter: raw.log_filter.clone(),
            access_log: *raw.access_log.get_or_insert(false),
            profiling: *raw.profiling.get_or_insert(true),
        }
    }

    fn reload(&mut self, raw: &mut raw::Reload) -> Reload {
        let debounce = self.span("reload.debounce", &mut raw.debounce, millis(50), Span(Duration::ZERO, secs(60)));
        let longest = self.span("reload.debounce_max", &mut raw.debounce_max, millis(500), Span(debounce, secs(600)));
        let poll_interval =
            self.span("reload.poll_interval", &mut raw.poll_interval, secs(30), Span(Duration::ZERO, 24 * HOUR));
        if !poll_interval.is_zero() && poll_interval < secs(1) {
            self.problem("reload.poll_interval", "must be 0s or between 1s and 24h0m0s");
        }
        Reload {
            watch: *raw.watch.get_or_insert(true),
            debounce,
            debounce_max: longest,
            poll_interval,
            probe_timeout: self.span(
                "reload.probe_timeout",
                &mut raw.probe_timeout,
                secs(10),
                Span(millis(100), secs(600)),
            ),
            observe: self.span("reload.observe", &mut raw.observe, secs(5), Span(Duration::ZERO, secs(600))),
            grace: self.span("reload.grace", &mut raw.grace, secs(60), Span(Duration::ZERO, HOUR)),
        }
    }
}

/// What the option of that key takes, as its documentation says.
fn accepted(key: &str) -> Option<String> {
    super::schema::range(key).map(|range| format!("accepted: {range}"))
}

/// The name that was probably meant, or else all there are.
fn known_names<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    Some(match nearest(name, known.clone()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("known: {}", known.collect::<Vec<_>>().join(", ")),
    })
}

/// A path of kenter's own, put back into the raw options where it was not written.
fn own(slot: &mut Option<OwnPath>, default: impl FnOnce() -> PathBuf) -> PathBuf {
    slot.get_or_insert_with(|| OwnPath(default())).0.clone()
}

/// Whether two paths are the same once `.` is taken out; links are not followed.
fn same_path(a: &Path, b: &Path) -> bool {
    a.components().eq(b.components())
}
