//! The texts of refusals (apiserver `pkg/endpoints/handlers/responsewriters/errors.go`).

use super::Attributes;
use crate::api::{ApiError, field::quote, status::GroupResource};

/// Upstream's sanitizer: `&`, `<` and `>` as HTML entities.
pub fn sanitize(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The 403 of a request that no authorizer allowed. `reason` is the decision's; it is shown as it is.
pub fn forbidden_status(attributes: &Attributes<'_>, reason: &str) -> ApiError {
    let mut why = sanitize(&refusal(attributes));
    if !reason.is_empty() {
        why.push_str(": ");
        why.push_str(reason);
    }
    ApiError::forbidden(GroupResource::new(attributes.api_group, attributes.resource), attributes.name, &why)
}

fn refusal(attributes: &Attributes<'_>) -> String {
    let Attributes { verb, namespace, .. } = attributes;
    let user = quote(&attributes.user.name);
    if !attributes.resource_request {
        return format!("User {user} cannot {verb} path {}", quote(attributes.path));
    }
    let resource = match attributes.subresource {
        "" => quote(attributes.resource),
        sub => quote(&format!("{}/{sub}", attributes.resource)),
    };
    let place = match *namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", quote(namespace)),
    };
    format!("User {user} cannot {verb} resource {resource} in API group {} {place}", quote(attributes.api_group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::UserInfo;

    #[test]
    fn the_three_forms_read_as_upstreams() {
        let user = UserInfo::named("a<b>");
        let mut attributes = Attributes::of_resource(&user, "get", "apps", "v1", "deployments");
        assert_eq!(
            forbidden_status(&attributes, "").message,
            "deployments.apps is forbidden: User \"a&lt;b&gt;\" cannot get resource \"deployments\" in API group \"apps\" at the cluster scope"
        );
        (attributes.namespace, attributes.name, attributes.subresource) = ("n", "d", "scale");
        let status = forbidden_status(&attributes, "rbac: <x>");
        assert_eq!(
            status.message,
            "deployments.apps \"d\" is forbidden: User \"a&lt;b&gt;\" cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"n\": rbac: <x>"
        );
        assert_eq!(status.code, 403);
        let status = forbidden_status(&Attributes::of_path(&user, "post", "/metrics"), "");
        assert_eq!(status.message, "forbidden: User \"a&lt;b&gt;\" cannot post path \"/metrics\"");
    }
}
