//! The names that custom resources of a group hold, and what of a definition's names is free
//! (apiextensions-apiserver `pkg/controller/status/naming_controller.go`).

use std::collections::HashMap;

use crate::{
    api::field::quote,
    object::{Map, Value},
};

/// The names of a definition, as asked for or as accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    plural: String,
    singular: String,
    short_names: Vec<String>,
    kind: String,
    list_kind: String,
    categories: Vec<String>,
}

impl Names {
    /// Names that a definition need not have.
    pub const OPTIONAL: [&str; 4] = ["categories", "listKind", "shortNames", "singular"];

    pub fn of(names: Option<&Value>) -> Self {
        let text = |key: &str| names.map_or("", |names| names.str_at(&[key])).to_owned();
        let list = |key: &str| {
            let items = names.map_or(&[][..], |names| names.array_at(&[key])).iter();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            plural: text("plural"),
            singular: text("singular"),
            short_names: list("shortNames"),
            kind: text("kind"),
            list_kind: text("listKind"),
            categories: list("categories"),
        }
    }

    pub fn to_value(&self) -> Value {
        let mut map = Map::from([("plural", self.plural.as_str())]);
        let text = |map: &mut Map, key: &'static str, value: &str| {
            if !value.is_empty() {
                map.insert(key, value);
            }
        };
        let list = |map: &mut Map, key: &'static str, value: &[String]| {
            if !value.is_empty() {
                map.insert(key, value.to_vec());
            }
        };
        text(&mut map, "singular", &self.singular);
        list(&mut map, "shortNames", &self.short_names);
        map.insert("kind", self.kind.as_str());
        text(&mut map, "listKind", &self.list_kind);
        list(&mut map, "categories", &self.categories);
        map.into()
    }

    fn resources(&self) -> impl Iterator<Item = &String> {
        [&self.plural, &self.singular].into_iter().chain(&self.short_names)
    }

    fn kinds(&self) -> impl Iterator<Item = &String> {
        [&self.kind, &self.list_kind].into_iter()
    }
}

/// How often each name is held.
#[derive(Default)]
pub struct Pool {
    resources: HashMap<String, usize>,
    kinds: HashMap<String, usize>,
}

impl Pool {
    pub fn add(&mut self, names: &Names) {
        names
            .resources()
            .filter(|it| !it.is_empty())
            .for_each(|it| *self.resources.entry(it.clone()).or_default() += 1);
        names.kinds().filter(|it| !it.is_empty()).for_each(|it| *self.kinds.entry(it.clone()).or_default() += 1);
    }

    pub fn remove(&mut self, names: &Names) {
        let drop = |from: &mut HashMap<String, usize>, name: &String| {
            if let Some(held) = from.get_mut(name) {
                *held -= 1;
                if *held == 0 {
                    from.remove(name);
                }
            }
        };
        names.resources().for_each(|it| drop(&mut self.resources, it));
        names.kinds().for_each(|it| drop(&mut self.kinds, it));
    }

    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.kinds.is_empty()
    }

    /// What a definition that holds `accepted` and asks for `requested` gets; the last conflict's reason and message.
    pub fn accept(&self, requested: &Names, accepted: &Names) -> (Names, Option<(&'static str, String)>) {
        let mut names = accepted.clone();
        let mut conflict = None;
        let mut take =
            |asked: &String, held: &String, of: &HashMap<String, usize>, reason: &'static str, into: &mut String| {
                match refusal(asked, held, of) {
                    Some(why) => conflict = Some((reason, why)),
                    None => into.clone_from(asked),
                }
            };
        take(&requested.plural, &accepted.plural, &self.resources, "PluralConflict", &mut names.plural);
        take(&requested.singular, &accepted.singular, &self.resources, "SingularConflict", &mut names.singular);
        if requested.short_names != accepted.short_names {
            let asked = requested.short_names.iter().filter(|name| !accepted.short_names.contains(name));
            let mut refused: Vec<String> = asked.filter_map(|name| refusal(name, "", &self.resources)).collect();
            refused.dedup();
            match refused.as_slice() {
                [] => names.short_names.clone_from(&requested.short_names),
                [one] => conflict = Some(("ShortNamesConflict", one.clone())),
                several => conflict = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
            }
        }
        let mut take = |asked: &String, held: &String, reason: &'static str, into: &mut String| match refusal(
            asked,
            held,
            &self.kinds,
        ) {
            Some(why) => conflict = Some((reason, why)),
            None => into.clone_from(asked),
        };
        take(&requested.kind, &accepted.kind, "KindConflict", &mut names.kind);
        take(&requested.list_kind, &accepted.list_kind, "ListKindConflict", &mut names.list_kind);
        names.categories.clone_from(&requested.categories);
        (names, conflict)
    }
}

fn refusal(asked: &str, held: &str, taken: &HashMap<String, usize>) -> Option<String> {
    (asked != held && taken.contains_key(asked)).then(|| format!("{} is already in use", quote(asked)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn names(plural: &str, kind: &str, short: &[&str]) -> Names {
        let list_kind = format!("{kind}List");
        let (singular, short) = (kind.to_lowercase(), short.to_vec());
        Names::of(Some(
            &json!({"plural": plural, "singular": singular, "kind": kind, "listKind": list_kind, "shortNames": short}),
        ))
    }

    #[test]
    fn what_is_free_is_taken_and_the_last_conflict_is_told() {
        let mut pool = Pool::default();
        pool.add(&names("as", "A", &["x", "y"]));
        let (given, conflict) = pool.accept(&names("bs", "B", &["z"]), &Names::default());
        assert_eq!((given, conflict), (names("bs", "B", &["z"]), None));
        let (given, conflict) = pool.accept(&names("bs", "B", &["x", "y", "z"]), &Names::default());
        let why = r#"["x" is already in use, "y" is already in use]"#.to_owned();
        assert_eq!((given, conflict), (names("bs", "B", &[]), Some(("ShortNamesConflict", why))));
        let (given, conflict) = pool.accept(&names("bs", "A", &["x"]), &Names::default());
        assert_eq!(conflict, Some(("ListKindConflict", r#""AList" is already in use"#.to_owned())));
        assert_eq!((given.plural.as_str(), given.kind.as_str()), ("bs", ""));
    }

    #[test]
    fn what_one_holds_already_is_no_conflict_and_what_is_given_back_is_free() {
        let mut pool = Pool::default();
        let mine = names("as", "A", &["x"]);
        pool.add(&mine);
        assert_eq!(pool.accept(&names("as", "A", &["x", "n"]), &mine).1, None);
        pool.remove(&mine);
        assert!(pool.is_empty());
        assert_eq!(
            mine.to_value(),
            json!({"plural": "as", "singular": "a", "shortNames": ["x"], "kind": "A", "listKind": "AList"})
        );
    }
}
