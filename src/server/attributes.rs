//! A request's meaning as authorizers see it.

use super::request_info::RequestInfo;
use crate::{
    api::{fields, labels},
    auth::{
        authz::{Attributes, SelectorRequirement},
        user::UserInfo,
    },
};

/// Holds what [`Attributes`] borrow.
pub struct RequestAttributes<'a> {
    info: &'a RequestInfo,
    fields: Vec<SelectorRequirement>,
    labels: Vec<SelectorRequirement>,
}

impl<'a> RequestAttributes<'a> {
    /// Selectors that cannot be parsed are left out: the authorizer then judges the unrestricted request, and the
    /// endpoint refuses the selector.
    pub fn new(info: &'a RequestInfo) -> Self {
        let fields = fields::parse(&info.field_selector).map(|it| it.requirements()).unwrap_or_default();
        let labels = labels::parse(&info.label_selector).map(|it| it.requirements_of()).unwrap_or_default();
        Self {
            info,
            fields: fields
                .into_iter()
                .map(|(key, operator, value)| SelectorRequirement { key, operator, values: vec![value] })
                .collect(),
            labels: labels
                .into_iter()
                .map(|(key, operator, values)| SelectorRequirement { key, operator, values })
                .collect(),
        }
    }

    pub fn of<'b>(&'b self, user: &'b UserInfo) -> Attributes<'b> {
        let info = self.info;
        Attributes {
            user,
            verb: &info.verb,
            namespace: &info.namespace,
            api_group: &info.group,
            api_version: &info.version,
            resource: &info.resource,
            subresource: &info.subresource,
            name: &info.name,
            resource_request: info.resource_request,
            path: &info.path,
            field_selector: &self.fields,
            label_selector: &self.labels,
        }
    }
}
