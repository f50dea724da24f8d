//! What tests of this module read from instead of the cache.

use std::{
    collections::BTreeMap,
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

use crate::auth::authz::{Answer, Attributes, Authorizer, Decision, PolicyRule, UserRules, now};
use crate::auth::user::UserInfo;
use crate::object::Value;
use crate::registry::reader::ObjectReader;

type Key = (String, String, String, String);

#[derive(Default)]
pub struct Objects {
    objects: Mutex<BTreeMap<Key, Arc<Value>>>,
    version: AtomicU64,
}

impl Objects {
    pub fn put(&self, group: &str, resource: &str, object: Value) {
        let namespace = object.str_at(&["metadata", "namespace"]).to_owned();
        let name = object.str_at(&["metadata", "name"]).to_owned();
        self.objects.lock().insert((group.into(), resource.into(), namespace, name), Arc::new(object));
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    pub fn delete(&self, group: &str, resource: &str, namespace: &str, name: &str) {
        self.objects.lock().remove(&(group.into(), resource.into(), namespace.into(), name.into()));
        self.version.fetch_add(1, Ordering::SeqCst);
    }
}

impl ObjectReader for Objects {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.objects.lock().get(&(group.into(), resource.into(), namespace.into(), name.into())).cloned()
    }

    fn list(&self, group: &str, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        self.objects
            .lock()
            .iter()
            .filter(|(key, _)| key.0 == group && key.1 == resource && namespace.is_none_or(|it| it == key.2))
            .map(|(_, object)| object.clone())
            .collect()
    }

    fn version(&self, _: &str, _: &str) -> u64 {
        self.version.load(Ordering::SeqCst)
    }
}

/// Allows everybody what its rules allow, in every namespace, and remembers what it was asked.
#[derive(Default)]
pub struct Rules {
    pub rules: Vec<PolicyRule>,
    pub asked: Mutex<Vec<String>>,
}

impl Rules {
    pub fn new(rules: Vec<PolicyRule>) -> Self {
        Self { rules, asked: Mutex::default() }
    }
}

/// A rule of one group, with comma separated resources, verbs and names.
pub fn rule(group: &str, resources: &str, verbs: &str, names: &str) -> PolicyRule {
    let list = |text: &str| text.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    PolicyRule {
        verbs: list(verbs),
        api_groups: vec![group.to_owned()],
        resources: list(resources),
        resource_names: list(names),
        ..PolicyRule::default()
    }
}

impl Authorizer for Rules {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        let Attributes { verb, resource, subresource, namespace, name, path, .. } = attributes;
        self.asked.lock().push(format!("{verb} {resource}/{subresource} {namespace}/{name}{path}"));
        now(match self.rules.iter().any(|rule| rule.allows(attributes)) {
            true => Decision::allow(""),
            false => Decision::no_opinion(""),
        })
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> UserRules {
        UserRules { rules: self.rules.clone(), ..UserRules::default() }
    }
}
