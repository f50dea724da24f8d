//! The order of API versions: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then everything else
//! (apimachinery `pkg/version/helpers.go`).

use std::cmp::Ordering;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    General,
}

/// Stage, major and minor number; `None` where the text is not like a Kubernetes version.
fn parse(version: &str) -> Option<(Stage, i64, i64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let (stage, minor) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        (Some(minor), _) => (Stage::Alpha, minor),
        (_, Some(minor)) => (Stage::Beta, minor),
        _ if rest.is_empty() => (Stage::General, "0"),
        _ => return None,
    };
    if !minor.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((stage, major.parse().ok()?, minor.parse().ok()?))
}

/// Greater means more stable and newer. Texts that are no versions come after all that are, in reverse order of
/// the alphabet (so that sorting by descending order gives the alphabet).
pub fn compare(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

/// Sorts best first, as discovery lists versions.
pub fn sort_descending<T: AsRef<str>>(versions: &mut [T]) {
    versions.sort_by(|a, b| compare(b.as_ref(), a.as_ref()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_comes_before_beta_before_alpha_before_the_rest() {
        let mut versions = [
            "foo10",
            "v1alpha1",
            "v11alpha2",
            "v10",
            "v1beta12",
            "v2",
            "v11beta2",
            "foo1",
            "v1",
            "v",
            "v1gamma",
            "v1beta",
        ];
        sort_descending(&mut versions);
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v1beta12",
                "v11alpha2",
                "v1alpha1",
                "foo1",
                "foo10",
                "v",
                "v1beta",
                "v1gamma"
            ]
        );
    }

    #[test]
    fn numbers_too_large_are_no_versions() {
        assert_eq!(compare("v99999999999999999999", "v1"), Ordering::Less);
    }
}
