//! The resource group (dynamic resource allocation).

use super::{Hooks, set};
use crate::{api::duration, object::Map, schema::defaults::Context};

pub const HOOKS: Hooks = &[
    ("io.k8s.api.resource.v1.ExactDeviceRequest", |it, _| allocation(it)),
    ("io.k8s.api.resource.v1beta2.ExactDeviceRequest", |it, _| allocation(it)),
    ("io.k8s.api.resource.v1.DeviceSubRequest", |it, _| allocation(it)),
    ("io.k8s.api.resource.v1beta1.DeviceSubRequest", |it, _| allocation(it)),
    ("io.k8s.api.resource.v1beta2.DeviceSubRequest", |it, _| allocation(it)),
    ("io.k8s.api.resource.v1beta1.DeviceRequest", |it, _| {
        // Without a class it has subrequests, and the fields of a single request must stay empty.
        if !set::text(it, "deviceClassName").is_empty() {
            allocation(it);
        }
    }),
    ("io.k8s.api.resource.v1.DeviceTaint", taint),
    ("io.k8s.api.resource.v1alpha3.DeviceTaint", taint),
    ("io.k8s.api.resource.v1beta1.DeviceTaint", taint),
    ("io.k8s.api.resource.v1beta2.DeviceTaint", taint),
];

fn allocation(it: &mut Map) {
    set::empty(it, "allocationMode", "ExactCount");
    if set::text(it, "allocationMode") == "ExactCount" {
        set::zero(it, "count", 1);
    }
}

fn taint(it: &mut Map, context: &Context) {
    if set::is_nil(it, "timeAdded") {
        set::nil(it, "timeAdded", duration::format_time(context.now));
    }
}
