//! Upstream judges definitions in an internal form, and its errors show that form: what all versions have in common
//! stands at the top, and values are printed with Go's field names.

use crate::object::{Map, Value, escape_into, to_string};

/// What versions have in common (or `None` where they differ), and so is told at the top.
pub struct Hoisted<'a> {
    pub schema: Option<Option<&'a Value>>,
    pub subresources: Option<Option<&'a Value>>,
    pub columns: Option<&'a [Value]>,
    pub selectable: Option<&'a [Value]>,
}

impl<'a> Hoisted<'a> {
    pub fn of(versions: &'a [Value]) -> Self {
        let Some(first) = versions.first() else {
            return Self { schema: None, subresources: None, columns: None, selectable: None };
        };
        let given = |version: &'a Value, name: &str| version.get(name).filter(|it| !it.is_null());
        let same = |name: &str| versions.iter().all(|version| given(version, name) == given(first, name));
        let same_list =
            |name: &str| versions.iter().all(|version| version.array_at(&[name]) == first.array_at(&[name]));
        Self {
            schema: same("schema").then(|| given(first, "schema")),
            subresources: same("subresources").then(|| given(first, "subresources")),
            columns: same_list("additionalPrinterColumns").then(|| first.array_at(&["additionalPrinterColumns"])),
            selectable: same_list("selectableFields").then(|| first.array_at(&["selectableFields"])),
        }
    }
}

/// A Go struct on its way to JSON.
struct Printer(String);

impl Printer {
    fn new() -> Self {
        Self("{".to_owned())
    }

    fn raw(&mut self, name: &str, text: &str) -> &mut Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0 += &format!("\"{name}\":{text}");
        self
    }

    fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.raw(name, &quoted(value))
    }

    /// A value as it is, null where it is missing.
    fn value(&mut self, name: &str, value: Option<&Value>) -> &mut Self {
        let shown = value.map_or_else(|| "null".to_owned(), to_string);
        self.raw(name, &shown)
    }

    fn flag(&mut self, name: &str, object: &Value, key: &str) -> &mut Self {
        let set = object.bool_at(&[key]);
        self.raw(name, if set { "true" } else { "false" })
    }

    fn end(&mut self) -> String {
        std::mem::take(&mut self.0) + "}"
    }
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    escape_into(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

fn list(items: Option<&Value>, print: fn(&Value) -> String) -> String {
    match items.and_then(Value::as_array) {
        Some(items) => format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(",")),
        None => "null".into(),
    }
}

