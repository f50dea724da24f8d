//! HorizontalPodAutoscaler between autoscaling/v1 and v2 (kubernetes `pkg/apis/autoscaling/v1/conversion.go`). What v1
//! has no members for it keeps as text in annotations; text that does not read is dropped without a word, as upstream
//! does.

use super::go_order;
use crate::{
    api::quantity::Quantity,
    json,
    object::{Key, Map, Value, parse},
    schema,
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const KEPT_AS_TEXT: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
const DEFAULT_CPU: i64 = 80;

/// One kind of metric: its member in a metric, and what of it is where in v1.
struct Source {
    member: &'static str,
    /// Members that both versions have under the same name.
    same: &'static [&'static str],
    /// Whether the metric has a name and a selector, and what v1 calls the selector.
    selector: Option<&'static str>,
    /// v1's names of the value, the average value and the utilization of a target, and of a status.
    target: [Option<&'static str>; 3],
    current: [Option<&'static str>; 3],
    /// Which of those v1 always prints, in a target and in a status.
    printed: [Option<&'static str>; 2],
}

const VALUE: usize = 0;
const AVERAGE: usize = 1;
const UTILIZATION: usize = 2;
/// v2's names in the order of [`Source::target`].
const NAMES: [&str; 3] = ["value", "averageValue", "averageUtilization"];

const SOURCES: [Source; 5] = [
    Source {
        member: "object",
        same: &[],
        selector: Some("selector"),
        target: [Some("targetValue"), Some("averageValue"), None],
        current: [Some("currentValue"), Some("averageValue"), None],
        printed: [Some("targetValue"), Some("currentValue")],
    },
    Source {
        member: "pods",
        same: &[],
        selector: Some("selector"),
        target: [None, Some("targetAverageValue"), None],
        current: [None, Some("currentAverageValue"), None],
        printed: [Some("targetAverageValue"), Some("currentAverageValue")],
    },
    Source {
        member: "resource",
        same: &["name"],
        selector: None,
        target: [None, Some("targetAverageValue"), Some("targetAverageUtilization")],
        current: [None, Some("currentAverageValue"), Some("currentAverageUtilization")],
        printed: [None, Some("currentAverageValue")],
    },
    Source {
        member: "containerResource",
        same: &["name", "container"],
        selector: None,
        target: [None, Some("targetAverageValue"), Some("targetAverageUtilization")],
        current: [None, Some("currentAverageValue"), Some("currentAverageUtilization")],
        printed: [None, Some("currentAverageValue")],
    },
    Source {
        member: "external",
        same: &[],
        selector: Some("metricSelector"),
        target: [Some("targetValue"), Some("targetAverageValue"), None],
        current: [Some("currentValue"), Some("currentAverageValue"), None],
        printed: [None, Some("currentValue")],
    },
];

/// A target or a status.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Target,
    Current,
}

impl Part {
    fn names(self, source: &Source) -> &[Option<&'static str>; 3] {
        if self == Self::Target { &source.target } else { &source.current }
    }
    fn member(self) -> &'static str {
        if self == Self::Target { "target" } else { "current" }
    }
    fn printed(self, source: &Source) -> Option<&'static str> {
        source.printed[if self == Self::Target { 0 } else { 1 }]
    }
}

fn given<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    map.get(name).filter(|it| !it.is_null())
}

/// A metric (or its status) of v2 as v1 has it.
fn metric_to_v1(metric: &Value, part: Part) -> Value {
    let mut out = Map::from([("type", metric.str_at(&["type"]))]);
    for source in &SOURCES {
        if let Some(found) = given(metric, source.member) {
            out.insert(source.member, source_to_v1(found, source, part));
        }
    }
    out.into()
}

fn source_to_v1(found: &Value, source: &Source, part: Part) -> Value {
    let mut out = Map::new();
    for name in source.same {
        out.insert(Key::new(name), found.str_at(&[name]));
    }
    if let Some(selector) = source.selector {
        out.insert("metricName", found.str_at(&["metric", "name"]));
        if let Some(value) = found.at(&["metric", "selector"]).filter(|it| !it.is_null()) {
            out.insert(selector, value.clone());
        }
    }
    if source.member == "object" {
        out.insert("target", reference(found.get("describedObject")));
    }
    for (name, old) in NAMES.iter().zip(part.names(source)) {
        let (Some(old), Some(value)) = (old, found.at(&[part.member(), name]).filter(|it| !it.is_null())) else {
            continue;
        };
        out.insert(*old, value.clone());
    }
    if let Some(always) = part.printed(source) {
        out.entry_or(always, || "0".into());
    }
    out.into()
}

