//! How to reach a webhook (apiserver `pkg/util/webhook/validation.go`).

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls_pki_types::{CertificateDer, pem::PemObject};

use crate::{
    api::{
        ErrorList, FieldError, Path, go_url,
        names::{is_dns1123_subdomain, is_valid_port_num},
    },
    object::Value,
};

/// A webhook's own URL: `https`, and nothing but host and path.
pub fn validate_url(url: &str, path: &Path<'_>, errors: &mut ErrorList) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match go_url::parse(url) {
        Ok(url) => url,
        Err(why) => return errors.push(FieldError::required(path, &format!("url must be a valid URL: {why}{FORM}"))),
    };
    if url.scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, url.scheme.as_str(), &why));
    }
    if url.host.is_empty() {
        errors.push(FieldError::invalid(path, "", &format!("host must be specified{FORM}")));
    }
    if let Some(user) = &url.user {
        errors.push(FieldError::invalid(path, user.as_str(), "user information is not permitted in the URL"));
    }
    for (part, why) in [
        (&url.fragment, "fragments are not permitted in the URL"),
        (&url.query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            errors.push(FieldError::invalid(path, part.as_str(), why));
        }
    }
}

/// A service. `namespace` and `name` are told at the fields of these names.
pub fn validate_service(
    namespace: &str,
    name: &str,
    url_path: Option<&str>,
    port: i64,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    if namespace.is_empty() {
        errors.push(FieldError::required(&path.child("namespace"), ""));
    }
    let problems = is_valid_port_num(port);
    if !problems.is_empty() {
        let why = format!("port is not valid: {}", problems.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, &why));
    }
    if let Some(url_path) = url_path.filter(|it| !matches!(*it, "" | "/")) {
        validate_path(url_path, &path.child("path"), errors);
    }
}

fn validate_path(url_path: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if url_path == "//" {
        return errors.push(FieldError::invalid(path, url_path, "segment[0] may not be empty"));
    }
    if !url_path.starts_with('/') {
        errors.push(FieldError::invalid(path, url_path, "must start with a '/'"));
    }
    // Upstream looks at what follows the first character, whatever it is.
    let rest = url_path.chars().skip(1).collect::<String>();
    let rest = rest.strip_suffix('/').unwrap_or(&rest);
    for (at, segment) in rest.split('/').enumerate() {
        if segment.is_empty() {
            errors.push(FieldError::invalid(path, url_path, &format!("segment[{at}] may not be empty")));
            continue;
        }
        for problem in is_dns1123_subdomain(segment).iter() {
            errors.push(FieldError::invalid(path, url_path, &format!("segment[{at}]: {problem}")));
        }
    }
}

/// What is wrong with a CA bundle (base64 of PEM); an empty one is fine.
pub fn ca_bundle_problem(bundle: &str) -> Option<&'static str> {
    let pem = STANDARD.decode(bundle).unwrap_or_default();
    if pem.trim_ascii().is_empty() {
        return None;
    }
    let mut sections = 0;
    for section in CertificateDer::pem_slice_iter(&pem) {
        let Ok(certificate) = section else { break };
        sections += 1;
        if x509_parser::parse_x509_certificate(&certificate).is_ok() {
            return None;
        }
    }
    Some(match sections {
        0 => "unable to load root certificates: unable to parse bytes as PEM block",
        _ => "unable to load root certificates: failed to parse certificate: x509: malformed certificate",
    })
}

/// Judges a CA bundle that has to be one.
pub fn validate_ca_bundle(bundle: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(why) = ca_bundle_problem(bundle.as_str().unwrap_or("")) {
        errors.push(FieldError::invalid_ref(path, bundle, why));
    }
}