fn members(map: Option<&Value>, print: fn(&Value) -> String) -> String {
    match map.and_then(Value::as_object) {
        Some(map) => {
            let members = Map::iter(map).map(|(name, value)| format!("{}:{}", quoted(name), print(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        None => "null".into(),
    }
}

/// A `JSONSchemaProps` as Go prints it.
pub fn schema(schema: &Value) -> String {
    let get = |key: &str| schema.get(key).filter(|it| !it.is_null());
    let text = |key: &str| schema.str_at(&[key]);
    let nested = |key: &str| get(key).map_or_else(|| "null".to_owned(), self::schema);
    let mut out = Printer::new();
    out.text("ID", text("id")).text("Schema", text("$schema")).value("Ref", get("$ref"));
    out.text("Description", text("description")).text("Type", text("type")).flag("Nullable", schema, "nullable");
    out.text("Format", text("format")).text("Title", text("title")).value("Default", get("default"));
    out.value("Maximum", get("maximum")).flag("ExclusiveMaximum", schema, "exclusiveMaximum");
    out.value("Minimum", get("minimum")).flag("ExclusiveMinimum", schema, "exclusiveMinimum");
    out.value("MaxLength", get("maxLength")).value("MinLength", get("minLength")).text("Pattern", text("pattern"));
    out.value("MaxItems", get("maxItems")).value("MinItems", get("minItems")).flag(
        "UniqueItems",
        schema,
        "uniqueItems",
    );
    out.value("MultipleOf", get("multipleOf")).value("Enum", get("enum"));
    out.value("MaxProperties", get("maxProperties")).value("MinProperties", get("minProperties"));
    out.value("Required", get("required"));
    out.raw(
        "Items",
        &match get("items") {
            Some(Value::Array(_)) => {
                format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", list(get("items"), self::schema))
            }
            Some(one) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", self::schema(one)),
            None => "null".into(),
        },
    );
    out.raw("AllOf", &list(get("allOf"), self::schema)).raw("OneOf", &list(get("oneOf"), self::schema));
    out.raw("AnyOf", &list(get("anyOf"), self::schema)).raw("Not", &nested("not"));
    out.raw("Properties", &members(get("properties"), self::schema));
    out.raw("AdditionalProperties", &schema_or_bool(get("additionalProperties")));
    out.raw("PatternProperties", &members(get("patternProperties"), self::schema));
    out.raw("Dependencies", &members(get("dependencies"), dependency));
    out.raw("AdditionalItems", &schema_or_bool(get("additionalItems")));
    out.raw("Definitions", &members(get("definitions"), self::schema));
    out.raw(
        "ExternalDocs",
        &get("externalDocs").map_or_else(
            || "null".to_owned(),
            |docs| {
                let mut out = Printer::new();
                out.text("Description", docs.str_at(&["description"])).text("URL", docs.str_at(&["url"])).end()
            },
        ),
    );
    out.value("Example", get("example")).value("XPreserveUnknownFields", get("x-kubernetes-preserve-unknown-fields"));
    out.flag("XEmbeddedResource", schema, "x-kubernetes-embedded-resource");
    out.flag("XIntOrString", schema, "x-kubernetes-int-or-string");
    out.value("XListMapKeys", get("x-kubernetes-list-map-keys")).value("XListType", get("x-kubernetes-list-type"));
    out.value("XMapType", get("x-kubernetes-map-type"));
    out.raw("XValidations", &list(get("x-kubernetes-validations"), rule)).end()
}

fn schema_or_bool(value: Option<&Value>) -> String {
    match value {
        None => "null".into(),
        Some(Value::Bool(allows)) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
        Some(inner) => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(inner)),
    }
}

fn dependency(value: &Value) -> String {
    match value {
        Value::Array(_) => format!("{{\"Schema\":null,\"Property\":{}}}", to_string(value)),
        inner => format!("{{\"Schema\":{},\"Property\":null}}", schema(inner)),
    }
}

fn rule(rule: &Value) -> String {
    let text = |key: &str| rule.str_at(&[key]);
    let get = |key: &str| rule.get(key).filter(|it| !it.is_null());
    let mut out = Printer::new();
    out.text("Rule", text("rule"))
        .text("Message", text("message"))
        .text("MessageExpression", text("messageExpression"));
    out.value("Reason", get("reason")).text("FieldPath", text("fieldPath"));
    out.value("OptionalOldSelf", get("optionalOldSelf")).end()
}

/// The versions as Go prints them, without what was hoisted; null where the list is missing.
pub fn versions(versions: Option<&Value>, hoisted: &Hoisted<'_>) -> String {
    let Some(Value::Array(versions)) = versions else { return "null".into() };
    let one = |version: &Value| {
        let get = |key: &str| version.get(key).filter(|it| !it.is_null());
        let mut out = Printer::new();
        out.text("Name", version.str_at(&["name"]))
            .flag("Served", version, "served")
            .flag("Storage", version, "storage");
        out.flag("Deprecated", version, "deprecated").value("DeprecationWarning", get("deprecationWarning"));
        let own = get("schema").filter(|_| hoisted.schema.is_none());
        out.raw(
            "Schema",
            &own.map_or_else(
                || "null".to_owned(),
                |it| {
                    let inner = it.get("openAPIV3Schema").filter(|it| !it.is_null());
                    format!("{{\"OpenAPIV3Schema\":{}}}", inner.map_or_else(|| "null".to_owned(), schema))
                },
            ),
        );
        let own = get("subresources").filter(|_| hoisted.subresources.is_none());
        out.raw("Subresources", &own.map_or_else(|| "null".to_owned(), subresources));
        let own = get("additionalPrinterColumns").filter(|_| hoisted.columns.is_none());
        out.raw("AdditionalPrinterColumns", &list(own, column));
        let own = get("selectableFields").filter(|_| hoisted.selectable.is_none());
        out.raw(
            "SelectableFields",
            &list(own, |field| format!("{{\"JSONPath\":{}}}", quoted(field.str_at(&["jsonPath"])))),
        );
        out.end()
    };
    format!("[{}]", versions.iter().map(one).collect::<Vec<_>>().join(","))
}

fn subresources(it: &Value) -> String {
    let status = it.get("status").filter(|it| !it.is_null()).map_or("null", |_| "{}");
    let scale = it.get("scale").filter(|it| !it.is_null()).map_or_else(
        || "null".to_owned(),
        |scale| {
            let mut out = Printer::new();
            out.text("SpecReplicasPath", scale.str_at(&["specReplicasPath"]));
            out.text("StatusReplicasPath", scale.str_at(&["statusReplicasPath"]));
            out.value("LabelSelectorPath", scale.get("labelSelectorPath").filter(|it| !it.is_null())).end()
        },
    );
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}

fn column(column: &Value) -> String {
    let mut out = Printer::new();
    for (name, key) in [("Name", "name"), ("Type", "type"), ("Format", "format"), ("Description", "description")] {
        out.text(name, column.str_at(&[key]));
    }
    out.raw("Priority", &column.i64_at(&["priority"]).unwrap_or(0).to_string());
    out.text("JSONPath", column.str_at(&["jsonPath"])).end()
}

/// Fields of the internal schema in their order, each with the keyword that sets it.
pub const FIELDS: [(&str, &str); 44] = [
    ("ID", "id"),
    ("Schema", "$schema"),
    ("Ref", "$ref"),
    ("Description", "description"),
    ("Type", "type"),
    ("Nullable", "nullable"),
    ("Format", "format"),
    ("Title", "title"),
    ("Default", "default"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Enum", "enum"),
    ("MaxProperties", "maxProperties"),
    ("MinProperties", "minProperties"),
    ("Required", "required"),
    ("Items", "items"),
    ("AllOf", "allOf"),
    ("OneOf", "oneOf"),
    ("AnyOf", "anyOf"),
    ("Not", "not"),
    ("Properties", "properties"),
    ("AdditionalProperties", "additionalProperties"),
    ("PatternProperties", "patternProperties"),
    ("Dependencies", "dependencies"),
    ("AdditionalItems", "additionalItems"),
    ("Definitions", "definitions"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource"),
    ("XIntOrString", "x-kubernetes-int-or-string"),
    ("XListMapKeys", "x-kubernetes-list-map-keys"),
    ("XListType", "x-kubernetes-list-type"),
    ("XMapType", "x-kubernetes-map-type"),
    ("XValidations", "x-kubernetes-validations"),
];

/// Whether a field of the internal schema is not its zero value.
pub fn is_set(schema: &Value, keyword: &str) -> bool {
    match schema.get(keyword) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(set)) => {
            *set || matches!(
                keyword,
                "additionalProperties" | "additionalItems" | "x-kubernetes-preserve-unknown-fields"
            )
        }
        Some(Value::Str(text)) => {
            !text.is_empty()
                || matches!(
                    keyword,
                    "$ref" | "default" | "example" | "x-kubernetes-list-type" | "x-kubernetes-map-type"
                )
        }
        Some(_) => true,
    }
}
