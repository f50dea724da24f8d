//! Rules of CustomResourceDefinitions (apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`).

use super::{
    approval::{ANNOTATION, approval},
    internal::{self, Hoisted},
    schema_rules::{
        self, SchemaOptions, any, has_default, has_extensions, has_invalid_type, has_non_atomic_set, validate_schema,
    },
};
use crate::{
    api::{
        ErrorList, FieldError, Path,
        field::is_printable,
        names::{is_dns1035_label, is_dns1123_subdomain},
    },
    object::{Value, to_string},
    registry::{
        dynamic::{definition, embedded_meta},
        validation::webhook,
    },
    schema::structural::{check, default_check, field_path},
};

const MOST_SELECTABLE: usize = 8;

/// What an update is asked; what the old definition did not keep is not demanded of the new one.
struct Options {
    schema: SchemaOptions,
    recognised_review: bool,
    /// Kind and scope may not change any more.
    fixed: bool,
    needs_schema: bool,
    structural: bool,
    pruned_defaults: bool,
    any_ca_bundle: bool,
    /// Versions (`""` for what is hoisted) that may keep more selectable fields than there may be.
    many_selectable: Vec<String>,
}

impl Options {
    fn create() -> Self {
        Self {
            schema: SchemaOptions { valid_types: true, atomic_sets: true, keys_of_maps: true },
            recognised_review: true,
            fixed: false,
            needs_schema: true,
            structural: true,
            pruned_defaults: true,
            any_ca_bundle: true,
            many_selectable: Vec::new(),
        }
    }

    fn update(new: &Value, old: &Value) -> Self {
        let schemas = || definition::versions(old).iter().filter_map(definition::schema);
        let found = |wanted: &dyn Fn(&Value) -> bool| schemas().any(|schema| any(schema, wanted));
        let review = old.array_at(&["spec", "conversion", "webhook", "conversionReviewVersions"]);
        let established = definition::is_true(old, definition::ESTABLISHED);
        let bundle = old.str_at(&["spec", "conversion", "webhook", "clientConfig", "caBundle"]);
        Self {
            schema: SchemaOptions {
                valid_types: !found(&has_invalid_type),
                atomic_sets: !found(&has_non_atomic_set),
                keys_of_maps: !found(&has_invalid_keys),
            },
            recognised_review: review.is_empty() || review.iter().any(is_recognised),
            fixed: established,
            needs_schema: definition::versions(old).iter().all(|version| definition::schema(version).is_some()),
            structural: schemas().all(is_structural),
            pruned_defaults: !schemas().any(default_check::has_unpruned),
            any_ca_bundle: !established || webhook::ca_bundle_problem(bundle).is_some(),
            many_selectable: many_selectable(new, old),
        }
    }
}

fn has_invalid_keys(schema: &Value) -> bool {
    let mut errors = ErrorList::new();
    schema_rules::keys_and_nulls(schema, &Path::ROOT, &mut errors);
    !errors.is_empty()
}

fn is_structural(schema: &Value) -> bool {
    check::unreadable(schema).is_none() && check::structural_problems(schema, &Path::ROOT).is_empty()
}

fn is_recognised(version: &Value) -> bool {
    matches!(version.as_str(), Some("v1" | "v1beta1"))
}

fn many_selectable(new: &Value, old: &Value) -> Vec<String> {
    let (news, olds) = (definition::versions(new), definition::versions(old));
    let (new_top, old_top) = (Hoisted::of(news).selectable, Hoisted::of(olds).selectable);
    let mut allowed = Vec::new();
    if old_top.is_some_and(|fields| fields.len() > MOST_SELECTABLE) && new_top == old_top {
        allowed.push(String::new());
    }
    for version in news {
        let name = version.str_at(&["name"]);
        let before = olds.iter().find(|it| it.str_at(&["name"]) == name).map(|it| it.array_at(&["selectableFields"]));
        if before
            .is_some_and(|before| before.len() > MOST_SELECTABLE && before == version.array_at(&["selectableFields"]))
        {
            allowed.push(name.to_owned());
        }
    }
    allowed
}

