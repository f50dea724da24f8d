//! The selectors of an access review, as far as they are understood. Requirements are joined by "and", so that
//! leaving one out asks for more, never for less (kubernetes `pkg/registry/authorization/util`).

use crate::api::{fields, labels};
use crate::object::Value;

#[derive(Default)]
pub(super) struct Selectors {
    pub fields: Vec<fields::Term>,
    pub labels: Vec<labels::Requirement>,
    fields_broken: bool,
    labels_broken: bool,
}

impl Selectors {
    /// Of `spec.resourceAttributes`.
    pub fn of(attributes: &Value) -> Self {
        let mut this = Self::default();
        if let Some(selector) = attributes.get("fieldSelector") {
            this.read_fields(selector);
        }
        if let Some(selector) = attributes.get("labelSelector") {
            this.read_labels(selector);
        }
        this
    }

    fn read_fields(&mut self, selector: &Value) {
        let raw = selector.str_at(&["rawSelector"]);
        if !raw.is_empty() {
            match fields::Selector::parse(raw) {
                Ok(parsed) => self.fields = parsed.terms().to_vec(),
                Err(_) => self.fields_broken = true,
            }
        }
        for requirement in selector.array_at(&["requirements"]) {
            let negated = match requirement.str_at(&["operator"]) {
                "In" => Some(false),
                "NotIn" => Some(true),
                _ => None,
            };
            match (negated, requirement.array_at(&["values"])) {
                (Some(negated), [Value::Str(value)]) => {
                    let field = requirement.str_at(&["key"]).to_owned();
                    self.fields.push(fields::Term { field, value: value.clone(), negated });
                }
                _ => self.fields_broken = true,
            }
        }
    }

    fn read_labels(&mut self, selector: &Value) {
        let raw = selector.str_at(&["rawSelector"]);
        if !raw.is_empty() {
            match labels::Selector::parse(raw) {
                Ok(parsed) => self.labels = parsed.requirements().to_vec(),
                Err(_) => self.labels_broken = true,
            }
        }
        for requirement in selector.array_at(&["requirements"]) {
            let operator = match requirement.str_at(&["operator"]) {
                "In" => Some(labels::Operator::In),
                "NotIn" => Some(labels::Operator::NotIn),
                "Exists" => Some(labels::Operator::Exists),
                "DoesNotExist" => Some(labels::Operator::DoesNotExist),
                _ => None,
            };
            let values: Vec<&str> = requirement.array_at(&["values"]).iter().filter_map(Value::as_str).collect();
            let key = requirement.str_at(&["key"]);
            match operator.map(|operator| labels::Requirement::new(key, operator, &values)) {
                Some(Ok(requirement)) => self.labels.push(requirement),
                _ => self.labels_broken = true,
            }
        }
    }

    /// What the answer says about what was not understood.
    pub fn problems(&self) -> Vec<String> {
        let problem = |broken: bool, some: bool, name: &str| {
            let partially = if some { "partially " } else { "" };
            broken.then(|| format!("spec.resourceAttributes.{name} {partially}ignored due to parse error"))
        };
        let fields = problem(self.fields_broken, !self.fields.is_empty(), "fieldSelector");
        let labels = problem(self.labels_broken, !self.labels.is_empty(), "labelSelector");
        fields.into_iter().chain(labels).collect()
    }
}
