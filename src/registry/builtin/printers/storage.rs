//! Rows of volumes, claims, classes and drivers.

use super::{
    Cells, cells,
    text::{self, NONE, UNSET, access_modes, age, joined, name, or, text_or},
};
use crate::{
    api::Meta,
    object::Value,
    registry::printer::{Cell, PrintedRow, Printer},
};

pub fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "PersistentVolume" => Printer::new(persistent_volume),
        "PersistentVolumeClaim" => Printer::new(persistent_volume_claim),
        "StorageClass" => Printer::new(storage_class).arranged(mark_default),
        "VolumeAttributesClass" => Printer::new(volume_attributes_class),
        "VolumeAttachment" => Printer::new(volume_attachment),
        "CSINode" => Printer::new(csi_node),
        "CSIDriver" => Printer::new(csi_driver),
        _ => return None,
    })
}

fn phase(it: &Value) -> &str {
    if text::is_being_deleted(it) { "Terminating" } else { it.str_at(&["status", "phase"]) }
}

/// The class of a volume or claim: the annotation from before there was a field goes first.
fn class(it: &Value) -> &str {
    let annotated = Meta::of(it).annotation("volume.beta.kubernetes.io/storage-class");
    annotated.unwrap_or_else(|| it.str_at(&["spec", "storageClassName"]))
}

fn persistent_volume(it: &Value) -> Cells {
    let claim = it.at(&["spec", "claimRef"]).filter(|it| !it.is_null());
    let claim = claim.map(|it| format!("{}/{}", it.str_at(&["namespace"]), it.str_at(&["name"])));
    cells![
        name(it),
        text::quantity(it.at(&["spec", "capacity", "storage"])),
        access_modes(it, &["spec", "accessModes"]),
        it.str_at(&["spec", "persistentVolumeReclaimPolicy"]),
        phase(it),
        claim.unwrap_or_default(),
        class(it),
        text_or(it, &["spec", "volumeAttributesClassName"], UNSET),
        it.str_at(&["status", "reason"]),
        age(it),
        text_or(it, &["spec", "volumeMode"], UNSET),
    ]
}

fn persistent_volume_claim(it: &Value) -> Cells {
    let volume = it.str_at(&["spec", "volumeName"]);
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (text::quantity(it.at(&["status", "capacity", "storage"])), access_modes(it, &["status", "accessModes"])),
    };
    cells![
        name(it),
        phase(it),
        volume,
        capacity,
        modes,
        class(it),
        text_or(it, &["spec", "volumeAttributesClassName"], UNSET),
        age(it),
        text_or(it, &["spec", "volumeMode"], UNSET),
    ]
}

fn storage_class(it: &Value) -> Cells {
    cells![
        name(it),
        it.str_at(&["provisioner"]),
        text_or(it, &["reclaimPolicy"], "Delete"),
        text_or(it, &["volumeBindingMode"], "Immediate"),
        it.bool_at(&["allowVolumeExpansion"]),
        age(it),
    ]
}

/// Marks the class that claims without one get: of those annotated the newest, of equally old ones the first by name.
fn mark_default(rows: &mut [(Value, PrintedRow)]) {
    let annotated = |it: &Value| {
        let meta = Meta::of(it);
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .into_iter()
            .any(|annotation| meta.annotation(annotation) == Some("true"))
    };
    let default = rows.iter_mut().filter(|(it, _)| annotated(it)).min_by(|(a, _), (b, _)| {
        let made = |it: &Value| Meta::of(it).creation_timestamp();
        made(b).cmp(&made(a)).then_with(|| name(a).cmp(name(b)))
    });
    if let Some((it, row)) = default
        && let Some(cell) = row.cells.first_mut()
    {
        *cell = Cell::from(format!("{} (default)", name(it)));
    }
}

fn volume_attributes_class(it: &Value) -> Cells {
    cells![name(it), it.str_at(&["driverName"]), age(it)]
}

fn volume_attachment(it: &Value) -> Cells {
    cells![
        name(it),
        it.str_at(&["spec", "attacher"]),
        it.str_at(&["spec", "source", "persistentVolumeName"]),
        it.str_at(&["spec", "nodeName"]),
        it.bool_at(&["status", "attached"]),
        age(it),
    ]
}

fn csi_node(it: &Value) -> Cells {
    cells![name(it), it.array_at(&["spec", "drivers"]).len() as i64, age(it)]
}

fn csi_driver(it: &Value) -> Cells {
    let requests = it
        .at(&["spec", "tokenRequests"])
        .and_then(Value::as_array)
        .map(|requests| requests.iter().map(|request| request.str_at(&["audience"])).collect::<Vec<_>>().join(","));
    cells![
        name(it),
        it.at(&["spec", "attachRequired"]).and_then(Value::as_bool).unwrap_or(true),
        it.bool_at(&["spec", "podInfoOnMount"]),
        it.bool_at(&["spec", "storageCapacity"]),
        requests.unwrap_or_else(|| UNSET.to_owned()),
        it.bool_at(&["spec", "requiresRepublish"]),
        or(&joined(it, &["spec", "volumeLifecycleModes"]), NONE),
        age(it),
    ]
}
