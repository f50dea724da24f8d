//! The tag of an image's name, as `pkg/util/parsers` reads it (distribution/reference's normalised names).

/// The tag; `latest` where there is neither tag nor digest; `None` where the name is none.
pub fn image_tag(image: &str) -> Option<&str> {
    if image.len() == 64 && image.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let (domain, rest) = split_domain(image);
    if !domain.is_none_or(is_domain) {
        return None;
    }
    let (named, digest) = match rest.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (rest, None),
    };
    let (path, tag) = match named.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (named, None),
    };
    // Docker's own domain is put before names without one, and `library/` before those of one word.
    let full = domain.map_or("docker.io/".len(), |it| it.len() + 1)
        + path.len()
        + if domain.is_none() && !path.contains('/') { "library/".len() } else { 0 };
    let valid =
        full <= 255 && path.split('/').all(is_component) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest);
    match (valid, tag, digest) {
        (false, ..) => None,
        (true, Some(tag), _) => Some(tag),
        (true, None, Some(_)) => Some(""),
        (true, None, None) => Some("latest"),
    }
}

/// What comes before the first slash is a domain if it looks like one.
fn split_domain(image: &str) -> (Option<&str>, &str) {
    match image.split_once('/') {
        Some((domain, rest))
            if domain.contains(['.', ':'])
                || domain == "localhost"
                || domain.bytes().any(|it| it.is_ascii_uppercase()) =>
        {
            (Some(domain), rest)
        }
        _ => (None, image),
    }
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((address, rest)) => {
            let digits = !address.is_empty() && address.bytes().all(|it| it.is_ascii_hexdigit() || it == b':');
            return digits && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port));
        }
        None => match domain.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (domain, None),
        },
    };
    let is_label = |label: &str| {
        let edge = |it: Option<u8>| it.is_some_and(|it| it.is_ascii_alphanumeric());
        edge(label.bytes().next())
            && edge(label.bytes().next_back())
            && label.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_port(port: &str) -> bool {
    !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit())
}

/// Words of lower-case letters and digits, joined by `.`, `_`, `__` or dashes.
fn is_component(component: &str) -> bool {
    let is_word = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let bytes = component.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    if !is_word(*first) || !is_word(*last) {
        return false;
    }
    let separators = component.split(|it: char| it.is_ascii_lowercase() || it.is_ascii_digit());
    separators.filter(|it| !it.is_empty()).all(|it| matches!(it, "." | "_" | "__") || it.bytes().all(|it| it == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|it| is_word(it) || matches!(it, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_as_docker_finds_them() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (image, tag) in [
            ("nginx", Some("latest")),
            ("nginx:1.2", Some("1.2")),
            ("nginx:latest", Some("latest")),
            ("a/b/c", Some("latest")),
            ("registry.example.com:5000/a/b", Some("latest")),
            ("registry.example.com:5000/a/b:v1", Some("v1")),
            ("localhost/a", Some("latest")),
            ("[::1]:5000/a:x", Some("x")),
            ("a__b/c-d---e.f_g", Some("latest")),
            ("", None),
            ("Nginx", None),
            ("UPPER/nginx", Some("latest")),
            ("nginx:", None),
            ("a//b", None),
            ("a___b", None),
            ("-a", None),
            ("a:b:c", None),
            ("example.com", Some("latest")),
            (&format!("nginx@{digest}"), Some("")),
            (&format!("nginx:latest@{digest}"), Some("latest")),
            ("nginx@sha256:abc", None),
            (&"a".repeat(64), None),
            (&"a".repeat(237), Some("latest")),
            (&"a".repeat(238), None),
        ] {
            assert_eq!(image_tag(image), tag, "{image}");
        }
    }
}
