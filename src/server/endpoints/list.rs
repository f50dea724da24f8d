//! list: a collection at one revision, streamed in pieces that are made while the client reads.

mod stream;
mod token;

pub use token::Token;

use std::sync::Arc;

use super::{
    Endpoints, Scope, encode,
    get::parse_revision,
    options::{ListOptions, Match},
    selectors::Selectors,
    table::{self, Rows},
};
use crate::{
    api::ApiError,
    codec::Format,
    object::{Map, Style, Value},
    server::{
        context::Exchange,
        heavy,
        http::Response,
        negotiate::{Accepted, MetaVersion, Transform},
        respond,
    },
    storage::{
        Revision,
        cache::{Entry, Snapshot},
    },
};

use stream::Form;

/// Where a list's items come from.
pub(super) enum Source {
    /// The cache, at the snapshot's revision.
    Cache(Snapshot),
    /// The storage's history, for revisions the cache no longer has.
    History(Revision),
}

/// One page, ready to be written.
pub(super) struct Page {
    pub items: Vec<Arc<Entry>>,
    pub revision: Revision,
    pub continue_token: String,
    pub remaining: Option<i64>,
}

impl Endpoints {
    pub(super) async fn list(self: &Arc<Self>, cx: &mut Exchange, scope: &Scope<'_>) -> Result<Response, ApiError> {
        let accepted = encode::accepted(cx, scope, false)?;
        let options = ListOptions::decode(&cx.query, false)?;
        let selectors = Selectors::parse(scope, &options.label_selector, &options.field_selector)?;
        if let Transform::PartialObjectMetadata(_) = accepted.transform {
            return Err(no_list(scope));
        }
        let page = read_page(scope, &options, &selectors).await?;
        answer(cx, scope, accepted, page).await
    }
}

/// Reads the page the options ask for.
pub(super) async fn read_page(
    scope: &Scope<'_>,
    options: &ListOptions,
    selectors: &Selectors,
) -> Result<Page, ApiError> {
    let token = match options.continue_token.as_str() {
        "" => None,
        text => Some(Token::decode(text)?),
    };
    if token.is_some() && !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
    }
    let source = source(scope, options, token.as_ref()).await?;
    // A list "at any version" is served whole, whatever its limit says.
    let limit = if options.resource_version == "0" { 0 } else { usize::try_from(options.limit).unwrap_or(0) };
    // A token counts from the collection it was made for; the cache counts from the resource.
    let start = match &token {
        None => String::new(),
        Some(token) if scope.namespace.is_empty() => token.start.clone(),
        Some(token) => format!("{}/{}", scope.namespace, token.start),
    };
    match source {
        Source::Cache(snapshot) => Ok(page_of(scope, &snapshot, selectors, &start, limit)),
        Source::History(revision) => history_page(scope, revision, selectors, &start, limit).await,
    }
}

async fn source(scope: &Scope<'_>, options: &ListOptions, token: Option<&Token>) -> Result<Source, ApiError> {
    let store = scope.store()?;
    let failed = |error| store.cache_error(error);
    if let Some(token) = token {
        return match token.revision {
            None => Ok(Source::Cache(store.consistent().await?)),
            Some(revision) => Ok(exactly(scope, revision)),
        };
    }
    let asked = match options.resource_version.as_str() {
        "" => return Ok(Source::Cache(store.consistent().await?)),
        text => {
            parse_revision(text).map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?
        }
    };
    let exact = match options.version_match {
        Some(Match::Exact) => true,
        Some(Match::NotOlderThan) => false,
        // The rule from before there was a match: a page of a version is of exactly that version.
        None => asked != 0 && options.limit > 0,
    };
    if exact {
        // A version that is still to come is refused in the storage's way: without waiting long.
        let newest = store.cache.not_older_than(asked).await.map_err(failed)?;
        return Ok(if newest.revision() == asked { Source::Cache(newest) } else { exactly(scope, asked) });
    }
    if asked == 0 {
        return store.cache.any().map(Source::Cache).map_err(failed);
    }
    store.cache.not_older_than(asked).await.map(Source::Cache).map_err(failed)
}

/// The state at a revision, out of the cache where it reaches back that far. What the storage has forgotten is not
/// remembered here either, so that every server over it answers the same.
fn exactly(scope: &Scope<'_>, revision: Revision) -> Source {
    let store = scope.row.store.as_ref().filter(|store| store.keeps(revision));
    match store.and_then(|store| store.cache.exact(revision)) {
        Some(snapshot) => Source::Cache(snapshot),
        None => Source::History(revision),
    }
}

