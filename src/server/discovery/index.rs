//! `/`: all paths there are.

use std::collections::BTreeSet;

use super::Documents;
use crate::{
    json,
    object::{Style, write_json},
    server::{
        http::{Body, Response},
        respond,
    },
};

/// What is there besides groups and health checks.
const PLAIN: [&str; 14] = [
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/flagz",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/statusz",
    "/version",
];

impl Documents {
    /// Indented JSON whatever was asked for. Custom and foreign groups are listed too.
    pub(super) fn index(&self) -> Response {
        let mut paths: BTreeSet<String> = PLAIN.iter().map(|path| (*path).to_owned()).collect();
        for group in &self.now().made.groups {
            paths.insert(format!("/apis/{}", group.name));
            paths.extend(group.versions.iter().map(|listed| format!("/apis/{}/{}", group.name, listed.version)));
        }
        for check in self.checks.iter() {
            let endpoints = [("healthz", check.healthz), ("livez", check.livez), ("readyz", check.readyz)];
            for (endpoint, _) in endpoints.into_iter().filter(|it| it.1) {
                paths.insert(format!("/{endpoint}"));
                paths.insert(format!("/{endpoint}/{}", check.name));
            }
        }
        let mut body = Vec::new();
        write_json(&mut body, &json!({"paths": (paths.into_iter().collect::<Vec<_>>())}), Style::Indented);
        respond::response(200, "application/json", Body::Full(body.into()))
    }
}