fn reference(found: Option<&Value>) -> Value {
    let text = |name: &str| found.map_or("", |it| it.str_at(&[name])).to_owned();
    let mut out = Map::from([("kind", text("kind")), ("name", text("name"))]);
    if !text("apiVersion").is_empty() {
        out.insert("apiVersion", text("apiVersion"));
    }
    out.into()
}

/// The other way; `None` for what is no metric.
fn metric_to_v2(metric: &Value, part: Part) -> Option<Value> {
    metric.as_object()?;
    let mut out = Map::from([("type", text(metric, "type")?)]);
    for source in &SOURCES {
        if let Some(found) = given(metric, source.member) {
            out.insert(source.member, source_to_v2(found, source, part)?);
        }
    }
    Some(out.into())
}

/// A text or nothing; `None` where something else stands there.
fn text(value: &Value, name: &str) -> Option<String> {
    match value.get(name) {
        None | Some(Value::Null) => Some(String::new()),
        Some(value) => value.as_str().map(str::to_owned),
    }
}

/// An amount as it prints, or what kept it from being read.
fn amount(value: &Value) -> Option<Value> {
    Quantity::from_value(value).ok().map(|it| it.to_string().into())
}

fn source_to_v2(found: &Value, source: &Source, part: Part) -> Option<Value> {
    found.as_object()?;
    let mut out = Map::new();
    for name in source.same {
        out.insert(Key::new(name), text(found, name)?);
    }
    if let Some(selector) = source.selector {
        let mut metric = Map::from([("name", text(found, "metricName")?)]);
        if let Some(selector) = given(found, selector) {
            metric.insert("selector", selector.clone());
        }
        out.insert("metric", metric);
    }
    if source.member == "object" {
        out.insert("describedObject", reference(found.get("target")));
    }
    let mut values = Map::new();
    for (at, (name, old)) in NAMES.iter().zip(part.names(source)).enumerate() {
        let Some(value) = old.and_then(|old| given(found, old)) else { continue };
        values.insert(*name, if at == UTILIZATION { Value::Int(value.as_i64()?) } else { amount(value)? });
    }
    fill(&mut values, source, part);
    out.insert(part.member(), values);
    Some(out.into())
}

/// The type of a target, and amounts that are no pointers in v1 and so are never missing.
fn fill(values: &mut Map, source: &Source, part: Part) {
    let has = |values: &Map, at: usize| values.contains_key(NAMES[at]);
    if part == Part::Current {
        let always = match source.member {
            "object" | "external" => VALUE,
            _ => AVERAGE,
        };
        values.entry_or(NAMES[always], || "0".into());
        return;
    }
    let kind = match source.member {
        "object" if has(values, AVERAGE) => {
            // v1 cannot leave the value out: a zero beside an average is none.
            let zero = values.get(NAMES[VALUE]).is_some_and(|it| Quantity::from_value(it).is_ok_and(|it| it.is_zero()));
            if zero {
                values.remove(NAMES[VALUE]);
            }
            "AverageValue"
        }
        "object" => {
            values.entry_or(NAMES[VALUE], || "0".into());
            "Value"
        }
        "pods" => {
            values.entry_or(NAMES[AVERAGE], || "0".into());
            "AverageValue"
        }
        "external" if has(values, VALUE) => "Value",
        "external" => "AverageValue",
        _ if has(values, UTILIZATION) => "Utilization",
        _ => "AverageValue",
    };
    values.insert("type", kind);
}

fn is_cpu_utilization(metric: &Value) -> bool {
    metric.str_at(&["type"]) == "Resource"
        && metric.str_at(&["resource", "name"]) == "cpu"
        && metric.at(&["resource", "target", "averageUtilization"]).is_some_and(|it| !it.is_null())
}

fn cpu_utilization(percent: i64) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}})
}

/// Takes the annotations that hold text away.
pub fn drop_text(object: &mut Value) {
    let Some(annotations) = object.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) else { return };
    annotations.retain(|key, _| !KEPT_AS_TEXT.contains(&key.as_str()));
    if annotations.is_empty() {
        object.remove_at(&["metadata", "annotations"]);
    }
}

fn normalise(object: &mut Value, version: &str) {
    let table = schema::builtin();
    if let Some(ty) = table.kind(super::GROUP, version, "HorizontalPodAutoscaler") {
        schema::normalise(table, ty, object);
    }
}

