//! Disruption budgets as evictions consume them (kubernetes `pkg/registry/core/pod/storage/eviction.go`,
//! checkAndDecrement).

use super::{
    binding::{Anything, write_context},
    eviction::{MAX_ATTEMPTS, PAUSE},
    view::{items, text},
};
use crate::{
    api::{
        ApiError, Meta, Reason,
        duration::format_time,
        labels::Selector,
        status::{Cause, GroupResource},
    },
    json,
    object::{Map, Value},
    registry::{
        catalog::Stores,
        reader::ObjectReader,
        resource::{CallContext, SubresourceBehaviour},
        store::{Transform, TransformFuture},
        strategy::{DefaultStrategy, Strategy},
    },
};

const GROUP: &str = "policy";
const PLURAL: &str = "poddisruptionbudgets";
/// Evictions that the budget's controller has not seen yet.
const MAX_DISRUPTED: usize = 2000;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// The budgets of a request's namespace.
pub struct DisruptionBudgets<'a> {
    pub stores: &'a Stores,
    pub reader: &'a dyn ObjectReader,
    pub cx: &'a CallContext<'a>,
    pub dry_run: bool,
}

impl DisruptionBudgets<'_> {
    /// Those that speak of the pod.
    pub async fn of(&self, pod: &Value) -> Result<Vec<std::sync::Arc<Value>>, ApiError> {
        let Some(store) = self.stores.get(GROUP, PLURAL) else { return Ok(Vec::new()) };
        // One that was made a moment ago protects too.
        store.consistent().await?;
        let none = Map::new();
        let labels = Meta::of(pod).labels().unwrap_or(&none);
        let speaks = |budget: &Value| {
            let selector = budget.at(&["spec", "selector"]).filter(|it| !it.is_null());
            Selector::from_object(selector).is_ok_and(|selector| selector.matches(labels))
        };
        let budgets = self.reader.list(GROUP, PLURAL, Some(self.cx.namespace));
        Ok(budgets.into_iter().filter(|budget| speaks(budget)).collect())
    }

    /// Takes one disruption from the budget, for a pod of this name.
    ///
    /// # Errors
    /// TooManyRequests and Forbidden where the budget has none to give.
    pub async fn consume(&self, budget: &str, pod: &str) -> Result<(), ApiError> {
        let Some(store) = self.stores.get(GROUP, PLURAL) else { return Ok(()) };
        let status = store.resource.versions.iter().find_map(|version| version.subresource("status"));
        let strategy: &dyn Strategy = match status.map(|it| &it.behaviour) {
            Some(SubresourceBehaviour::Part(strategy)) => &**strategy,
            _ => &DefaultStrategy,
        };
        let mut consumption = Consumption { pod, dry_run: self.dry_run, now: format_time(self.cx.now) };
        for attempt in 1..=MAX_ATTEMPTS {
            let write = write_context(self.cx, &store, strategy, self.dry_run);
            match store.update(budget, write, &mut consumption, &Anything, false).await {
                Err(error) if error.reason == Reason::Conflict => {
                    if attempt < MAX_ATTEMPTS {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                other => return other.map(drop),
            }
        }
        let budget = crate::api::field::quote(budget);
        Err(ApiError::timeout(&format!("couldn't update PodDisruptionBudget {budget} due to conflicts"), 10))
    }
}

/// The budget has not been brought up to date yet.
pub fn too_many_requests(budget: &str) -> ApiError {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    with_cause(ApiError::too_many_requests(REFUSED, 10), why)
}

fn with_cause(mut error: ApiError, message: String) -> ApiError {
    let cause = Cause { reason: "DisruptionBudget".into(), message, ..Cause::default() };
    error.details.get_or_insert_default().causes.push(cause);
    error
}

struct Consumption<'a> {
    pod: &'a str,
    dry_run: bool,
    now: String,
}

