//! Mutating and validating admission (apiserver `pkg/admission`).
//!
//! Mutating plugins all finish before validating ones start; a validating plugin gets shared references and so cannot
//! change anything. Plugins read through the narrow reader and never write.

pub mod plugins;
mod table;

use std::{future::Future, pin::Pin, sync::Arc};

pub use table::{Parts, build, catalogue};

use crate::{
    api::{ApiError, status::GroupResource, warnings::Warnings},
    auth::user::UserInfo,
    object::Value,
};

/// What is being done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// The request as plugins see it.
#[derive(Clone)]
pub struct Attributes<'a> {
    pub operation: Operation,
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
    /// The plural.
    pub resource: &'a str,
    pub subresource: &'a str,
    /// Empty for cluster-scoped kinds, except that a Namespace is in itself.
    pub namespace: &'a str,
    /// As known so far; may be empty while a name is to be generated.
    pub name: &'a str,
    pub user: &'a Arc<UserInfo>,
    pub dry_run: bool,
    /// The request's options object (`CreateOptions`, …).
    pub options: &'a Value,
    pub warnings: &'a Warnings,
}

impl Attributes<'_> {
    /// A refusal in the words of admission (apiserver `pkg/admission/errors.go`).
    pub fn forbidden(&self, why: &str) -> ApiError {
        let name = if self.name.is_empty() { "Unknown" } else { self.name };
        ApiError::forbidden(GroupResource::new(self.group, self.resource), name, why)
    }

    /// Whether this is about the resource `group/resource` itself or, with `subresource`, about that part of it.
    pub fn is(&self, group: &str, resource: &str, subresource: &str) -> bool {
        self.group == group && self.resource == resource && self.subresource == subresource
    }
}

pub type AdmissionFuture<'a> = Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send + 'a>>;

/// One plugin. The default of each half is to have no opinion.
pub trait Plugin: Send + Sync {
    /// Upstream's name, as in `--enable-admission-plugins`.
    fn name(&self) -> &'static str;

    /// Whether the plugin looks at this operation at all.
    fn handles(&self, operation: Operation) -> bool;

    /// May change `object` (absent for deletions). `old` is the stored object on update and delete.
    fn admit<'a>(
        &'a self,
        _request: &'a Attributes<'a>,
        _object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> AdmissionFuture<'a> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn validate<'a>(
        &'a self,
        _request: &'a Attributes<'a>,
        _object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> AdmissionFuture<'a> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether [`Plugin::admit`] or [`Plugin::validate`] does anything, so that the chain skips the other.
    fn phases(&self) -> Phases;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phases {
    Mutating,
    Validating,
    Both,
}

/// The plugins of one generation in their fixed order.
#[derive(Clone, Default)]
pub struct Chain {
    plugins: Vec<Arc<dyn Plugin>>,
}

impl Chain {
    pub fn new(plugins: Vec<Arc<dyn Plugin>>) -> Self {
        Self { plugins }
    }

    /// Names of the plugins that run, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.plugins.iter().map(|plugin| plugin.name()).collect()
    }

    pub async fn admit(
        &self,
        request: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        for plugin in &self.plugins {
            if plugin.phases() != Phases::Validating && plugin.handles(request.operation) {
                plugin.admit(request, object.as_deref_mut(), old).await?;
            }
        }
        Ok(())
    }

    pub async fn validate(
        &self,
        request: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        for plugin in &self.plugins {
            if plugin.phases() != Phases::Mutating && plugin.handles(request.operation) {
                plugin.validate(request, object, old).await?;
            }
        }
        Ok(())
    }
}
