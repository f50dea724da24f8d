use std::sync::Arc;

use futures_util::FutureExt;

use super::*;
use crate::auth::authn::{Config, StaticTokens};
use crate::auth::authz::{Node, PolicyRule, Union};
use crate::auth::testing::{Rules, rule};
use crate::object::to_string;

fn parse(text: &str) -> Value {
    crate::object::parse(text.as_bytes()).expect("test JSON")
}

fn ask(kind: ReviewKind, body: &str, namespace: &str) -> Result<String, String> {
    let rules = Rules::new(vec![rule("", "pods", "get", "")]);
    let authenticators = Authenticators::new(Config {
        tokens: vec![Arc::new(StaticTokens::new([("t", UserInfo::named("alice"))], vec!["api".into()]))],
        api_audiences: vec!["api".into()],
        ..Config::default()
    });
    let user = UserInfo::named("me");
    review(kind, parse(body), namespace, &user, &rules, &authenticators, Timestamp::UNIX_EPOCH)
        .now_or_never()
        .unwrap()
        .map(|answer| to_string(&answer))
        .map_err(|error| error.message.clone())
}

fn sar(spec: &str) -> Result<String, String> {
    ask(ReviewKind::SubjectAccessReview, &format!(r#"{{"spec":{spec}}}"#), "")
}

#[test]
fn access_is_judged_for_the_user_in_the_spec() {
    let spec = r#"{"user":"x","resourceAttributes":{"verb":"get","resource":"pods"}}"#;
    assert_eq!(
        sar(spec).unwrap(),
        format!(
            r#"{{"spec":{{"resourceAttributes":{{"resource":"pods","verb":"get"}},"user":"x"}},"status":{{"allowed":true}}}}"#
        )
    );
    let denied = sar(r#"{"user":"x","nonResourceAttributes":{"path":"/x","verb":"get"}}"#).unwrap();
    assert!(denied.ends_with(r#""status":{"allowed":false}}"#), "{denied}");
}

#[test]
fn wrong_specs_are_refused_in_upstreams_words() {
    let prefix = r#".authorization.k8s.io "" is invalid: "#;
    let say = |spec: &str| sar(spec).unwrap_err().strip_prefix(prefix).unwrap().to_owned();
    assert_eq!(
        say("{}"),
        r#"[spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must be specified]"#
    );
    assert_eq!(
        say(r#"{"user":"x","resourceAttributes":{},"nonResourceAttributes":{"path":"/"}}"#),
        r#"spec: Invalid value: {"Path":"/","Verb":""}: exactly one of nonResourceAttributes or resourceAttributes must be specified"#
    );
    assert_eq!(
        say(r#"{"user":"x","resourceAttributes":{"fieldSelector":{}}}"#),
        "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required"
    );
    assert_eq!(
        say(
            r#"{"user":"x","resourceAttributes":{"fieldSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"Exists"}]}}}"#
        ),
        r#"spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements"#
    );
    assert_eq!(
        say(
            r#"{"user":"x","resourceAttributes":{"fieldSelector":{"requirements":[{"key":"a","operator":"In","values":["b","c"]},{"operator":"Exists"}]}}}"#
        ),
        "spec.resourceAttributes.fieldSelector.requirements[1].key: Required value: must be specified"
    );
    assert_eq!(
        say(r#"{"user":"x","resourceAttributes":{"labelSelector":{"requirements":[{"key":"a","operator":"In"}]}}}"#),
        "spec.resourceAttributes.labelSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
    );
}

#[test]
fn metadata_must_be_empty_but_for_ownership_and_shows_in_upstreams_order() {
    let body = r#"{"metadata":{"name":"a","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"t","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},"spec":{"user":"x","resourceAttributes":{}}}"#;
    assert_eq!(
        ask(ReviewKind::SubjectAccessReview, body, "").unwrap_err(),
        r#".authorization.k8s.io "" is invalid: metadata: Invalid value: {"name":"a","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"t","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}: must be empty"#
    );
}

#[test]
fn selectors_that_are_not_understood_are_told() {
    let say = |selector: &str| {
        let answer =
            sar(&format!(r#"{{"user":"x","resourceAttributes":{{"verb":"list","resource":"x",{selector}}}}}"#))
                .unwrap();
        answer.split_once(r#""status":"#).unwrap().1.trim_end_matches('}').to_owned()
    };
    let ignored =
        r#"{"allowed":false,"evaluationError":"spec.resourceAttributes.fieldSelector ignored due to parse error""#;
    assert_eq!(say(r#""fieldSelector":{"rawSelector":"not a selector!!"}"#), ignored);
    assert_eq!(say(r#""fieldSelector":{"requirements":[{"key":"a","operator":"Foo","values":["b"]}]}"#), ignored);
    assert_eq!(
        say(r#""labelSelector":{"requirements":[{"key":"a","operator":"Exists"},{"key":"b","operator":"Foo"}]}"#),
        r#"{"allowed":false,"evaluationError":"spec.resourceAttributes.labelSelector partially ignored due to parse error""#
    );
    assert_eq!(say(r#""fieldSelector":{"rawSelector":"spec.nodeName=n1"}"#), r#"{"allowed":false"#);
}

#[test]
fn a_local_review_stays_in_its_namespace() {
    let local = |body: &str| ask(ReviewKind::LocalSubjectAccessReview, body, "n");
    assert!(
        local(r#"{"metadata":{"namespace":"n"},"spec":{"user":"x","resourceAttributes":{"namespace":"n"}}}"#).is_ok()
    );
    assert_eq!(
        local(r#"{"metadata":{"namespace":"n"},"spec":{"user":"x","resourceAttributes":{}}}"#).unwrap_err(),
        r#".authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace"#
    );
    assert_eq!(
        local(r#"{"metadata":{"namespace":"n"},"spec":{"user":"x","nonResourceAttributes":{"path":"/"}}}"#)
            .unwrap_err(),
        r#".authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":""}: disallowed on this kind of request"#
    );
}

#[test]
fn tokens_are_reviewed() {
    let token = |spec: &str| ask(ReviewKind::TokenReview, &format!(r#"{{"spec":{spec}}}"#), "");
    assert_eq!(token("{}").unwrap_err(), "token is required for TokenReview in authentication");
    assert_eq!(
        token(r#"{"token":"t"}"#).unwrap(),
        r#"{"spec":{"token":"t"},"status":{"audiences":["api"],"authenticated":true,"user":{"groups":["system:authenticated"],"username":"alice"}}}"#
    );
    assert_eq!(
        token(r#"{"token":"x"}"#).unwrap(),
        r#"{"spec":{"token":"x"},"status":{"error":"invalid bearer token","user":{}}}"#
    );
}

#[test]
fn reviews_of_oneself_are_new_objects() {
    assert_eq!(
        ask(ReviewKind::SelfSubjectReview, r#"{"kind":"SelfSubjectReview","metadata":{"name":"x"}}"#, "").unwrap(),
        r#"{"kind":"SelfSubjectReview","metadata":{"creationTimestamp":"1970-01-01T00:00:00Z"},"status":{"userInfo":{"username":"me"}}}"#
    );
    assert_eq!(ask(ReviewKind::SelfSubjectRulesReview, r#"{"spec":{}}"#, "").unwrap_err(), "no namespace on request");
    assert_eq!(
        ask(ReviewKind::SelfSubjectRulesReview, r#"{"spec":{"namespace":"n"}}"#, "").unwrap(),
        r#"{"metadata":{},"spec":{},"status":{"incomplete":false,"nonResourceRules":[],"resourceRules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}}"#
    );
}

#[test]
fn rules_of_a_node_are_incomplete() {
    let both = Rules::new(vec![PolicyRule {
        verbs: vec!["get".into()],
        non_resource_urls: vec!["/x".into()],
        ..PolicyRule::default()
    }]);
    let union = Union::new(vec![("node".into(), Arc::new(Node)), ("rbac".into(), Arc::new(both))]);
    let user = UserInfo::named("system:node:n").with_groups(["system:nodes"]);
    assert_eq!(
        to_string(&rules_status(&union, &user, "n")),
        r#"{"evaluationError":"node authorizer does not support user rule resolution","incomplete":true,"nonResourceRules":[{"nonResourceURLs":["/x"],"verbs":["get"]}],"resourceRules":[]}"#
    );
}