const SPEC: Path<'static> = Path::new("spec");
const STATUS: Path<'static> = Path::new("status");

/// A new definition. Its metadata but for the name's form is judged by the store.
pub fn validate_create(new: &Value, errors: &mut ErrorList) {
    spec(new, &Options::create(), errors);
    names(new.at(&["status", "acceptedNames"]), &STATUS.child("acceptedNames"), errors);
    stored_versions(new, errors);
    api_approval(new, None, errors);
    preserve_unknown(new, None, errors);
}

/// A definition that replaces another.
pub fn validate_update(new: &Value, old: &Value, errors: &mut ErrorList) {
    let options = Options::update(new, old);
    spec(new, &options, errors);
    let mut immutable = |path: &[&str], shown: &Path<'_>| {
        let (new, old) = (new.str_at(path), old.str_at(path));
        if new != old {
            errors.push(FieldError::invalid(shown, new, "field is immutable"));
        }
    };
    let names_path = SPEC.child("names");
    if options.fixed {
        immutable(&["spec", "scope"], &SPEC.child("scope"));
        immutable(&["spec", "names", "kind"], &names_path.child("kind"));
    }
    immutable(&["spec", "group"], &SPEC.child("group"));
    immutable(&["spec", "names", "plural"], &names_path.child("plural"));
    names(new.at(&["status", "acceptedNames"]), &STATUS.child("acceptedNames"), errors);
    stored_versions(new, errors);
    api_approval(new, Some(old), errors);
    preserve_unknown(new, Some(old), errors);
}

/// A write of the status.
pub fn validate_status(new: &Value, errors: &mut ErrorList) {
    names(new.at(&["status", "acceptedNames"]), &STATUS.child("acceptedNames"), errors);
}

fn spec(crd: &Value, options: &Options, errors: &mut ErrorList) {
    let group = crd.str_at(&["spec", "group"]);
    let group_path = SPEC.child("group");
    let problems = is_dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&group_path, ""));
    } else if !problems.is_empty() {
        errors.push(FieldError::invalid(&group_path, group, &problems.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(&group_path, group, "should be a domain with at least one dot"));
    }
    one_of(crd.str_at(&["spec", "scope"]), &["Cluster", "Namespaced"], &SPEC.child("scope"), errors);
    versions(crd, options, errors);
}

fn one_of(value: &str, accepted: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    match value {
        "" => errors.push(FieldError::required(path, "")),
        value if accepted.contains(&value) => {}
        value => errors.push(FieldError::not_supported(path, value, accepted)),
    }
}

fn versions(crd: &Value, options: &Options, errors: &mut ErrorList) {
    let versions = definition::versions(crd);
    let top = Hoisted::of(versions);
    let keeps = crd.bool_at(&["spec", "preserveUnknownFields"]);
    let versions_path = SPEC.child("versions");
    let hoisted_schema = top.schema.flatten().and_then(|it| it.get("openAPIV3Schema")).filter(|it| !it.is_null());
    if hoisted_schema.is_none() && (options.needs_schema || !keeps) {
        for (at, version) in versions.iter().enumerate().filter(|(_, version)| definition::schema(version).is_none()) {
            let why = if options.needs_schema { "" } else { "because otherwise all fields are pruned" };
            if options.needs_schema || version.bool_at(&["served"]) {
                let path = versions_path.index(at);
                errors.push(FieldError::required(&path.child("schema").child("openAPIV3Schema"), why));
            }
        }
    }
    let found = |wanted: &dyn Fn(&Value) -> bool| {
        versions.iter().filter_map(definition::schema).any(|schema| any(schema, wanted))
    };
    let defaults = found(&has_default);
    if defaults && keeps {
        let why = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&SPEC.child("preserveUnknownFields"), true, why));
    }
    let structural = options.structural || !keeps || defaults || found(&has_extensions);
    let judge = Judge { options, structural };
    for (at, version) in versions.iter().enumerate() {
        judge.version(version, &top, &versions_path.index(at), errors);
    }
    unique(crd, versions, &top, &versions_path, errors);
    required_names(crd, errors);
    names(crd.at(&["spec", "names"]), &SPEC.child("names"), errors);
    let any_status = versions.iter().any(|version| has_status(version.get("subresources")));
    if let Some(Some(schema)) = top.schema {
        judge.schema(schema, any_status, &SPEC.child("validation"), errors);
    }
    if let Some(it) = top.subresources.flatten() {
        subresources(it, &SPEC.child("subresources"), errors);
    }
    columns(top.columns.unwrap_or_default(), &SPEC.child("additionalPrinterColumns"), errors);
    if let Some(fields) = top.selectable.filter(|it| !it.is_empty()) {
        let path = SPEC.child("selectableFields");
        match hoisted_schema {
            None => errors.push(FieldError::invalid(&path, "", "may only be set when validations.schema is included")),
            Some(schema) => judge.selectable(fields, schema, "", &path, errors),
        }
    }
    conversion(crd, keeps, options, errors);
}