fn page_of(scope: &Scope<'_>, snapshot: &Snapshot, selectors: &Selectors, start: &str, limit: usize) -> Page {
    let namespace = Some(scope.namespace).filter(|it| !it.is_empty());
    // A name that is required makes the range one object.
    if let (Some(name), false) = (&selectors.name, scope.resource.namespaced && namespace.is_none()) {
        let found =
            snapshot.find(scope.namespace, name).filter(|entry| selectors.matches(entry) && entry.path() >= start);
        let items = found.cloned().into_iter().collect();
        return Page { items, revision: snapshot.revision(), continue_token: String::new(), remaining: None };
    }
    let mut entries = snapshot.range(namespace, start);
    let mut items = Vec::new();
    let everything = selectors.is_everything();
    for entry in entries.by_ref() {
        if everything || selectors.matches(entry) {
            items.push(entry.clone());
            if limit > 0 && items.len() == limit {
                break;
            }
        }
    }
    let mut page = Page { items, revision: snapshot.revision(), continue_token: String::new(), remaining: None };
    let full = limit > 0 && page.items.len() == limit;
    if full {
        let rest = entries.count();
        if rest > 0 {
            page.continue_token =
                page.items.last().map_or(String::new(), |last| Token::after(below(scope, last.path()), page.revision));
            page.remaining = everything.then_some(rest as i64);
        }
    }
    page
}

/// A path of the resource as the collection of this request counts it.
fn below<'a>(scope: &Scope<'_>, path: &'a str) -> &'a str {
    let inside = path.strip_prefix(scope.namespace).and_then(|rest| rest.strip_prefix('/'));
    if scope.namespace.is_empty() { path } else { inside.unwrap_or(path) }
}

/// Most keys read from the history at once.
const HISTORY_CHUNK: usize = 500;

async fn history_page(
    scope: &Scope<'_>,
    revision: Revision,
    selectors: &Selectors,
    start: &str,
    limit: usize,
) -> Result<Page, ApiError> {
    let store = scope.store()?;
    let mut prefix = scope.resource.prefix.to_string();
    if !scope.namespace.is_empty() {
        prefix = format!("{prefix}{}/", scope.namespace);
    }
    let mut next = if start.is_empty() { String::new() } else { format!("{}{start}", scope.resource.prefix) };
    let mut page = Page { items: Vec::new(), revision, continue_token: String::new(), remaining: None };
    loop {
        let (entries, more) = store
            .history(&prefix, &next, HISTORY_CHUNK, revision)
            .await
            .map_err(|error| expired(scope, error, &page, start))?;
        let count = entries.len();
        for (at, entry) in entries.into_iter().enumerate() {
            next = format!("{}\0", entry.key());
            if !selectors.matches(&entry) {
                continue;
            }
            page.items.push(entry);
            if limit > 0 && page.items.len() == limit {
                if at + 1 < count || more {
                    let last = page.items.last().map_or("", |entry| entry.path());
                    page.continue_token = Token::after(below(scope, last), revision);
                    if selectors.is_everything() {
                        page.remaining =
                            store.count_after(&prefix, &next, revision).await.ok().map(|count| count as i64);
                    }
                }
                return Ok(page);
            }
        }
        if !more {
            return Ok(page);
        }
    }
}

/// A page whose version is gone: the client may go on at the newest one (apiserver `pkg/storage/etcd3/errors.go`).
fn expired(scope: &Scope<'_>, error: ApiError, page: &Page, start: &str) -> ApiError {
    if error.reason != crate::api::Reason::Expired {
        return error;
    }
    if start.is_empty() && page.items.is_empty() {
        return error;
    }
    let mut error = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.continue_token = Token::inconsistent(below(scope, start));
    error
}

/// The list's `metadata`.
fn metadata(page: &Page) -> Map {
    let mut metadata = Map::from([("resourceVersion", page.revision.to_string())]);
    if !page.continue_token.is_empty() {
        metadata.insert("continue", page.continue_token.as_str());
    }
    if let Some(remaining) = page.remaining {
        metadata.insert("remainingItemCount", remaining);
    }
    metadata
}

/// The same for the list itself: that of custom resources always says how it goes on.
fn own_metadata(scope: &Scope<'_>, page: &Page) -> Map {
    let mut metadata = metadata(page);
    if scope.resource.typed_items && page.continue_token.is_empty() {
        metadata.insert("continue", "");
    }
    metadata
}

/// Writes a page in the accepted form.
pub(super) async fn answer(
    cx: &Exchange,
    scope: &Scope<'_>,
    accepted: Accepted,
    page: Page,
) -> Result<Response, ApiError> {
    let json = accepted.format == Format::Json && respond::style(cx, accepted) == Style::Compact;
    let protobuf = accepted.format == Format::Protobuf;
    let form = match accepted.transform {
        Transform::None if json => Some(Form::Json),
        Transform::None if protobuf => Some(Form::Protobuf),
        Transform::Table(version) if json && !page.items.is_empty() && table::printer(scope).arrange.is_none() => {
            Some(Form::Table(Rows::new(cx, version)?))
        }
        Transform::PartialObjectMetadata(version) | Transform::PartialObjectMetadataList(version) => match () {
            () if json && !page.items.is_empty() => Some(Form::Metadata(version)),
            () if protobuf => Some(Form::MetadataProtobuf(version)),
            () => None,
        },
        _ => None,
    };
    if let Some(form) = form {
        return stream::answer(cx, scope, form, page).await;
    }
    let bytes = page.items.iter().map(|entry| entry.value_bytes().len()).sum();
    heavy::run(bytes, || Ok(respond::document(cx, 200, accepted, &tree(cx, scope, accepted, &page)?))).await
}

