//! Acting as somebody else (apiserver `pkg/endpoints/filters/impersonation`).
//!
//! Constrained modes are tried before the old one: each asks first whether the caller may make this very request
//! while acting as such a user (`impersonate-on:<mode>:<verb>`), then whether it may take this identity
//! (`impersonate:<mode>`). The old mode asks for the verb `impersonate` alone. The first mode that allows counts; the
//! first refusal of an applicable mode is what the caller is told. A caller's last successful mode is tried first.
//!
//! Differs from upstream in that no success is remembered: the questions cost less than the memory would.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;

use super::authn::{text, unescape_key};
use super::authz::{Attributes, Authorizer, Decision, forbidden_status};
use super::user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, NODE_NAME, NODES, UNAUTHENTICATED, User, UserInfo, service_account_groups,
    split_node, split_service_account,
};
use crate::api::{ApiError, ErrorList, Path, field::quote};
use crate::registry::validation::validate_domain_prefixed_path;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// From so many groups or extra values on, one question for all of them is tried first.
const MANY: usize = 4;

/// Callers whose last successful mode is remembered.
const REMEMBERED: usize = 10_000;

/// Whom the request's headers ask to act as, exactly as they say it; the headers are gone afterwards. Group, uid or
/// extra without a user is a bad request.
pub fn wanted_user(headers: &mut HeaderMap) -> Result<Option<UserInfo>, ApiError> {
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Ok(None);
    }
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers.iter() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(unescape_key(key)).or_default().push(text(value));
        }
    }
    let groups = headers.get_all(GROUP).iter().map(text).collect();
    let user = UserInfo { name: first(USER), uid: first(UID), groups, extra };
    if user.name.is_empty() {
        if user == UserInfo::default() {
            return Ok(None);
        }
        let message = format!("requested {} without impersonating a user name", go_syntax(&user));
        return Err(ApiError::bad_request(message));
    }
    let ours = |name: &HeaderName| matches!(name.as_str(), USER | UID | GROUP) || name.as_str().starts_with(EXTRA);
    for name in headers.keys().filter(|name| ours(name)).cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
    Ok(Some(user))
}

/// Go's `%#v` of the user, which upstream shows.
fn go_syntax(user: &UserInfo) -> String {
    let list = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|it| quote(it)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let members: Vec<String> = user.extra.iter().map(|(key, it)| format!("{}:{}", quote(key), list(it))).collect();
        format!("map[string][]string{{{}}}", members.join(", "))
    };
    let (name, uid) = (quote(&user.name), quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}

/// Whom the request counts as from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonated {
    pub user: User,
    /// The identity verb that allowed it, for the audit log; empty for the old mode.
    pub constraint: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

const MODES: [Mode; 5] =
    [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    /// The verb of the identity question.
    fn verb(self) -> &'static str {
        match self {
            Self::AssociatedNode => "impersonate:associated-node",
            Self::ArbitraryNode => "impersonate:arbitrary-node",
            Self::ServiceAccount => "impersonate:serviceaccount",
            Self::UserInfo => "impersonate:user-info",
            Self::Legacy => "impersonate",
        }
    }

    fn constrained(self) -> bool {
        self != Self::Legacy
    }

    /// Group and version of users, groups, nodes and service accounts in the identity question.
    fn group_version(self) -> (&'static str, &'static str) {
        if self.constrained() { AUTHENTICATION } else { ("", "v1") }
    }

    fn applies(self, wanted: &UserInfo, caller: &UserInfo) -> bool {
        let name_only = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (node, account) = (split_node(&wanted.name), split_service_account(&wanted.name));
        match self {
            Self::AssociatedNode => name_only && node.is_some_and(|node| runs_on(caller, node)),
            Self::ArbitraryNode => name_only && node.is_some(),
            Self::ServiceAccount => name_only && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }
}

const AUTHENTICATION: (&str, &str) = ("authentication.k8s.io", "v1");

/// Whether the caller is a service account whose pod runs on that node.
fn runs_on(caller: &UserInfo, node: &str) -> bool {
    let told = caller.extra.get(NODE_NAME).map(Vec::as_slice);
    split_service_account(&caller.name).is_some() && matches!(told, Some([only]) if only == node)
}

/// Decides who may act as whom. Holds only which mode last worked for a caller.
#[derive(Default)]
pub struct Impersonator {
    hasher: RandomState,
    last: Mutex<HashMap<u64, Mode>>,
}

