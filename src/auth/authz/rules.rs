//! RBAC's rules: what they allow, whether one set covers another, and how refusals print them
//! (component-helpers `auth/rbac/validation`, kubernetes `pkg/apis/rbac/v1` helpers, `pkg/registry/rbac/validation`).

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use super::Attributes;
use crate::api::field::quote;
use crate::object::{Map, Value};

/// One rule of a role. Either about resources or, in cluster roles, about paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyRule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    /// Empty means every name.
    pub resource_names: Vec<String>,
    pub non_resource_urls: Vec<String>,
}

/// Most atomic permissions (group × resource × verb × name) that one role may be taken apart into for a comparison.
/// A role of a few kilobytes can name billions.
const MAX_PERMISSIONS: usize = 1 << 20;

fn texts(rule: &Value, key: &str) -> Vec<String> {
    rule.array_at(&[key]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn has(set: &[String], one: &str) -> bool {
    set.iter().any(|it| it == one)
}

fn has_all(set: &[String], all: &[String]) -> bool {
    all.iter().all(|one| has(set, one))
}

impl PolicyRule {
    pub fn from_value(rule: &Value) -> Self {
        Self {
            verbs: texts(rule, "verbs"),
            api_groups: texts(rule, "apiGroups"),
            resources: texts(rule, "resources"),
            resource_names: texts(rule, "resourceNames"),
            non_resource_urls: texts(rule, "nonResourceURLs"),
        }
    }

    /// The rules of a role object.
    pub fn all_of(role: &Value) -> Vec<Self> {
        role.array_at(&["rules"]).iter().map(Self::from_value).collect()
    }

    /// As in a role; `verbs` is there even when empty, other empty lists are left out.
    pub fn to_value(&self) -> Value {
        let mut out = Map::new();
        out.insert("verbs", self.verbs.clone());
        for (key, list) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !list.is_empty() {
                out.insert(key, list.clone());
            }
        }
        out.into()
    }

    /// Everything: all resources, all paths.
    pub fn full_authority() -> [Self; 2] {
        let all = || vec!["*".to_owned()];
        [
            Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), non_resource_urls: all(), ..Self::default() },
        ]
    }

    /// Whether this rule allows the request.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !attributes.resource_request {
            return self.allows_verb(attributes.verb) && self.allows_path(attributes.path);
        }
        self.allows_verb(attributes.verb)
            && self.api_groups.iter().any(|it| it == "*" || it == attributes.api_group)
            && self.allows_resource(attributes.resource, attributes.subresource)
            && (self.resource_names.is_empty() || has(&self.resource_names, attributes.name))
    }

    fn allows_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|it| it == "*" || it == verb)
    }

    fn allows_path(&self, path: &str) -> bool {
        self.non_resource_urls.iter().any(|it| covers_path(it, path))
    }

    fn allows_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|it| match (it.as_str(), subresource) {
            ("*", _) => true,
            (it, "") => it == resource,
            (it, sub) => {
                let named = |rest: &str| rest.strip_prefix('/').is_some_and(|rest| rest == sub);
                it.strip_prefix(resource).is_some_and(named) || it.strip_prefix('*').is_some_and(named)
            }
        })
    }

    /// Whether this rule covers a rule that names at most one group, resource, verb and name.
    fn covers(&self, one: &PolicyRule) -> bool {
        (has(&self.verbs, "*") || has_all(&self.verbs, &one.verbs))
            && (has(&self.api_groups, "*") || has_all(&self.api_groups, &one.api_groups))
            && self.covers_resources(&one.resources)
            && one.non_resource_urls.iter().all(|path| self.non_resource_urls.iter().any(|it| covers_path(it, path)))
            && (self.resource_names.is_empty()
                || (!one.resource_names.is_empty() && has_all(&self.resource_names, &one.resource_names)))
    }

    fn covers_resources(&self, resources: &[String]) -> bool {
        has(&self.resources, "*")
            || resources.iter().all(|it| {
                has(&self.resources, it)
                    || it.split_once('/').is_some_and(|(_, sub)| {
                        self.resources.iter().any(|own| own.strip_prefix("*/").is_some_and(|own| own == sub))
                    })
            })
    }

    /// `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}`.
    pub fn compact_text(&self) -> String {
        let mut parts = Vec::new();
        for (name, list) in [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ] {
            if !list.is_empty() {
                parts.push(format!("{name}:{}", quote_list(list)));
            }
        }
        format!("{{{}}}", parts.join(", "))
    }

    /// How many atomic permissions this rule names.
    fn permissions(&self) -> usize {
        let names = self.resource_names.len().max(1);
        let resources = self.api_groups.len().saturating_mul(self.resources.len()).saturating_mul(names);
        resources.saturating_add(self.non_resource_urls.len()).saturating_mul(self.verbs.len())
    }

    /// Calls `visit` with each atomic permission, in upstream's order.
    fn take_apart(&self, visit: &mut impl FnMut(PolicyRule)) {
        let one = |text: &String| vec![text.clone()];
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let plain = PolicyRule {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..PolicyRule::default()
                    };
                    if self.resource_names.is_empty() {
                        visit(plain);
                        continue;
                    }
                    for name in &self.resource_names {
                        visit(PolicyRule { resource_names: one(name), ..plain.clone() });
                    }
                }
            }
        }
        for path in &self.non_resource_urls {
            for verb in &self.verbs {
                visit(PolicyRule { verbs: one(verb), non_resource_urls: one(path), ..PolicyRule::default() });
            }
        }
    }
}

