//! Priority: a pod's priority out of its class (kubernetes `plugin/pkg/admission/priority`).

use std::sync::Arc;

use crate::{
    admission::{AdmissionFuture, Attributes, Operation, Phases, Plugin},
    api::{ApiError, Meta},
    object::Value,
    registry::reader::ObjectReader,
};

const GROUP: &str = "scheduling.k8s.io";
const DEFAULT_POLICY: &str = "PreemptLowerPriority";

pub struct Priority {
    pub reader: Arc<dyn ObjectReader>,
}

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation != Operation::Connect
    }

    fn phases(&self) -> Phases {
        Phases::Both
    }

    fn admit<'a>(
        &'a self,
        request: &'a Attributes<'a>,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> AdmissionFuture<'a> {
        Box::pin(async move {
            match (object, request.operation) {
                (Some(pod), Operation::Create) if request.is("", "pods", "") => {
                    if !self.knows_class_of(pod) {
                        // Upstream asks its informer only; a class that was acknowledged a moment ago counts here.
                        self.reader.caught_up(GROUP, "priorityclasses").await;
                    }
                    self.set(request, pod)
                }
                (Some(pod), Operation::Update) if request.is("", "pods", "") => {
                    keep(pod, old);
                    Ok(())
                }
                _ => Ok(()),
            }
        })
    }

    fn validate<'a>(
        &'a self,
        request: &'a Attributes<'a>,
        object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> AdmissionFuture<'a> {
        let class = object.filter(|_| request.is(GROUP, "priorityclasses", ""));
        let result = class.map_or(Ok(()), |class| self.one_default(request, class));
        Box::pin(std::future::ready(result))
    }
}

/// What a client did not send again stays.
fn keep(pod: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return };
    for name in ["priority", "preemptionPolicy"] {
        let absent = pod.at(&["spec", name]).is_none_or(Value::is_null);
        if let (true, Some(value)) = (absent, old.at(&["spec", name])) {
            pod.make(&["spec"]).make_object().insert(name, value.clone());
        }
    }
}

impl Priority {
    fn knows_class_of(&self, pod: &Value) -> bool {
        let name = pod.str_at(&["spec", "priorityClassName"]);
        name.is_empty() || self.reader.get(GROUP, "priorityclasses", "", name).is_some()
    }

    fn set(&self, request: &Attributes<'_>, pod: &mut Value) -> Result<(), ApiError> {
        let given = pod.str_at(&["spec", "priorityClassName"]).to_owned();
        let class = if given.is_empty() {
            self.default_class()
        } else {
            let found = self.reader.get(GROUP, "priorityclasses", "", &given);
            Some(found.ok_or_else(|| request.forbidden(&format!("no PriorityClass with name {given} was found")))?)
        };
        let (value, policy) = match &class {
            Some(class) => {
                let policy = class.str_at(&["preemptionPolicy"]);
                (class.i64_at(&["value"]).unwrap_or(0), if policy.is_empty() { DEFAULT_POLICY } else { policy })
            }
            None => (0, DEFAULT_POLICY),
        };
        if let Some(wanted) = pod.i64_at(&["spec", "priority"]).filter(|wanted| *wanted != value) {
            return Err(request.forbidden(&format!(
                "the integer value of priority ({wanted}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
            )));
        }
        let wanted = pod.str_at(&["spec", "preemptionPolicy"]);
        if !wanted.is_empty() && wanted != policy {
            return Err(request.forbidden(&format!(
                "the string value of PreemptionPolicy ({wanted}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            )));
        }
        if let Some(class) = class.as_ref().filter(|_| given.is_empty()) {
            pod.set(&["spec", "priorityClassName"], Meta::of(class).name());
        }
        pod.set(&["spec", "priority"], value);
        pod.set(&["spec", "preemptionPolicy"], policy);
        Ok(())
    }

    /// The class for pods that name none: of several the lowest, as upstream chooses.
    fn default_class(&self) -> Option<Arc<Value>> {
        let classes = self.reader.list(GROUP, "priorityclasses", None);
        let defaults = classes.into_iter().filter(|class| class.bool_at(&["globalDefault"]));
        defaults.min_by_key(|class| class.i64_at(&["value"]).unwrap_or(0))
    }

    fn one_default(&self, request: &Attributes<'_>, class: &Value) -> Result<(), ApiError> {
        if !class.bool_at(&["globalDefault"]) {
            return Ok(());
        }
        match self.default_class() {
            Some(other) if Meta::of(&other).name() != Meta::of(class).name() => Err(request.forbidden(&format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                Meta::of(&other).name()
            ))),
            _ => Ok(()),
        }
    }
}
