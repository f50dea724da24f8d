//! TaintNodesByCondition: a new node takes no pods until somebody has seen it ready
//! (kubernetes `plugin/pkg/admission/nodetaint`).

use crate::{
    admission::{AdmissionFuture, Attributes, Operation, Phases, Plugin},
    object::Value,
};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const NO_SCHEDULE: &str = "NoSchedule";

pub struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn phases(&self) -> Phases {
        Phases::Mutating
    }

    fn admit<'a>(
        &'a self,
        request: &'a Attributes<'a>,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> AdmissionFuture<'a> {
        if let Some(node) = object.filter(|_| request.is("", "nodes", "")) {
            taint(node);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

fn taint(node: &mut Value) {
    let taints = node.array_at(&["spec", "taints"]);
    let there = |taint: &Value| taint.str_at(&["key"]) == NOT_READY && taint.str_at(&["effect"]) == NO_SCHEDULE;
    if taints.iter().any(there) {
        return;
    }
    let mut taints = taints.to_vec();
    taints.push(Value::from([("key", NOT_READY), ("effect", NO_SCHEDULE)]));
    node.set(&["spec", "taints"], Value::Array(taints));
}
