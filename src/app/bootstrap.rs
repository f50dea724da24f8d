//! What is set up once the server listens: hooks with their work, and the built-in controllers.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;

use crate::{
    chain::{Shared, client::InProcess},
    controllers::{ApiClient, rbac_aggregation::ClusterRoleAggregation, rbac_bootstrap},
    options::{ValidatedOptions, completed::AuthorizationMode},
    server::{current::Current, hooks::Hooks},
};

const BOOTSTRAP_ROLES: &str = "rbac/bootstrap-roles";

/// Makes the hooks known, in upstream's order.
pub fn register_hooks(hooks: &Hooks) {
    hooks.register(BOOTSTRAP_ROLES);
}

/// Starts the hooks' work.
pub fn start(options: &ValidatedOptions, shared: &Arc<Shared>, current: &Current) {
    let client: Arc<dyn ApiClient> = Arc::new(InProcess::new(current.clone(), "kenter/bootstrap"));
    if options.authorization.modes.contains(&AuthorizationMode::Rbac) {
        let client = client.clone();
        shared.hooks.run(BOOTSTRAP_ROLES, Box::pin(async move { rbac_bootstrap::bootstrap_roles(&*client).await }));
    } else {
        shared.hooks.finish(BOOTSTRAP_ROLES);
    }
}

/// The built-in loops; which of them run follows the configuration.
pub struct Controllers {
    shared: Arc<Shared>,
    client: Arc<dyn ApiClient>,
    running: BTreeMap<&'static str, AbortHandle>,
}

impl Controllers {
    pub fn new(shared: Arc<Shared>, current: &Current) -> Self {
        let client = Arc::new(InProcess::new(current.clone(), "kenter/controllers"));
        Self { shared, client, running: BTreeMap::new() }
    }

    /// Starts what is on and stops what is off.
    pub fn apply(&mut self, options: &ValidatedOptions) {
        for (name, make) in LOOPS {
            let wanted = options.controllers.enabled.contains(name);
            match (wanted, self.running.contains_key(name)) {
                (true, false) => {
                    let task = tokio::spawn(make(&self.shared, &self.client));
                    self.running.insert(name, task.abort_handle());
                }
                (false, true) => {
                    if let Some(task) = self.running.remove(name) {
                        task.abort();
                    }
                }
                _ => {}
            }
        }
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        self.running.values().for_each(AbortHandle::abort);
    }
}

type Make = fn(&Arc<Shared>, &Arc<dyn ApiClient>) -> BoxFuture<'static, ()>;

/// Every loop by its switch's name (kube-controller-manager's).
const LOOPS: [(&str, Make); 1] = [("clusterrole-aggregation-controller", |shared, client| {
    let controller =
        ClusterRoleAggregation { reader: shared.reader.clone(), changes: shared.reader.clone(), client: client.clone() };
    Box::pin(async move { controller.run().await })
})];
