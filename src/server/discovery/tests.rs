use std::{io::Read, sync::Arc};

use ::http::StatusCode;
use arc_swap::ArcSwap;
use flate2::read::GzDecoder;
use futures_util::StreamExt;

use super::{Documents, Facts, Sources};
use crate::{
    auth::testing::Objects,
    json,
    object::{Value, parse, to_string},
    registry::{
        catalog::{Catalog, Row},
        resource::{
            Behaviour, Resource, Selectable, Subresource, SubresourceBehaviour, Verb, Verbs, Version, VersionSchema,
        },
        strategy::DefaultStrategy,
    },
    schema::{self, Table, TypeId},
    server::{
        context::Exchange,
        http::{Body, ConnInfo, Request, Response, Transport},
    },
};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A schema of nothing: documents ask a version for its written schema alone.
struct Nothing(Option<Value>);

impl VersionSchema for Nothing {
    fn typed(&self) -> (&Table, TypeId) {
        (schema::builtin(), TypeId::ANY)
    }
    fn decode(&self, _: &mut Value, _: Option<&[u8]>) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
    fn default(&self, _: &mut Value) {}
    fn written_schema(&self) -> Option<Value> {
        self.0.clone()
    }
    fn written_digest(&self) -> [u8; 32] {
        let text = self.0.as_ref().map(to_string).unwrap_or_default();
        let mut digest = [0; 32];
        text.bytes().enumerate().for_each(|(at, byte)| digest[at % 32] ^= byte);
        digest
    }
}

fn verbs(row: &Value) -> Verbs {
    let said = |verb: &&Verb| row.array_at(&["verbs"]).iter().any(|it| it.as_str() == Some(verb.as_str()));
    Verbs::of(&Verb::ALL.iter().filter(said).copied().collect::<Vec<_>>())
}

fn texts(row: &Value, name: &str) -> Vec<Arc<str>> {
    row.array_at(&[name]).iter().filter_map(Value::as_str).map(Arc::from).collect()
}

fn subresource(row: &Value) -> Subresource {
    let text = |name: &str| Arc::<str>::from(row.str_at(&[name]));
    Subresource {
        name: text("name"),
        group: text("group"),
        version: text("version"),
        kind: text("kind"),
        verbs: verbs(row),
        behaviour: SubresourceBehaviour::Connect("nowhere"),
    }
}

fn version(row: &Value, schema: Option<Value>) -> Version {
    Version {
        name: row.str_at(&["version"]).into(),
        group_version: "".into(),
        schema: Arc::new(Nothing(schema)),
        columns: Arc::new([]),
        printer: crate::registry::printer::Printer::new(|_| Vec::new()),
        selectable: Selectable { labels: Vec::new(), unsupported: String::new() },
        subresources: row.array_at(&["subresources"]).iter().map(subresource).collect(),
        strategy: None,
        deprecation: None,
        storage_version_hash: row.str_at(&["storage_version_hash"]).to_owned(),
    }
}

fn resource(row: &Value, versions: Vec<Version>) -> Arc<Row> {
    let text = |name: &str| Arc::<str>::from(row.str_at(&[name]));
    let resource = Resource {
        group: text("group"),
        plural: text("plural"),
        singular: text("singular"),
        kind: text("kind"),
        list_kind: format!("{}List", text("kind")).into(),
        short_names: texts(row, "short_names"),
        categories: texts(row, "categories"),
        namespaced: row.bool_at(&["namespaced"]),
        verbs: verbs(row),
        versions,
        storage_group_version: "".into(),
        prefix: "".into(),
        behaviour: Behaviour::Stored { strategy: Arc::new(DefaultStrategy), lifecycle: None },
        convert: None,
        typed_items: row.bool_at(&["custom"]),
        strategic_merge: true,
        revive: None,
        terminating: false,
        listed: true,
        revision: 0,
    };
    Arc::new(Row { resource: Arc::new(resource), store: None })
}

/// All rows of a default server, in the order of the data file.
fn built_in() -> Catalog {
    let path = format!("{}/src/registry/data/resources.json", env!("CARGO_MANIFEST_DIR"));
    let data = parse(&std::fs::read(path).unwrap()).unwrap();
    let served: Vec<&Value> = data.as_array().unwrap().iter().filter(|row| row.bool_at(&["default"])).collect();
    let name = |row: &Value| (row.str_at(&["group"]).to_owned(), row.str_at(&["plural"]).to_owned());
    let rows = served.iter().enumerate().filter_map(|(at, row)| {
        let first = served.iter().position(|other| name(other) == name(row)) == Some(at);
        let versions = served.iter().filter(|other| name(other) == name(row));
        first.then(|| resource(row, versions.map(|row| version(row, None)).collect()))
    });
    Catalog::new(rows)
}

