//! delete and deletecollection.

use std::sync::Arc;

use super::{
    Endpoints, Scope, body,
    body::Kind,
    encode, list,
    options::{Deletion, ListOptions, delete_options},
    selectors::Selectors,
};
use crate::{
    admission::Operation,
    api::{ApiError, Meta, Reason, status::Details},
    object::{Map, Value},
    registry::store::{Deleted, Stored},
    server::{context::Exchange, heavy, http::Response, respond},
};

/// How many objects of a collection are deleted at once (upstream DeleteCollectionWorkers).
const WORKERS: usize = 8;

impl Endpoints {
    pub(super) async fn delete(self: &Arc<Self>, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let accepted = encode::accepted(cx, scope, false)?;
        let deletion = read_options(cx, scope).await?;
        let deleted = self.delete_one(cx, scope, scope.name, &deletion).await?;
        let strategy = scope.strategy();
        let (stored, immediately) = match deleted {
            Deleted::Removed(stored) => (stored, true),
            Deleted::Marked(stored) => (stored, false),
        };
        let status = if !immediately && deletion.orphan_dependents == Some(false) { 202 } else { 200 };
        if immediately && !strategy.returns_deleted_object() {
            return Ok(respond::document(cx, status, accepted, &success(scope, &stored)));
        }
        encode::stored_response(cx, scope, accepted, status, stored)
    }

    async fn delete_one(
        &self,
        cx: &Exchange,
        scope: &Scope<'_>,
        name: &str,
        deletion: &Deletion,
    ) -> Result<Deleted, ApiError> {
        let admission = self.admission_for(cx, scope, Operation::Delete, deletion.dry_run, &deletion.value)?;
        admission.mutate(None, None).await?;
        let write = admission.write(scope);
        scope.store()?.delete(name, write, &deletion.options, &admission).await
    }

    pub(super) async fn delete_collection(
        self: &Arc<Self>,
        cx: &mut Exchange,
        scope: &Scope<'_>,
    ) -> Result<Response, ApiError> {
        let options = ListOptions::decode(&cx.query, false)?;
        let selectors = Selectors::parse(scope, &options.label_selector, &options.field_selector)?;
        let accepted = encode::accepted(cx, scope, false)?;
        let mut deletion = read_options(cx, scope).await?;
        deletion.options.in_collection = true;
        let page = list::read_page(scope, &options, &selectors).await?;
        let cx = &*cx;
        for batch in page.items.chunks(WORKERS) {
            let deletions = batch.iter().map(|entry| async {
                let info = crate::server::request_info::RequestInfo {
                    namespace: entry.namespace().to_owned(),
                    ..scope.info.clone()
                };
                let scope = Scope {
                    namespace: if scope.resource.namespaced { &info.namespace } else { "" },
                    info: &info,
                    ..*scope
                };
                match self.delete_one(cx, &scope, entry.name(), &deletion).await {
                    Err(error) if error.reason == Reason::NotFound => Ok(()),
                    other => other.map(drop),
                }
            });
            for result in futures_util::future::join_all(deletions).await {
                result?;
            }
        }
        list::answer(cx, scope, accepted, page).await
    }
}

async fn read_options(cx: &mut Exchange, scope: &Scope<'_>) -> Result<Deletion, ApiError> {
    let format = crate::server::negotiate::body_format(&cx.parts.headers);
    let bytes = cx.read_body().await?;
    if bytes.is_empty() {
        return delete_options(None, &cx.query);
    }
    let kind = Kind { group: "", version: "v1", kind: "DeleteOptions" };
    let format = format?;
    let tree = heavy::run(body::weight(&bytes, format), || body::parse(bytes.clone(), format, kind)).await?;
    let mut value = tree.value;
    // The options may come under the core group's, meta's or the resource's own version.
    let given = value.str_at(&["kind"]);
    if !given.is_empty() && given != "DeleteOptions" {
        return Err(ApiError::bad_request(format!(
            "{given} in version {} cannot be handled as a DeleteOptions: no kind {} is registered for version {}",
            crate::api::field::quote(value.str_at(&["apiVersion"])),
            crate::api::field::quote(given),
            crate::api::field::quote(value.str_at(&["apiVersion"])),
        )));
    }
    let api_version = value.str_at(&["apiVersion"]).to_owned();
    let known = api_version.is_empty()
        || api_version == "v1"
        || api_version == "meta.k8s.io/v1"
        || api_version == scope.group_version();
    if !known {
        return Err(ApiError::bad_request(format!(
            "DeleteOptions in version {} cannot be handled as a DeleteOptions: no kind \"DeleteOptions\" is registered for version {}",
            crate::api::field::quote(&api_version),
            crate::api::field::quote(&api_version),
        )));
    }
    body::decode_builtin(kind, &mut value, tree.source.as_deref()).map_err(|cause| {
        ApiError::bad_request(format!("DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: {cause}"))
    })?;
    delete_options(Some(value), &cx.query)
}

/// The Status of a deletion that is done; without a code, and with the plural as its kind.
fn success(scope: &Scope<'_>, stored: &Stored) -> Value {
    let details = Details {
        name: Meta::of(&stored.object).name().to_owned(),
        group: scope.resource.group.to_string(),
        kind: scope.resource.plural.to_string(),
        uid: Meta::of(&stored.object).uid().to_owned(),
        ..Details::default()
    };
    Value::from([
        ("kind", Value::from("Status")),
        ("apiVersion", "v1".into()),
        ("metadata", Map::new().into()),
        ("status", "Success".into()),
        ("details", details.to_value()),
    ])
}