fn has_status(subresources: Option<&Value>) -> bool {
    subresources.and_then(|it| it.get("status")).is_some_and(|it| !it.is_null())
}

fn unique(crd: &Value, versions: &[Value], top: &Hoisted<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let shown = || internal::versions(crd.at(&["spec", "versions"]), top);
    let mut seen = std::collections::HashSet::new();
    let mut repeated = false;
    for version in versions {
        repeated |= !seen.insert(version.str_at(&["name"]));
    }
    if repeated {
        errors.push(FieldError::invalid_shown(path, shown(), "must contain unique version names"));
    }
    if versions.iter().filter(|version| version.bool_at(&["storage"])).count() != 1 {
        errors.push(FieldError::invalid_shown(
            path,
            shown(),
            "must have exactly one version marked as storage version",
        ));
    }
    if let Some(first) = versions.first().map(|version| version.str_at(&["name"])).filter(|it| !it.is_empty()) {
        let problems = is_dns1035_label(first);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(&SPEC.child("version"), first, &problems.join(",")));
        }
    }
}

fn required_names(crd: &Value, errors: &mut ErrorList) {
    let path = SPEC.child("names");
    for name in ["plural", "singular", "kind", "listKind"] {
        if crd.str_at(&["spec", "names", name]).is_empty() {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
}

fn names(names: Option<&Value>, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(names) = names else { return };
    let label = |value: &str, folded: bool, path: &Path<'_>, errors: &mut ErrorList| {
        let problems = is_dns1035_label(&if folded { value.to_lowercase() } else { value.to_owned() });
        if !problems.is_empty() {
            let prefix = if folded { "may have mixed case, but should otherwise match: " } else { "" };
            errors.push(FieldError::invalid(path, value, &format!("{prefix}{}", problems.join(","))));
        }
    };
    for (name, folded) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let value = names.str_at(&[name]);
        if !value.is_empty() {
            label(value, folded, &path.child(name), errors);
        }
    }
    let listed = |list: &str, errors: &mut ErrorList| {
        let path = path.child(list);
        for (at, value) in names.array_at(&[list]).iter().enumerate() {
            label(value.as_str().unwrap_or(""), false, &path.index(at), errors);
        }
    };
    listed("shortNames", errors);
    let kind = names.str_at(&["kind"]);
    if !kind.is_empty() && kind == names.str_at(&["listKind"]) {
        errors.push(FieldError::invalid(&path.child("listKind"), kind, "kind and listKind may not be the same"));
    }
    listed("categories", errors);
}

/// How versions are judged.
struct Judge<'a> {
    options: &'a Options,
    structural: bool,
}

