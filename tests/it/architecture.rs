//! Who may know whom: `use crate::…` lines against the table in ARCHITECTURE.md.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// The table's rows: a module and what it may use.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let section = text.split("<!-- dependencies -->").nth(1).expect("the table is marked");
    let names = |cell: &str| {
        cell.split(',').map(|name| name.trim().trim_matches('`').to_owned()).filter(|name| !name.is_empty()).collect()
    };
    section
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
            let [module, uses] = cells.as_slice() else { return None };
            let module = module.trim();
            (module.starts_with('`')).then(|| (module.trim_matches('`').to_owned(), names(uses)))
        })
        .collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|it| it == "rs") {
            into.push(path);
        }
    }
}

/// Modules a file names in `crate::…` paths, tests left out.
fn uses(text: &str) -> BTreeSet<String> {
    let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let mut found = BTreeSet::new();
    for (at, _) in production.match_indices("crate::") {
        let line = production[..at].rsplit('\n').next().unwrap_or("").trim_start();
        if line.starts_with("//") || line.ends_with("$") {
            continue;
        }
        let rest = &production[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => top_level(group, &mut found),
            None => {
                found.insert(word(rest));
            }
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_' || c.is_ascii_digit()).collect()
}

/// The first words of a `{a::b, c::{d}}` group.
fn top_level(group: &str, found: &mut BTreeSet<String>) {
    let mut depth = 0;
    let mut begins = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && depth == 0 && c.is_ascii_lowercase() => {
                found.insert(word(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let allowed = allowed();
    assert!(allowed.len() > 10, "the table is empty");
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let path = file.strip_prefix(root().join("src")).expect("below src");
        let first = path.components().next().expect("a part").as_os_str().to_string_lossy().replace(".rs", "");
        if first == "main" || first == "lib" || path.to_string_lossy().contains("test") {
            continue;
        }
        let Some(may) = allowed.get(&first) else {
            wrong.push(format!("{first} has no row in the table"));
            continue;
        };
        let text = std::fs::read_to_string(&file).expect("a source file");
        for used in uses(&text).iter().filter(|used| **used != first && allowed.contains_key(*used)) {
            if !may.contains(used) {
                wrong.push(format!("{} uses {used}, which {first} may not know", path.display()));
            }
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
