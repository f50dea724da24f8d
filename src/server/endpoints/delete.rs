//! delete and deletecollection.

use std::sync::Arc;

use super::{
    Endpoints, Scope, body,
    body::Kind,
    encode,
    known::is_known_beside_options,
    list,
    options::{Deletion, ListOptions, delete_options},
    selectors::Selectors,
};
use crate::{
    admission::Operation,
    api::{ApiError, ErrorList, FieldError, Meta, Path, Reason, field::quote, status::Details},
    auth::authz::{Attributes, Authorizer},
    codec::{self, Format},
    object::{Map, Value},
    registry::store::{Deleted, Preconditions, Stored},
    server::{context::Exchange, heavy, http::Response, negotiate::Accepted, respond},
};

/// How many objects of a collection are deleted at once (upstream DeleteCollectionWorkers).
const WORKERS: usize = 8;

/// The verb of the right to delete what cannot be read.
const UNSAFE_DELETE: &str = "unsafe-delete-ignore-read-errors";

impl Endpoints {
    pub(super) async fn delete(self: &Arc<Self>, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let accepted = encode::accepted(cx, scope, false)?;
        let deletion = read_options(cx).await?;
        if deletion.ignore_read_error {
            return self.delete_unreadable(cx, scope, accepted, &deletion).await;
        }
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

    /// Deletes what cannot be read, which needs a right of its own.
    async fn delete_unreadable(
        &self,
        cx: &Exchange,
        scope: &Scope<'_>,
        accepted: Accepted,
        deletion: &Deletion,
    ) -> Result<Response, ApiError> {
        let user = cx.user.as_ref().ok_or_else(|| ApiError::internal("no user found for request"))?;
        let info = scope.info;
        let attributes = Attributes {
            namespace: &info.namespace,
            name: &info.name,
            ..Attributes::of_resource(user, UNSAFE_DELETE, &info.group, &info.version, &info.resource)
        };
        let decision = self.rights.authorizer().authorize(&attributes).await;
        if !decision.allowed() {
            let why = format!("not permitted to do \"{UNSAFE_DELETE}\", reason: {}", decision.reason);
            return Err(ApiError::forbidden(scope.gr(), scope.name, &why));
        }
        let admission = self.admission_for(cx, scope, Operation::Delete, deletion.dry_run, &deletion.value)?;
        scope.store()?.delete_unreadable(scope.name, admission.write(scope)).await?;
        let details =
            Details { name: scope.name.to_owned(), kind: scope.resource.kind.to_string(), ..Details::default() };
        let mut status = status_of_success(details);
        status.set(&["code"], 200);
        Ok(respond::document(cx, 200, accepted, &status))
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
        let accepted = encode::accepted(cx, scope, false)?;
        let options = ListOptions::decode(&cx.query, false)?;
        let selectors = Selectors::parse(scope, &options.label_selector, &options.field_selector)?;
        let mut deletion = read_options(cx).await?;
        if deletion.ignore_read_error {
            let field = Path::new("ignoreStoreReadErrorWithClusterBreakingPotential");
            let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
            let error = FieldError::invalid_shown(&field, "true", detail);
            return Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &ErrorList::from_iter([error])));
        }
        deletion.options.in_collection = true;
        let page = list::read_page(scope, &options, &selectors).await?;
        let cx = &*cx;
        // What a precondition spares is spared with all that comes after it.
        let conditional = deletion.options.preconditions != Preconditions::default();
        for batch in page.items.chunks(if conditional { 1 } else { WORKERS }) {
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

/// The options of a deletion: a body of any version, else the query.
async fn read_options(cx: &mut Exchange) -> Result<Deletion, ApiError> {
    let format = crate::server::negotiate::body_format(&cx.parts.headers, cx.formats);
    let bytes = cx.read_body().await?;
    if bytes.is_empty() {
        return delete_options(None, &cx.query);
    }
    let kind = Kind { group: "meta.k8s.io", version: "v1", kind: "DeleteOptions" };
    let format = format?;
    if let (Format::Protobuf, Ok(envelope)) = (format, codec::open_protobuf(&bytes)) {
        // The message is read only if it is one of these options.
        let head = crate::json!({ "apiVersion": (&*envelope.api_version), "kind": (&*envelope.kind) });
        check_options_kind(&head, kind, None)?;
    }
    let parsed = heavy::run(body::weight(&bytes, format), || body::parse(bytes.clone(), format, kind)).await;
    let mut tree = parsed.map_err(|failure| ApiError::bad_request(failure.cause))?;
    let value = &mut tree.value;
    if value.is_null() {
        *value = Value::object();
    }
    check_options_kind(value, kind, tree.source.text())?;
    body::decode_builtin(kind, value, tree.source.json()).map_err(ApiError::bad_request)?;
    delete_options(Some(tree.value), &cx.query)
}

/// Every group's version has these options, and versions that nobody knows have them too.
fn check_options_kind(value: &Value, kind: Kind<'_>, text: Option<&[u8]>) -> Result<(), ApiError> {
    let (given, version) = (value.str_at(&["kind"]), value.str_at(&["apiVersion"]));
    let default = kind.api_version();
    let version = if matches!(version, "" | "/" | "meta.k8s.io/") { &default } else { version };
    let (group, bare) = version.split_once('/').unwrap_or(("", version));
    if bare.is_empty() {
        return Err(ApiError::bad_request(body::missing("apiVersion", value, text)));
    }
    if given.is_empty() || given == kind.kind {
        return Ok(());
    }
    Err(ApiError::bad_request(match is_known_beside_options(group, bare, given) {
        true => format!("converting ({bare}.{given}) to (v1.DeleteOptions): unknown conversion"),
        false => format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(given),
            quote(version)
        ),
    }))
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
    status_of_success(details)
}

fn status_of_success(details: Details) -> Value {
    Value::from([
        ("kind", Value::from("Status")),
        ("apiVersion", "v1".into()),
        ("metadata", Map::new().into()),
        ("status", "Success".into()),
        ("details", details.to_value()),
    ])
}
