//! The row of an autoscaler (in version 2, which is stored), and of the Scale of other kinds.

use super::{
    Cells, cells,
    text::{NONE, UNKNOWN, UNSET, age, name, number, quantity},
};
use crate::{object::Value, registry::printer::Printer};

pub fn printer(kind: &str) -> Option<Printer> {
    (kind == "HorizontalPodAutoscaler").then(|| Printer::new(autoscaler))
}

pub fn scale(it: &Value) -> Cells {
    cells![name(it), number(it, &["spec", "replicas"]), number(it, &["status", "replicas"]), age(it)]
}

fn autoscaler(it: &Value) -> Cells {
    let target = |field: &str| it.str_at(&["spec", "scaleTargetRef", field]);
    let least = it.i64_at(&["spec", "minReplicas"]).map_or_else(|| UNSET.to_owned(), |count| count.to_string());
    cells![
        name(it),
        format!("{}/{}", target("kind"), target("name")),
        metrics(it.array_at(&["spec", "metrics"]), it.array_at(&["status", "currentMetrics"])),
        least,
        number(it, &["spec", "maxReplicas"]),
        number(it, &["status", "currentReplicas"]),
        age(it),
    ]
}

/// Up to two metrics, each as what it is over what it should be.
fn metrics(wanted: &[Value], found: &[Value]) -> String {
    const MOST: usize = 2;
    if wanted.is_empty() {
        return NONE.to_owned();
    }
    let shown = wanted.iter().enumerate().take(MOST).map(|(at, wanted)| metric(wanted, found.get(at)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match wanted.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn metric(wanted: &Value, found: Option<&Value>) -> String {
    let source = match wanted.str_at(&["type"]) {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = |field: &str| wanted.at(&[source, "target", field]).filter(|it| !it.is_null());
    let found = found.and_then(|found| found.at(&[source])).filter(|it| !it.is_null());
    let current = |field: &str| found.and_then(|found| found.at(&["current", field])).filter(|it| !it.is_null());
    let amount = |it: Option<&Value>| it.map_or_else(|| "<nil>".to_owned(), |it| quantity(Some(it)));
    // Where the source is reported but its quantity is not, Go prints a nil.
    let reported = |field: &str| found.map_or_else(|| UNKNOWN.to_owned(), |_| amount(current(field)));
    let known = |field: &str| current(field).map_or_else(|| UNKNOWN.to_owned(), |it| quantity(Some(it)));
    match (source, target("averageValue")) {
        ("pods", average) => format!("{}/{}", reported("averageValue"), amount(average)),
        ("external" | "object", Some(average)) => {
            format!("{}/{} (avg)", known("averageValue"), quantity(Some(average)))
        }
        ("external" | "object", None) => format!("{}/{}", reported("value"), amount(target("value"))),
        (_, Some(average)) => {
            format!("{}: {}/{}", wanted.str_at(&[source, "name"]), reported("averageValue"), quantity(Some(average)))
        }
        (_, None) => {
            let percent = |it: Option<&Value>, none: &str| match it.and_then(Value::as_i64) {
                Some(number) => format!("{number}%"),
                None => none.to_owned(),
            };
            let name = wanted.str_at(&[source, "name"]);
            let current = percent(current("averageUtilization"), UNKNOWN);
            format!("{name}: {current}/{}", percent(target("averageUtilization"), "<auto>"))
        }
    }
}
