//! The group `autoscaling`.

use std::sync::Arc;

use super::kind::Own;
use crate::{api::ApiError, object::Value};

mod convert;
mod go_order;
mod rules;

pub const GROUP: &str = "autoscaling";

/// What a kind of this group has of its own.
pub fn own(plural: &str) -> Option<Arc<dyn Own>> {
    match plural {
        "horizontalpodautoscalers" => Some(Arc::new(rules::HorizontalPodAutoscaler)),
        _ => None,
    }
}

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
    if version == "v1" {
        convert::to_v2(autoscaler);
        convert::to_v1(autoscaler);
    } else {
        convert::drop_text(autoscaler);
    }
}