impl Consumption<'_> {
    fn consume(&self, budget: &Value) -> Result<Value, ApiError> {
        check(budget)?;
        let mut budget = budget.clone();
        let left = budget.i64_at(&["status", "disruptionsAllowed"]).unwrap_or(0) - 1;
        budget.set(&["status", "disruptionsAllowed"], left);
        if left == 0 {
            self.no_more(&mut budget);
        }
        if !self.dry_run {
            let disrupted = budget.make(&["status", "disruptedPods"]).make_object();
            disrupted.insert(self.pod, self.now.as_str());
        }
        Ok(budget)
    }

    /// Sets the condition of a budget that allows nothing.
    fn no_more(&self, budget: &mut Value) {
        let mut condition = json!({
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "lastTransitionTime": (self.now.as_str())
        });
        let observed = budget.i64_at(&["status", "observedGeneration"]).unwrap_or(0);
        if observed != 0 {
            condition.set(&["observedGeneration"], observed);
        }
        let conditions = budget.make(&["status", "conditions"]);
        if !matches!(conditions, Value::Array(_)) {
            *conditions = Value::Array(Vec::new());
        }
        let Some(conditions) = conditions.as_array_mut() else { return };
        match conditions.iter_mut().find(|it| text(it, "type") == "DisruptionAllowed") {
            Some(old) => {
                if text(old, "status") == "False" {
                    let since = old.get("lastTransitionTime").cloned().unwrap_or(Value::Null);
                    condition.set(&["lastTransitionTime"], since);
                }
                *old = condition;
            }
            None => conditions.push(condition),
        }
    }
}

impl Transform for Consumption<'_> {
    fn transform<'a>(&'a mut self, old: Option<&'a Value>) -> TransformFuture<'a> {
        let consumed = match old {
            Some(budget) => self.consume(budget),
            None => Err(ApiError::new(404, Reason::NotFound, "the budget is gone")),
        };
        Box::pin(async { consumed })
    }
}

/// Whether the budget has a disruption to give.
fn check(budget: &Value) -> Result<(), ApiError> {
    let meta = Meta::of(budget);
    let name = meta.name();
    let number = |key: &str| budget.i64_at(&["status", key]).unwrap_or(0);
    if number("observedGeneration") < meta.generation() {
        return Err(too_many_requests(name));
    }
    let forbidden = |why: &str, cause: &str| {
        let error = ApiError::forbidden(GroupResource::new(GROUP, "poddisruptionbudget"), name, why);
        Err(with_cause(error, format!("The disruption budget {name} does not allow evicting pods currently: {cause}")))
    };
    if number("disruptionsAllowed") < 0 {
        return forbidden("pdb disruptions allowed is negative", "pdb disruptions allowed is negative");
    }
    if budget.object_at(&["status", "disruptedPods"]).map_or(0, Map::len) > MAX_DISRUPTED {
        return forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "too many pending evictions not confirmed by PDB controller",
        );
    }
    if number("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let none = Value::object();
    let conditions = items(budget.get("status").unwrap_or(&none), "conditions");
    let condition = conditions.iter().find(|it| text(it, "type") == "DisruptionAllowed");
    let said = condition.filter(|it| text(it, "status") == "False" && !text(it, "message").is_empty());
    let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
    let why = match said {
        Some(it) if text(it, "reason") == "SyncFailed" => {
            format!("does not allow evicting pods currently because it failed sync: {}", text(it, "message"))
        }
        _ if healthy <= desired => format!("needs {desired} healthy pods and has {healthy} currently"),
        Some(it) => format!("does not allow evicting pods currently ({}): {}", text(it, "reason"), text(it, "message")),
        None => "does not allow evicting pods currently".to_owned(),
    };
    Err(with_cause(ApiError::too_many_requests(REFUSED, 0), format!("The disruption budget {name} {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(status: Value) -> Value {
        json!({"metadata": {"name": "b", "generation": 1}, "status": status})
    }

    fn refusal(status: Value) -> String {
        let error = check(&budget(status)).unwrap_err();
        error.details.as_ref().unwrap().causes[0].message.clone()
    }

    #[test]
    fn a_budget_says_why_it_refuses() {
        assert_eq!(refusal(json!({})), "The disruption budget b is still being processed by the server.");
        assert_eq!(
            refusal(json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1})),
            "The disruption budget b needs 1 healthy pods and has 1 currently"
        );
        assert_eq!(
            refusal(json!({"observedGeneration": 1, "currentHealthy": 3, "desiredHealthy": 1})),
            "The disruption budget b does not allow evicting pods currently"
        );
    }

    #[test]
    fn the_last_disruption_closes_the_budget() {
        let consumption = Consumption { pod: "a", dry_run: false, now: "NOW".into() };
        let after = consumption.consume(&budget(json!({"observedGeneration": 1, "disruptionsAllowed": 1}))).unwrap();
        assert_eq!(after.i64_at(&["status", "disruptionsAllowed"]), Some(0));
        assert_eq!(after.at(&["status", "disruptedPods"]), Some(&json!({"a": "NOW"})));
        assert_eq!(after.array_at(&["status", "conditions"])[0].str_at(&["reason"]), "InsufficientPods");
    }
}
