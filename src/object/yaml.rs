//! YAML text to a tree, by the YAML 1.1 rules Kubernetes' reader keeps (sigs.k8s.io/yaml).

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{FieldPath, Key, MAX_DEPTH, Map, Parsed, Room, Value, parse::MAX_DUPLICATES};

/// Parses one YAML document, reporting repeated members. JSON text is YAML too, but callers try the JSON parser
/// first since it is ten times quicker.
///
/// # Errors
/// The reader's message with line and column. Aliases, depth and nodes are bounded by the reader's budget.
pub fn parse(text: &str) -> Result<Parsed, String> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
    };
    let (mut duplicates, mut room) = (Vec::new(), Room::default());
    let value = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        let path = &mut FieldPath::default();
        Seed { path, duplicates: &mut duplicates, room: &mut room, depth: 0 }.deserialize(deserializer)
    })
    .map_err(|error| error.to_string())?;
    Ok(Parsed { value, duplicates })
}

struct Seed<'a> {
    path: &'a mut FieldPath,
    duplicates: &'a mut Vec<String>,
    room: &'a mut Room,
    depth: usize,
}

impl Seed<'_> {
    fn inner(&mut self) -> Seed<'_> {
        Seed { path: self.path, duplicates: self.duplicates, room: self.room, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(serde::de::Error::custom("exceeded max depth"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }
    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Bool(it))
    }
    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(Value::Int(it))
    }
    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(i64::try_from(it).map_or(Value::Float(it as f64), Value::Int))
    }
    fn visit_f64<E: serde::de::Error>(self, it: f64) -> Result<Value, E> {
        if it.is_finite() {
            Ok(Value::Float(it))
        } else {
            Err(E::custom("json: unsupported value: ".to_owned() + &it.to_string()))
        }
    }
    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(Value::Str(it.to_owned()))
    }
    fn visit_string<E>(self, it: String) -> Result<Value, E> {
        Ok(Value::Str(it))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }
    fn visit_bytes<E>(self, it: &[u8]) -> Result<Value, E> {
        Ok(Value::Str(String::from_utf8_lossy(it).into_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            self.path.push_index(items.len());
            let item = seq.next_element_seed(self.inner())?;
            self.path.pop();
            match item {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = map.next_key::<MemberName>()? {
            self.path.push_key(&key.0);
            let value = map.next_value_seed(self.inner())?;
            self.path.pop();
            members.push((key.0, value));
        }
        let Seed { path, duplicates, room, .. } = self;
        let mut last: Option<Key> = None;
        Ok(Value::Object(Map::from_members(members, |key| {
            // As in JSON: each name once per object, and not without end.
            if last.as_ref() != Some(key) && duplicates.len() < MAX_DUPLICATES {
                path.push_key(key);
                duplicates.extend(path.text_within(room));
                path.pop();
            }
            last = Some(key.clone());
        })))
    }
}

/// A member's name: YAML allows any scalar where JSON wants text.
struct MemberName(Key);

impl<'de> Deserialize<'de> for MemberName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = MemberName;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a scalar key")
            }
            fn visit_str<E>(self, it: &str) -> Result<MemberName, E> {
                Ok(MemberName(Key::new(it)))
            }
            fn visit_bool<E>(self, it: bool) -> Result<MemberName, E> {
                Ok(MemberName(Key::from_static(if it { "true" } else { "false" })))
            }
            fn visit_i64<E>(self, it: i64) -> Result<MemberName, E> {
                Ok(MemberName(Key::new(&it.to_string())))
            }
            fn visit_u64<E>(self, it: u64) -> Result<MemberName, E> {
                Ok(MemberName(Key::new(&it.to_string())))
            }
            fn visit_f64<E>(self, it: f64) -> Result<MemberName, E> {
                Ok(MemberName(Key::new(&super::print_float(it))))
            }
            fn visit_unit<E>(self) -> Result<MemberName, E> {
                Ok(MemberName(Key::from_static("null")))
            }
        }
        deserializer.deserialize_any(Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_follow_yaml_1_1() {
        let parsed = parse("a: yes\nb: 0777\nc: \"yes\"\nd: 1.5\ne: ~\nf: 2020-01-01\ng: [1, two]\n1: x\n").unwrap();
        assert_eq!(
            crate::object::to_string(&parsed.value),
            r#"{"1":"x","a":true,"b":511,"c":"yes","d":1.5,"e":null,"f":"2020-01-01","g":[1,"two"]}"#
        );
    }

    #[test]
    fn repeated_members_are_reported_and_the_last_wins() {
        let parsed = parse("a: 1\nb:\n- k: 1\n  k: 2\na: 3\n").unwrap();
        assert_eq!(parsed.duplicates, ["b[0].k", "a"]);
        assert_eq!(parsed.value.i64_at(&["a"]), Some(3));
    }

    #[test]
    fn hostile_documents_are_refused() {
        assert!(parse(&"[".repeat(100_000)).is_err());
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
        assert!(parse(bomb).is_err());
    }
}