impl Impersonator {
    /// The user a request counts as, or the refusal. `attributes` are the request's, with the caller as user.
    pub async fn impersonate(
        &self,
        authorizer: &dyn Authorizer,
        wanted: &UserInfo,
        attributes: &Attributes<'_>,
    ) -> Result<Impersonated, ApiError> {
        let caller = self.hasher.hash_one(&attributes.user.name);
        let last = self.last.lock().get(&caller).copied();
        let order = last.into_iter().chain(MODES.into_iter().filter(|mode| Some(*mode) != last));
        let mut first_refusal = None;
        for mode in order.filter(|mode| mode.applies(wanted, attributes.user)) {
            match (Attempt { mode, authorizer, wanted, attributes }).check().await {
                Ok(user) => {
                    if last != Some(mode) {
                        self.remember(caller, mode);
                    }
                    let constraint = if mode.constrained() { mode.verb() } else { "" };
                    return Ok(Impersonated { user: Arc::new(user), constraint });
                }
                Err(refusal) => {
                    first_refusal.get_or_insert(refusal);
                }
            }
        }
        // The old mode always applies, so there is a refusal.
        Err(first_refusal.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
    }

    fn remember(&self, caller: u64, mode: Mode) {
        let mut last = self.last.lock();
        if last.len() >= REMEMBERED {
            last.clear();
        }
        last.insert(caller, mode);
    }
}

struct Attempt<'a> {
    mode: Mode,
    authorizer: &'a dyn Authorizer,
    wanted: &'a UserInfo,
    attributes: &'a Attributes<'a>,
}

