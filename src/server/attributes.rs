//! A request's meaning as authorizers see it.

use super::request_info::RequestInfo;
use crate::{
    api::{fields, labels},
    auth::{authz::Attributes, user::UserInfo},
};

/// Holds what [`Attributes`] borrow.
pub struct RequestAttributes<'a> {
    info: &'a RequestInfo,
    fields: fields::Selector,
    labels: labels::Selector,
}

impl<'a> RequestAttributes<'a> {
    /// Selectors that cannot be parsed are left out: the authorizer then judges the unrestricted request, and the
    /// endpoint refuses the selector.
    pub fn new(info: &'a RequestInfo) -> Self {
        let fields = fields::Selector::parse(&info.field_selector).unwrap_or_default();
        let labels = labels::Selector::parse(&info.label_selector).unwrap_or_else(|_| labels::Selector::everything());
        Self { info, fields, labels }
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
            // What serves is nobody's secret who may read the metrics.
            path: if info.path == "/kenter/config" { "/metrics" } else { &info.path },
            field_selector: self.fields.terms(),
            label_selector: self.labels.requirements(),
        }
    }
}
