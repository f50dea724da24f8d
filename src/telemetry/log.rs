//! The log: tracing events on stderr, as text, JSON, or lines that journald understands. What is shown and how can be
//! changed while running.

use std::{fmt, io::IsTerminal, os::fd::AsFd, time::Duration};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{DefaultFields, Format, JsonFields, Writer},
        time::{FormatTime, SystemTime},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    reload,
};

use crate::options::completed::{LogFormat, Telemetry};

/// Where access lines go: `tracing` target, so that a filter can name them.
pub const ACCESS: &str = "kenter::access";

type Output = Box<dyn Layer<Registry> + Send + Sync>;

/// The way to change the log of the process.
#[derive(Clone)]
pub struct LogHandle {
    filter: reload::Handle<EnvFilter, reload_stack::Formatted>,
    output: reload::Handle<Output, Registry>,
}

/// The subscriber as it is below the filter.
mod reload_stack {
    use tracing_subscriber::{Registry, layer::Layered, reload};
    pub type Formatted = Layered<reload::Layer<super::Output, Registry>, Registry>;
}

/// What the log was last told to be, and how to tell it.
static PROCESS: parking_lot::Mutex<Option<(LogHandle, Telemetry)>> = parking_lot::Mutex::new(None);

/// Logs as much as this klog verbosity says, instead of what the configuration says, until that is applied anew.
///
/// # Errors
/// Where the process has no log to change.
pub fn set_verbosity(verbosity: u8) -> Result<(), FilterError> {
    let process = PROCESS.lock();
    let Some((handle, options)) = &*process else { return Err(FilterError("there is no log".to_owned())) };
    let filter = filter(&Telemetry { verbosity, filter: None, ..options.clone() })?;
    handle.filter.reload(filter).map_err(|error| FilterError(error.to_string()))
}

/// A filter that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError(pub String);

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log filter: {}", self.0)
    }
}

impl std::error::Error for FilterError {}

/// Makes the log of the process. To be called once, at the beginning; a second call is an error.
pub fn init(options: &Telemetry) -> Result<LogHandle, FilterError> {
    let (output, output_handle) = reload::Layer::new(output(options.format));
    let (filter, filter_handle) = reload::Layer::new(filter(options)?);
    let subscriber = tracing_subscriber::registry().with(output).with(filter);
    tracing::subscriber::set_global_default(subscriber).map_err(|error| FilterError(error.to_string()))?;
    let handle = LogHandle { filter: filter_handle, output: output_handle };
    *PROCESS.lock() = Some((handle.clone(), options.clone()));
    Ok(handle)
}

impl LogHandle {
    /// Makes the log as `options` says, from the next line on. On an error nothing has changed.
    pub fn apply(&self, options: &Telemetry) -> Result<(), FilterError> {
        let filter = filter(options)?;
        self.output.reload(output(options.format)).map_err(|error| FilterError(error.to_string()))?;
        self.filter.reload(filter).map_err(|error| FilterError(error.to_string()))?;
        *PROCESS.lock() = Some((self.clone(), options.clone()));
        Ok(())
    }
}

/// Whether `text` is a filter, and if not why.
pub fn check_filter(text: &str) -> Result<(), FilterError> {
    EnvFilter::builder().parse(text).map(drop).map_err(|error| FilterError(error.to_string()))
}

fn filter(options: &Telemetry) -> Result<EnvFilter, FilterError> {
    let access = if options.access_log { "info" } else { "off" };
    let text = match &options.filter {
        // What the operator wrote comes last, so that it can speak of access lines too.
        Some(filter) => format!("{ACCESS}={access},{filter}"),
        None => format!("{},{ACCESS}={access}", by_verbosity(options.verbosity)),
    };
    EnvFilter::builder().parse(&text).map_err(|error| FilterError(error.to_string()))
}

/// What klog's `-v` means here: 0 to 3 info, 4 and 5 debug, 6 and more trace; libraries two steps quieter.
fn by_verbosity(verbosity: u8) -> &'static str {
    match verbosity {
        0..=3 => "warn,kenter=info",
        4..=5 => "info,kenter=debug",
        6..=8 => "info,kenter=trace",
        _ => "debug,kenter=trace",
    }
}

