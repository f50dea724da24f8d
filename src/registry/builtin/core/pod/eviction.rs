//! Evictions: a deletion that the pod's disruption budget has to allow
//! (kubernetes `pkg/registry/core/pod/storage/eviction.go`).

use std::{sync::Arc, time::Duration};

use super::{
    binding::{Anything, pods, success, write_context},
    budget::{DisruptionBudgets, too_many_requests},
    options::PodPolicy,
    status::set_condition,
    strategy::{PodStatusStrategy, PodStrategy},
    view::{given, items, text},
};
use crate::{
    api::{ApiError, ErrorList, FieldError, Meta, Path, Reason, duration::format_time, status::GroupResource},
    json,
    object::Value,
    registry::{
        catalog::Stores,
        reader::ObjectReader,
        resource::{Call, CallContext, CallFuture},
        store::{DeleteOptions, Preconditions, Propagation, Store, Transform, TransformFuture, check_preconditions},
        validation::options::validate_delete_options,
    },
};

/// How often what changes meanwhile is looked at again, and how long apart (upstream EvictionsRetry).
pub const MAX_ATTEMPTS: usize = 20;
pub const PAUSE: Duration = Duration::from_millis(500);

/// `POST pods/{name}/eviction`.
pub struct Eviction {
    pub stores: Arc<Stores>,
    pub reader: Arc<dyn ObjectReader>,
    pub policy: PodPolicy,
}

/// One eviction under way.
struct Evicting<'a> {
    cx: &'a CallContext<'a>,
    store: Arc<Store>,
    policy: PodPolicy,
    name: String,
    options: DeleteOptions,
    dry_run: bool,
}

impl Call for Eviction {
    fn call<'a>(&'a self, cx: CallContext<'a>, body: Value) -> CallFuture<'a> {
        Box::pin(async move { self.evict(&cx, &body).await })
    }
}

impl Eviction {
    async fn evict(&self, cx: &CallContext<'_>, body: &Value) -> Result<(u16, Value), ApiError> {
        let named = Meta::of(body).name();
        if !named.is_empty() && named != cx.name {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let none = Value::object();
        let options = given(body, "deleteOptions").unwrap_or(&none);
        refuse_unsafe(options, cx.name)?;
        let dry_run = dry_run(options, cx.dry_run)?;
        let options = delete_options(options)?;
        let name = cx.name.to_owned();
        let evicting = Evicting { cx, store: pods(&self.stores)?, policy: self.policy, name, options, dry_run };
        let Some(pod) = evicting.without_budget().await? else { return Ok((201, success())) };
        let budgets = DisruptionBudgets { stores: &self.stores, reader: &*self.reader, cx, dry_run };
        let found = budgets.of(&pod).await?;
        if found.len() > 1 {
            // Not an error but an answer, as upstream has it.
            let message =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            let answer = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": 500});
            return Ok((500, answer));
        }
        let Some(budget) = found.first() else {
            evicting.remove(&evicting.options).await?;
            return Ok((201, success()));
        };
        if !is_ready(&pod) && lets_unready_go(budget) {
            evicting.remove_as_seen(&pod, Meta::of(budget).name()).await?;
        } else {
            budgets.consume(Meta::of(budget).name(), &evicting.name).await?;
            evicting.remove(&evicting.options).await?;
        }
        Ok((201, success()))
    }
}

impl Evicting<'_> {
    /// Removes a pod that no budget protects: one that has ended, has not begun, or is being deleted. Answers any
    /// other pod.
    async fn without_budget(&self) -> Result<Option<Value>, ApiError> {
        let versioned = self.options.preconditions.resource_version.is_some();
        for attempt in 1.. {
            let entry = self.store.get(self.cx.namespace, &self.name).await?;
            let pod = self.store.object(&entry)?;
            let phase = pod.str_at(&["status", "phase"]);
            let over = matches!(phase, "Succeeded" | "Failed") || Meta::of(&pod).is_being_deleted();
            if !over && phase != "Pending" {
                return Ok(Some(pod));
            }
            let mut options = self.options.clone();
            if !over && !versioned {
                // It must not have begun in between.
                options.preconditions.resource_version = Some(version_of(&pod));
            }
            match self.remove(&options).await {
                Err(error) if error.reason == Reason::Conflict && !versioned && attempt < MAX_ATTEMPTS => {
                    tokio::time::sleep(PAUSE).await;
                }
                other => return other.map(|()| None),
            }
        }
        Ok(None)
    }

    /// Removes the pod if it is still as `pod`; where it is not, its budget has to be asked again.
    async fn remove_as_seen(&self, pod: &Value, budget: &str) -> Result<(), ApiError> {
        let mut options = self.options.clone();
        options.preconditions.resource_version = Some(version_of(pod));
        match self.remove(&options).await {
            Err(error) if error.reason == Reason::Conflict && self.options.preconditions.resource_version.is_none() => {
                Err(too_many_requests(budget))
            }
            other => other,
        }
    }