/// Go's `%q` of a list of strings: `["a" "b"]`.
pub fn quote_list(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|it| quote(it)).collect();
    format!("[{}]", quoted.join(" "))
}

fn covers_path(own: &str, path: &str) -> bool {
    own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}

/// The role names more permissions than are ever compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPermissions;

/// What of `wanted` is not covered by `owned`, taken apart into atomic permissions, in order; empty when all is.
/// Work is bounded by [`MAX_PERMISSIONS`].
pub fn missing(owned: &[PolicyRule], wanted: &[PolicyRule]) -> Result<Vec<PolicyRule>, TooManyPermissions> {
    let mut missing = Vec::new();
    let mut budget = MAX_PERMISSIONS;
    for rule in wanted {
        budget = budget.checked_sub(rule.permissions()).ok_or(TooManyPermissions)?;
        rule.take_apart(&mut |one| {
            if !owned.iter().any(|own| own.covers(&one)) {
                missing.push(one);
            }
        });
    }
    Ok(missing)
}

/// The lines a refusal lists: permissions on one resource (and name) merged, sorted, without repetitions.
pub fn describe_missing(missing: Vec<PolicyRule>) -> String {
    let mut merged: Vec<PolicyRule> = Vec::new();
    // By the rule without its verbs.
    let mut places: HashMap<PolicyRule, usize> = HashMap::new();
    for rule in missing {
        if !rule.non_resource_urls.is_empty() {
            merged.push(rule);
            continue;
        }
        let key = PolicyRule { verbs: Vec::new(), ..rule.clone() };
        match places.get(&key) {
            Some(&at) => merged[at].verbs.extend(rule.verbs),
            None => {
                places.insert(key, merged.len());
                merged.push(rule);
            }
        }
    }
    let lines: BTreeSet<String> = merged.iter().map(PolicyRule::compact_text).collect();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let _ = write!(text, "{}{line}", if at == 0 { "" } else { "\n" });
    }
    text
}

/// What a user may do in a namespace, as far as authorizers can tell.
#[derive(Clone, Debug, Default)]
pub struct UserRules {
    pub rules: Vec<PolicyRule>,
    /// Whether there may be more than `rules` says.
    pub incomplete: bool,
    pub errors: Vec<String>,
}

impl UserRules {
    pub fn everything() -> Self {
        Self { rules: PolicyRule::full_authority().into(), ..Self::default() }
    }

