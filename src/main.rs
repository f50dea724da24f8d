//! `kenter`: arguments → subcommand → calls; errors → exit codes.

use std::{io::Write as _, path::Path, process::ExitCode};

use kenter::{
    api::release,
    options::{self, CommandLine, Invocation, Problem, Problems, Warning},
    reload::catalogue::catalogue,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = "\
kenter serves the Kubernetes API.

Usage:
  kenter run [flags]                 serve the API; also where flags come first, as kube-apiserver is called
  kenter reload [flags]              make the running daemon read its configuration again; --config and --state-dir
                                     say where to ask it
  kenter check [flags]               look at the configuration, change nothing
  kenter config show [flags]         the effective configuration; --origin, --format toml|json
  kenter config reference            what every option means, in Markdown
  kenter config schema               JSON Schema of the configuration file
  kenter --version[=raw]

`kenter run --help` lists the flags. A command ends with 1 where the configuration does not serve, with 2 where the
command line is wrong or the daemon cannot be asked.
";

/// Something was wrong with the configuration.
const WRONG: u8 = 1;
/// Something was wrong with the command line itself.
const USAGE: u8 = 2;

/// Makes the kernel give memory in pages of 4 KiB. With transparent huge pages every touched corner of the allocator's
/// arena counts 2 MiB, which is more than half of what an idle server holds. Where the kernel refuses, nothing is lost.
fn keep_pages_small() {
    // SAFETY: takes integers only and changes nothing but an attribute of this process's mappings.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

fn main() -> ExitCode {
    keep_pages_small();
    let mut words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let first = words.first().cloned().unwrap_or_default();
    match first.as_str() {
        "" | "help" | "--help" | "-h" => {
            say(HELP);
            ExitCode::SUCCESS
        }
        // As kube-apiserver is called, by a unit file or a static pod: flags and no command mean `run`.
        flag if flag.starts_with('-') => subcommand("run", words),
        _ => {
            words.remove(0);
            subcommand(&first, words)
        }
    }
}

fn subcommand(name: &str, mut words: Vec<String>) -> ExitCode {
    match name {
        "run" => match invocation("kenter run", words) {
            Ok(invocation) => kenter::app::run(invocation),
            Err(code) => code,
        },
        "reload" => match invocation("kenter reload", words) {
            Ok(invocation) => kenter::reload::client::reload(&invocation),
            Err(code) => code,
        },
        "check" => check(words),
        "version" => {
            say(&format!("{}\n", release::line()));
            ExitCode::SUCCESS
        }
        "config" if words.is_empty() => complain("kenter config needs one of: show, reference, schema"),
        "config" => match words.remove(0).as_str() {
            "show" => show(words),
            "reference" => page("kenter config reference", &words, options::reference),
            "schema" => page("kenter config schema", &words, options::json_schema),
            "help" | "--help" | "-h" => page("kenter config", &[], || HELP.to_owned()),
            other => complain(&format!("unknown command {other:?} for \"kenter config\"")),
        },
        other => complain(&format!("unknown command {other:?} for \"kenter\"")),
    }
}

/// A text that depends on nothing.
fn page(command: &str, words: &[String], text: impl Fn() -> String) -> ExitCode {
    match words {
        [] => say(&text()),
        [word] if word == "--help" || word == "-h" => say(HELP),
        _ => return complain(&format!("{command:?} does not take any arguments, got {words:?}")),
    }
    ExitCode::SUCCESS
}

/// To standard output. Who reads it may have seen enough before its end, which is no failure.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn check(words: Vec<String>) -> ExitCode {
    let invocation = match invocation("kenter check", words) {
        Ok(invocation) => invocation,
        Err(code) => return code,
    };
    match options::check(&invocation, &catalogue(), kenter::reload::probe::probe) {
        Ok(options) => {
            warn(options.warnings());
            say(&format!("the configuration is good ({})\n", options.hash()));
            ExitCode::SUCCESS
        }
        Err(problems) => report(&problems),
    }
}

fn show(words: Vec<String>) -> ExitCode {
    let (mut origins, mut format, mut rest) = (false, "toml".to_owned(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--origin" => origins = true,
            "--format" => format = words.next().unwrap_or_default(),
            _ => match word.strip_prefix("--format=") {
                Some(value) => format = value.to_owned(),
                None => rest.push(word),
            },
        }
    }
    let print = match format.as_str() {
        "toml" => options::show_toml,
        "json" => options::show_json,
        other => return complain(&format!("unknown format {other:?}: toml or json")),
    };
    let invocation = match invocation("kenter config show", rest) {
        Ok(invocation) => invocation,
        Err(code) => return code,
    };
    match options::read(&invocation, &catalogue()) {
        Ok(options) => {
            warn(options.warnings());
            say(&print(&options, origins));
            ExitCode::SUCCESS
        }
        Err(problems) => report(&problems),
    }
}

/// How we were called, unless the flags only asked for help or the version.
fn invocation(command: &str, words: Vec<String>) -> Result<Invocation, ExitCode> {
    let CommandLine { help, version, .. } = options::parse_command_line(command, &words, Path::new(""));
    if help {
        say(&format!("Usage:\n  {command} [flags]\n\n{}", options::usage()));
        return Err(ExitCode::SUCCESS);
    }
    match version.as_deref() {
        None => Ok(Invocation::of_process(command, words)),
        Some("true") => {
            say(&format!("{}\n", release::line()));
            Err(ExitCode::SUCCESS)
        }
        Some("raw") => {
            say(&format!("{}\n", release::raw()));
            Err(ExitCode::SUCCESS)
        }
        Some(other) => Err(complain(&format!(
            "invalid argument {other:?} for \"--version\" flag: version {other:?} must match major/minor/patch of \
             default version {:?}",
            release::KUBERNETES_VERSION
        ))),
    }
}

fn report(problems: &Problems) -> ExitCode {
    warn(&problems.warnings);
    for problem in &problems.list {
        eprintln!("error: {problem}");
    }
    let only_words = |problem: &Problem| problem.key.0.is_empty() && problem.origin == options::Origin::Default;
    ExitCode::from(if problems.list.iter().all(only_words) { USAGE } else { WRONG })
}

fn warn(warnings: &[Warning]) {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
}

fn complain(reason: &str) -> ExitCode {
    eprintln!("error: {reason}\nRun 'kenter --help' for usage.");
    ExitCode::from(USAGE)
}