fn output(format: LogFormat) -> Output {
    let journal = stderr_is_journal();
    let ansi = !journal
        && std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(ansi);
    match (format, journal) {
        (LogFormat::Text, false) => layer.boxed(),
        (LogFormat::Text, true) => {
            let inner = Format::default().without_time().with_level(false).with_ansi(false);
            layer.fmt_fields(DefaultFields::new()).event_format(Journal(inner)).boxed()
        }
        (LogFormat::Json, false) => layer.json().flatten_event(true).boxed(),
        (LogFormat::Json, true) => {
            let inner = Format::default().json().flatten_event(true).with_timer(SystemTime);
            layer.fmt_fields(JsonFields::new()).event_format(Journal(inner)).boxed()
        }
    }
}

/// Whether stderr is the stream that systemd connected to the journal (systemd.exec(5), `JOURNAL_STREAM`).
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Some((device, inode)) = stream.split_once(':') else { return false };
    let descriptor = std::io::stderr().as_fd().try_clone_to_owned();
    let Ok(metadata) = descriptor.map(std::fs::File::from).and_then(|file| file.metadata()) else { return false };
    use std::os::unix::fs::MetadataExt;
    (device.parse(), inode.parse()) == (Ok(metadata.dev()), Ok(metadata.ino()))
}

/// Puts a priority in front of each line, as sd-daemon(3) has it.
struct Journal<F>(F);

impl<S, N, L, T> FormatEvent<S, N> for Journal<Format<L, T>>
where
    Format<L, T>: FormatEvent<S, N>,
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    T: FormatTime,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        write!(writer, "<{priority}>")?;
        self.0.format_event(context, writer, event)
    }
}

/// One answered request, in upstream's words (apiserver `pkg/server/httplog`).
#[derive(Clone, Copy, Debug)]
pub struct AccessLine<'a> {
    pub verb: &'a str,
    pub uri: &'a str,
    pub latency: Duration,
    pub user: &'a str,
    pub user_agent: &'a str,
    pub audit_id: &'a str,
    pub source: &'a str,
    /// HTTP status.
    pub response: u16,
}

impl AccessLine<'_> {
    /// Whether anyone would see it; ask before gathering.
    pub fn wanted() -> bool {
        tracing::enabled!(target: ACCESS, Level::INFO)
    }

    pub fn log(&self) {
        tracing::info!(
            target: ACCESS,
            verb = self.verb,
            uri = self.uri,
            latency = ?self.latency,
            user = self.user,
            user_agent = self.user_agent,
            audit_id = self.audit_id,
            source = self.source,
            response = self.response,
            "HTTP"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(filter: Option<&str>) -> Telemetry {
        Telemetry {
            format: LogFormat::Text,
            verbosity: 2,
            filter: filter.map(str::to_owned),
            access_log: true,
            profiling: true,
        }
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_refused_with_its_reason() {
        assert!(check_filter("kenter=debug,h2=warn").is_ok());
        assert!(check_filter("kenter=louder").is_err());
        assert!(filter(&options(Some("kenter=louder"))).is_err());
    }

    #[test]
    fn access_lines_have_a_switch_of_their_own_and_a_filter_may_overrule_it() {
        assert!(filter(&options(None)).unwrap().to_string().contains("kenter::access=info"));
        let quiet = Telemetry { access_log: false, ..options(None) };
        assert!(filter(&quiet).unwrap().to_string().contains("kenter::access=off"));
        assert!(filter(&options(Some("kenter::access=debug"))).unwrap().to_string().contains("kenter::access=debug"));
    }

    #[test]
    fn the_log_changes_while_it_runs() {
        use std::sync::{Arc, Mutex};
        // The same stack as `init`, with a writer that can be read.
        #[derive(Clone, Default)]
        struct Sink(Arc<Mutex<Vec<u8>>>);
        impl std::io::Write for Sink {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let sink = Sink::default();
        let writer = {
            let sink = sink.clone();
            move || sink.clone()
        };
        let text: Output = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer.clone()).boxed();
        let json: Output = tracing_subscriber::fmt::layer().json().with_writer(writer).boxed();
        let (output, output_handle) = reload::Layer::new(text);
        let (filter, filter_handle) = reload::Layer::new(filter(&options(None)).unwrap());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(output).with(filter), || {
            tracing::debug!(target: "kenter::x", "hidden");
            tracing::info!(target: "kenter::x", "shown");
            filter_handle.reload(super::filter(&options(Some("kenter=debug"))).unwrap()).unwrap();
            output_handle.reload(json).unwrap();
            tracing::debug!(target: "kenter::x", "now too");
        });
        let written = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert!(!written.contains("hidden") && written.contains("INFO kenter::x: shown"), "{written}");
        assert!(written.contains("\"message\":\"now too\""), "{written}");
    }
}
