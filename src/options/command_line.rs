//! kube-apiserver's command line: the syntax of pflag over the table in `flags.rs`, with pflag's and upstream's error
//! texts. Every mistake is reported, not only the first.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use figment::value::{Dict, Num, Tag, Value};

use super::{
    csv,
    flags::{self, Flag, Kind, Status},
    layers::Layer,
    problem::{KeyPath, Origin, Problem, Warning, nearest},
    reference, schema,
};
use crate::api::duration::parse_duration;

/// What a command line said.
#[derive(Debug, Default)]
pub struct CommandLine {
    /// `--config`.
    pub config: Option<PathBuf>,
    pub help: bool,
    /// `--version` ("true") or its value ("raw").
    pub version: Option<String>,
    /// The values of flags that set a key.
    pub layer: Layer,
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
}

/// What pflag knows besides the table.
#[derive(Clone, Copy)]
enum Target {
    Config,
    Help,
    Version,
    Row(&'static Flag),
}

/// Reads the words after the subcommand. Relative paths start at `directory`.
pub fn parse(command: &str, words: &[String], directory: &Path) -> CommandLine {
    let mut line = CommandLine::default();
    line.layer.base = directory.to_owned();
    let mut given: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let mut operands = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            operands.extend(rest.by_ref().cloned());
        } else if let Some(long) = word.strip_prefix("--") {
            line.long(word, long, &mut rest, &mut given);
        } else if word.len() > 1 && word.starts_with('-') {
            line.short(word, &mut rest, &mut given);
        } else {
            operands.push(word.clone());
        }
    }
    if !operands.is_empty() {
        line.complain(format!("{command:?} does not take any arguments, got {operands:?}"));
    }
    for (name, values) in given {
        if let Some(flag) = flags::find(name) {
            line.judge(flag, &values);
        }
    }
    line
}

fn target(name: &str) -> Option<Target> {
    match name {
        "config" => Some(Target::Config),
        "help" => Some(Target::Help),
        "version" => Some(Target::Version),
        _ => flags::find(name).map(Target::Row),
    }
}

type Given = BTreeMap<&'static str, Vec<String>>;

impl CommandLine {
    fn long(&mut self, word: &str, long: &str, rest: &mut std::slice::Iter<'_, String>, given: &mut Given) {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        if name.is_empty() || name.starts_with('-') {
            self.complain(format!("bad flag syntax: {word}"));
            return;
        }
        // component-base takes underscores for dashes.
        let name = name.replace('_', "-");
        let Some(target) = target(&name) else {
            let mut problem = Problem::new(KeyPath::default(), format!("unknown flag: --{name}"));
            problem.hint =
                nearest(&name, flags::all().map(|flag| flag.name)).map(|near| format!("did you mean --{near}?"));
            self.problems.push(problem);
            return;
        };
        let bare = match target {
            Target::Help | Target::Version => true,
            Target::Config => false,
            Target::Row(flag) => flag.kind == Kind::Bool,
        };
        match value {
            Some(value) => self.set(target, value, given),
            None if bare => self.set(target, "true".to_owned(), given),
            None => match rest.next() {
                Some(value) => self.set(target, value.clone(), given),
                None => self.complain(format!("flag needs an argument: --{name}")),
            },
        }
    }

    /// `-h`, `-v2`, `-v=2`, `-v 2`.
    fn short(&mut self, word: &str, rest: &mut std::slice::Iter<'_, String>, given: &mut Given) {
        let letters = word.get(1..).unwrap_or_default();
        if let Some(value) = letters.strip_prefix('v') {
            let value = value.strip_prefix('=').unwrap_or(value).to_owned();
            let value = if value.is_empty() { rest.next().cloned() } else { Some(value) };
            match (value, flags::find("v")) {
                (Some(value), Some(flag)) => self.set(Target::Row(flag), value, given),
                _ => self.complain(format!("flag needs an argument: 'v' in {word}")),
            }
        } else if letters == "h" {
            self.help = true;
        } else {
            let letter = letters.chars().next().unwrap_or('-');
            self.complain(format!("unknown shorthand flag: {letter:?} in {word}"));
        }
    }

    fn set(&mut self, target: Target, value: String, given: &mut Given) {
        match target {
            Target::Config => self.config = Some(self.layer.base.join(value)),
            Target::Help => match parse_bool(&value) {
                Ok(help) => self.help = help,
                Err(reason) => self.complain(format!("invalid argument {value:?} for \"-h, --help\" flag: {reason}")),
            },
            Target::Version => self.version = Some(value).filter(|value| value != "false"),
            Target::Row(flag) => given.entry(flag.name).or_default().push(value),
        }
    }

    fn judge(&mut self, flag: &'static Flag, values: &[String]) {
        let origin = Origin::Flag(format!("--{}", flag.name));
        if let Some(message) = flag.deprecated {
            let text = format!("Flag --{} has been deprecated, {message}", flag.name);
            self.warnings.push(Warning { key: KeyPath::default(), origin: Origin::Default, text });
        }
        let value = match convert(flag, values) {
            Ok(value) => value,
            Err((value, reason)) => {
                let name = if flag.name == "v" { "-v, --v".to_owned() } else { format!("--{}", flag.name) };
                let reason = match flag.kind {
                    Kind::FeatureGates => reason,
                    _ => format!("invalid argument {value:?} for {name:?} flag: {reason}"),
                };
                self.problems.push(Problem::new(KeyPath::default(), reason));
                return;
            }
        };
        if flag.status == Status::NoOp {
            return;
        }
        if let Some(value) = value {
            self.layer.insert(&KeyPath::dotted(&flag.key()), value, origin);
        }
    }

    fn complain(&mut self, reason: String) {
        self.problems.push(Problem::new(KeyPath::default(), reason));
    }
}