/// From v2.
pub fn to_v1(object: &mut Value) {
    drop_text(object);
    let take = |object: &mut Value, path: [&str; 2]| object.remove_at(&path).filter(|it| !it.is_null());
    let list = |value: Option<Value>| match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    let metrics = list(take(object, ["spec", "metrics"]));
    let behavior = take(object, ["spec", "behavior"]);
    let current = list(take(object, ["status", "currentMetrics"]));
    let conditions = list(take(object, ["status", "conditions"]));
    if let Some(cpu) = metrics.iter().find(|metric| is_cpu_utilization(metric)) {
        let percent = cpu.at(&["resource", "target", "averageUtilization"]).cloned().unwrap_or_default();
        object.set(&["spec", "targetCPUUtilizationPercentage"], percent);
    }
    let cpu_status = current.iter().rev().find_map(|status| {
        let is_cpu = status.str_at(&["type"]) == "Resource" && status.str_at(&["resource", "name"]) == "cpu";
        status.at(&["resource", "current", "averageUtilization"]).filter(|it| is_cpu && !it.is_null())
    });
    if let Some(percent) = cpu_status {
        object.set(&["status", "currentCPUUtilizationPercentage"], percent.clone());
    }
    let others: Vec<Value> =
        metrics.iter().filter(|it| !is_cpu_utilization(it)).map(|it| metric_to_v1(it, Part::Target)).collect();
    let current: Vec<Value> = current.iter().map(|it| metric_to_v1(it, Part::Current)).collect();
    let mut keep = |name: &'static str, value: Value| {
        object.make(&["metadata", "annotations"]).make_object().insert(name, go_order::print(&value));
    };
    if !others.is_empty() {
        keep(METRICS, others.into());
    }
    if !current.is_empty() {
        keep(CURRENT_METRICS, current.into());
    }
    if let Some(behavior) = behavior {
        keep(BEHAVIOR, behavior_to_text(&behavior));
    }
    if !conditions.is_empty() {
        keep(CONDITIONS, conditions.into());
    }
    normalise(object, "v1");
}

/// From v1.
pub fn to_v2(object: &mut Value) {
    let kept = |name: &str| {
        let text = object.at(&["metadata", "annotations", name])?.as_str()?;
        parse(text.as_bytes()).ok()
    };
    let metrics = kept(METRICS).and_then(|it| metrics_of(&it, Part::Target));
    let current = kept(CURRENT_METRICS).and_then(|it| metrics_of(&it, Part::Current));
    let behavior = kept(BEHAVIOR).and_then(|it| behavior_of_text(&it));
    let conditions = kept(CONDITIONS).filter(|it| it.as_array().is_some_and(|it| it.iter().all(is_condition)));
    read_spec(object, metrics, behavior);
    read_status(object, current, conditions);
    drop_text(object);
    normalise(object, "v2");
}

fn metrics_of(text: &Value, part: Part) -> Option<Vec<Value>> {
    text.as_array()?.iter().map(|metric| metric_to_v2(metric, part)).collect()
}

fn is_condition(value: &Value) -> bool {
    ["type", "status", "reason", "message"].iter().all(|name| text(value, name).is_some())
        && value.as_object().is_some()
}

fn read_spec(object: &mut Value, metrics: Option<Vec<Value>>, behavior: Option<Value>) {
    let mut metrics = metrics.unwrap_or_default();
    let percent = object.remove_at(&["spec", "targetCPUUtilizationPercentage"]).and_then(|it| it.as_i64());
    metrics.extend(percent.map(cpu_utilization));
    if metrics.is_empty() {
        metrics.push(cpu_utilization(DEFAULT_CPU));
    }
    object.set(&["spec", "metrics"], metrics);
    if let Some(behavior) = behavior {
        object.set(&["spec", "behavior"], behavior);
    }
}

fn read_status(object: &mut Value, current: Option<Vec<Value>>, conditions: Option<Value>) {
    let percent = object.remove_at(&["status", "currentCPUUtilizationPercentage"]).and_then(|it| it.as_i64());
    let alone = percent.map(|percent| {
        vec![json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}})]
    });
    if let Some(current) = current.or(alone) {
        object.set(&["status", "currentMetrics"], current);
    }
    if let Some(conditions) = conditions {
        object.set(&["status", "conditions"], conditions);
    }
}

/// Members of upstream's internal type, which has no JSON names, and v2's names for them.
const RULES: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY: [(&str, &str); 3] = [("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds")];

