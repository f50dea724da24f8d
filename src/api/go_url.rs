//! URLs as Go's `net/url` reads them, with its words for what it does not read.

use std::net::Ipv6Addr;

use super::field::quote;

/// The parts of a URL that rules look at, unescaped; empty where missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoUrl {
    /// In lower case.
    pub scheme: String,
    /// As it is printed: `name:password`, escaped. `None` without an `@`.
    pub user: Option<String>,
    pub host: String,
    pub path: String,
    pub query: String,
    pub fragment: String,
}

/// `url.Parse`.
///
/// # Errors
/// Go's text: `parse "https://h:%zz": invalid URL escape "%zz"`.
pub fn parse(text: &str) -> Result<GoUrl, String> {
    let (base, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = read(base, false).map_err(|why| format!("parse {}: {why}", quote(base)))?;
    url.fragment = unescape(fragment, Part::Free).map_err(|why| format!("parse {}: {why}", quote(text)))?;
    Ok(url)
}

/// Whether `url.ParseRequestURI` takes it: an absolute URI or an absolute path.
pub fn is_request_uri(text: &str) -> bool {
    read(text, true).is_ok()
}

fn read(text: &str, via_request: bool) -> Result<GoUrl, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".into());
    }
    if text.is_empty() && via_request {
        return Err("empty url".into());
    }
    let mut url = GoUrl::default();
    if text == "*" {
        url.path = "*".into();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            return Ok(url);
        }
        if via_request {
            return Err("invalid URI for request".into());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".into());
        }
    }
    if (!url.scheme.is_empty() || (!via_request && !rest.starts_with("///")))
        && let Some(authority) = rest.strip_prefix("//")
    {
        let at = authority.find('/').unwrap_or(authority.len());
        let (authority, path) = authority.split_at(at);
        rest = path;
        (url.user, url.host) = read_authority(&url.scheme, authority)?;
    }
    url.path = unescape(rest, Part::Free)?;
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default())),
            _ => break,
        }
    }
    Ok(("", text))
}

fn read_authority(scheme: &str, authority: &str) -> Result<(Option<String>, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, read_host(scheme, authority)?));
    };
    let host = read_host(scheme, host)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(plain) {
        return Err("net/url: invalid userinfo".into());
    }
    let shown: Result<Vec<String>, String> =
        user.splitn(2, ':').map(|part| unescape(part, Part::Free).map(|part| escape_user(&part))).collect();
    Ok((Some(shown?.join(":")), host))
}

fn escape_user(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~$&+,;=".contains(&byte);
    part.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn read_host(scheme: &str, host: &str) -> Result<String, String> {
    let check_port = |text: &str| {
        let fine =
            text.strip_prefix(':').map_or(text.is_empty(), |port| port.bytes().all(|byte| byte.is_ascii_digit()));
        if fine { Ok(()) } else { Err(format!("invalid port {} after host", quote(text))) }
    };
    match host.rfind('[') {
        Some(at) if at > 0 => return Err("invalid IP-literal".into()),
        Some(_) => {
            let end = host.rfind(']').ok_or("missing ']' in host")?;
            let port = host.get(end + 1..).unwrap_or_default();
            check_port(port)?;
            let name = host.get(1..end).unwrap_or_default();
            let (address, zone) = name.find("%25").map_or((name, ""), |at| name.split_at(at));
            let shown = unescape(address, Part::Host)? + &unescape(zone, Part::Zone)?;
            let bare = shown.split('%').next().unwrap_or_default();
            if bare.parse::<Ipv6Addr>().is_err() {
                let v4 = bare.parse::<std::net::Ipv4Addr>().is_ok();
                let why = format!("invalid host: ParseAddr({}): unable to parse IP", quote(&shown));
                return Err(if v4 { "invalid IP-literal".into() } else { why });
            }
            return Ok(format!("[{shown}]{}", unescape(port, Part::Host)?));
        }
        None => {}
    }
    if let Some(first) = host.find(':') {
        let last = host.rfind(':').unwrap_or(first);
        let at = if matches!(scheme, "http" | "https") { first } else { last };
        check_port(host.get(at..).unwrap_or_default())?;
    }
    unescape(host, Part::Host)
}

/// Which rules of escaping apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Paths, fragments, users: anything may be escaped.
    Free,
    Host,
    Zone,
}

fn host_byte(byte: u8) -> bool {
    byte >= 0x80 || byte.is_ascii_alphanumeric() || b"!\"$&'()*+,-.:;<=>[]_~".contains(&byte)
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    let invalid = |bytes: &[u8]| format!("invalid URL escape {}", quote(&String::from_utf8_lossy(bytes)));
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            if part != Part::Free && !host_byte(*first) {
                return Err(format!("invalid character {} in host name", quote(&(*first as char).to_string())));
            }
            out.push(*first);
            rest = tail;
            continue;
        }
        let hex = |byte: &u8| (*byte as char).to_digit(16);
        let shown = rest.get(..3).unwrap_or(rest);
        let [high, low, after @ ..] = tail else { return Err(invalid(shown)) };
        let (Some(high), Some(low)) = (hex(high), hex(low)) else { return Err(invalid(shown)) };
        let byte = (high * 16 + low) as u8;
        let fine = match part {
            Part::Free => true,
            Part::Host => high >= 8 || byte == b'%',
            Part::Zone => byte == b'%' || byte == b' ' || host_byte(byte),
        };
        if !fine {
            return Err(invalid(shown));
        }
        out.push(byte);
        rest = after;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_url() {
        let url = parse("HTTPS://us%20er:p@host.io:8443/a%2Fb?q=1#frag").unwrap();
        assert_eq!((url.scheme.as_str(), url.host.as_str(), url.path.as_str()), ("https", "host.io:8443", "/a/b"));
        assert_eq!(
            (url.user.as_deref(), url.query.as_str(), url.fragment.as_str()),
            (Some("us%20er:p"), "q=1", "frag")
        );
        assert_eq!(parse("https://[::1]:1/").unwrap().host, "[::1]:1");
        assert_eq!(parse("h/x").unwrap().path, "h/x");
        assert_eq!(parse("mailto:a@b").unwrap().host, "");
    }

    #[test]
    fn what_is_no_url_is_told_in_gos_words() {
        for (text, why) in [
            (":", r#"parse ":": missing protocol scheme"#),
            ("https://h:%zz", r#"parse "https://h:%zz": invalid port ":%zz" after host"#),
            ("https://h/%z", r#"parse "https://h/%z": invalid URL escape "%z""#),
            ("https://a b/", r#"parse "https://a b/": invalid character " " in host name"#),
            ("a:b:c", ""),
            ("1a:b", r#"parse "1a:b": first path segment in URL cannot contain colon"#),
            ("https://a:b:c", r#"parse "https://a:b:c": invalid port ":b:c" after host"#),
            ("\u{1}", r#"parse "\x01": net/url: invalid control character in URL"#),
        ] {
            assert_eq!(parse(text).err().unwrap_or_default(), why, "{text}");
        }
        assert!(
            is_request_uri("/a") && is_request_uri("http://x") && is_request_uri("urn:x") && !is_request_uri("a/b")
        );
        assert!(!is_request_uri("") && is_request_uri("*") && !is_request_uri("http://x/%"));
    }
}