/// The value of all occurrences of a flag; `None` where an empty text leaves the default.
fn convert(flag: &Flag, values: &[String]) -> Result<Option<Value>, (String, String)> {
    let last = values.last().map_or("", String::as_str);
    let fail = |reason: String| (last.to_owned(), reason);
    let text = |value: &str| Some(Value::from(value));
    Ok(match flag.kind {
        Kind::Bool => {
            let mut result = false;
            for value in values {
                result = parse_bool(value).map_err(|reason| (value.clone(), reason))?;
            }
            Some(Value::from(result))
        }
        Kind::Int => Some(Value::from(parse_int(last, "ParseInt").map_err(fail)?)),
        Kind::Uint if last.starts_with('-') => {
            return Err(fail(format!("strconv.ParseUint: parsing {last:?}: invalid syntax")));
        }
        Kind::Uint => Some(Value::from(parse_int(last, "ParseUint").map_err(fail)?)),
        Kind::Float => {
            let syntax = |_| fail(format!("strconv.ParseFloat: parsing {last:?}: invalid syntax"));
            Some(Value::Num(Tag::Default, Num::F64(f64::from_str(last).map_err(syntax)?)))
        }
        Kind::Duration => {
            parse_duration(last).map_err(|error| fail(error.0))?;
            text(last)
        }
        Kind::PortRange => {
            super::complete::port_range(last).map_err(fail)?;
            text(last)
        }
        Kind::Ip if last.is_empty() => None,
        Kind::Ip => {
            IpAddr::from_str(last.trim()).map_err(|_| fail(format!("failed to parse IP: {last:?}")))?;
            text(last.trim())
        }
        Kind::Text | Kind::Version if last.is_empty() => None,
        Kind::Text | Kind::Version => text(last),
        Kind::CommaString => (!last.is_empty()).then(|| list(last.split(',').map(str::to_owned))),
        Kind::StringArray => Some(list(values.iter().cloned())),
        Kind::StringSlice => {
            let mut all = Vec::new();
            for value in values {
                // pflag reads the first record and leaves the rest.
                all.extend(
                    csv::records(value).map_err(|reason| (value.clone(), reason))?.into_iter().take(1).flatten(),
                );
            }
            Some(list(all.into_iter()))
        }
        Kind::IntSlice => {
            let mut all = Vec::new();
            for part in values.iter().flat_map(|value| value.split(',')) {
                all.push(Value::from(parse_int(part, "ParseInt").map_err(fail)?));
            }
            Some(Value::Array(Tag::Default, all))
        }
        Kind::Map => Some(parse_pairs(values, |pair| match pair.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), Value::from(value.trim()))),
            None => Err("malformed pair, expect string=string".to_owned()),
        })?),
        Kind::RuntimeConfig => Some(parse_pairs(values, runtime_entry)?),
        Kind::FeatureGates => Some(parse_pairs(values, gate_entry)?),
        Kind::NamedCertKey => {
            let entries = values.iter().map(|value| named_cert_key(value).map_err(|reason| (value.clone(), reason)));
            Some(Value::Array(Tag::Default, entries.collect::<Result<_, _>>()?))
        }
    })
}

fn list(texts: impl Iterator<Item = String>) -> Value {
    Value::Array(Tag::Default, texts.map(Value::from).collect())
}

fn parse_pairs(
    values: &[String],
    entry: impl Fn(&str) -> Result<(String, Value), String>,
) -> Result<Value, (String, String)> {
    let mut dict = Dict::new();
    for value in values {
        for pair in value.split(',').filter(|pair| !pair.is_empty()) {
            let (key, parsed) = entry(pair).map_err(|reason| (value.clone(), reason))?;
            dict.insert(key, parsed);
        }
    }
    Ok(Value::Dict(Tag::Default, dict))
}

