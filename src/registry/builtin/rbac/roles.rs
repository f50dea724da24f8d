//! What roles may say. Errors that upstream's declarative validation finds come last, without a text.

use crate::api::{ErrorList, FieldError, Path, labels};
use crate::object::Value;
use crate::registry::validation::{LabelSelectorOptions, validate_label_selector};

/// A Role; `old` on update.
pub fn validate_role(new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    validate_policy_rules(new, true, errors);
    require_verbs(new, old, errors);
}

/// A ClusterRole; `old` on update.
pub fn validate_cluster_role(new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    validate_policy_rules(new, false, errors);
    validate_aggregation(new, old, errors);
    require_verbs(new, old, errors);
}

/// The rules of a role, verbs excepted.
pub fn validate_policy_rules(role: &Value, namespaced: bool, errors: &mut ErrorList) {
    let rules = Path::new("rules");
    for (index, rule) in role.array_at(&["rules"]).iter().enumerate() {
        validate_rule(rule, namespaced, &rules.index(index), errors);
    }
}

fn validate_rule(rule: &Value, namespaced: bool, at: &Path<'_>, errors: &mut ErrorList) {
    let some = |key| !rule.array_at(&[key]).is_empty();
    if let Some(urls) = rule.get("nonResourceURLs").filter(|_| some("nonResourceURLs")) {
        let at = at.child("nonResourceURLs");
        if namespaced {
            let why = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid_ref(&at, urls, why));
        }
        if some("apiGroups") || some("resources") || some("resourceNames") {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid_ref(&at, urls, why));
        }
        return;
    }
    if !some("apiGroups") {
        let why = "resource rules must supply at least one api group";
        errors.push(FieldError::required(&at.child("apiGroups"), why));
    }
    if !some("resources") {
        let why = "resource rules must supply at least one resource";
        errors.push(FieldError::required(&at.child("resources"), why));
    }
}

fn require_verbs(new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    if old.is_some_and(|old| old.get("rules") == new.get("rules")) {
        return;
    }
    let rules = Path::new("rules");
    for (index, rule) in new.array_at(&["rules"]).iter().enumerate() {
        if rule.array_at(&["verbs"]).is_empty() {
            errors.push(FieldError::required(&rules.index(index).child("verbs"), ""));
        }
    }
}

fn validate_aggregation(new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let Some(rule) = new.get("aggregationRule").filter(|it| !it.is_null()) else { return };
    let aggregation = Path::new("aggregationRule");
    let at = aggregation.child("clusterRoleSelectors");
    let selectors = rule.array_at(&["clusterRoleSelectors"]);
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&at, why));
    }
    // What was once stored with bad values may stay.
    let lenient = old.is_some_and(|old| {
        let selectors = old.array_at(&["aggregationRule", "clusterRoleSelectors"]);
        selectors.iter().any(|it| {
            let mut found = ErrorList::new();
            validate_label_selector(Some(it), LabelSelectorOptions::default(), &Path::ROOT, &mut found);
            !found.is_empty()
        })
    });
    let options = LabelSelectorOptions { allow_invalid_values: lenient, ..LabelSelectorOptions::default() };
    for (index, selector) in selectors.iter().enumerate() {
        let at = at.index(index);
        validate_label_selector(Some(selector), options, &at, errors);
        if labels::Selector::from_object(Some(selector)).is_err() {
            errors.push(FieldError::invalid_shown(&at, "null", "invalid label selector."));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(text: &str, cluster: bool) -> String {
        let role = crate::object::parse(text.as_bytes()).expect("test JSON");
        let mut errors = ErrorList::new();
        if cluster {
            validate_cluster_role(&role, None, &mut errors)
        } else {
            validate_role(&role, None, &mut errors)
        }
        errors.to_string()
    }

    #[test]
    fn verbs_are_missed_last() {
        assert_eq!(
            say(r#"{"rules":[{},{"verbs":["a"],"apiGroups":[""]}]}"#, false),
            "[rules[0].apiGroups: Required value: resource rules must supply at least one api group, rules[0].resources: Required value: resource rules must supply at least one resource, rules[1].resources: Required value: resource rules must supply at least one resource, rules[0].verbs: Required value]"
        );
    }

    #[test]
    fn paths_belong_to_cluster_roles_and_stand_alone() {
        let mixed = r#"{"rules":[{"nonResourceURLs":["/x"],"resources":["pods"],"verbs":["get"]}]}"#;
        assert_eq!(
            say(mixed, false),
            r#"[rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs, rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs]"#
        );
        assert_eq!(
            say(mixed, true),
            r#"rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs"#
        );
        assert_eq!(say(r#"{"rules":[{"nonResourceURLs":["x"],"verbs":["get"]}]}"#, true), "");
    }

    #[test]
    fn aggregation_needs_selectors_that_select() {
        assert_eq!(
            say(r#"{"aggregationRule":{}}"#, true),
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"
        );
        assert_eq!(
            say(
                r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchExpressions":[{"key":"a","operator":"X"}]}]}}"#,
                true
            ),
            r#"[aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "X": not a valid selector operator, aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.]"#
        );
        let text = say(r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a b":"c"}}]}}"#, true);
        assert!(
            text.starts_with(
                r#"[aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: "a b": name part must"#
            ),
            "{text}"
        );
        assert!(
            text.ends_with("aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.]"),
            "{text}"
        );
    }
}
