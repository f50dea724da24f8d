//! Role-based access control over the cached roles and bindings (kubernetes `plugin/pkg/auth/authorizer/rbac`,
//! `pkg/registry/rbac/validation/rule.go`).
//!
//! Bindings are indexed by subject, per namespace and once for the cluster; the rules of a role are read out of
//! its object once per version of the object. An index is remade when the resource's version says that something
//! changed, by the first request that needs it: only the namespace asked for, and only what changed is read again.
//! A request takes shared pointers and matches rules with no lock held.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use parking_lot::RwLock;

use super::{Answer, Attributes, Authorizer, Decision, PolicyRule, UserRules, aggregate, now};
use crate::api::field::quote;
use crate::auth::user::UserInfo;
use crate::object::Value;
use crate::registry::reader::ObjectReader;

pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Indexes of namespaces that are kept; beyond it, those that are out of date go first.
const MAX_NAMESPACES: usize = 16_384;

/// Places of roles that are kept before those nobody is bound to are looked for.
const FEW_ROLES: usize = 1024;

/// Mode `RBAC`.
pub struct Rbac {
    reader: Arc<dyn ObjectReader>,
    cluster: ArcSwapOption<Bindings>,
    namespaces: RwLock<HashMap<Box<str>, Arc<Bindings>>>,
    roles: RwLock<HashMap<RoleKey, Arc<Role>>>,
    /// So many roles are cause to look for those that can be forgotten: twice what was left last time.
    many_roles: AtomicUsize,
}

/// Whose role it is: `None` for cluster roles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RoleKey {
    namespace: Option<Box<str>>,
    name: Box<str>,
}

/// A role that bindings refer to; it may not exist.
struct Role {
    key: RoleKey,
    current: ArcSwapOption<RoleState>,
}

/// What a role was when its resource had this version.
struct RoleState {
    version: u64,
    source: Option<Arc<Value>>,
    rules: Arc<[PolicyRule]>,
}

/// The bindings of one namespace, or those of the cluster.
struct Bindings {
    version: u64,
    bindings: Vec<Arc<Binding>>,
    /// Subjects by user name (service accounts by theirs), as binding and subject.
    users: HashMap<Box<str>, Vec<(u32, u32)>>,
    groups: HashMap<Box<str>, Vec<(u32, u32)>>,
}

struct Binding {
    source: Arc<Value>,
    /// Empty for a ClusterRoleBinding.
    namespace: Box<str>,
    name: Box<str>,
    /// `Err` has what is wrong with the reference's kind.
    role: Result<Arc<Role>, String>,
    role_kind: Box<str>,
    subjects: Vec<Subject>,
}

struct Subject {
    kind: SubjectKind,
    name: Box<str>,
    /// Of a service account; the binding's own where the subject names none.
    namespace: Box<str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SubjectKind {
    User,
    Group,
    ServiceAccount,
    Unknown,
}

impl Subject {
    fn new(subject: &Value, binding_namespace: &str) -> Self {
        let kind = match subject.str_at(&["kind"]) {
            "User" => SubjectKind::User,
            "Group" => SubjectKind::Group,
            "ServiceAccount" => SubjectKind::ServiceAccount,
            _ => SubjectKind::Unknown,
        };
        let namespace = match subject.str_at(&["namespace"]) {
            "" => binding_namespace,
            named => named,
        };
        Self { kind, name: subject.str_at(&["name"]).into(), namespace: namespace.into() }
    }

    fn text(&self) -> String {
        match self.kind {
            SubjectKind::ServiceAccount => {
                format!("ServiceAccount {}", quote(&format!("{}/{}", self.name, self.namespace)))
            }
            SubjectKind::Group => format!("Group {}", quote(&self.name)),
            SubjectKind::User | SubjectKind::Unknown => format!("User {}", quote(&self.name)),
        }
    }
}

impl Binding {
    /// `RoleBinding "b/ns" of Role "r" to User "u"`.
    fn text(&self, subject: usize) -> String {
        let (kind, name) = match &*self.namespace {
            "" => ("ClusterRoleBinding", quote(&self.name)),
            namespace => ("RoleBinding", quote(&format!("{}/{namespace}", self.name))),
        };
        let role = match &self.role {
            Ok(role) => quote(&role.key.name),
            Err(_) => String::new(),
        };
        let subject = self.subjects.get(subject).map(Subject::text).unwrap_or_default();
        format!("{kind} {name} of {} {role} to {subject}", self.role_kind)
    }
}

impl Rbac {
    pub fn new(reader: Arc<dyn ObjectReader>) -> Self {
        Self {
            reader,
            cluster: ArcSwapOption::empty(),
            namespaces: RwLock::default(),
            roles: RwLock::default(),
            many_roles: FEW_ROLES.into(),
        }
    }

