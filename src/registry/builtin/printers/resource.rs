//! Rows of devices: classes, claims, slices, taints.

use super::{
    Cells, cells,
    text::{self, NONE, age, name, number, time},
};
use crate::{
    object::Value,
    registry::printer::{Cell, Printer},
};

pub fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "DeviceClass" | "ResourceClaimTemplate" => Printer::new(|it: &Value| -> Cells { cells![name(it), age(it)] }),
        "ResourceClaim" => Printer::new(claim),
        "ResourceSlice" => Printer::new(slice),
        "DeviceTaintRule" => Printer::new(taint_rule),
        "ResourcePoolStatusRequest" => Printer::new(pool_status),
        _ => return None,
    })
}

fn claim(it: &Value) -> Cells {
    let deleted = text::is_being_deleted(it);
    let allocated = it.at(&["status", "allocation"]).is_some_and(|it| !it.is_null());
    let reserved = allocated && !it.array_at(&["status", "reservedFor"]).is_empty();
    let states =
        [("deleted", deleted), ("pending", !allocated && !deleted), ("allocated", allocated), ("reserved", reserved)];
    let states: Vec<&str> = states.into_iter().filter(|(_, is)| *is).map(|(state, _)| state).collect();
    cells![name(it), states.join(","), age(it)]
}

fn slice(it: &Value) -> Cells {
    let spec = |path: &[&str]| it.at(&["spec"]).map_or("", |spec| spec.str_at(path));
    cells![name(it), spec(&["nodeName"]), spec(&["driver"]), spec(&["pool", "name"]), age(it)]
}

fn taint_rule(it: &Value) -> Cells {
    let taint = |field: &str| it.str_at(&["spec", "taint", field]);
    let added = match time(it, &["spec", "taint", "timeAdded"]) {
        None => Cell::from(""),
        at => Cell::age(at),
    };
    cells![name(it), taint("key"), taint("value"), taint("effect"), added, age(it)]
}

fn pool_status(it: &Value) -> Cells {
    let status = it.at(&["status"]).filter(|it| !it.is_null());
    let conditions = it.array_at(&["status", "conditions"]);
    let decisive = conditions.iter().find(|condition| {
        matches!(condition.str_at(&["type"]), "Complete" | "Failed") && condition.str_at(&["status"]) == "True"
    });
    let outcome = decisive.map_or("Pending", |condition| condition.str_at(&["type"]));
    let (pools, count) = (it.array_at(&["status", "pools"]), number(it, &["status", "poolCount"]));
    let told = match outcome {
        "Complete" if count > pools.len() as i64 => format!("Complete ({}/{count} pools)", pools.len()),
        other => other.to_owned(),
    };
    let counted = status.is_some() && outcome != "Failed";
    let told_if = |number: i64| if counted { number.to_string() } else { "-".to_owned() };
    let sum = |field: &str| told_if(pools.iter().map(|pool| number(pool, &[field])).sum());
    let errors = pools.iter().filter(|pool| pool.at(&["validationError"]).is_some_and(|it| !it.is_null())).count();
    let completed = match decisive.filter(|_| outcome == "Complete") {
        Some(condition) => Cell::age(time(condition, &["lastTransitionTime"])),
        None => Cell::from(NONE),
    };
    cells![
        name(it),
        it.str_at(&["spec", "driver"]),
        sum("totalDevices"),
        sum("availableDevices"),
        sum("allocatedDevices"),
        sum("unavailableDevices"),
        told_if(errors as i64),
        count,
        told,
        completed,
    ]
}