fn behavior_to_text(behavior: &Value) -> Value {
    let direction = |name: &str| given(behavior, name).map_or(Value::Null, rules_to_text);
    Value::from([("ScaleUp", direction("scaleUp")), ("ScaleDown", direction("scaleDown"))])
}

fn rules_to_text(rules: &Value) -> Value {
    let policy = |policy: &Value| {
        POLICY
            .iter()
            .map(|(shown, name)| (*shown, policy.get(name).cloned().unwrap_or_default()))
            .collect::<Map>()
            .into()
    };
    let members = RULES.iter().map(|(shown, name)| {
        let value = match given(rules, name) {
            Some(Value::Array(policies)) => policies.iter().map(policy).collect::<Vec<Value>>().into(),
            other => other.cloned().unwrap_or_default(),
        };
        (*shown, value)
    });
    members.collect::<Map>().into()
}

/// `None` where it does not read, or says nothing.
fn behavior_of_text(text: &Value) -> Option<Value> {
    text.as_object()?;
    let mut out = Map::new();
    for (shown, name) in [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")] {
        if let Some(rules) = any_case(text, shown) {
            out.insert(name, rules_of_text(rules)?);
        }
    }
    if out.is_empty() { None } else { Some(out.into()) }
}

/// Go finds members in any case.
fn any_case<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let found = value.as_object()?.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value).filter(|it| !it.is_null())
}

fn rules_of_text(rules: &Value) -> Option<Value> {
    rules.as_object()?;
    let mut out = Map::new();
    for (shown, name) in RULES {
        let Some(value) = any_case(rules, shown) else { continue };
        let value = match name {
            "policies" => value.as_array()?.iter().map(policy_of_text).collect::<Option<Vec<Value>>>()?.into(),
            "stabilizationWindowSeconds" => Value::Int(value.as_i64()?),
            "tolerance" => amount(value)?,
            _ => Value::from(value.as_str()?),
        };
        out.insert(name, value);
    }
    Some(out.into())
}

fn policy_of_text(policy: &Value) -> Option<Value> {
    policy.as_object()?;
    let number = |name: &str| any_case(policy, name).map_or(Some(0), Value::as_i64);
    let kind = any_case(policy, "Type").map_or(Some(""), Value::as_str)?;
    Some(json!({"type": kind, "value": (number("Value")?), "periodSeconds": (number("PeriodSeconds")?)}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v1(annotations: Value, percent: Option<i64>) -> Value {
        let mut object = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a", "annotations": annotations}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "D", "name": "d"}}, "status": {"currentReplicas": 0, "desiredReplicas": 0}});
        if let Some(percent) = percent {
            object.set(&["spec", "targetCPUUtilizationPercentage"], percent);
        }
        object
    }

    #[test]
    fn what_v1_has_no_members_for_survives_a_round_trip_as_text() {
        let metrics = r#"[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"1k"}},{"type":"Object","object":{"target":{"kind":"S","name":"s"},"metricName":"m","targetValue":"0","selector":{"matchLabels":{"b":"1","a":"2"}},"averageValue":"3"}}]"#;
        let behavior = r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}"#;
        let mut object = v1(
            json!({"autoscaling.alpha.kubernetes.io/metrics": metrics, "autoscaling.alpha.kubernetes.io/behavior": behavior}),
            Some(50),
        );
        to_v2(&mut object);
        assert_eq!(object.array_at(&["spec", "metrics"]).len(), 3);
        assert_eq!(object.at(&["metadata", "annotations"]), None);
        object.set(&["apiVersion"], "autoscaling/v2");
        to_v1(&mut object);
        let kept = |name: &str| object.str_at(&["metadata", "annotations", name]).to_owned();
        assert_eq!(kept(METRICS), metrics.replace(r#""b":"1","a":"2""#, r#""a":"2","b":"1""#));
        assert_eq!(kept(BEHAVIOR), behavior);
        assert_eq!(object.i64_at(&["spec", "targetCPUUtilizationPercentage"]), Some(50));
    }

    #[test]
    fn text_that_does_not_read_is_dropped_and_the_default_applies() {
        let mut object = v1(
            json!({"autoscaling.alpha.kubernetes.io/metrics": "{", "autoscaling.alpha.kubernetes.io/behavior": "x"}),
            None,
        );
        to_v2(&mut object);
        assert_eq!(object.array_at(&["spec", "metrics"]), [cpu_utilization(80)]);
        assert_eq!(object.at(&["spec", "behavior"]), None);
    }
}
