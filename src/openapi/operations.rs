//! Operations of paths: which there are, what they are called, what they take and answer. What follows from this is
//! the same in both versions of OpenAPI (apiserver `pkg/endpoints/installer.go`, `pkg/endpoints/openapi`).

use super::{
    models::{DELETE_OPTIONS, PATCH_MODEL, STATUS, WATCH_EVENT},
    parameters::{self, NAME, NAMESPACE, PRETTY, Parameter, RESOURCE_VERSION, REST_OF_PATH},
    source::{GroupVersion, Gvk, Resource, Subresource},
};

/// One path with what may be done there.
#[derive(Debug)]
pub struct PathItem {
    pub path: String,
    pub operations: Vec<Operation>,
}

#[derive(Debug)]
pub struct Operation {
    /// `get`, `put`, `post`, `delete`, `options`, `head`, `patch`.
    pub method: &'static str,
    pub id: String,
    pub tag: String,
    pub description: String,
    /// `x-kubernetes-action`; "" for what is about no resource.
    pub action: &'static str,
    pub gvk: Option<Gvk>,
    /// Sorted by name, then place.
    pub parameters: Vec<Parameter>,
    pub body: Option<Body>,
    pub consumes: &'static [&'static str],
    pub produces: &'static [&'static str],
    pub answers: Vec<(u16, Content)>,
}

#[derive(Debug)]
pub struct Body {
    pub model: String,
    pub required: bool,
}

/// What an answer has.
#[derive(Clone, Debug)]
pub enum Content {
    Model(String),
    Text,
}

impl PathItem {
    /// The parameters that all operations have, which are written once.
    pub fn common(&self) -> Vec<Parameter> {
        let Some((first, rest)) = self.operations.split_first() else { return Vec::new() };
        let everywhere = |it: &Parameter| {
            rest.iter().all(|other| other.parameters.iter().any(|own| (own.name, own.place) == (it.name, it.place)))
        };
        first.parameters.iter().filter(|it| everywhere(it)).copied().collect()
    }
}