fn gadgets(schema: Value) -> Arc<Row> {
    gadgets_of("example.com", schema)
}

fn gadgets_of(group: &str, schema: Value) -> Arc<Row> {
    let row = json!({
        "group": group, "version": "v1", "plural": "gadgets", "singular": "gadget", "kind": "Gadget",
        "custom": true, "namespaced": true, "short_names": ["gd"], "storage_version_hash": "aGFzaA==",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "subresources": [{"name": "status", "group": group, "version": "v1", "kind": "Gadget", "verbs": ["get", "patch", "update"]}]
    });
    let version = version(&row, Some(schema));
    resource(&row, vec![version])
}

struct Server {
    documents: Documents,
    custom: crate::server::generic::Rows,
    objects: Arc<Objects>,
}

fn server() -> Server {
    let custom: crate::server::generic::Rows = Arc::new(ArcSwap::from_pointee(Catalog::default()));
    let objects = Arc::new(Objects::default());
    let documents = Documents::new(Sources {
        built_in: vec![Arc::new(built_in())],
        custom: custom.clone(),
        reader: objects.clone(),
        address: "127.0.0.1:6443".to_owned(),
        checks: Arc::new([]),
        facts: Facts {
            started: std::time::SystemTime::now(),
            flags: vec![("v".to_owned(), "0".to_owned())],
            openid: None,
        },
    });
    Server { documents, custom, objects }
}

impl Server {
    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Option<Response> {
        let mut request = ::http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let conn = ConnInfo {
            peer: None,
            local: None,
            transport: Transport::Plain,
            http2: false,
            certificates: Arc::new([]),
            verdict: Default::default(),
            peer_uid: None,
            id: 1,
        };
        let request = Request {
            parts: request.body(()).unwrap().into_parts().0,
            body: Box::pin(futures_util::stream::empty()),
            conn: Arc::new(conn),
            upgrade: None,
        };
        self.documents.answer(&Exchange::new(request)).await
    }

    async fn get(&self, path: &str, accept: &str) -> Response {
        self.ask("GET", path, &[("accept", accept)]).await.unwrap_or_else(|| panic!("{path} is nobody's"))
    }

    async fn json(&self, path: &str) -> Value {
        body(self.get(path, "application/json").await).await
    }
}

async fn bytes(response: Response) -> Vec<u8> {
    match response.into_body() {
        Body::Empty => Vec::new(),
        Body::Full(bytes) => bytes.to_vec(),
        Body::Chunks(chunks) => chunks.concat(),
        Body::Stream(stream) => stream.map(|piece| piece.unwrap().to_vec()).collect::<Vec<_>>().await.concat(),
    }
}