    pub fn extend(&mut self, more: UserRules) {
        self.rules.extend(more.rules);
        self.incomplete |= more.incomplete;
        self.errors.extend(more.errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::UserInfo;

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> PolicyRule {
        let own = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
        PolicyRule { verbs: own(verbs), api_groups: own(groups), resources: own(resources), ..PolicyRule::default() }
    }

    fn paths(urls: &[&str], verbs: &[&str]) -> PolicyRule {
        let mut rule = rule(&[], &[], verbs);
        rule.non_resource_urls = urls.iter().map(|it| (*it).to_owned()).collect();
        rule
    }

    #[test]
    fn a_subresource_needs_its_own_name_or_a_star() {
        let user = UserInfo::named("u");
        let ask = |rule: &PolicyRule, resource, sub| {
            let mut attributes = Attributes::of_resource(&user, "get", "", "v1", resource);
            attributes.subresource = sub;
            rule.allows(&attributes)
        };
        let pods = rule(&[""], &["pods"], &["get"]);
        assert!(ask(&pods, "pods", ""));
        assert!(!ask(&pods, "pods", "log"));
        let logs = rule(&[""], &["pods/log", "*/scale"], &["*"]);
        assert!(ask(&logs, "pods", "log"));
        assert!(ask(&logs, "deployments", "scale"));
        assert!(!ask(&logs, "pods", ""));
        assert!(!ask(&logs, "pod", "s/log"));
        assert!(ask(&rule(&["*"], &["*"], &["get"]), "pods", "log"));
    }

    #[test]
    fn names_limit_and_a_request_without_a_name_matches_no_limit() {
        let user = UserInfo::named("u");
        let mut named = rule(&[""], &["pods"], &["list"]);
        named.resource_names = vec!["a".into()];
        let mut attributes = Attributes::of_resource(&user, "list", "", "v1", "pods");
        assert!(!named.allows(&attributes));
        attributes.name = "a";
        assert!(named.allows(&attributes));
        attributes.name = "b";
        assert!(!named.allows(&attributes));
    }

    #[test]
    fn paths_match_exactly_or_by_a_trailing_star() {
        let user = UserInfo::named("u");
        let rule = paths(&["/metrics", "/logs/*", "/exact/"], &["get"]);
        let ask = |path| rule.allows(&Attributes::of_path(&user, "get", path));
        assert!(ask("/metrics") && ask("/logs/a/b") && ask("/logs/") && ask("/exact/"));
        assert!(!ask("/logs") && !ask("/exact") && !ask("/metricsx"));
        assert!(paths(&["*"], &["get"]).allows(&Attributes::of_path(&user, "get", "/any")));
    }

    #[test]
    fn what_is_missing_is_merged_by_resource_and_sorted() {
        let owned = [rule(&[""], &["configmaps"], &["get"])];
        let wanted = [
            rule(&[""], &["pods", "configmaps"], &["list", "get"]),
            rule(&["apps", "extensions"], &["deployments"], &["update"]),
            paths(&["/x"], &["get"]),
        ];
        let text = describe_missing(missing(&owned, &wanted).unwrap());
        assert_eq!(
            text,
            "{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"list\"]}\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"get\"]}\n\
             {APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"update\"]}\n\
             {APIGroups:[\"extensions\"], Resources:[\"deployments\"], Verbs:[\"update\"]}\n\
             {NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}"
        );
    }

    #[test]
    fn a_limited_right_does_not_cover_an_unlimited_one() {
        let mut named = rule(&[""], &["secrets"], &["get"]);
        named.resource_names = vec!["a".into()];
        assert_eq!(missing(&[named.clone()], &[rule(&[""], &["secrets"], &["get"])]).unwrap().len(), 1);
        assert!(missing(&[rule(&[""], &["secrets"], &["*"])], &[named]).unwrap().is_empty());
        assert!(
            missing(&[rule(&["*"], &["*/scale"], &["*"])], &[rule(&["apps"], &["x/scale"], &["get"])])
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_small_role_with_billions_of_permissions_is_refused_without_counting_them() {
        let many: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
        let bomb =
            PolicyRule { verbs: many.clone(), api_groups: many.clone(), resources: many, ..PolicyRule::default() };
        assert_eq!(missing(&[], &[bomb]), Err(TooManyPermissions));
    }
}