    /// Calls `visit` with each rule that applies to the user in the namespace (`""`: the cluster scope alone) and
    /// where it comes from, until it answers false. Returns the errors met on the way.
    fn visit(
        &self,
        user: &UserInfo,
        namespace: &str,
        visit: &mut dyn FnMut(&Source<'_>, &PolicyRule) -> bool,
    ) -> Vec<String> {
        let mut errors = Vec::new();
        // Read before any role is: a change in between is seen again by the next request.
        let mut versions = Versions { cluster_roles: self.reader.version(GROUP, "clusterroles"), roles: 0 };
        if self.visit_bindings(&self.cluster_bindings(), versions, user, visit, &mut errors) && !namespace.is_empty() {
            versions.roles = self.reader.version(GROUP, "roles");
            self.visit_bindings(&self.namespace_bindings(namespace), versions, user, visit, &mut errors);
        }
        errors
    }

    fn visit_bindings(
        &self,
        bindings: &Bindings,
        versions: Versions,
        user: &UserInfo,
        visit: &mut dyn FnMut(&Source<'_>, &PolicyRule) -> bool,
        errors: &mut Vec<String>,
    ) -> bool {
        for (at, subject) in bindings.of(user) {
            let Some(binding) = bindings.bindings.get(at as usize) else { continue };
            match self.rules_of(binding, versions) {
                Ok(rules) => {
                    let source = Source { binding, subject: subject as usize };
                    if !rules.iter().all(|rule| visit(&source, rule)) {
                        return false;
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        true
    }

    fn rules_of(&self, binding: &Binding, versions: Versions) -> Result<Arc<[PolicyRule]>, String> {
        let role = binding.role.as_ref().map_err(String::clone)?;
        let (resource, namespace, version) = match &role.key.namespace {
            Some(namespace) => ("roles", &**namespace, versions.roles),
            None => ("clusterroles", "", versions.cluster_roles),
        };
        let known = role.current.load_full();
        let state = match known {
            Some(known) if known.version == version => known,
            known => {
                let state = Arc::new(self.read_role(role, resource, namespace, version, known));
                role.current.store(Some(state.clone()));
                state
            }
        };
        match state.source {
            Some(_) => Ok(state.rules.clone()),
            None => Err(not_found(resource, &role.key.name)),
        }
    }

    fn read_role(
        &self,
        role: &Role,
        resource: &str,
        namespace: &str,
        version: u64,
        known: Option<Arc<RoleState>>,
    ) -> RoleState {
        let source = self.reader.get(GROUP, resource, namespace, &role.key.name);
        let rules = match (&source, &known) {
            (Some(now), Some(known)) if known.source.as_ref().is_some_and(|then| Arc::ptr_eq(then, now)) => {
                known.rules.clone()
            }
            (Some(now), _) => PolicyRule::all_of(now).into(),
            (None, _) => Arc::new([]),
        };
        RoleState { version, source, rules }
    }

    fn cluster_bindings(&self) -> Arc<Bindings> {
        let version = self.reader.version(GROUP, "clusterrolebindings");
        let known = self.cluster.load_full();
        match known {
            Some(known) if known.version == version => known,
            known => {
                let made = Arc::new(self.index("clusterrolebindings", "", version, known.as_deref()));
                self.cluster.store(Some(made.clone()));
                self.forget_unused_roles();
                made
            }
        }
    }

    fn namespace_bindings(&self, namespace: &str) -> Arc<Bindings> {
        let version = self.reader.version(GROUP, "rolebindings");
        let known = self.namespaces.read().get(namespace).cloned();
        if let Some(known) = &known
            && known.version == version
        {
            return known.clone();
        }
        let made = Arc::new(self.index("rolebindings", namespace, version, known.as_deref()));
        let mut namespaces = self.namespaces.write();
        if namespaces.len() >= MAX_NAMESPACES {
            namespaces.retain(|_, bindings| bindings.version == version);
            if namespaces.len() >= MAX_NAMESPACES {
                namespaces.clear();
            }
        }
        namespaces.insert(namespace.into(), made.clone());
        made
    }

    fn index(&self, resource: &str, namespace: &str, version: u64, known: Option<&Bindings>) -> Bindings {
        let scope = if namespace.is_empty() { None } else { Some(namespace) };
        let old: HashMap<*const Value, &Arc<Binding>> =
            known.iter().flat_map(|it| &it.bindings).map(|it| (Arc::as_ptr(&it.source), it)).collect();
        let bindings = self
            .reader
            .list(GROUP, resource, scope)
            .into_iter()
            .map(|source| match old.get(&Arc::as_ptr(&source)) {
                Some(same) => (*same).clone(),
                None => Arc::new(self.read_binding(source, namespace)),
            })
            .collect();
        Bindings::new(version, bindings)
    }

    fn read_binding(&self, source: Arc<Value>, namespace: &str) -> Binding {
        let name = source.str_at(&["roleRef", "name"]);
        let kind = source.str_at(&["roleRef", "kind"]);
        let role = match kind {
            "ClusterRole" => Ok(self.role(None, name)),
            "Role" => Ok(self.role(Some(namespace), name)),
            other => Err(format!("unsupported role reference kind: {}", quote(other))),
        };
        let subjects = source.array_at(&["subjects"]).iter().map(|it| Subject::new(it, namespace)).collect();
        Binding {
            namespace: namespace.into(),
            name: source.str_at(&["metadata", "name"]).into(),
            role,
            role_kind: kind.into(),
            subjects,
            source,
        }
    }

    /// The shared place of a role's rules.
    fn role(&self, namespace: Option<&str>, name: &str) -> Arc<Role> {
        let key = RoleKey { namespace: namespace.map(Into::into), name: name.into() };
        if let Some(role) = self.roles.read().get(&key) {
            return role.clone();
        }
        if self.roles.read().len() >= self.many_roles.load(Ordering::Relaxed) {
            self.forget_stale_namespaces();
            let left = self.forget_unused_roles();
            self.many_roles.store(FEW_ROLES.max(2 * left), Ordering::Relaxed);
        }
        let make = || Arc::new(Role { key: key.clone(), current: ArcSwapOption::empty() });
        self.roles.write().entry(key.clone()).or_insert_with(make).clone()
    }

    /// Returns how many are left.
    fn forget_unused_roles(&self) -> usize {
        let mut roles = self.roles.write();
        roles.retain(|_, role| Arc::strong_count(role) > 1);
        roles.len()
    }

    /// Indexes that are out of date hold the roles of bindings that may be gone; who still needs one makes it anew.
    fn forget_stale_namespaces(&self) {
        let version = self.reader.version(GROUP, "rolebindings");
        self.namespaces.write().retain(|_, bindings| bindings.version == version);
    }

    /// Every rule the user has in the namespace and the errors met while finding them; what escalation checks
    /// compare with.
    pub fn rules_of_user(&self, user: &UserInfo, namespace: &str) -> (Vec<PolicyRule>, Vec<String>) {
        let mut rules = Vec::new();
        let errors = self.visit(user, namespace, &mut |_, rule| {
            rules.push(rule.clone());
            true
        });
        (rules, errors)
    }

    /// The rules of the role that a binding in `namespace` (`""`: of the cluster) refers to; `None` where there is no
    /// such role.
    pub fn rules_of_reference(&self, kind: &str, namespace: &str, name: &str) -> Option<Arc<[PolicyRule]>> {
        let namespace = if kind == "Role" { Some(namespace) } else { None };
        let (resource, place) = namespace.map_or(("clusterroles", ""), |namespace| ("roles", namespace));
        self.reader.get(GROUP, resource, place, name).map(|role| PolicyRule::all_of(&role).into())
    }
}

/// Versions of the resources that roles live in.
#[derive(Clone, Copy)]
struct Versions {
    cluster_roles: u64,
    /// Set only where a namespace is asked about: bindings of the cluster refer to no role of a namespace.
    roles: u64,
}

/// Where a rule comes from.
struct Source<'a> {
    binding: &'a Binding,
    subject: usize,
}

impl Bindings {
    fn new(version: u64, bindings: Vec<Arc<Binding>>) -> Self {
        let mut this = Self { version, bindings, users: HashMap::new(), groups: HashMap::new() };
        for (at, binding) in this.bindings.iter().enumerate() {
            for (number, subject) in binding.subjects.iter().enumerate() {
                let place = (at as u32, number as u32);
                match subject.kind {
                    SubjectKind::User => this.users.entry(subject.name.clone()).or_default().push(place),
                    SubjectKind::Group => this.groups.entry(subject.name.clone()).or_default().push(place),
                    SubjectKind::ServiceAccount if !subject.namespace.is_empty() => {
                        let name = format!("system:serviceaccount:{}:{}", subject.namespace, subject.name);
                        this.users.entry(name.into()).or_default().push(place);
                    }
                    SubjectKind::ServiceAccount | SubjectKind::Unknown => {}
                }
            }
        }
        this
    }

    /// The bindings that apply to a user, in order, each with the first subject that does.
    fn of(&self, user: &UserInfo) -> Vec<(u32, u32)> {
        let mut places: Vec<(u32, u32)> = self.users.get(user.name.as_str()).cloned().unwrap_or_default();
        for group in &user.groups {
            places.extend(self.groups.get(group.as_str()).into_iter().flatten());
        }
        places.sort_unstable();
        places.dedup_by_key(|place| place.0);
        places
    }
}

/// As the lister of that kind says it.
fn not_found(resource: &str, name: &str) -> String {
    let kind = if resource == "roles" { "role" } else { "clusterrole" };
    format!("{kind}.{GROUP} {} not found", quote(name))
}

impl Authorizer for Rbac {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        let mut allowed = None;
        let errors = self.visit(attributes.user, attributes.namespace, &mut |source, rule| {
            if rule.allows(attributes) {
                allowed = Some(source.binding.text(source.subject));
            }
            allowed.is_none()
        });
        now(match (allowed, aggregate(errors)) {
            (Some(by), _) => Decision::allow(format!("RBAC: allowed by {by}")),
            (None, Some(errors)) => Decision::no_opinion(format!("RBAC: {errors}")),
            (None, None) => Decision::no_opinion(""),
        })
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let (rules, errors) = self.rules_of_user(user, namespace);
        UserRules { rules, incomplete: false, errors: aggregate(errors).into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::authz::Verdict;
    use crate::auth::testing::Objects;
    use crate::json;
    use futures_util::FutureExt;

    fn decide(rbac: &Rbac, attributes: &Attributes<'_>) -> Decision {
        rbac.authorize(attributes).now_or_never().expect("RBAC answers at once")
    }

    fn role(namespace: &str, name: &str, verbs: Value) -> Value {
        let mut role =
            json!({"metadata": {"name": name}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]});
        if !namespace.is_empty() {
            role.set(&["metadata", "namespace"], namespace);
        }
        role
    }

    fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: Value) -> Value {
        let (kind, role) = role;
        let mut binding = json!({"metadata": {"name": name}, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role}, "subjects": subjects});
        if !namespace.is_empty() {
            binding.set(&["metadata", "namespace"], namespace);
        }
        binding
    }

    fn pods<'a>(user: &'a UserInfo, verb: &'a str, namespace: &'a str) -> Attributes<'a> {
        let mut attributes = Attributes::of_resource(user, verb, "", "v1", "pods");
        attributes.namespace = namespace;
        attributes
    }

    #[test]
    fn the_reason_names_binding_role_and_subject() {
        let objects = Arc::new(Objects::default());
        objects.put(GROUP, "clusterroles", role("", "all", json!(["list"])));
        objects.put(
            GROUP,
            "clusterrolebindings",
            binding("", "b", ("ClusterRole", "all"), json!([{"kind": "Group", "name": "dev"}])),
        );
        objects.put(GROUP, "roles", role("n", "r", json!(["get"])));
        objects.put(
            GROUP,
            "rolebindings",
            binding(
                "n",
                "b",
                ("Role", "r"),
                json!([{"kind": "ServiceAccount", "name": "s"}, {"kind": "User", "name": "u"}]),
            ),
        );
        let rbac = Rbac::new(objects);
        let user = UserInfo::named("u").with_groups(["dev"]);
        assert_eq!(
            decide(&rbac, &pods(&user, "list", "n")).reason,
            r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "all" to Group "dev""#
        );
        assert_eq!(
            decide(&rbac, &pods(&user, "get", "n")).reason,
            r#"RBAC: allowed by RoleBinding "b/n" of Role "r" to User "u""#
        );
        let account = UserInfo::named("system:serviceaccount:n:s");
        assert_eq!(
            decide(&rbac, &pods(&account, "get", "n")).reason,
            r#"RBAC: allowed by RoleBinding "b/n" of Role "r" to ServiceAccount "s/n""#
        );
        assert_eq!(decide(&rbac, &pods(&user, "get", "other")).verdict, Verdict::NoOpinion);
        assert_eq!(decide(&rbac, &pods(&user, "get", "")).verdict, Verdict::NoOpinion);
    }

    #[test]
    fn a_missing_role_is_told_and_seen_once_it_is_there() {
        let objects = Arc::new(Objects::default());
        objects.put(GROUP, "rolebindings", binding("n", "b", ("Role", "gone"), json!([{"kind": "User", "name": "u"}])));
        let rbac = Rbac::new(objects.clone());
        let user = UserInfo::named("u");
        assert_eq!(
            decide(&rbac, &pods(&user, "get", "n")).reason,
            r#"RBAC: role.rbac.authorization.k8s.io "gone" not found"#
        );
        objects.put(GROUP, "roles", role("n", "gone", json!(["get"])));
        assert!(decide(&rbac, &pods(&user, "get", "n")).allowed());
        objects.put(GROUP, "roles", role("n", "gone", json!(["list"])));
        assert!(!decide(&rbac, &pods(&user, "get", "n")).allowed());
        objects.delete(GROUP, "rolebindings", "n", "b");
        assert_eq!(decide(&rbac, &pods(&user, "list", "n")), Decision::no_opinion(""));
    }

    #[test]
    fn roles_nobody_is_bound_to_any_more_are_forgotten() {
        let objects = Arc::new(Objects::default());
        let rbac = Rbac::new(objects.clone());
        let user = UserInfo::named("u");
        for n in 0..50 {
            objects.put(
                GROUP,
                "clusterrolebindings",
                binding("", "b", ("ClusterRole", &format!("r{n}")), json!([{"kind": "User", "name": "u"}])),
            );
            decide(&rbac, &pods(&user, "get", ""));
        }
        assert!(rbac.roles.read().len() <= 2);
    }

    #[test]
    fn roles_of_namespaces_that_are_gone_are_forgotten_though_no_cluster_binding_changes() {
        let objects = Arc::new(Objects::default());
        let rbac = Rbac::new(objects.clone());
        let user = UserInfo::named("u");
        for n in 0..3 * FEW_ROLES {
            let namespace = format!("n{n}");
            let subjects = json!([{"kind": "User", "name": "u"}]);
            objects.put(GROUP, "rolebindings", binding(&namespace, "b", ("Role", "r"), subjects));
            decide(&rbac, &pods(&user, "get", &namespace));
            objects.delete(GROUP, "rolebindings", &namespace, "b");
        }
        assert!(rbac.roles.read().len() <= FEW_ROLES, "{}", rbac.roles.read().len());
        assert!(rbac.namespaces.read().len() <= FEW_ROLES);
    }

    #[test]
    fn rules_of_a_user_are_those_of_all_bindings_repetitions_kept() {
        let objects = Arc::new(Objects::default());
        objects.put(GROUP, "clusterroles", role("", "r", json!(["get"])));
        for name in ["a", "b"] {
            objects.put(
                GROUP,
                "clusterrolebindings",
                binding("", name, ("ClusterRole", "r"), json!([{"kind": "User", "name": "u"}])),
            );
        }
        let rules = Rbac::new(objects).rules_for(&UserInfo::named("u"), "default");
        assert_eq!(rules.rules.len(), 2);
        assert!(!rules.incomplete && rules.errors.is_empty());
    }
}