async fn body(response: Response) -> Value {
    parse(&bytes(response).await).unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn every_document_is_the_one_that_upstream_answers() {
    let path = format!("{}/tests/data/discovery.json.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = Vec::new();
    GzDecoder::new(&std::fs::read(path).unwrap()[..]).read_to_end(&mut text).unwrap();
    let recorded = parse(&text).unwrap();
    let server = server();
    let mut compared = 0;
    for (key, expected) in recorded.as_object().unwrap().iter() {
        let (path, accept) = key.split_once(" | ").unwrap();
        if path == "/version" {
            // Commit, date and compiler are each server's own.
            assert_eq!(server.json(path).await.str_at(&["gitVersion"]), expected.str_at(&["body", "gitVersion"]));
            continue;
        }
        let response = server.get(path, accept).await;
        assert_eq!(header(&response, "content-type"), expected.str_at(&["content_type"]), "{key}");
        let (mut ours, mut theirs) = (body(response).await, expected.get("body").unwrap().clone());
        for document in [&mut ours, &mut theirs] {
            // The address is the recording server's own.
            document.remove_at(&["serverAddressByClientCIDRs"]);
        }
        assert!(ours == theirs, "{key}\n{}\n{}", to_string(&ours), to_string(&theirs));
        compared += 1;
    }
    assert!(compared > 45, "{compared}");
}

#[tokio::test]
async fn custom_rows_come_and_go_without_a_restart() {
    let server = server();
    assert!(server.ask("GET", "/apis/example.com", &[]).await.is_none());
    let before = server.get("/apis", AGGREGATED).await;
    server.custom.store(Arc::new(Catalog::new([gadgets(json!({"type": "object"}))])));
    let list = server.json("/apis/example.com/v1").await;
    let verbs = list.array_at(&["resources"])[0].array_at(&["verbs"]);
    assert_eq!(verbs[0], Value::from("delete"), "custom resources have an order of their own");
    assert_eq!(list.array_at(&["resources"]).len(), 2);
    let groups = server.json("/apis").await;
    assert_eq!(groups.array_at(&["groups"]).last().unwrap().str_at(&["name"]), "example.com");
    let after = server.get("/apis", AGGREGATED).await;
    assert_ne!(header(&before, "etag"), header(&after, "etag"));
    assert!(server.ask("GET", "/apis/example.com/v2", &[]).await.is_none(), "an unknown custom version is nobody's");
    server.custom.store(Arc::default());
    assert!(server.ask("GET", "/apis/example.com/v1", &[]).await.is_none());
}

#[tokio::test]
async fn what_another_server_has_is_listed_as_stale() {
    let server = server();
    server.objects.put(
        "apiregistration.k8s.io",
        "apiservices",
        json!({
            "metadata": {"name": "v1.remote.example.com"},
            "spec": {
                "group": "remote.example.com", "version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 5,
                "service": {"name": "s", "namespace": "n"}
            }
        }),
    );
    let groups = server.json("/apis").await;
    assert_eq!(groups.array_at(&["groups"])[1].str_at(&["name"]), "remote.example.com", "by its priority");
    let all = body(server.get("/apis", AGGREGATED).await).await;
    let version = &all.array_at(&["items"])[1].array_at(&["versions"])[0];
    assert_eq!(*version, json!({"version": "v1", "freshness": "Stale"}));
    assert_eq!(server.json("/apis/remote.example.com").await.str_at(&["preferredVersion", "version"]), "v1");
}

#[tokio::test]
async fn an_aggregated_document_is_not_sent_twice() {
    let server = server();
    let first = server.get("/api", AGGREGATED).await;
    let tag = header(&first, "etag").to_owned();
    assert_eq!((tag.len(), header(&first, "cache-control"), header(&first, "vary")), (130, "public", "Accept"));
    let ask =
        async |tag: &str| server.ask("GET", "/api", &[("accept", AGGREGATED), ("if-none-match", tag)]).await.unwrap();
    let again = ask(&tag).await;
    assert_eq!((again.status(), header(&again, "etag")), (StatusCode::NOT_MODIFIED, tag.as_str()));
    for other in ["\"x\"", "*", &format!("W/{tag}"), &format!("\"x\", {tag}")] {
        assert_eq!(ask(other).await.status(), StatusCode::OK, "{other}");
    }
}

#[tokio::test]
async fn methods_and_media_types_are_judged_by_whoever_answers() {
    let server = server();
    let ask = async |method: &str, path: &str, accept: &str| {
        let response = server.ask(method, path, &[("accept", accept)]).await.unwrap();
        (response.status().as_u16(), header(&response, "content-type").to_owned())
    };
    let json = "application/json".to_owned();
    assert_eq!(ask("POST", "/apis/apps/v1", "*/*").await, (405, json.clone()));
    assert_eq!(ask("POST", "/apis/apps", "*/*").await, (200, json.clone()));
    assert_eq!(ask("GET", "/api/v2", "*/*").await.0, 404);
    assert_eq!(ask("GET", "/apis", "text/html").await.0, 406);
    assert_eq!(ask("GET", "/apis/apps/v1", AGGREGATED).await.0, 406);
    assert_eq!(
        ask("GET", "/apis", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList").await.0,
        406
    );
    let protobuf = "application/vnd.kubernetes.protobuf";
    assert_eq!(ask("GET", "/api/v1", protobuf).await, (200, protobuf.to_owned()));
    assert_eq!(ask("GET", "/api", protobuf).await, (200, protobuf.to_owned()));
    let yaml = AGGREGATED.replace("json", "yaml");
    assert_eq!(ask("GET", "/apis", &yaml).await, (200, yaml.clone()));
}

#[tokio::test]
async fn openapi_documents_are_known_by_their_hash() {
    let server = server();
    let index = body(server.get("/openapi/v3", "*/*").await).await;
    let paths = index.object_at(&["paths"]).unwrap();
    assert_eq!(paths.len(), 49);
    let url = paths.get("apis/node.k8s.io/v1").unwrap().str_at(&["serverRelativeURL"]);
    let right = server.get(url, "application/json").await;
    assert_eq!((right.status(), header(&right, "cache-control")), (StatusCode::OK, "public, immutable"));
    assert!(header(&right, "expires").ends_with(" UTC"), "{}", header(&right, "expires"));
    let tag = header(&right, "etag").to_owned();
    assert_eq!(body(right).await.str_at(&["openapi"]), "3.0.0");
    let wrong = server.get("/openapi/v3/apis/node.k8s.io/v1?hash=ABC", "*/*").await;
    assert_eq!((wrong.status(), header(&wrong, "location")), (StatusCode::MOVED_PERMANENTLY, url));
    let known = server.ask("GET", "/openapi/v3/apis/node.k8s.io/v1", &[("if-none-match", &tag)]).await.unwrap();
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    let unknown = server.get("/openapi/v3/apis/nope/v1", "*/*").await;
    assert_eq!((unknown.status(), header(&unknown, "content-type")), (StatusCode::NOT_FOUND, ""));
    let other = server.get("/openapi/v3/api/v1", "application/yaml").await;
    assert_eq!((other.status(), header(&other, "etag")), (StatusCode::NOT_ACCEPTABLE, ""));
}

#[tokio::test]
async fn only_the_documents_of_a_changed_group_change() {
    let server = server();
    let hashes = async || body(server.get("/openapi/v3", "*/*").await).await;
    let at = |index: &Value, key: &str| index.str_at(&["paths", key, "serverRelativeURL"]).to_owned();
    server.custom.store(Arc::new(Catalog::new([gadgets(json!({"type": "object"}))])));
    let before = hashes().await;
    let tag = header(&server.get("/openapi/v2", "*/*").await, "etag").to_owned();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "description": "New."}}});
    server.custom.store(Arc::new(Catalog::new([gadgets(schema)])));
    let after = hashes().await;
    assert_ne!(at(&before, "apis/example.com/v1"), at(&after, "apis/example.com/v1"));
    assert_eq!(at(&before, "apis/apps/v1"), at(&after, "apis/apps/v1"));
    assert_ne!(header(&server.get("/openapi/v2", "*/*").await, "etag"), tag);
    let document = server.json("/openapi/v3/apis/example.com/v1").await;
    let model = ["components", "schemas", "com.example.v1.Gadget", "properties", "spec", "description"];
    assert_eq!(document.str_at(&model), "New.");
}

