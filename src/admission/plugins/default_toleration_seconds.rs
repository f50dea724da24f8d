//! DefaultTolerationSeconds: pods stay on a node that is not ready or unreachable for a while
//! (kubernetes `plugin/pkg/admission/defaulttolerationseconds`).

use crate::{
    admission::{AdmissionFuture, Attributes, Operation, Phases, Plugin},
    object::Value,
};

pub struct DefaultTolerationSeconds {
    pub not_ready_seconds: i64,
    pub unreachable_seconds: i64,
}

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
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
        if let Some(pod) = object.filter(|_| request.is("", "pods", "")) {
            self.tolerate(pod);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

impl DefaultTolerationSeconds {
    fn tolerate(&self, pod: &mut Value) {
        let mut tolerations = pod.array_at(&["spec", "tolerations"]).to_vec();
        let before = tolerations.len();
        let taints = [
            ("node.kubernetes.io/not-ready", self.not_ready_seconds),
            ("node.kubernetes.io/unreachable", self.unreachable_seconds),
        ];
        for (key, seconds) in taints {
            if tolerations.iter().take(before).any(|toleration| covers(toleration, key)) {
                continue;
            }
            tolerations.push(Value::from([
                ("key", Value::from(key)),
                ("operator", "Exists".into()),
                ("effect", "NoExecute".into()),
                ("tolerationSeconds", seconds.into()),
            ]));
        }
        if tolerations.len() > before {
            pod.set(&["spec", "tolerations"], Value::Array(tolerations));
        }
    }
}

fn covers(toleration: &Value, taint: &str) -> bool {
    let (key, effect) = (toleration.str_at(&["key"]), toleration.str_at(&["effect"]));
    (key == taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
}
