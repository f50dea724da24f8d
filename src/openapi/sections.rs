//! The documents that OpenAPI is divided into: one for each group and version, and small ones for what is no resource.

use std::sync::Arc;

use super::{
    operations::{self, Content, DOCUMENTS, Operation, PathItem, identifier, names},
    source::GroupVersion,
};

/// One document of OpenAPI v3; all of them together are the one of v2.
#[derive(Clone, Debug)]
pub enum Section {
    /// `/api`
    Api,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(Arc<str>),
    GroupVersion(Arc<GroupVersion>),
    /// `/version`
    Version,
    /// `/.well-known/openid-configuration`
    OpenIdConfiguration,
    /// `/openid/v1/jwks`
    OpenIdKeys,
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
pub const VERSION_MODEL: &str = "io.k8s.apimachinery.pkg.version.Info";

impl Section {
    /// Its key in the index of v3: the path it is about, without the leading slash.
    pub fn key(&self) -> String {
        match self {
            Self::Api => "api".to_owned(),
            Self::Groups => "apis".to_owned(),
            Self::Group(group) => format!("apis/{group}"),
            Self::GroupVersion(source) => source.path(),
            Self::Version => "version".to_owned(),
            Self::OpenIdConfiguration => ".well-known/openid-configuration".to_owned(),
            Self::OpenIdKeys => "openid/v1/jwks".to_owned(),
        }
    }

    /// Title and version of the document.
    pub(super) fn info(&self) -> (&'static str, &'static str) {
        match self {
            Self::GroupVersion(source) if source.custom => ("Kubernetes CRD Swagger", "v0.1.0"),
            _ => ("Kubernetes", "1.37"),
        }
    }

    pub(super) fn paths(&self) -> Vec<PathItem> {
        let tag = |text: &str| identifier(text, false);
        match self {
            Self::Api => {
                let (id, tag) = names("", "", "get", "APIVersions");
                vec![page("/api/", id, tag, "get available API versions", &format!("{META}.APIVersions"))]
            }
            Self::Groups => {
                let id = "getAPIVersions".to_owned();
                vec![page("/apis/", id, tag("apis"), "get available API versions", &format!("{META}.APIGroupList"))]
            }
            Self::Group(group) => {
                let (id, tag) = names(group, "", "get", "APIGroup");
                let path = format!("/apis/{group}/");
                vec![page(&path, id, tag, "get information of a group", &format!("{META}.APIGroup"))]
            }
            Self::GroupVersion(source) => operations::of_group_version(source),
            Self::Version => {
                let mut item = page(
                    "/version/",
                    "getCodeVersion".to_owned(),
                    tag("version"),
                    "get the version information for this server",
                    VERSION_MODEL,
                );
                for operation in &mut item.operations {
                    operation.consumes = &["application/json"];
                    operation.produces = &["application/json"];
                }
                vec![item]
            }
            Self::OpenIdConfiguration => vec![text(
                "/.well-known/openid-configuration/",
                "getServiceAccountIssuerOpenIDConfiguration",
                tag(".well-known"),
                "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
                &["application/json"],
            )],
            Self::OpenIdKeys => vec![text(
                "/openid/v1/jwks/",
                "getServiceAccountIssuerOpenIDKeyset",
                tag("openid"),
                "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
                &["application/jwk-set+json"],
            )],
        }
    }
}

/// The list of resources of a group and version.
pub(super) fn resources(source: &GroupVersion) -> PathItem {
    let (id, tag) = names(&source.group, &source.version, "get", "APIResources");
    page(&format!("/{}/", source.path()), id, tag, "get available resources", &format!("{META}.APIResourceList"))
}

fn page(path: &str, id: String, tag: String, description: &str, model: &str) -> PathItem {
    let operation = Operation {
        method: "get",
        id,
        tag,
        description: description.to_owned(),
        action: "",
        gvk: None,
        parameters: Vec::new(),
        body: None,
        consumes: DOCUMENTS,
        produces: DOCUMENTS,
        answers: vec![(200, Content::Model(model.to_owned()))],
    };
    PathItem { path: path.to_owned(), operations: vec![operation] }
}

fn text(path: &str, id: &str, tag: String, description: &str, produces: &'static [&'static str]) -> PathItem {
    let mut item = page(path, id.to_owned(), tag, description, "");
    for operation in &mut item.operations {
        operation.consumes = &[];
        operation.produces = produces;
        operation.answers = vec![(200, Content::Text)];
    }
    item
}
