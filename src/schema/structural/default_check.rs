//! Whether the defaults in a schema fit it (apiextensions-apiserver `pkg/apiserver/schema/defaulting/validation.go`).

use super::{
    check::{items, properties, says},
    default_type,
    embedded::{self, MetaCheck},
    node::Node,
    validate::validate,
};
use crate::{
    api::{ErrorList, FieldError, Path},
    object::Value,
    schema::{
        builtin::builtin,
        prune::{Malformed, coerce, prune},
        table::{Table, TypeId},
    },
};

/// Judges all defaults of a structural schema. `pruned`: they must not have members that the schema does not know.
pub fn validate_defaults(schema: &Value, pruned: bool, check: MetaCheck<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    Checker { pruned, check, errors }
        .node(&At { schema, root: schema, steps: Vec::new(), inside_meta: false, is_root: true }, path);
}

struct Checker<'a> {
    pruned: bool,
    check: MetaCheck<'a>,
    errors: &'a mut ErrorList,
}

/// A node and the object around it.
struct At<'s> {
    schema: &'s Value,
    /// The embedded (or whole) object that the node belongs to, and the way from there.
    root: &'s Value,
    steps: Vec<Option<&'s str>>,
    /// Below the metadata, kind or apiVersion of that object.
    inside_meta: bool,
    /// The node is the whole resource.
    is_root: bool,
}

impl Checker<'_> {
    fn node(&mut self, at: &At<'_>, path: &Path<'_>) {
        let embedded = at.is_root || at.schema.bool_at(&["x-kubernetes-embedded-resource"]);
        let own_root = embedded && !at.is_root;
        let at = &At {
            root: if own_root { at.schema } else { at.root },
            steps: if own_root { Vec::new() } else { at.steps.clone() },
            inside_meta: at.inside_meta && !own_root,
            ..*at
        };
        if let Some(default) = at.schema.get("default").filter(|it| !it.is_null()) {
            let path = path.child("default");
            if at.inside_meta { self.inside_meta(at, default, &path) } else { self.plain(at, default, embedded, &path) }
        }
        let below = |schema, step, inside_meta| {
            let steps = at.steps.iter().copied().chain([step]).collect();
            At { schema, root: at.root, steps, inside_meta, is_root: false }
        };
        if let Some(inner) = items(at.schema) {
            self.node(&below(inner, None, at.inside_meta), &path.child("items"));
        }
        let properties_path = path.child("properties");
        for (name, property) in properties(at.schema) {
            let meta = at.inside_meta || (embedded && matches!(name, "metadata" | "apiVersion" | "kind"));
            self.node(&below(property, Some(name), meta), &properties_path.key(name));
        }
    }

    fn plain(&mut self, at: &At<'_>, default: &Value, embedded: bool, path: &Path<'_>) {
        let (table, ty) = type_of(at.schema, at.is_root);
        if self.pruned {
            let mut left = default.clone();
            prune(&table, ty, &mut left);
            if left != *default {
                self.errors.push(FieldError::invalid_ref(path, default, "must not have unknown fields"));
            }
        }
        let mut value = default.clone();
        if let Err(refused) = coerce(&table, ty, &mut value, Malformed::Refuse) {
            return self.errors.push(refused.below(&path.to_string()));
        }
        let node = Node::of(&table, ty);
        let mut found = ErrorList::new();
        embedded::validate(node, &value, embedded, self.check, path, &mut found);
        if found.is_empty() {
            validate(node, &value, None, &path.to_string(), &mut found);
        }
        self.errors.extend(found);
    }

    /// A default of metadata is judged by the object that it would stand in.
    fn inside_meta(&mut self, at: &At<'_>, default: &Value, path: &Path<'_>) {
        let mut object = default.clone();
        for step in at.steps.iter().rev() {
            object = match step {
                Some(name) => Value::from([(*name, object)]),
                None => Value::Array(vec![object]),
            };
        }
        for (name, text) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
            let map = object.make_object();
            if !map.contains_key(name) {
                map.insert(name, text);
            }
        }
        let (table, ty) = type_of(at.root, true);
        let bad = |why: &dyn std::fmt::Display| {
            FieldError::invalid_ref(path, default, &format!("must result in valid metadata: {why}"))
        };
        if let Err(refused) = coerce(&table, ty, &mut object, Malformed::Refuse) {
            return self.errors.push(bad(&refused.below("")));
        }
        let mut found = ErrorList::new();
        embedded::validate(Node::of(&table, ty), &object, true, self.check, &Path::ROOT, &mut found);
        if !found.is_empty() {
            return self.errors.push(bad(&found));
        }
        let (table, ty) = type_of(at.schema, false);
        validate(Node::of(&table, ty), default, None, &path.to_string(), self.errors);
    }
}

fn type_of(schema: &Value, root: bool) -> (Table, TypeId) {
    let mut table = Table::over(builtin());
    let ty = default_type(&mut table, schema, root);
    (table, ty)
}

/// Whether any default has members that its schema does not know.
pub fn has_unpruned(schema: &Value) -> bool {
    let below = items(schema).into_iter().chain(properties(schema).map(|(_, it)| it));
    let own = says(schema, "default") && {
        let (table, ty) = type_of(schema, false);
        let mut left = schema.get("default").cloned().unwrap_or_default();
        !prune(&table, ty, &mut left).is_empty()
    };
    own || below.into_iter().any(has_unpruned)
}
