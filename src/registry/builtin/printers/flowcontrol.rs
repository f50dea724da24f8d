//! Rows of flow schemas and priority levels.

use super::{
    Cells, cells,
    text::{NONE, age, condition, name, number},
};
use crate::{
    object::Value,
    registry::printer::{Cell, PrintedRow, Printer},
};

pub fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "FlowSchema" => Printer::new(flow_schema).arranged(by_precedence),
        "PriorityLevelConfiguration" => Printer::new(priority_level),
        _ => return None,
    })
}

fn flow_schema(it: &Value) -> Cells {
    let method = it.at(&["spec", "distinguisherMethod"]).filter(|it| !it.is_null());
    let dangling = condition(it, &["status", "conditions"], "Dangling");
    cells![
        name(it),
        it.str_at(&["spec", "priorityLevelConfiguration", "name"]),
        precedence(it),
        method.map_or(NONE, |method| method.str_at(&["type"])),
        age(it),
        dangling.map_or("?", |condition| condition.str_at(&["status"])),
    ]
}

fn precedence(it: &Value) -> i64 {
    number(it, &["spec", "matchingPrecedence"])
}

/// In the order in which requests meet them.
fn by_precedence(rows: &mut [(Value, PrintedRow)]) {
    rows.sort_by(|(a, _), (b, _)| precedence(a).cmp(&precedence(b)).then_with(|| name(a).cmp(name(b))));
}

fn priority_level(it: &Value) -> Cells {
    let limited = it.at(&["spec", "limited"]).filter(|it| !it.is_null());
    let queuing = limited.and_then(|it| it.at(&["limitResponse", "queuing"])).filter(|it| !it.is_null());
    let of = |section: Option<&Value>, field: &str| match section {
        Some(section) => Cell::from(number(section, &[field])),
        None => Cell::from(NONE),
    };
    cells![
        name(it),
        it.str_at(&["spec", "type"]),
        match limited.map(|it| it.i64_at(&["nominalConcurrencyShares"])) {
            None => Cell::from(NONE),
            // Behind a pointer, which defaulting always fills.
            Some(shares) => Cell::from(shares.map_or(Value::Null, Value::from)),
        },
        of(queuing, "queues"),
        of(queuing, "handSize"),
        of(queuing, "queueLengthLimit"),
        age(it),
    ]
}
