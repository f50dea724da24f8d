//! JSON in the order of Go's structs, for what autoscaling/v1 keeps as text in annotations.

use crate::object::{Map, Value, escape_into, to_vec};

/// Members of the structs that are kept as text. One list serves all of them: no two disagree about an order.
const MEMBERS: [&str; 40] = [
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "observedGeneration",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "target",
    "kind",
    "name",
    "apiVersion",
    "metricName",
    "metricSelector",
    "targetValue",
    "currentValue",
    "selector",
    "averageValue",
    "targetAverageUtilization",
    "targetAverageValue",
    "currentAverageUtilization",
    "currentAverageValue",
    "container",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
];

/// Compact JSON with the members of structs in their Go order; maps of strings keep the order of their keys.
pub fn print(value: &Value) -> String {
    let mut out = Vec::new();
    write(&mut out, value, true);
    String::from_utf8(out).unwrap_or_default()
}

fn write(out: &mut Vec<u8>, value: &Value, is_struct: bool) {
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(out, item, is_struct);
            }
            out.push(b']');
        }
        Value::Object(map) => write_members(out, map, is_struct),
        other => out.extend(to_vec(other)),
    }
}

fn write_members(out: &mut Vec<u8>, map: &Map, is_struct: bool) {
    let place = |name: &str| MEMBERS.iter().position(|it| *it == name).unwrap_or(MEMBERS.len());
    let mut members: Vec<_> = map.iter().collect();
    if is_struct {
        members.sort_by_key(|(name, _)| place(name));
    }
    out.push(b'{');
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        escape_into(out, name);
        out.push(b':');
        write(out, value, is_struct && name.as_str() != "matchLabels");
    }
    out.push(b'}');
}