/// apiserver pkg/server/resourceconfig/helpers.go: no value means true; `api/...` takes the words alone.
fn runtime_entry(pair: &str) -> Result<(String, Value), String> {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let (key, value) = (key.trim(), value.trim());
    let parsed = match value {
        "true" => true,
        "false" => false,
        _ if key.starts_with("api/") => return Err(format!("invalid value {key}={value}")),
        "" => true,
        _ => parse_bool(value).map_err(|error| format!("invalid value of {key}: {value}, err: {error}"))?,
    };
    Ok((key.to_owned(), Value::from(parsed)))
}

/// component-base featuregate: `[component:]Gate=bool`; only kube's component is here.
fn gate_entry(pair: &str) -> Result<(String, Value), String> {
    let pair = pair.split_once(':').map_or(pair, |(_, rest)| rest).trim();
    let Some((gate, value)) = pair.split_once('=') else {
        return Err(format!("missing bool value for {pair}"));
    };
    let (gate, value) = (gate.trim(), value.trim());
    let parsed = parse_bool(value).map_err(|error| format!("invalid value of {gate}={value}, err: {error}"))?;
    Ok((gate.to_owned(), Value::from(parsed)))
}

/// component-base cli/flag/namedcertkey_flag.go.
fn named_cert_key(text: &str) -> Result<Value, String> {
    let (pair, names) = match text.split_once(':') {
        Some((_, names)) if names.trim().is_empty() => return Err("empty names list is not allowed".to_owned()),
        Some((pair, names)) => (pair, names.split(',').map(|name| name.trim().to_owned()).collect()),
        None => (text, Vec::new()),
    };
    let [cert, key] = pair.split(',').map(str::trim).collect::<Vec<_>>()[..] else {
        return Err("expected comma separated certificate and key file paths".to_owned());
    };
    let mut dict = Dict::from([("cert_file".to_owned(), Value::from(cert)), ("key_file".to_owned(), Value::from(key))]);
    if !names.is_empty() {
        dict.insert("names".to_owned(), list(names.into_iter()));
    }
    Ok(Value::Dict(Tag::Default, dict))
}

/// Go's strconv.ParseBool.
fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(format!("strconv.ParseBool: parsing {text:?}: invalid syntax")),
    }
}

/// Go's strconv.ParseInt with base 0, for the bases people use.
fn parse_int(text: &str, function: &str) -> Result<i64, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0o" | "0O") => (&digits[2..], 8),
        Some("0b" | "0B") => (&digits[2..], 2),
        _ => (digits, 10),
    };
    let why = if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
        "value out of range"
    } else {
        "invalid syntax"
    };
    i64::from_str_radix(digits, radix)
        .ok()
        .filter(|_| why == "value out of range")
        .map(|number| sign * number)
        .ok_or_else(|| format!("strconv.{function}: parsing {text:?}: {why}"))
}