/// A list in a form that is made of its objects and not of their bytes.
fn tree(cx: &Exchange, scope: &Scope<'_>, accepted: Accepted, page: &Page) -> Result<Value, ApiError> {
    match accepted.transform {
        Transform::None => whole(scope, page),
        Transform::Table(version) => table(scope, &Rows::new(cx, version)?, page),
        Transform::PartialObjectMetadataList(version) | Transform::PartialObjectMetadata(version) => {
            let items: Result<Vec<Value>, ApiError> = page
                .items
                .iter()
                .map(|entry| Ok(encode::partial_metadata(&encode::object(scope, entry)?, version)))
                .collect();
            let items = items?;
            Ok(Value::from([
                ("kind", Value::from(METADATA_LIST)),
                ("apiVersion", version.group_version().into()),
                ("metadata", metadata(page).into()),
                ("items", if items.is_empty() { Value::Null } else { Value::Array(items) }),
            ]))
        }
    }
}

const METADATA_LIST: &str = "PartialObjectMetadataList";

fn table(scope: &Scope<'_>, rows: &Rows, page: &Page) -> Result<Value, ApiError> {
    let printer = table::printer(scope);
    let printed = |entry: &Arc<Entry>| {
        let object = encode::printed(scope, entry)?;
        let row = printer.row(&object);
        Ok((object, row))
    };
    let mut printed = page.items.iter().map(printed).collect::<Result<Vec<_>, ApiError>>()?;
    if let Some(arrange) = printer.arrange {
        arrange(&mut printed);
    }
    let made =
        printed.into_iter().map(|(object, row)| rows.row(scope, &row, object)).collect::<Result<_, ApiError>>()?;
    Ok(rows.table(scope, metadata(page), true, made))
}

/// The list as one tree, for forms that are not joined from bytes.
fn whole(scope: &Scope<'_>, page: &Page) -> Result<Value, ApiError> {
    let items: Result<Vec<Value>, ApiError> = page
        .items
        .iter()
        .map(|entry| {
            let mut object = encode::object(scope, entry)?;
            if let Some(map) = object.as_object_mut().filter(|_| !scope.resource.typed_items) {
                map.remove("kind");
                map.remove("apiVersion");
            }
            Ok(object)
        })
        .collect();
    Ok(list_value(scope, own_metadata(scope, page), items?))
}

/// A list of objects that are nowhere stored.
pub(super) fn computed(
    cx: &Exchange,
    scope: &Scope<'_>,
    accepted: Accepted,
    mut objects: Vec<Value>,
) -> Result<Value, ApiError> {
    let metadata_list = |version: MetaVersion| {
        let items = objects.iter().map(|object| encode::partial_metadata(object, version)).collect();
        Value::from([
            ("kind", Value::from(METADATA_LIST)),
            ("apiVersion", version.group_version().into()),
            ("metadata", Value::object()),
            ("items", Value::Array(items)),
        ])
    };
    Ok(match accepted.transform {
        Transform::None => {
            // As in all lists of built-in kinds, the items do not say what they are.
            objects.iter_mut().filter_map(Value::as_object_mut).for_each(|item| {
                item.remove("apiVersion");
                item.remove("kind");
            });
            list_value(scope, Map::new(), objects)
        }
        Transform::PartialObjectMetadata(_) => return Err(no_list(scope)),
        Transform::PartialObjectMetadataList(version) => metadata_list(version),
        Transform::Table(version) => {
            let rows = Rows::new(cx, version)?;
            let row = |object: Value| rows.row(scope, &table::printer(scope).row(&object), object);
            rows.table(scope, Map::new(), true, objects.into_iter().map(row).collect::<Result<_, ApiError>>()?)
        }
    })
}

/// A list that was asked for as the metadata of one object.
fn no_list(scope: &Scope<'_>) -> ApiError {
    let kind = encode::go_type(scope);
    ApiError::not_acceptable(format!(
        "you requested PartialObjectMetadata, but the requested object is a list ({kind}List)"
    ))
}

/// A list object of the request's kind.
pub(super) fn list_value(scope: &Scope<'_>, metadata: Map, items: Vec<Value>) -> Value {
    Value::from([
        ("kind", Value::from(&*scope.resource.list_kind)),
        ("apiVersion", scope.group_version().into()),
        ("metadata", metadata.into()),
        ("items", Value::Array(items)),
    ])
}