impl Attempt<'_> {
    async fn check(&self) -> Result<UserInfo, ApiError> {
        if self.mode.constrained() {
            let verb = format!("impersonate-on:{}:{}", self.mode.name(), self.attributes.verb);
            self.ask(&Attributes { verb: &verb, ..*self.attributes }).await?;
        }
        let mut user = self.wanted.clone();
        self.check_name(&mut user).await?;
        if !self.wanted.uid.is_empty() {
            self.ask(&self.identity(AUTHENTICATION, "uids", &self.wanted.uid)).await?;
        }
        self.check_groups().await?;
        self.check_extra().await?;
        if user.name == ANONYMOUS {
            user.ensure_group(UNAUTHENTICATED);
        } else if !user.in_group(UNAUTHENTICATED) {
            user.ensure_group(AUTHENTICATED);
        }
        Ok(user)
    }

    /// The question whether the caller may take a part of the identity.
    fn identity<'b>(&'b self, gv: (&'b str, &'b str), resource: &'b str, name: &'b str) -> Attributes<'b> {
        let mut attributes = Attributes::of_resource(self.attributes.user, self.mode.verb(), gv.0, gv.1, resource);
        attributes.name = name;
        attributes
    }

    async fn check_name(&self, user: &mut UserInfo) -> Result<(), ApiError> {
        let name = &self.wanted.name;
        let mut attributes = self.identity(self.mode.group_version(), "users", name);
        if let (true, Some(node)) = (self.mode.constrained(), split_node(name)) {
            (attributes.resource, attributes.name) = ("nodes", node);
            user.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, name)) = split_service_account(name) {
            (attributes.resource, attributes.namespace, attributes.name) = ("serviceaccounts", namespace, name);
            if self.wanted.groups.is_empty() {
                user.groups = service_account_groups(namespace);
            }
        }
        self.ask(&attributes).await
    }

    async fn check_groups(&self) -> Result<(), ApiError> {
        let groups = &self.wanted.groups;
        let question = |name| self.identity(self.mode.group_version(), "groups", name);
        if self.mode.constrained() {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(forbidden_status(&question(""), why));
            }
            if self.wanted.in_group(MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(forbidden_status(&question(MASTERS), why));
            }
            if groups.len() >= MANY && self.ask(&question("*")).await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            self.ask(&question(group)).await?;
        }
        Ok(())
    }

    async fn check_extra(&self) -> Result<(), ApiError> {
        let extra = &self.wanted.extra;
        let question = |key, value| {
            let mut attributes = self.identity(AUTHENTICATION, "userextras", value);
            attributes.subresource = key;
            attributes
        };
        if self.mode.constrained() && !extra.is_empty() {
            validate_extra(extra).map_err(|why| forbidden_status(&question("", ""), &why))?;
            let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.ask(&question("*", "*")).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.ask(&question(key, value)).await?;
            }
        }
        Ok(())
    }

    async fn ask(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if self.mode != Mode::AssociatedNode {
            return ask(self.authorizer, attributes).await;
        }
        // Whether caller and node belong together was judged before; what is asked is the same for all nodes.
        let keys = attributes.user.extra.keys().cloned().collect();
        let extra = BTreeMap::from([("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)]);
        let caller = UserInfo { extra, ..attributes.user.clone() };
        let name = if attributes.verb == self.mode.verb() { "*" } else { attributes.name };
        ask(self.authorizer, &Attributes { user: &caller, name, ..*attributes }).await
    }
}

async fn ask(authorizer: &dyn Authorizer, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let Decision { verdict, reason, error } = authorizer.authorize(attributes).await;
    if verdict == super::Verdict::Allow {
        return Ok(());
    }
    let why = match error {
        Some(error) if reason.is_empty() => error,
        Some(error) => format!("{error}: {reason}"),
        None => reason,
    };
    Err(forbidden_status(attributes, &why))
}

fn validate_extra(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let mut errors = ErrorList::new();
        validate_domain_prefixed_path(key, &Path::new("extra").child("key"), &mut errors);
        if !errors.is_empty() {
            return Err(format!("impersonating an invalid key in extra is not allowed: {errors}"));
        }
        if key.chars().any(|it| it.is_uppercase()) {
            return Err(format!("impersonating a non-lowercase key in extra is not allowed: {}", quote(key)));
        }
        if values.is_empty() {
            return Err("impersonating empty values in extra is not allowed".to_owned());
        }
        if values.iter().any(String::is_empty) {
            return Err("impersonating the empty string value in extra is not allowed".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http::HeaderValue;

    use super::*;
    use crate::auth::testing::{Rules, rule};

    const AG: &str = "authentication.k8s.io";

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    fn user(list: &[(&'static str, &str)]) -> UserInfo {
        wanted_user(&mut headers(list)).unwrap().unwrap()
    }

    fn act(caller: &UserInfo, rules: &Rules, wanted: &UserInfo) -> Result<Impersonated, String> {
        act_again(&Impersonator::default(), caller, rules, wanted)
    }

    fn act_again(
        it: &Impersonator,
        caller: &UserInfo,
        rules: &Rules,
        wanted: &UserInfo,
    ) -> Result<Impersonated, String> {
        let mut attributes = Attributes::of_resource(caller, "list", "", "v1", "pods");
        attributes.namespace = "n";
        let acting: futures_util::future::BoxFuture<'_, _> = Box::pin(it.impersonate(rules, wanted, &attributes));
        acting.now_or_never().unwrap().map_err(|error| error.message.clone())
    }

    #[test]
    fn headers_are_read_and_taken_away() {
        let mut headers = headers(&[
            ("impersonate-user", "carol"),
            ("impersonate-uid", "1"),
            ("impersonate-group", "a"),
            ("impersonate-group", ""),
            ("impersonate-extra-example.org%2fproject", "p"),
            ("impersonate-extra-scopes", "x"),
            ("impersonate-extra-scopes", "y"),
            ("accept", "z"),
        ]);
        let user = wanted_user(&mut headers).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("carol", "1"));
        assert_eq!(user.groups, ["a", ""]);
        assert_eq!(user.extra["example.org/project"], ["p"]);
        assert_eq!(user.extra["scopes"], ["x", "y"]);
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn without_a_user_the_rest_is_a_bad_request() {
        let say = |list: &[(&'static str, &str)]| wanted_user(&mut headers(list)).unwrap_err().message.clone();
        assert_eq!(
            say(&[
                ("impersonate-group", "dev"),
                ("impersonate-group", "ops"),
                ("impersonate-uid", "x"),
                ("impersonate-extra-a", "b")
            ]),
            r#"requested &user.DefaultInfo{Name:"", UID:"x", Groups:[]string{"dev", "ops"}, Extra:map[string][]string{"a":[]string{"b"}}} without impersonating a user name"#
        );
        assert_eq!(
            say(&[("impersonate-uid", "u-1")]),
            r#"requested &user.DefaultInfo{Name:"", UID:"u-1", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name"#
        );
        assert_eq!(wanted_user(&mut headers(&[("impersonate-user", "")])).unwrap(), None);
    }

    #[test]
    fn the_old_right_is_enough_and_each_part_is_asked_for() {
        let caller = UserInfo::named("c");
        let rules =
            Rules::new(vec![rule("", "users,groups", "impersonate", ""), rule(AG, "uids", "impersonate", "u-1")]);
        let found = act(
            &caller,
            &rules,
            &user(&[("impersonate-user", "carol"), ("impersonate-group", "dev"), ("impersonate-uid", "u-1")]),
        )
        .unwrap();
        assert_eq!(found.user.groups, ["dev", "system:authenticated"]);
        assert_eq!(found.constraint, "");
        // What is told is the first refusal, that of the constrained mode.
        assert_eq!(
            act(&caller, &rules, &user(&[("impersonate-user", "carol"), ("impersonate-uid", "u-2")])),
            Err(r#"pods is forbidden: User "c" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "n""#.to_owned())
        );
    }

    #[test]
    fn service_accounts_get_their_groups_and_anonymous_gets_its_own() {
        let caller = UserInfo::named("c");
        let rules = Rules::new(vec![rule("", "users,serviceaccounts", "impersonate", "")]);
        let name = |name: &str| act(&caller, &rules, &UserInfo::named(name)).unwrap().user.groups.clone();
        assert_eq!(
            name("system:serviceaccount:n1:robot"),
            ["system:serviceaccounts", "system:serviceaccounts:n1", "system:authenticated"]
        );
        assert_eq!(name("system:anonymous"), ["system:unauthenticated"]);
        // The old mode knows nothing of nodes.
        assert_eq!(name("system:node:n1"), ["system:authenticated"]);
        assert!(rules.asked.lock().contains(&"impersonate serviceaccounts/ n1/robot".to_owned()));
    }

    #[test]
    fn a_constrained_caller_needs_the_identity_and_the_request() {
        let caller = UserInfo::named("c");
        let identity = rule(AG, "users,uids,groups", "impersonate:user-info", "");
        let request = rule("", "pods", "impersonate-on:user-info:list", "");
        let both = Rules::new(vec![identity.clone(), request.clone()]);
        let found = act(&caller, &both, &user(&[("impersonate-user", "carol"), ("impersonate-group", "dev")])).unwrap();
        assert_eq!(found.constraint, "impersonate:user-info");
        let denied = act(&caller, &Rules::new(vec![request]), &UserInfo::named("carol")).unwrap_err();
        assert_eq!(
            denied,
            r#"users.authentication.k8s.io "carol" is forbidden: User "c" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope"#
        );
        assert!(act(&caller, &Rules::new(vec![identity]), &UserInfo::named("carol")).is_err());
    }

    #[test]
    fn constrained_callers_never_get_masters_empty_groups_or_odd_extras() {
        let caller = UserInfo::named("c");
        let rules = Rules::new(vec![
            rule(AG, "*", "impersonate:user-info", ""),
            rule("*", "*", "impersonate-on:user-info:list", ""),
        ]);
        let say = |key: &'static str, value: &str| {
            let error = act(&caller, &rules, &user(&[("impersonate-user", "carol"), (key, value)])).unwrap_err();
            error.rsplit_once("cluster scope: ").unwrap().1.to_owned()
        };
        assert_eq!(say("impersonate-group", "system:masters"), "impersonating the system:masters group is not allowed");
        assert_eq!(say("impersonate-group", ""), "impersonating the empty string group is not allowed");
        assert_eq!(
            say("impersonate-extra-scopes", "a"),
            r#"impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")"#
        );
    }

    #[test]
    fn many_groups_are_asked_for_at_once_first() {
        let caller = UserInfo::named("c");
        let rules = Rules::new(vec![
            rule(AG, "users,groups", "impersonate:user-info", ""),
            rule("*", "*", "impersonate-on:user-info:list", ""),
        ]);
        let wanted = UserInfo::named("carol").with_groups(["a", "b", "c", "d"]);
        act(&caller, &rules, &wanted).unwrap();
        let asked = rules.asked.lock();
        assert_eq!(asked.last().unwrap(), "impersonate:user-info groups/ /*");
    }

    #[test]
    fn a_pod_may_act_as_the_node_it_runs_on() {
        let mut caller = UserInfo::named("system:serviceaccount:n:agent");
        let rules = Rules::new(vec![
            rule(AG, "nodes", "impersonate:associated-node", "*"),
            rule("", "pods", "impersonate-on:associated-node:list", ""),
        ]);
        assert!(act(&caller, &rules, &UserInfo::named("system:node:n1")).is_err());
        caller.extra.insert(NODE_NAME.to_owned(), vec!["n1".to_owned()]);
        let found = act(&caller, &rules, &UserInfo::named("system:node:n1")).unwrap();
        assert_eq!(found.user.groups, ["system:nodes", "system:authenticated"]);
        assert!(act(&caller, &rules, &UserInfo::named("system:node:n2")).is_err());
    }

    #[test]
    fn the_mode_that_worked_last_is_tried_first() {
        let caller = UserInfo::named("c");
        let rules = Rules::new(vec![rule("*", "*", "*", "")]);
        let it = Impersonator::default();
        let node = UserInfo::named("system:node:n1");
        assert_eq!(act_again(&it, &caller, &rules, &node).unwrap().constraint, "impersonate:arbitrary-node");
        let masters = UserInfo::named("carol").with_groups([MASTERS]);
        assert_eq!(act_again(&it, &caller, &rules, &masters).unwrap().constraint, "");
        assert_eq!(act_again(&it, &caller, &rules, &node).unwrap().user.groups, ["system:authenticated"]);
    }
}
