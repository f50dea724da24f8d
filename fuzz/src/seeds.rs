//! What a target starts from: out of the recordings of a real server and the vectors of the real implementation.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use kenter::{
    codec::cbor,
    object::{Value, parse, to_vec},
    schema::{TypeId, builtin},
    server::endpoints::list::Token,
};

/// Inputs by target.
pub struct Seeds(BTreeMap<&'static str, BTreeSet<Vec<u8>>>);

/// Longer ones are slow to change and say little more.
const LONGEST: usize = 16 * 1024;

impl Seeds {
    /// Reads them from the project's root folder.
    pub fn read(root: &Path) -> Self {
        let mut seeds = Self(BTreeMap::new());
        seeds.by_hand();
        let folder = root.join("tests/conformance/recordings");
        for area in ["machinery", "reads", "kinds", "extensions", "security"] {
            for (_, cases) in documents(&folder.join(area)) {
                cases.as_array().unwrap_or_default().iter().for_each(|case| seeds.recorded(case));
            }
        }
        let vectors: BTreeMap<String, Value> = documents(&root.join("tests/data/vectors")).into_iter().collect();
        seeds.vectors(&vectors);
        seeds.configurations(&root.join("tests/config"));
        seeds
    }

    pub fn of(&self, target: &str) -> Vec<Vec<u8>> {
        self.0.get(target).into_iter().flatten().cloned().collect()
    }

    fn add(&mut self, target: &'static str, input: impl Into<Vec<u8>>) {
        let input = input.into();
        if input.len() <= LONGEST {
            self.0.entry(target).or_default().insert(input);
        }
    }

    fn join(&mut self, target: &'static str, parts: &[&[u8]]) {
        self.add(target, parts.join(&0));
    }

    fn by_hand(&mut self) {
        for text in [
            "a: &a [1, ~]\nb: *a\nc: |\n  x\n",
            "- yes\n- 0x1F\n- 1_000\n- .inf\n- 2020-01-01\n",
            "{a: 1, a: 2}",
            "? [a]\n: b",
        ] {
            self.add("yaml", text);
        }
        for token in ["ns/name", "/a/b", "../x", "a//b"] {
            self.add("continue_token", Token::after(token, 7));
            self.add("continue_token", token);
        }
        for (a, b) in
            [("1e1000000000", "1"), ("12345678901234567890Ei", "1n"), ("1.5Gi", "0.0000000001"), ("-1E3", "1e-9")]
        {
            self.join("quantity", &[a.as_bytes(), b.as_bytes()]);
        }
        for text in [
            "{.spec.x[0:2:1]}",
            ".a[?(@.b=='c')]",
            "..name",
            ".a['b','c']",
            "^(a|b)*[[:alpha:]]{2,3}$",
            "(?i)\\pL+",
            "a**",
            "1h2m3.5s",
        ] {
            self.add("scalars", text);
        }
    }

    fn recorded(&mut self, case: &Value) {
        for step in case.array_at(&["steps"]) {
            let (path, query) = (step.str_at(&["path"]), step.get("query"));
            let pairs = query.and_then(Value::as_object).into_iter().flat_map(kenter::object::Map::iter);
            let query: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", word(value))).collect();
            let header = |name: &str| {
                let headers = step.object_at(&["headers"]).into_iter().flat_map(kenter::object::Map::iter);
                let mut found = headers.filter(|(key, _)| key.eq_ignore_ascii_case(name));
                found.next().and_then(|(_, value)| value.as_str()).unwrap_or("").to_owned()
            };
            self.join("request", &[path.as_bytes(), query.join("&").as_bytes(), header("accept").as_bytes()]);
            for name in ["labelSelector", "fieldSelector"] {
                if let Some(text) = step.at(&["query", name]).and_then(Value::as_str) {
                    self.add("selectors", text);
                }
            }
            let Some(body) = step.get("body") else { continue };
            let bytes = body.as_str().map_or_else(|| to_vec(body), |text| text.as_bytes().to_vec());
            self.body(&bytes, body, &header("content-type"), step);
        }
    }

    fn body(&mut self, bytes: &[u8], body: &Value, content_type: &str, step: &Value) {
        self.add("json", bytes);
        self.add("yaml", bytes);
        let answer = step.at(&["expect", "body"]).map(to_vec).unwrap_or_default();
        let kind = |of: &Value| format!("{}/{}", of.str_at(&["apiVersion"]), of.str_at(&["kind"]));
        let shown = step.at(&["expect", "body"]).map(kind).unwrap_or_default();
        match content_type {
            it if it.contains("json-patch") => self.join("json_patch", &[bytes, &answer]),
            it if it.contains("strategic") => self.join("strategic_patch", &[shown.as_bytes(), bytes, &answer]),
            it if it.contains("merge-patch") => self.join("merge_patch", &[bytes, &answer]),
            it if it.contains("apply") => self.join("apply", &[kind(body).as_bytes(), bytes, bytes, &answer]),
            _ => {
                self.join("object", &[kind(body).as_bytes(), bytes]);
                for version in body.array_at(&["spec", "versions"]) {
                    if let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) {
                        self.join("custom", &[&to_vec(schema), b"{\"spec\":{}}"]);
                    }
                }
                if body.get("spec").is_some() {
                    self.add("cbor", cbor::encode(builtin(), TypeId::ANY, body));
                }
            }
        }
    }

    fn vectors(&mut self, vectors: &BTreeMap<String, Value>) {
        let none = Value::Null;
        let of = |name: &str| vectors.get(name).unwrap_or(&none);
        for name in ["protobuf", "cbor"] {
            for case in of(name).as_array().unwrap_or_default() {
                let bytes = from_hex(case.str_at(&["hex"]));
                self.add(if name == "cbor" { "cbor" } else { "protobuf" }, bytes);
                let json = case.get("json").map(to_vec).unwrap_or_default();
                self.join("object", &[case.str_at(&["kind"]).as_bytes(), &json]);
            }
        }
        for (name, target) in [("json-patch", "json_patch"), ("json-merge-patch", "merge_patch")] {
            for case in of(name).as_array().unwrap_or_default() {
                let patch = case.str_at(&["patch"]).as_bytes();
                self.join(target, &[patch, &case.get("doc").map(to_vec).unwrap_or_default()]);
            }
        }
        for case in of("strategic-merge").as_array().unwrap_or_default() {
            let part = |name: &str| match case.get(name) {
                Some(Value::Str(text)) => text.clone().into_bytes(),
                other => other.map(to_vec).unwrap_or_default(),
            };
            self.join("strategic_patch", &[case.str_at(&["kind"]).as_bytes(), &part("patch"), &part("original")]);
        }
        self.sequences(of("structured-merge-diff"));
        for name in ["labels-selector", "field-selector"] {
            self.inputs("selectors", of(name));
        }
        for case in of("labels-selector").array_at(&["label_selector"]) {
            self.add("selectors", case.get("in").map(to_vec).unwrap_or_default());
        }
        self.inputs("quantity", of("quantity"));
        for case in of("quantity").array_at(&["ops"]) {
            self.join("quantity", &[case.str_at(&["a"]).as_bytes(), case.str_at(&["b"]).as_bytes()]);
        }
        self.inputs("scalars", of("duration"));
        for case in of("validation-names").array_at(&["messages"]) {
            self.add("scalars", case.str_at(&["in"]));
        }
        for case in of("crd-schema").array_at(&["schemas"]) {
            self.join("custom", &[&case.get("schema").map(to_vec).unwrap_or_default(), b"{}"]);
        }
        for case in of("crd-value-validation").as_array().unwrap_or_default() {
            let schema = case.get("schema").map(to_vec).unwrap_or_default();
            for object in case.array_at(&["objects"]) {
                self.join("custom", &[&schema, &object.get("object").map(to_vec).unwrap_or_default()]);
            }
        }
    }

    fn sequences(&mut self, vectors: &Value) {
        for sequence in vectors.array_at(&["sequences"]) {
            let objects: Vec<Vec<u8>> =
                sequence.array_at(&["ops"]).iter().filter_map(|op| op.get("object")).map(to_vec).collect();
            let kind = sequence.array_at(&["ops"]).first().map_or("", |op| op.str_at(&["kind"]));
            let part = |at: usize| objects.get(at % objects.len().max(1)).map_or(&[][..], Vec::as_slice);
            self.join("apply", &[kind.as_bytes(), part(0), part(1), part(2)]);
        }
    }

    fn inputs(&mut self, target: &'static str, vectors: &Value) {
        for case in vectors.array_at(&["parse"]) {
            self.add(target, case.str_at(&["in"]));
        }
    }

    fn configurations(&mut self, folder: &Path) {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "toml")
                    && let Ok(text) = std::fs::read(&path)
                {
                    self.add("configuration", text);
                }
            }
        }
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| kenter::object::to_string(value), str::to_owned)
}

/// The JSON documents of a folder, in the order of their names.
fn documents(folder: &Path) -> Vec<(String, Value)> {
    let mut found: Vec<(String, Value)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let name = path.file_stem()?.to_string_lossy().into_owned();
            let value = parse(&std::fs::read(&path).ok()?).ok()?;
            Some((name, value))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn from_hex(text: &str) -> Vec<u8> {
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    pairs.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}
