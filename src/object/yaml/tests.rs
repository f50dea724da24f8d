//! Against what go-yaml and sigs.k8s.io/yaml made of the same texts.

use super::*;
use crate::object::{parse as parse_json, to_string};

/// Name, text, and the case.
fn vectors() -> Vec<(String, Vec<u8>, Value)> {
    let file = include_bytes!("../../../tests/data/vectors/yaml.json");
    let Value::Array(cases) = parse_json(file).unwrap() else { panic!("a list") };
    assert!(cases.len() > 200);
    let case = |case: Value| {
        let bytes = match case.get("hex") {
            Some(hex) => from_hex(hex.as_str().unwrap()),
            None => case.str_at(&["text"]).as_bytes().to_vec(),
        };
        (case.str_at(&["name"]).to_owned(), bytes, case)
    };
    cases.into_iter().map(case).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |byte: &u8| (*byte as char).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect()
}

#[test]
fn texts_become_what_upstream_makes_of_them() {
    let mut wrong = Vec::new();
    for (name, text, case) in vectors() {
        let shown = String::from_utf8_lossy(text.get(..200).unwrap_or(&text)).into_owned();
        let (got, want) = match (parse(&text), case.get("json")) {
            (Ok(document), Some(json)) => {
                let want = parse_json(json.as_str().unwrap().as_bytes()).unwrap();
                let got = format!("{} {}", to_string(&document.value), document.strict_error().unwrap_or_default());
                (got, format!("{} {}", to_string(&want), case.str_at(&["strict"])))
            }
            (Ok(document), None) => (to_string(&document.value), case.str_at(&["error"]).to_owned()),
            (Err(error), Some(json)) => (error.to_string(), json.as_str().unwrap().to_owned()),
            (Err(error), None) => (error.to_string(), case.str_at(&["error"]).to_owned()),
        };
        if got != want {
            wrong.push(format!("{name}: {shown:?}\n  want {want}\n  got  {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn json_that_is_read_as_json_is_what_yaml_makes_of_it() {
    for text in [
        r#"{"a":[1,-2.5,1e3,true,null,"x y","\"\\\n"],"b":{"c":{}},"d":""}"#,
        r#"{"a":1.0,"b":12345678901234567890,"c":"2020-01-01","yes":"no"}"#,
    ] {
        let quick = plain_json(text.as_bytes()).unwrap();
        // A blank line in front is no JSON of the quick kind.
        let slow = parse(format!("\n{text}").as_bytes()).unwrap();
        assert_eq!(to_string(&quick).replace("1.0", "1"), to_string(&slow.value), "{text}");
    }
    for text in [r#"{"a":"\/"}"#, r#"{"a":"\u0041"}"#, "{\"a\":\"é\"}", "{\"a\":\n1}", r#"{"a":1,"a":2}"#, "[1]"] {
        assert!(plain_json(text.as_bytes()).is_none(), "{text}");
    }
}

#[test]
fn reading_is_linear_in_the_text() {
    for text in [
        "[".repeat(200_000),
        "a: ".repeat(200_000),
        "- ".repeat(200_000),
        "? ".repeat(200_000),
        format!("{{{}}}", "a,".repeat(200_000)),
        "&a ".repeat(200_000),
        format!("'{}", "\n".repeat(400_000)),
        "- a\n".repeat(200_000),
        (0..200_000).map(|n| format!("k{n}: v\n")).collect(),
        "a: 1\n".repeat(100_000),
    ] {
        // The limit is far above what any of these takes; a quadratic reader would take minutes.
        let begun = std::time::Instant::now();
        let _ = std::thread::Builder::new()
            .stack_size(64 << 20)
            .spawn(move || parse(text.as_bytes()).is_ok())
            .unwrap()
            .join();
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    }
}
