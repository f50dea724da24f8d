//! `POST serviceaccounts/{name}/token` (kubernetes `pkg/registry/core/serviceaccount/storage/token.go`).

use std::{sync::Arc, time::Duration};

use crate::{
    api::{ApiError, ErrorList, FieldError, Meta, Path, duration::format_time, status::GroupResource},
    auth::issuer::{Bound, Issuer, Named, Ticket},
    json,
    object::Value,
    registry::{
        reader::ObjectReader,
        resource::{Call, CallContext, CallFuture},
    },
};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

pub struct TokenRequest {
    pub issuer: Arc<Issuer>,
    pub reader: Arc<dyn ObjectReader>,
}

impl Call for TokenRequest {
    fn call<'a>(&'a self, cx: CallContext<'a>, body: Value) -> CallFuture<'a> {
        Box::pin(async move { Ok((201, self.issue(&cx, body).await?)) })
    }
}

impl TokenRequest {
    async fn issue(&self, cx: &CallContext<'_>, mut request: Value) -> Result<Value, ApiError> {
        let asked = Meta::of(&request).name().to_owned();
        if !asked.is_empty() && asked != cx.name {
            let mut errors = ErrorList::new();
            let metadata = Path::new("metadata");
            let path = metadata.child("name");
            errors.push(FieldError::invalid(&path, asked, "must match the service account name if specified"));
            return Err(ApiError::invalid(GROUP, KIND, cx.name, &errors));
        }
        let account = self.find("serviceaccounts", cx.namespace, cx.name).await?;
        let uid = Meta::of(&request).uid().to_owned();
        if !uid.is_empty() && uid != account.uid {
            let kind = GroupResource::new(GROUP, KIND);
            let own = &account.uid;
            let why =
                format!("the UID in the token request ({uid}) does not match the UID of the service account ({own})");
            return Err(ApiError::conflict(kind, cx.name, &why));
        }
        self.complete(cx, &account, &mut request);
        let errors = validate(&request);
        if !errors.is_empty() {
            return Err(ApiError::invalid(GROUP, KIND, "", &errors));
        }
        let bound = self.bound(cx, &request).await?;
        let audiences: Vec<String> =
            request.array_at(&["spec", "audiences"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let seconds = seconds(&request);
        let ticket = Ticket { namespace: cx.namespace, account, bound, audiences: &audiences, seconds };
        let token = self
            .issuer
            .issue(&ticket, cx.now)
            .map_err(|error| ApiError::internal(format!("failed to generate token: {error}")))?;
        let lifetime = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let expires = cx.now.checked_add(lifetime).unwrap_or(cx.now);
        request.set(&["status"], json!({"token": token, "expirationTimestamp": (format_time(expires))}));
        Ok(request)
    }

    /// What the request leaves open is the account's.
    fn complete(&self, cx: &CallContext<'_>, account: &Named, request: &mut Value) {
        if request.array_at(&["spec", "audiences"]).is_empty() {
            let audiences: Vec<Value> = self.issuer.api_audiences.iter().map(|it| it.as_str().into()).collect();
            request.set(&["spec", "audiences"], audiences);
        }
        request.set(&["metadata", "name"], cx.name);
        request.set(&["metadata", "namespace"], cx.namespace);
        request.set(&["metadata", "uid"], account.uid.as_str());
        request.set(&["metadata", "creationTimestamp"], format_time(cx.now));
    }

    /// The object that the token is bound to; its UID has to be the one that was asked for.
    async fn bound(&self, cx: &CallContext<'_>, request: &Value) -> Result<Option<Bound>, ApiError> {
        let Some(reference) = request.at(&["spec", "boundObjectRef"]).filter(|it| !it.is_null()) else {
            return Ok(None);
        };
        let text = |name: &str| reference.str_at(&[name]);
        let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
        let (group, bare) = version.split_once('/').unwrap_or(("", version));
        let (found, bound) = match (group, kind) {
            ("", "Pod") => {
                let (pod, node) = self.pod(cx, name).await?;
                (pod.clone(), Bound::Pod(pod, node))
            }
            ("", "Secret") => {
                let secret = self.find("secrets", cx.namespace, name).await?;
                (secret.clone(), Bound::Secret(secret))
            }
            ("", "Node") => {
                let node = self.find("nodes", "", name).await?;
                (node.clone(), Bound::Node(node))
            }
            _ => {
                let message = format!("cannot bind token to object of type {group}/{bare}, Kind={kind}");
                return Err(ApiError::bad_request(message));
            }
        };
        let uid = text("uid");
        if !uid.is_empty() && uid != found.uid {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might \
                 have been deleted and then recreated"
            );
            return Err(ApiError::conflict(GroupResource::new(group, kind), name, &why));
        }
        Ok(Some(bound))
    }

    /// A pod of this account, and the node it runs on.
    async fn pod(&self, cx: &CallContext<'_>, name: &str) -> Result<(Named, Option<Named>), ApiError> {
        let pod = self.object("pods", cx.namespace, name).await?;
        if pod.str_at(&["spec", "serviceAccountName"]) != cx.name {
            let account = crate::api::field::quote(cx.name);
            return Err(ApiError::bad_request(format!(
                "cannot bind token for serviceaccount {account} to pod running with different serviceaccount name."
            )));
        }
        let node = match pod.str_at(&["spec", "nodeName"]) {
            "" => None,
            // A node that is not there is named all the same.
            node => {
                let named = || Named { name: node.to_owned(), uid: String::new() };
                Some(self.reader.get("", "nodes", "", node).map_or_else(named, |node| named_of(&node)))
            }
        };
        Ok((named_of(&pod), node))
    }

    async fn find(&self, plural: &str, namespace: &str, name: &str) -> Result<Named, ApiError> {
        self.object(plural, namespace, name).await.map(|object| named_of(&object))
    }

    /// An object of the core group as it is now.
    async fn object(&self, plural: &str, namespace: &str, name: &str) -> Result<Arc<Value>, ApiError> {
        self.reader.caught_up("", plural).await;
        let found = self.reader.get("", plural, namespace, name);
        found.ok_or_else(|| ApiError::not_found(GroupResource::new("", plural), name))
    }
}

fn named_of(object: &Value) -> Named {
    let meta = Meta::of(object);
    Named { name: meta.name().to_owned(), uid: meta.uid().to_owned() }
}

fn seconds(request: &Value) -> i64 {
    request.i64_at(&["spec", "expirationSeconds"]).unwrap_or(0)
}

fn validate(request: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    let attestations = request.at(&["spec", "attestations"]).and_then(Value::as_object);
    if let Some(attestations) = attestations.filter(|it| !it.is_empty()) {
        let why = "attestations may only be specified with a webhook bound object reference";
        errors.push(FieldError::invalid(&spec.child("attestations"), Value::from(attestations.clone()), why));
        return errors;
    }
    let (path, seconds) = (spec.child("expirationSeconds"), seconds(request));
    if seconds < SHORTEST {
        errors.push(FieldError::invalid(&path, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > LONGEST {
        errors.push(FieldError::invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_between_ten_minutes_and_two_to_the_32_seconds() {
        let said = |seconds: i64| validate(&json!({"spec": {"expirationSeconds": seconds}})).to_string();
        assert_eq!(
            said(599),
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"
        );
        assert!(said(600).is_empty() && said(4_294_967_296).is_empty());
        assert!(said(4_294_967_297).ends_with("may not specify a duration larger than 2^32 seconds"));
    }
}