#[tokio::test]
async fn a_change_of_one_group_makes_no_other_groups_documents_anew() {
    let server = server();
    let groups = ["one.example.com", "two.example.com", "apps"];
    let rows = groups.iter().take(2).map(|group| gadgets_of(group, json!({"type": "object"})));
    server.custom.store(Arc::new(Catalog::new(rows)));
    let read = async || {
        server.get("/apis", AGGREGATED).await;
        let mut made = Vec::new();
        for group in groups {
            let key = format!("apis/{group}/v1");
            server.json(&format!("/openapi/v3/{key}")).await;
            made.push((server.documents.items.json(group), server.documents.openapi.made(&key)));
        }
        made
    };
    let before = read().await;
    let mut changed = Catalog::clone(&server.custom.load());
    changed.insert(gadgets_of("two.example.com", json!({"type": "object", "description": "New."})));
    server.custom.store(Arc::new(changed));
    let after = read().await;
    for ((group, before), after) in groups.iter().zip(before).zip(after) {
        let same = *group != "two.example.com";
        assert_eq!(before.0.as_ptr() == after.0.as_ptr(), same, "discovery of {group}");
        assert_eq!(Arc::ptr_eq(&before.1, &after.1), same, "OpenAPI of {group}");
    }
}

#[tokio::test]
async fn what_is_not_listed_is_in_no_document() {
    let server = server();
    let listed = gadgets(json!({"type": "object"}));
    let hidden = Resource {
        listed: false,
        plural: "hiddenthings".into(),
        kind: "HiddenThing".into(),
        ..(*listed.resource).clone()
    };
    let hidden = Arc::new(Row { resource: Arc::new(hidden), store: None });
    server.custom.store(Arc::new(Catalog::new([hidden.clone()])));
    for path in ["/apis/example.com", "/apis/example.com/v1"] {
        assert!(server.ask("GET", path, &[]).await.is_none(), "{path}");
    }
    assert_eq!(server.get("/openapi/v3/apis/example.com/v1", "*/*").await.status(), StatusCode::NOT_FOUND);
    server.custom.store(Arc::new(Catalog::new([listed, hidden])));
    let aggregated = to_string(&body(server.get("/apis", AGGREGATED).await).await);
    let documents = [
        aggregated,
        to_string(&server.json("/apis/example.com/v1").await),
        to_string(&server.json("/openapi/v3/apis/example.com/v1").await),
    ];
    for document in documents {
        assert!(document.contains("gadgets") && !document.contains("hiddenthings"), "{document}");
    }
}