impl Judge<'_> {
    fn version(&self, version: &Value, top: &Hoisted<'_>, path: &Path<'_>, errors: &mut ErrorList) {
        let name = version.str_at(&["name"]);
        let problems = is_dns1035_label(name);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(&path.child("name"), name, &problems.join(",")));
        }
        deprecation(version, path, errors);
        if let Some(schema) = version.get("schema").filter(|it| top.schema.is_none() && !it.is_null()) {
            self.schema(schema, has_status(version.get("subresources")), &path.child("schema"), errors);
        }
        if let Some(it) = version.get("subresources").filter(|it| top.subresources.is_none() && !it.is_null()) {
            subresources(it, &path.child("subresources"), errors);
        }
        if top.columns.is_none() {
            columns(version.array_at(&["additionalPrinterColumns"]), &path.child("additionalPrinterColumns"), errors);
        }
        let fields = version.array_at(&["selectableFields"]);
        if top.selectable.is_none() && !fields.is_empty() {
            let path = path.child("selectableFields");
            // What is hoisted is not looked at here, which makes upstream's advice the wrong way round.
            match definition::schema(version).filter(|_| top.schema.is_none()) {
                None => {
                    let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
                    errors.push(FieldError::invalid(&path, "", why));
                }
                Some(schema) => self.selectable(fields, schema, name, &path, errors),
            }
        }
    }

    fn schema(&self, validation: &Value, status: bool, path: &Path<'_>, errors: &mut ErrorList) {
        let Some(schema) = validation.get("openAPIV3Schema").filter(|it| !it.is_null()) else { return };
        let before = errors.len();
        if status {
            root_with_status(schema, path, errors);
        }
        if schema.bool_at(&["nullable"]) {
            let path = path.child("openAPIV3Schema.nullable");
            errors.push(FieldError::forbidden(&path, "nullable cannot be true at the root"));
        }
        let path = path.child("openAPIV3Schema");
        let unreadable = if self.structural { check::unreadable(schema) } else { None };
        if self.structural && unreadable.is_none() {
            let problems = check::structural_problems(schema, &path);
            if problems.is_empty() {
                let check = &embedded_meta;
                default_check::validate_defaults(schema, self.options.pruned_defaults, check, &path, errors);
            }
            errors.extend(problems);
        }
        validate_schema(schema, self.options.schema, &path, errors);
        // What keeps a schema from being read is mostly told above, and in better words.
        if let Some(why) = unreadable.filter(|_| errors.len() == before) {
            errors.push(FieldError::invalid(&path, "", &why));
        }
    }

    fn selectable(&self, fields: &[Value], schema: &Value, version: &str, path: &Path<'_>, errors: &mut ErrorList) {
        let mut seen = std::collections::HashSet::new();
        for (at, field) in fields.iter().enumerate() {
            let written = field.str_at(&["jsonPath"]);
            let path = path.index(at);
            let path = path.child("jsonPath");
            if written.is_empty() {
                errors.push(FieldError::required(&path, ""));
                continue;
            }
            let found = match field_path::resolve(written, schema, false) {
                Ok(found) => found,
                Err(why) => {
                    errors.push(FieldError::invalid(&path, written, &format!("is an invalid path: {why}")));
                    continue;
                }
            };
            if found.first == "metadata" {
                errors.push(FieldError::invalid(&path, written, "must not point to fields in metadata"));
            }
            if !matches!(found.schema.str_at(&["type"]), "string" | "boolean" | "integer") {
                let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
                errors.push(FieldError::invalid(&path, written, why));
            }
            if !seen.insert(found.path) {
                errors.push(FieldError::duplicate(&path, written));
            }
        }
        if seen.len() > MOST_SELECTABLE && !self.options.many_selectable.iter().any(|it| it == version) {
            errors.push(FieldError::too_many(path, seen.len(), MOST_SELECTABLE));
        }
    }
}

fn deprecation(version: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(text) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let path = path.child("deprecationWarning");
    // A pointer's value is shown as JSON.
    let shown = to_string(&text.into());
    let mut refuse = |why: &str| errors.push(FieldError::invalid_shown(&path, shown.as_str(), why));
    if !version.bool_at(&["deprecated"]) {
        return refuse("can only be set for deprecated versions");
    }
    if text.len() > 256 {
        refuse("must be <= 256 characters long");
    }
    if text.is_empty() {
        refuse("must not be an empty string");
    }
    if let Some((at, _)) = text.char_indices().find(|(_, c)| !is_printable(*c)) {
        refuse(&format!("must only contain printable UTF-8 characters; non-printable character found at index {at}"));
    }
}

