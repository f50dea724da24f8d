//! What is wrong with a configuration, said so that it can be mended in one go: which key, what it holds, why that
//! is no good, where it was written, what would be right.

use std::{fmt, path::PathBuf};

/// A key from the top: section, key, and within it map keys or list indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath(pub Vec<String>);

impl KeyPath {
    /// From "section.key"; no part may hold a dot.
    pub fn dotted(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }
    pub fn child(&self, key: &str) -> Self {
        let mut parts = self.0.clone();
        parts.push(key.to_owned());
        Self(parts)
    }
    pub fn parent(&self) -> Option<Self> {
        self.0.split_last().map(|(_, rest)| Self(rest.to_vec()))
    }
    pub fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            let bare = !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            if bare { f.write_str(part)? } else { write!(f, "{part:?}")? }
        }
        Ok(())
    }
}

/// Where a value was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nowhere: it is the default.
    #[default]
    Default,
    /// Line and column count from 1; the column counts characters.
    File { path: PathBuf, line: usize, column: usize },
    /// An environment variable.
    Variable(String),
    /// A command line flag, with its dashes.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One thing that keeps a configuration from being used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Empty where the problem is not about one key (a file that cannot be read, an unknown flag).
    pub key: KeyPath,
    /// What was written, masked if secret.
    pub value: Option<String>,
    pub reason: String,
    pub origin: Origin,
    /// What would be right, where that is known.
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(key: KeyPath, reason: impl Into<String>) -> Self {
        Self { key, value: None, reason: reason.into(), origin: Origin::Default, hint: None }
    }
    pub fn at(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(shorten(&value.into()));
        self
    }
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// "origin: key = value: reason (hint)", without the parts that are not there.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin != Origin::Default {
            write!(f, "{}: ", self.origin)?;
        }
        if !self.key.0.is_empty() {
            write!(f, "{}", self.key)?;
            if let Some(value) = &self.value {
                write!(f, " = {value}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.reason)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Something an operator should know that keeps nothing from working.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Empty where it is not about one key.
    pub key: KeyPath,
    pub origin: Origin,
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin != Origin::Default {
            write!(f, "{}: ", self.origin)?;
        }
        f.write_str(&self.text)
    }
}

/// Values are quoted in one line of bearable length.
fn shorten(value: &str) -> String {
    const LIMIT: usize = 120;
    match value.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// The name in `known` that `name` was probably meant to be. One with something in front ("insecure-port" for
/// "secure-port") means something else.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + usize::from(name.len() >= 8) && !name.ends_with(candidate))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_one_line() {
        let problem = Problem::new(KeyPath::dotted("serving.secure_port"), "out of range")
            .value("70000")
            .at(Origin::File { path: "/etc/kenter/kenter.toml".into(), line: 3, column: 15 })
            .hint("1 to 65535");
        assert_eq!(
            problem.to_string(),
            "/etc/kenter/kenter.toml:3:15: serving.secure_port = 70000: out of range (1 to 65535)"
        );
        assert_eq!(Problem::new(KeyPath::default(), "unknown flag: --x").to_string(), "unknown flag: --x");
    }

    #[test]
    fn the_nearest_name_is_near() {
        let known = ["max_requests_inflight", "secure_port", "bind_address"];
        assert_eq!(nearest("max_request_inflight", known), Some("max_requests_inflight"));
        assert_eq!(nearest("prot", known), None);
        assert_eq!(nearest("bind_adress", known), Some("bind_address"));
    }
}
