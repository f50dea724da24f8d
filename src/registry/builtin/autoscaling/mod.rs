//! The group `autoscaling`.

use crate::{api::ApiError, object::Value};

mod convert;
mod go_order;

pub const GROUP: &str = "autoscaling";

/// Between autoscaling/v1 and v2, which is stored; `to` is an `apiVersion`.
pub fn convert(autoscaler: &mut Value, to: &str) -> Result<(), ApiError> {
    match to {
        "autoscaling/v1" => convert::to_v1(autoscaler),
        _ => convert::to_v2(autoscaler),
    }
    Ok(())
}

/// What a round trip through the stored version does to an object that was sent.
pub fn round_trip(version: &str, autoscaler: &mut Value) {
    convert::to_v2(autoscaler);
    if version == "v1" {
        convert::to_v1(autoscaler);
    }
}