/// With a status of its own, the root may only say what is not lost when the status is judged alone.
fn root_with_status(schema: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const ALLOWED: [&str; 22] = [
        "Description",
        "Type",
        "Format",
        "Title",
        "Maximum",
        "ExclusiveMaximum",
        "Minimum",
        "ExclusiveMinimum",
        "MaxLength",
        "MinLength",
        "Pattern",
        "MaxItems",
        "MinItems",
        "UniqueItems",
        "MultipleOf",
        "Required",
        "Items",
        "Properties",
        "ExternalDocs",
        "Example",
        "XPreserveUnknownFields",
        "XValidations",
    ];
    for (field, keyword) in internal::FIELDS.iter().filter(|(_, keyword)| internal::is_set(schema, keyword)) {
        if *field == "Type" {
            let kind = schema.str_at(&["type"]);
            if kind == "object" {
                continue;
            }
            let why = r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#;
            return errors.push(FieldError::invalid(&path.child("openAPIV3Schema.type"), kind, why));
        }
        if !ALLOWED.contains(field) {
            let _ = keyword;
            let why = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ALLOWED.join(" ")
            );
            return errors.push(FieldError::invalid_shown(
                &path.child("openAPIV3Schema"),
                internal::schema(schema),
                &why,
            ));
        }
    }
}

fn simple_path(text: &str, path: &Path<'_>, errors: &mut ErrorList) -> bool {
    let starts = text.starts_with('.');
    if !starts {
        errors.push(FieldError::invalid(path, text, "must be a simple json path starting with ."));
    }
    starts
}

fn subresources(it: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(scale) = it.get("scale").filter(|it| !it.is_null()) else { return };
    for (key, shown, prefix, why) in [
        ("specReplicasPath", "scale.specReplicasPath", ".spec.", "should be a json path under .spec"),
        ("statusReplicasPath", "scale.statusReplicasPath", ".status.", "should be a json path under .status"),
    ] {
        let (text, path) = (scale.str_at(&[key]), path.child(shown));
        if text.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if simple_path(text, &path, errors) && !text.starts_with(prefix) {
            errors.push(FieldError::invalid(&path, text, why));
        }
    }
    let selector = scale.str_at(&["labelSelectorPath"]);
    let path = path.child("scale.labelSelectorPath");
    if !selector.is_empty()
        && simple_path(selector, &path, errors)
        && !selector.starts_with(".spec.")
        && !selector.starts_with(".status.")
    {
        errors.push(FieldError::invalid(&path, selector, "should be a json path under either .spec or .status"));
    }
}

fn columns(columns: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (at, column) in columns.iter().enumerate() {
        let path = path.index(at);
        let text = |key: &str| column.str_at(&[key]);
        if text("name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let why = format!("must be one of {}", TYPES.join(","));
        match text("type") {
            "" => errors.push(FieldError::required(&path.child("type"), &why)),
            kind if TYPES.contains(&kind) => {}
            kind => errors.push(FieldError::invalid(&path.child("type"), kind, &why)),
        }
        let format = text("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let why = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(&path.child("format"), format, &why));
        }
        match text("jsonPath") {
            "" => errors.push(FieldError::required(&path.child("JSONPath"), "")),
            text => {
                simple_path(text, &path.child("JSONPath"), errors);
            }
        }
    }
}

fn conversion(crd: &Value, keeps: bool, options: &Options, errors: &mut ErrorList) {
    let Some(conversion) = crd.at(&["spec", "conversion"]).filter(|it| !it.is_null()) else { return };
    let path = SPEC.child("conversion");
    let strategy = conversion.str_at(&["strategy"]);
    if keeps && strategy != "None" {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.child("strategy"), strategy, why));
    }
    one_of(strategy, &["None", "Webhook"], &path.child("strategy"), errors);
    let config = conversion.at(&["webhook", "clientConfig"]).filter(|it| !it.is_null());
    let reviews = conversion.array_at(&["webhook", "conversionReviewVersions"]);
    let (config_path, reviews_path) = (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(FieldError::forbidden(&config_path, why));
        }
        if !reviews.is_empty() {
            errors.push(FieldError::forbidden(&reviews_path, why));
        }
        return;
    }
    match config {
        None => errors.push(FieldError::required(&config_path, "required when strategy is set to Webhook")),
        Some(config) => client_config(config, options, &config_path, errors),
    }
    review_versions(reviews, options, &reviews_path, errors);
}