/// All flags with what they set, for `--help`.
pub fn usage() -> String {
    let mut text = String::from("Flags:\n      --config file\n      --version [=raw]\n  -h, --help\n");
    let (mut ignored, mut refused) = (String::new(), String::new());
    for flag in flags::all().filter(|flag| flag.deprecated.is_none()) {
        match flag.status {
            Status::Works | Status::Partly(_) => {
                let Some(node) = schema::find(&flag.key()) else { continue };
                let dashes = if flag.name == "v" { "  -v, --v".to_owned() } else { format!("      --{}", flag.name) };
                let about = schema::description(node).split("\n\n").next().unwrap_or("").replace('\n', " ");
                text.push_str(&format!("{dashes} {}\n            {about}\n", reference::kind(node)));
                if let Status::Partly(missing) = flag.status {
                    text.push_str(&format!("            {missing}.\n"));
                }
            }
            Status::Ignored(instead) => ignored.push_str(&format!("      --{}: {instead}\n", flag.name)),
            Status::Refused(why) => refused.push_str(&format!("      --{}: {why}\n", flag.name)),
            Status::NoOp => {}
        }
    }
    text + "\nTaken without effect:\n"
        + &ignored
        + "\nRefused:\n"
        + &refused
        + "\n`kenter config reference` has units, ranges and defaults.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> CommandLine {
        parse("kenter run", &words.iter().map(|word| word.to_string()).collect::<Vec<_>>(), Path::new("/work"))
    }
    fn complaint(words: &[&str]) -> String {
        line(words).problems.remove(0).reason
    }
    fn value(words: &[&str], key: &str) -> Value {
        let line = line(words);
        assert_eq!(line.problems, []);
        Value::from(line.layer.values).find(key).unwrap()
    }

    #[test]
    fn help_tells_every_flag_that_works_with_its_type_and_a_whole_sentence() {
        let text = usage();
        assert!(text.contains("--secure-port integer\n            The port served with TLS.\n"), "{text}");
        for flag in flags::all().filter(|flag| flag.sets_key() && flag.deprecated.is_none()) {
            let after = text.split_once(&format!("--{} ", flag.name)).map(|(_, after)| after);
            let about = after.and_then(|after| after.lines().nth(1)).unwrap_or_default();
            assert!(about.ends_with('.'), "--{}: {about}", flag.name);
        }
    }

    #[test]
    fn values_come_after_an_equals_sign_or_as_the_next_word() {
        assert_eq!(value(&["--secure-port=1"], "serving.secure_port").to_i128(), Some(1));
        assert_eq!(value(&["--secure-port", "2"], "serving.secure_port").to_i128(), Some(2));
        assert_eq!(value(&["--secure_port", "2"], "serving.secure_port").to_i128(), Some(2));
        assert_eq!(value(&["-v2"], "telemetry.v").to_i128(), Some(2));
        assert_eq!(value(&["-v", "3"], "telemetry.v").to_i128(), Some(3));
        assert_eq!(value(&["--allow-privileged"], "api.allow_privileged").to_bool(), Some(true));
        assert_eq!(value(&["--allow-privileged=F"], "api.allow_privileged").to_bool(), Some(false));
    }

    #[test]
    fn slices_repeat_and_split_and_maps_too() {
        let list = |words: &[&str], key: &str| {
            value(words, key).into_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            list(&["--api-audiences=a,b", "--api-audiences", "\"c,d\""], "authentication.api_audiences"),
            ["a", "b", "c,d"]
        );
        assert_eq!(list(&["--service-account-issuer=a,b"], "authentication.service_account_issuer"), ["a,b"]);
        assert_eq!(list(&["--controllers="], "controllers.controllers"), [""; 0]);
        let gates = value(&["--feature-gates=A=true,kube:B=false", "--feature-gates=C=1"], "features.feature_gates");
        assert_eq!(gates.into_dict().unwrap().len(), 3);
        let api = value(&["--runtime-config=batch/v1,api/all=false"], "api.runtime_config").into_dict().unwrap();
        assert_eq!(api["batch/v1"].to_bool(), Some(true));
        assert_eq!(api["api/all"].to_bool(), Some(false));
        let sni = value(&["--tls-sni-cert-key=c,k:a.b, *.c"], "serving.tls_sni_cert_key").into_array().unwrap();
        assert_eq!(sni[0].find_ref("key_file").unwrap().as_str(), Some("k"));
        assert_eq!(sni[0].find_ref("names").unwrap().as_array().unwrap().len(), 2);
    }

    #[test]
    fn mistakes_are_worded_as_upstream_and_all_of_them_are_told() {
        for (words, reason) in [
            (vec!["--insecure-port=0"], "unknown flag: --insecure-port"),
            (vec!["--secure-port"], "flag needs an argument: --secure-port"),
            (vec!["-v"], "flag needs an argument: 'v' in -v"),
            (vec!["-x"], "unknown shorthand flag: 'x' in -x"),
            (vec!["--=x"], "bad flag syntax: --=x"),
            (
                vec!["--secure-port=abc"],
                "invalid argument \"abc\" for \"--secure-port\" flag: strconv.ParseInt: parsing \"abc\": invalid syntax",
            ),
            (
                vec!["--kubelet-port=-1"],
                "invalid argument \"-1\" for \"--kubelet-port\" flag: strconv.ParseUint: parsing \"-1\": invalid syntax",
            ),
            (
                vec!["--request-timeout=x"],
                "invalid argument \"x\" for \"--request-timeout\" flag: time: invalid duration \"x\"",
            ),
            (
                vec!["--anonymous-auth=maybe"],
                "invalid argument \"maybe\" for \"--anonymous-auth\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
            (vec!["--bind-address=x"], "invalid argument \"x\" for \"--bind-address\" flag: failed to parse IP: \"x\""),
            (vec!["--feature-gates=A"], "missing bool value for A"),
            (
                vec!["--tls-sni-cert-key=a"],
                "invalid argument \"a\" for \"--tls-sni-cert-key\" flag: expected comma separated certificate and key file paths",
            ),
            (vec!["serve", "x"], "\"kenter run\" does not take any arguments, got [\"serve\", \"x\"]"),
            (
                vec!["--api-audiences=a\"b"],
                "invalid argument \"a\\\"b\" for \"--api-audiences\" flag: parse error on line 1, column 2: bare \" in non-quoted-field",
            ),
        ] {
            assert_eq!(complaint(&words), reason);
        }
        assert_eq!(line(&["--x", "--y", "-z"]).problems.len(), 3);
    }

    #[test]
    fn a_deprecated_flag_says_what_upstream_says() {
        let warnings = line(&["--kubelet-port=1"]).warnings;
        assert_eq!(
            warnings[0].text,
            "Flag --kubelet-port has been deprecated, kubelet-port is deprecated and will be removed."
        );
    }
}