pub const DOCUMENTS: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAMED: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const LOG: &[&str] = &["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const ANYTHING: &[&str] = &["*/*"];
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
const CUSTOM: &[&str] = &["application/json", "application/yaml"];
const CUSTOM_PATCHES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// All paths below one group and version, the list of its resources first (built-in ones alone have that).
pub fn of_group_version(source: &GroupVersion) -> Vec<PathItem> {
    let mut paths = Vec::new();
    if !source.custom {
        paths.push(super::sections::resources(source));
    }
    for resource in &source.resources {
        Maker { source, resource }.run(&mut paths);
    }
    paths
}

struct Maker<'a> {
    source: &'a GroupVersion,
    resource: &'a Resource,
}

impl Maker<'_> {
    fn run(&self, paths: &mut Vec<PathItem>) {
        let plural = &self.resource.plural;
        let root = format!("/{}", self.source.path());
        let scope = if self.resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{root}{scope}/{plural}");
        let item = format!("{collection}/{{name}}");
        self.push(paths, collection, self.collection());
        self.push(paths, item.clone(), self.item());
        for subresource in &self.resource.subresources {
            let path = format!("{item}/{}", subresource.name);
            self.push(paths, path.clone(), self.subresource(subresource, ""));
            if &*subresource.name == "proxy" {
                self.push(paths, format!("{path}/{{path}}"), self.subresource(subresource, "WithPath"));
            }
        }
        if self.resource.namespaced && self.has("list") {
            self.push(paths, format!("{root}/{plural}"), vec![self.list("ForAllNamespaces")]);
        }
        if self.has("watch") && !self.source.custom {
            if self.resource.namespaced {
                self.push(paths, format!("{root}/watch/{plural}"), vec![self.watch_list("ForAllNamespaces")]);
            }
            self.push(paths, format!("{root}/watch{scope}/{plural}"), vec![self.watch_list("")]);
            self.push(paths, format!("{root}/watch{scope}/{plural}/{{name}}"), vec![self.watch()]);
        }
    }

    fn push(&self, paths: &mut Vec<PathItem>, path: String, operations: Vec<Operation>) {
        if !operations.is_empty() {
            paths.push(PathItem { path, operations });
        }
    }

    fn has(&self, verb: &str) -> bool {
        self.resource.verbs.contains(&verb)
    }

    fn collection(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        if self.has("list") {
            operations.push(self.list(""));
        }
        if self.has("create") {
            operations.push(self.post("", &self.own()));
        }
        if self.has("deletecollection") {
            operations.push(self.delete_collection());
        }
        operations
    }

    fn item(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        if self.has("get") {
            operations.push(self.get("", &self.own()));
        }
        if self.has("update") {
            operations.push(self.put("", &self.own()));
        }
        if self.has("patch") {
            operations.push(self.patch("", &self.own()));
        }
        if self.has("delete") {
            operations.push(self.delete());
        }
        operations
    }

    fn subresource(&self, subresource: &Subresource, suffix: &'static str) -> Vec<Operation> {
        let name = capitalised(&subresource.name);
        if &*subresource.name == "log" {
            return vec![self.log()];
        }
        if subresource.connect {
            let methods: &[&str] = match &*subresource.name {
                "proxy" => &["get", "put", "post", "delete", "options", "head", "patch"],
                _ => &["get", "post"],
            };
            return methods.iter().map(|method| self.connect(method, subresource, &name, suffix)).collect();
        }
        // Operations of a custom resource's scale are still said to be about the custom resource.
        let gvk = &subresource.gvk;
        let mut operations = Vec::new();
        for verb in &subresource.verbs {
            match *verb {
                "get" => operations.push(self.get(&name, gvk)),
                "update" => operations.push(self.put(&name, gvk)),
                "patch" => operations.push(self.patch(&name, gvk)),
                "create" => operations.push(self.post(&name, gvk)),
                _ => {}
            }
        }
        operations
    }

    fn own(&self) -> Gvk {
        self.source.gvk(&self.resource.kind)
    }

    fn list_model(&self) -> String {
        self.source.model(&self.source.gvk(&self.resource.list_kind))
    }

    /// An operation with the parameters that all of an object's or a collection's have.
    fn operation(&self, method: &'static str, verb: &str, rest: &str, own: &[&[Parameter]], at: At) -> Operation {
        let mut all: Vec<Parameter> = own.iter().flat_map(|it| it.iter()).copied().collect();
        if self.resource.namespaced && at != At::AllNamespaces {
            all.push(NAMESPACE);
        }
        if at == At::Object {
            all.push(NAME);
        }
        all.sort_by(|a, b| (a.name, a.place).cmp(&(b.name, b.place)));
        let (id, tag) = names(&self.source.group, &self.source.version, verb, rest);
        Operation {
            method,
            id,
            tag,
            description: String::new(),
            action: "",
            gvk: Some(self.own()),
            parameters: all,
            body: None,
            consumes: if self.source.custom { CUSTOM } else { ANYTHING },
            produces: if self.source.custom { CUSTOM } else { DOCUMENTS },
            answers: Vec::new(),
        }
    }

    /// `NamespacedPodStatus`: what stands after the verb.
    fn subject(&self, subresource: &str) -> String {
        let scope = if self.resource.namespaced { "Namespaced" } else { "" };
        format!("{scope}{}{subresource}", self.resource.kind)
    }

    fn list(&self, suffix: &'static str) -> Operation {
        let (rest, at) = match suffix {
            "" => (self.subject(""), At::Collection),
            // Upstream's names: no word for the scope where it is all namespaces.
            suffix => (format!("{}{suffix}", self.resource.kind), At::AllNamespaces),
        };
        Operation {
            description: self.about("list or watch objects of kind"),
            action: "list",
            produces: if self.source.custom { CUSTOM } else { STREAMED },
            answers: vec![(200, Content::Model(self.list_model()))],
            ..self.operation("get", "list", &rest, &[parameters::LIST, &[PRETTY]], at)
        }
    }

    fn about(&self, what: &str) -> String {
        format!("{what} {}", self.resource.kind)
    }

    fn post(&self, name: &str, gvk: &Gvk) -> Operation {
        let model = self.source.model(gvk);
        let content = Content::Model(model.clone());
        let at = if name.is_empty() { At::Collection } else { At::Object };
        Operation {
            description: described("create", name, article(&self.resource.kind), &self.resource.kind),
            action: "post",
            gvk: Some(gvk.clone()),
            body: Some(Body { model, required: true }),
            answers: vec![(200, content.clone()), (201, content.clone()), (202, content)],
            ..self.operation("post", "create", &self.subject(name), &[parameters::WRITE, &[PRETTY]], at)
        }
    }

    fn get(&self, name: &str, gvk: &Gvk) -> Operation {
        let own: &[Parameter] = if self.source.custom { &[RESOURCE_VERSION] } else { &[] };
        Operation {
            description: described("read", name, "the specified", &self.resource.kind),
            action: "get",
            gvk: Some(self.said(gvk)),
            answers: vec![(200, Content::Model(self.source.model(gvk)))],
            ..self.operation("get", "read", &self.subject(name), &[own, &[PRETTY]], At::Object)
        }
    }

    /// Operations on the scale of a custom resource are said to be about the custom resource.
    fn said(&self, gvk: &Gvk) -> Gvk {
        if self.source.custom { self.own() } else { gvk.clone() }
    }

    fn put(&self, name: &str, gvk: &Gvk) -> Operation {
        let model = self.source.model(gvk);
        let content = Content::Model(model.clone());
        Operation {
            description: described("replace", name, "the specified", &self.resource.kind),
            action: "put",
            gvk: Some(self.said(gvk)),
            body: Some(Body { model, required: true }),
            answers: vec![(200, content.clone()), (201, content)],
            ..self.operation("put", "replace", &self.subject(name), &[parameters::WRITE, &[PRETTY]], At::Object)
        }
    }

    fn patch(&self, name: &str, gvk: &Gvk) -> Operation {
        let content = Content::Model(self.source.model(gvk));
        let mut answers = vec![(200, content.clone())];
        if !self.source.custom {
            answers.push((201, content));
        }
        Operation {
            description: described("partially update", name, "the specified", &self.resource.kind),
            action: "patch",
            gvk: Some(self.said(gvk)),
            body: Some(Body { model: PATCH_MODEL.to_owned(), required: true }),
            consumes: if self.source.custom { CUSTOM_PATCHES } else { PATCHES },
            answers,
            ..self.operation("patch", "patch", &self.subject(name), &[parameters::PATCH, &[PRETTY]], At::Object)
        }
    }

    fn delete(&self) -> Operation {
        let model = if self.resource.returns_deleted { self.source.model(&self.own()) } else { STATUS.to_owned() };
        let content = Content::Model(model);
        Operation {
            description: described("delete", "", article(&self.resource.kind), &self.resource.kind),
            action: "delete",
            body: Some(Body { model: DELETE_OPTIONS.to_owned(), required: false }),
            answers: vec![(200, content.clone()), (202, content)],
            ..self.operation("delete", "delete", &self.subject(""), &[parameters::DELETE, &[PRETTY]], At::Object)
        }
    }

    fn delete_collection(&self) -> Operation {
        let own: &[&[Parameter]] = match self.source.custom {
            true => &[parameters::LIST, &[PRETTY]],
            false => &[parameters::SELECTION, parameters::DELETE, &[PRETTY]],
        };
        let body = Body { model: DELETE_OPTIONS.to_owned(), required: false };
        Operation {
            description: self.about("delete collection of"),
            action: "deletecollection",
            body: (!self.source.custom).then_some(body),
            answers: vec![(200, Content::Model(STATUS.to_owned()))],
            ..self.operation("delete", "delete", &format!("Collection{}", self.subject("")), own, At::Collection)
        }
    }

    fn watch_list(&self, suffix: &'static str) -> Operation {
        let (rest, at) = match suffix {
            "" => (format!("{}List", self.subject("")), At::Collection),
            suffix => (format!("{}List{suffix}", self.resource.kind), At::AllNamespaces),
        };
        Operation {
            description: self.about("watch individual changes to a list of"),
            action: "watchlist",
            produces: STREAMED,
            answers: vec![(200, Content::Model(WATCH_EVENT.to_owned()))],
            ..self.operation("get", "watch", &rest, &[parameters::LIST, &[PRETTY]], at)
        }
    }

    fn watch(&self) -> Operation {
        Operation {
            description: self.about("watch changes to an object of kind"),
            action: "watch",
            produces: STREAMED,
            answers: vec![(200, Content::Model(WATCH_EVENT.to_owned()))],
            ..self.operation("get", "watch", &self.subject(""), &[parameters::LIST, &[PRETTY]], At::Object)
        }
    }

    fn log(&self) -> Operation {
        Operation {
            description: described("read", "Log", "the specified", &self.resource.kind),
            action: "get",
            produces: LOG,
            answers: vec![(200, Content::Text)],
            ..self.operation("get", "read", &self.subject("Log"), &[parameters::LOG, &[PRETTY]], At::Object)
        }
    }

    fn connect(&self, method: &'static str, subresource: &Subresource, name: &str, suffix: &str) -> Operation {
        let rest = format!("{}{}{suffix}", capitalised(method), self.subject(name));
        let path: &[Parameter] = if suffix.is_empty() { &[] } else { &[REST_OF_PATH] };
        let own = parameters::of_connect(&subresource.gvk.kind);
        Operation {
            description: format!(
                "connect {} requests to {} of {}",
                method.to_uppercase(),
                subresource.name,
                self.resource.kind
            ),
            action: "connect",
            gvk: Some(subresource.gvk.clone()),
            produces: ANYTHING,
            answers: vec![(200, Content::Text)],
            ..self.operation(method, "connect", &rest, &[own, path], At::Object)
        }
    }
}

/// What a path names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Object,
    Collection,
    AllNamespaces,
}

/// The id of an operation and the tag it belongs to: `readCoreV1NamespacedPod`, `core_v1`.
pub fn names(group: &str, version: &str, verb: &str, rest: &str) -> (String, String) {
    let group = if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) };
    let id = format!("{verb}{}{}{}", identifier(group, true), identifier(version, true), identifier(rest, true));
    let tag = identifier(group, false);
    (id, if version.is_empty() { tag } else { format!("{tag}_{}", identifier(version, false)) })
}

/// Letters, digits and underscores of a text; what follows anything else begins with a capital.
pub fn identifier(text: &str, mut capitalise: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.chars().enumerate() {
        if c.is_alphabetic() || c == '_' || (at != 0 && c.is_numeric()) {
            if std::mem::take(&mut capitalise) { out.extend(c.to_uppercase()) } else { out.push(c) }
        } else {
            capitalise = true;
        }
    }
    out
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" }
}

fn described(verb: &str, subresource: &str, article: &str, kind: &str) -> String {
    if subresource.is_empty() {
        return format!("{verb} {article} {kind}");
    }
    format!("{verb} {} of {article} {kind}", subresource.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_tags_are_upstreams() {
        let of = |group, version, verb, rest| names(group, version, verb, rest);
        assert_eq!(of("", "v1", "read", "NamespacedPod"), ("readCoreV1NamespacedPod".into(), "core_v1".into()));
        assert_eq!(of("rbac.authorization.k8s.io", "v1", "list", "Role").0, "listRbacAuthorizationV1Role");
        assert_eq!(of("stable.example.com", "v1", "list", "CronTab").1, "stableExampleCom_v1");
        assert_eq!(identifier(".well-known", false), "WellKnown");
    }
}