#[tokio::test]
async fn the_v2_document_is_compressed_for_who_asks() {
    let server = server();
    let ask = async |encoding: &str| {
        let headers = [("accept", "application/json"), ("accept-encoding", encoding)];
        server.ask("GET", "/openapi/v2", &headers).await.unwrap()
    };
    let plain = ask("identity").await;
    assert_eq!(header(&plain, "content-encoding"), "");
    let plain = bytes(plain).await;
    let packed = ask("deflate, gzip").await;
    assert_eq!(header(&packed, "content-encoding"), "gzip");
    let mut expanded = Vec::new();
    GzDecoder::new(&bytes(packed).await[..]).read_to_end(&mut expanded).unwrap();
    assert!(expanded == plain && plain.len() > 500_000);
}

#[tokio::test]
async fn the_index_lists_groups_and_paths() {
    let server = server();
    let response = server.get("/", "text/html").await;
    assert_eq!(header(&response, "content-type"), "application/json");
    let paths = body(response).await;
    let paths = paths.array_at(&["paths"]);
    assert_eq!(paths[0], Value::from("/.well-known/openid-configuration"));
    assert!(paths.contains(&Value::from("/apis/apps/v1")) && paths.contains(&Value::from("/version")));
    assert!(server.ask("GET", "//", &[]).await.is_none());
}

#[tokio::test]
async fn pages_are_text_for_people_and_objects_for_who_names_the_kind() {
    let server = server();
    let flagz = "application/json;as=Flagz;g=config.k8s.io;v=v1beta1";
    let object = server.get("/flagz", flagz).await;
    assert_eq!(header(&object, "content-type"), "application/json;g=config.k8s.io;v=v1beta1;as=Flagz");
    assert_eq!(body(object).await.str_at(&["flags", "v"]), "0");
    let old = server.get("/statusz", "application/yaml;as=Statusz;g=config.k8s.io;v=v1alpha1").await;
    assert!(header(&old, "warning").contains("deprecated"), "{}", header(&old, "warning"));
    let text = server.get("/statusz", "*/*").await;
    assert_eq!(header(&text, "content-type"), "text/plain; charset=utf-8");
    for wrong in ["application/json", "text/html", flagz] {
        assert_eq!(server.get("/statusz", wrong).await.status(), StatusCode::NOT_ACCEPTABLE, "{wrong}");
    }
    assert_eq!(server.ask("POST", "/version", &[]).await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(server.get("/version", "text/plain").await.status(), StatusCode::NOT_ACCEPTABLE);
    assert!(server.ask("GET", "/openid/v1/jwks", &[]).await.is_none(), "no issuer is configured");
}

#[tokio::test]
async fn members_stand_in_the_order_of_upstreams_types() {
    let server = server();
    let text = String::from_utf8(bytes(server.get("/apis/apps", "application/json").await).await).unwrap();
    assert_eq!(
        text,
        "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"apps\",\"versions\":[{\"groupVersion\":\"apps/v1\",\
         \"version\":\"v1\"}],\"preferredVersion\":{\"groupVersion\":\"apps/v1\",\"version\":\"v1\"}}\n"
    );
    let text = String::from_utf8(bytes(server.get("/apis/apps/v1", "application/json").await).await).unwrap();
    let begin =
        "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.contains("\"namespaced\":true,\"kind\":\"Deployment\",\"verbs\":["), "{text}");
}