    /// Tells why in the pod's status, then deletes it.
    async fn remove(&self, options: &DeleteOptions) -> Result<(), ApiError> {
        let mut options = options.clone();
        if !self.dry_run {
            let strategy = PodStatusStrategy { policy: self.policy };
            let mut target = Target { preconditions: &options.preconditions, now: format_time(self.cx.now) };
            let write = write_context(self.cx, &self.store, &strategy, false);
            let stored = self.store.update(&self.name, write, &mut target, &Anything, false).await?;
            if options.preconditions.resource_version.is_some() {
                options.preconditions.resource_version = Some(stored.revision.to_string());
            }
        }
        let strategy = PodStrategy { policy: self.policy };
        let write = write_context(self.cx, &self.store, &strategy, self.dry_run);
        self.store.delete(&self.name, write, &options, &Anything).await.map(drop)
    }
}

fn version_of(pod: &Value) -> String {
    Meta::of(pod).resource_version().to_owned()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.array_at(&["status", "conditions"]);
    conditions.iter().any(|it| text(it, "type") == "Ready" && text(it, "status") == "True")
}

/// Whether the budget does not protect a pod that is not ready.
fn lets_unready_go(budget: &Value) -> bool {
    let number = |key: &str| budget.i64_at(&["status", key]).unwrap_or(0);
    budget.str_at(&["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow"
        || (number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0)
}

fn refuse_unsafe(options: &Value, name: &str) -> Result<(), ApiError> {
    const UNSAFE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if !options.bool_at(&[UNSAFE]) {
        return Ok(());
    }
    let path = Path::new("deleteOptions");
    let why = "can not be set for pod eviction, try after removing the option";
    let error = FieldError::invalid(&path.child(UNSAFE), true, why);
    Err(ApiError::invalid("policy", "Eviction", name, &ErrorList::from_iter([error])))
}

/// The request's dry run and the body's, which have to agree where both are given.
fn dry_run(options: &Value, asked: bool) -> Result<bool, ApiError> {
    let given: Vec<&str> = items(options, "dryRun").iter().filter_map(Value::as_str).collect();
    if given.is_empty() || !asked {
        return Ok(asked || !given.is_empty());
    }
    if given != ["All"] {
        let given = given.join(" ");
        let why = format!("Non-matching dry-run options in request and content: [All] and [{given}]");
        return Err(ApiError::unmapped(why));
    }
    Ok(true)
}

fn delete_options(options: &Value) -> Result<DeleteOptions, ApiError> {
    let mut errors = ErrorList::new();
    validate_delete_options(options, &mut errors);
    if !errors.is_empty() {
        return Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &errors));
    }
    let orphans = options.get("orphanDependents").and_then(Value::as_bool);
    let propagation = match text(options, "propagationPolicy") {
        "Foreground" => Some(Propagation::Foreground),
        "Background" => Some(Propagation::Background),
        "Orphan" => Some(Propagation::Orphan),
        _ => orphans.map(|orphans| if orphans { Propagation::Orphan } else { Propagation::Background }),
    };
    let precondition = |key: &str| options.at(&["preconditions", key]).and_then(Value::as_str).map(str::to_owned);
    Ok(DeleteOptions {
        grace_period_seconds: options.i64_at(&["gracePeriodSeconds"]),
        propagation,
        preconditions: Preconditions { uid: precondition("uid"), resource_version: precondition("resourceVersion") },
        in_collection: false,
    })
}

/// Marks a pod as disrupted, if it is still the one that is meant.
struct Target<'a> {
    preconditions: &'a Preconditions,
    now: String,
}

impl Target<'_> {
    fn mark(&self, pod: &Value) -> Result<Value, ApiError> {
        check_preconditions(GroupResource::new("", "Pod"), pod, self.preconditions)?;
        let mut pod = pod.clone();
        pod.remove_at(&["metadata", "resourceVersion"]);
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting"
        });
        set_condition(pod.make(&["status"]), condition, &self.now);
        Ok(pod)
    }
}

impl Transform for Target<'_> {
    fn transform<'a>(&'a mut self, old: Option<&'a Value>) -> TransformFuture<'a> {
        let marked = match old {
            Some(pod) => self.mark(pod),
            None => Err(ApiError::new(404, Reason::NotFound, "the pod is gone")),
        };
        Box::pin(async { marked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dry_runs_of_request_and_body_agree() {
        assert!(!dry_run(&json!({}), false).unwrap());
        assert!(dry_run(&json!({"dryRun": ["All"]}), false).unwrap());
        assert!(dry_run(&json!({"dryRun": ["All"]}), true).unwrap());
        assert_eq!(
            dry_run(&json!({"dryRun": ["x"]}), true).unwrap_err().message,
            "Non-matching dry-run options in request and content: [All] and [x]"
        );
    }

    #[test]
    fn a_pod_that_is_not_ready_goes_where_the_budget_lets_it() {
        assert!(lets_unready_go(&json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}})));
        assert!(lets_unready_go(&json!({"status": {"currentHealthy": 1, "desiredHealthy": 1}})));
        assert!(!lets_unready_go(&json!({"status": {"currentHealthy": 0, "desiredHealthy": 0}})));
    }
}
