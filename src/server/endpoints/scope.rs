//! What a request is about: row, version, subresource, namespace and name, and whether its path can mean its verb.

use std::sync::Arc;

use ::http::Method;

use super::{method_not_allowed, unknown_resource};
use crate::{
    api::{ApiError, status::GroupResource},
    registry::{
        catalog::Row,
        resource::{Behaviour, Resource, Subresource, SubresourceBehaviour, Verb, Verbs, Version},
        store::Store,
        strategy::Strategy,
    },
    server::request_info::RequestInfo,
};

pub struct Scope<'a> {
    pub row: &'a Arc<Row>,
    pub resource: &'a Resource,
    pub version: &'a Version,
    pub subresource: Option<&'a Subresource>,
    /// Empty for cluster-scoped resources and for requests over all namespaces.
    pub namespace: &'a str,
    /// Empty for collections.
    pub name: &'a str,
    pub info: &'a RequestInfo,
}

impl<'a> Scope<'a> {
    /// # Errors
    /// The router's 404 for paths no route has.
    pub fn new(info: &'a RequestInfo, row: &'a Arc<Row>, version: &'a Version) -> Result<Self, ApiError> {
        let resource = &*row.resource;
        let subresource = match info.subresource.as_str() {
            "" => None,
            name => Some(version.subresource(name).ok_or_else(|| match resource.typed_items {
                true => ApiError::not_found(resource.group_resource(), info.parts.get(1).map_or("", String::as_str)),
                false => unknown_resource(),
            })?),
        };
        // What is not stored has no paths below `/watch/`.
        if info.verb_from_path && !matches!(resource.behaviour, Behaviour::Stored { .. }) {
            return Err(unknown_resource());
        }
        // Only what is proxied has paths of its own.
        let proxied = subresource.is_some_and(|it| &*it.name == "proxy");
        if info.parts.len() > 3 && !proxied && !resource.typed_items {
            return Err(unknown_resource());
        }
        // `namespaces/x` has itself as its namespace; other cluster-scoped resources have no such routes.
        let own_namespace = resource.group.is_empty() && &*resource.plural == "namespaces";
        if !resource.namespaced && !own_namespace && !info.namespace.is_empty() {
            return Err(unknown_resource());
        }
        let path_name = info.parts.get(1).map_or("", String::as_str);
        if resource.namespaced && info.namespace.is_empty() && !path_name.is_empty() {
            return Err(unknown_resource());
        }
        let namespace = if resource.namespaced { info.namespace.as_str() } else { "" };
        Ok(Self { row, resource, version, subresource, namespace, name: path_name, info })
    }

    /// The verb of this method here.
    ///
    /// # Errors
    /// The router's 405.
    pub fn verb(&self, method: &Method) -> Result<Verb, ApiError> {
        if self.resource.typed_items {
            return self.custom_verb();
        }
        let collection = self.name.is_empty();
        let verb = match (self.info.verb.as_str(), collection) {
            ("watch", _) if *method == Method::GET => Verb::Watch,
            ("list", true) => Verb::List,
            ("get" | "list", _) if *method == Method::GET => Verb::Get,
            ("create", _) => Verb::Create,
            ("update", false) => Verb::Update,
            ("patch", false) => Verb::Patch,
            ("delete", false) => Verb::Delete,
            ("deletecollection", true) => Verb::DeleteCollection,
            _ => return Err(method_not_allowed()),
        };
        let everywhere = self.resource.namespaced && self.namespace.is_empty();
        let possible = match verb {
            Verb::Create => self.subresource.is_some() != collection && !everywhere,
            Verb::DeleteCollection => !everywhere,
            _ => true,
        };
        let allowed = match verb {
            // A namespaced list or watch without a namespace is one over all of them.
            Verb::Watch if self.subresource.is_some() => false,
            // What cannot be watched says so itself where a list is asked to be a watch.
            Verb::Watch if matches!(self.resource.behaviour, Behaviour::Computed(_)) => collection,
            verb => self.verbs().has(verb),
        };
        if *method == Method::HEAD || !(possible && allowed) {
            return Err(method_not_allowed());
        }
        Ok(verb)
    }

    /// The handler of custom resources looks at the verb alone.
    fn custom_verb(&self) -> Result<Verb, ApiError> {
        let asked = self.info.verb.as_str();
        let verb = Verb::ALL.into_iter().find(|verb| verb.as_str() == asked);
        let refused = || ApiError::method_not_supported(self.gr(), asked);
        let verb = verb.filter(|verb| self.verbs().has(*verb)).ok_or_else(refused)?;
        if self.name.is_empty() && matches!(verb, Verb::Get | Verb::Update | Verb::Patch | Verb::Delete) {
            return Err(ApiError::bad_request("name must be provided"));
        }
        Ok(verb)
    }

    fn verbs(&self) -> Verbs {
        self.subresource.map_or(self.resource.verbs, |subresource| subresource.verbs)
    }

    pub fn gr(&self) -> GroupResource<'a> {
        GroupResource::new(&self.resource.group, &self.resource.plural)
    }

    /// The policy of this endpoint: the subresource's own where it has one.
    pub fn strategy(&self) -> &'a dyn Strategy {
        if let Some(Subresource { behaviour: SubresourceBehaviour::Part(strategy), .. }) = self.subresource {
            return &**strategy;
        }
        match self.version.strategy.as_ref().or_else(|| self.resource.strategy()) {
            Some(strategy) => &**strategy,
            None => &crate::registry::strategy::DefaultStrategy,
        }
    }

    /// # Errors
    /// Only for rows that store nothing, which have no verbs that ask.
    pub fn store(&self) -> Result<&'a Arc<Store>, ApiError> {
        self.row.store.as_ref().ok_or_else(method_not_allowed)
    }

    pub fn group_version(&self) -> &'a str {
        &self.version.group_version
    }

    /// apiVersion of what is stored.
    pub fn storage_version(&self) -> &'a str {
        &self.resource.storage_group_version
    }

    /// apiVersion in which a write through this endpoint is judged.
    pub fn hub(&self) -> &'a str {
        self.resource.hub(self.version)
    }

    pub fn subresource_name(&self) -> &'a str {
        self.subresource.map_or("", |subresource| &subresource.name)
    }

    /// Whether this is the `scale` subresource, which shows another kind than the one that is stored.
    pub fn is_scale(&self) -> bool {
        matches!(self.subresource, Some(Subresource { behaviour: SubresourceBehaviour::Scale(_), .. }))
    }
}