fn client_config(config: &Value, options: &Options, path: &Path<'_>, errors: &mut ErrorList) {
    let url = config.get("url").and_then(Value::as_str);
    let service = config.get("service").filter(|it| !it.is_null());
    match (url, service) {
        (Some(url), None) => webhook::validate_url(url, &path.child("url"), errors),
        (None, Some(service)) => {
            let text = |key: &str| service.str_at(&[key]);
            let url_path = service.get("path").and_then(Value::as_str);
            let port = service.i64_at(&["port"]).unwrap_or(0);
            // Upstream takes the name for the namespace here, and so tells the one's absence at the other.
            webhook::validate_service(text("name"), text("namespace"), url_path, port, &path.child("service"), errors);
        }
        _ => errors.push(FieldError::required(path, "exactly one of url or service is required")),
    }
    if let Some(bundle) = config.get("caBundle").filter(|it| !options.any_ca_bundle && !it.is_null()) {
        webhook::validate_ca_bundle(bundle, &path.child("caBundle"), errors);
    }
}

fn review_versions(versions: &[Value], options: &Options, path: &Path<'_>, errors: &mut ErrorList) {
    if versions.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let mut seen = std::collections::HashSet::new();
    for (at, version) in versions.iter().enumerate() {
        let (text, path) = (version.as_str().unwrap_or(""), path.index(at));
        if !seen.insert(text) {
            errors.push(FieldError::invalid(&path, text, "duplicate version"));
            continue;
        }
        for problem in is_dns1035_label(text).iter() {
            errors.push(FieldError::invalid(&path, text, problem));
        }
    }
    if options.recognised_review && !versions.iter().any(is_recognised) {
        let all: Value = versions.to_vec().into();
        errors.push(FieldError::invalid_ref(path, &all, "must include at least one of v1, v1beta1"));
    }
}

fn stored_versions(crd: &Value, errors: &mut ErrorList) {
    let path = STATUS.child("storedVersions");
    let stored = crd.array_at(&["status", "storedVersions"]);
    let shown = crd.at(&["status", "storedVersions"]).unwrap_or(&Value::Null);
    if stored.is_empty() {
        return errors.push(FieldError::invalid_ref(&path, shown, "must have at least one stored version"));
    }
    let versions = definition::versions(crd);
    // Each is found once, as upstream strikes it off its list.
    let mut left: Vec<(usize, &str)> = Vec::new();
    for (at, name) in stored.iter().enumerate().filter_map(|(at, it)| Some((at, it.as_str()?))) {
        left.retain(|(_, known)| *known != name);
        left.push((at, name));
    }
    for version in versions {
        let name = version.str_at(&["name"]);
        let before = left.len();
        left.retain(|(_, known)| *known != name);
        if version.bool_at(&["storage"]) && left.len() == before {
            errors.push(FieldError::invalid_ref(&path, shown, &format!("must have the storage version {name}")));
        }
    }
    for (at, name) in left {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(&path.index(at), name, &why));
    }
}

fn api_approval(new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let Some(approval_of_new) = approval(new) else { return };
    if old.and_then(approval).is_some_and(|old| old.state == approval_of_new.state) {
        return;
    }
    let metadata = Path::new("metadata");
    let annotations = metadata.child("annotations");
    let path = annotations.key(ANNOTATION);
    match approval_of_new.state {
        super::approval::State::Missing => errors.push(FieldError::required(&path, &approval_of_new.reason)),
        super::approval::State::Invalid => {
            errors.push(FieldError::invalid(
                &path,
                new.str_at(&["metadata", "annotations", ANNOTATION]),
                &approval_of_new.reason,
            ));
        }
        _ => {}
    }
}

fn preserve_unknown(new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let keeps = |crd: &Value| crd.bool_at(&["spec", "preserveUnknownFields"]);
    if keeps(new) && !old.is_some_and(keeps) {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&SPEC.child("preserveUnknownFields"), true, why));
    }
}
