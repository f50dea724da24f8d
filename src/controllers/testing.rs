//! A server for tests of controllers: keeps objects by path, with uids, versions and optimistic locking.

use std::collections::BTreeMap;

use futures_util::{
    future::BoxFuture,
    stream::{self, BoxStream, StreamExt},
};
use http::Method;
use parking_lot::Mutex;

use super::{ApiClient, ChangeSource, ObjectName};
use crate::api::{ApiError, status::GroupResource};
use crate::object::{Map, Value};

#[derive(Default)]
pub struct Server {
    objects: Mutex<BTreeMap<String, Value>>,
    version: Mutex<i64>,
    /// `METHOD path` of every write.
    pub writes: Mutex<Vec<String>>,
    /// Paths whose next PUT meets somebody else's write.
    pub conflicts: Mutex<Vec<String>>,
    /// Answers 503 to everything.
    pub broken: Mutex<bool>,
}

impl Server {
    pub fn get(&self, path: &str) -> Option<Value> {
        self.objects.lock().get(path).cloned()
    }

    /// Stores an object as somebody else would.
    pub fn put(&self, path: &str, mut object: Value) {
        let mut version = self.version.lock();
        *version += 1;
        object.set(&["metadata", "resourceVersion"], version.to_string());
        if object.str_at(&["metadata", "uid"]).is_empty() {
            object.set(&["metadata", "uid"], format!("uid-{version}"));
        }
        self.objects.lock().insert(path.to_owned(), object);
    }

    /// Objects below a path.
    pub fn count(&self, prefix: &str) -> usize {
        self.objects.lock().keys().filter(|path| path.starts_with(prefix)).count()
    }

    fn answer(&self, method: &Method, path: &str, body: Option<Value>) -> Result<Value, ApiError> {
        if *self.broken.lock() {
            return Err(ApiError::service_unavailable("not yet"));
        }
        let path = path.split('?').next().unwrap_or(path);
        let gr = GroupResource::new("", "objects");
        if *method == Method::GET {
            return match self.get(path) {
                Some(object) => Ok(object),
                None if path.rsplit('/').next().is_some_and(|last| last.ends_with('s') && !last.contains(':')) => {
                    Ok(self.list(path))
                }
                None => Err(ApiError::not_found(gr, path)),
            };
        }
        self.writes.lock().push(format!("{method} {path}"));
        let body = body.unwrap_or_default();
        match *method {
            Method::POST => {
                let path = format!("{path}/{}", body.str_at(&["metadata", "name"]));
                if self.get(&path).is_some() {
                    return Err(ApiError::already_exists(gr, &path));
                }
                self.put(&path, body);
                self.get(&path).ok_or_else(|| ApiError::not_found(gr, &path))
            }
            Method::PUT => {
                let Some(old) = self.get(path) else { return Err(ApiError::not_found(gr, path)) };
                let mut conflicts = self.conflicts.lock();
                if let Some(at) = conflicts.iter().position(|it| it == path) {
                    conflicts.remove(at);
                    self.put(path, old);
                    return Err(ApiError::conflict(gr, path, "changed"));
                }
                let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).to_owned();
                if version(&body) != version(&old) {
                    return Err(ApiError::conflict(gr, path, "changed"));
                }
                self.put(path, body);
                Ok(Value::object())
            }
            _ => match self.objects.lock().remove(path) {
                Some(old) => Ok(old),
                None => Err(ApiError::not_found(gr, path)),
            },
        }
    }

    fn list(&self, collection: &str) -> Value {
        let objects = self.objects.lock();
        let below = |path: &str| {
            path.strip_prefix(collection).and_then(|it| it.strip_prefix('/')).is_some_and(|it| !it.contains('/'))
        };
        let items: Vec<Value> = objects.iter().filter(|(path, _)| below(path)).map(|(_, it)| it.clone()).collect();
        Map::from([("items", items)]).into()
    }
}

impl ApiClient for Server {
    fn call(&self, method: Method, path: String, body: Option<Value>) -> BoxFuture<'_, Result<Value, ApiError>> {
        Box::pin(async move { self.answer(&method, &path, body) })
    }

    /// Puts the status of `body` into what is stored.
    fn apply(&self, path: String, body: Value) -> BoxFuture<'_, Result<Value, ApiError>> {
        Box::pin(async move {
            let path = path.split('?').next().unwrap_or(&path).trim_end_matches("/status").to_owned();
            self.writes.lock().push(format!("APPLY {path}"));
            let mut object =
                self.get(&path).ok_or_else(|| ApiError::not_found(GroupResource::new("", "objects"), &path))?;
            object.set(&["status"], body.get("status").cloned().unwrap_or_default());
            self.put(&path, object.clone());
            Ok(object)
        })
    }
}

/// Nothing ever changes.
pub struct NoChanges;

impl ChangeSource for NoChanges {
    fn changed(&self, _: &'static str, _: &'static str, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn follow<'a>(
        &'a self,
        _: &'static str,
        _: &'static str,
        _: Option<&'static str>,
    ) -> BoxStream<'a, Vec<ObjectName>> {
        stream::pending().boxed()
    }
}
