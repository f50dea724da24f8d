//! What is set up once the server listens: hooks with their work, and the built-in controllers.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::{
    chain::{Shared, client::InProcess},
    controllers::{ApiClient, rbac_aggregation::ClusterRoleAggregation, rbac_bootstrap},
    options::{ValidatedOptions, completed::AuthorizationMode},
    pki::newcomer::Newcomer,
    server::{current::Current, hooks::Hooks},
};

const BOOTSTRAP_ROLES: &str = "rbac/bootstrap-roles";

/// Makes the hooks known, in upstream's order.
pub fn register_hooks(hooks: &Hooks) {
    hooks.register(BOOTSTRAP_ROLES);
}

/// Starts the hooks' work and the controllers that are on.
pub fn start(options: &ValidatedOptions, shared: &Arc<Shared>, current: &Current, _own: Option<&Newcomer>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let client: Arc<dyn ApiClient> = Arc::new(InProcess::new(current.clone(), "kenter/bootstrap"));
    if options.authorization.modes.contains(&AuthorizationMode::Rbac) {
        let client = client.clone();
        shared.hooks.run(BOOTSTRAP_ROLES, Box::pin(async move { rbac_bootstrap::bootstrap_roles(&*client).await }));
    } else {
        shared.hooks.finish(BOOTSTRAP_ROLES);
    }
    if options.controllers.enabled.contains("clusterrole-aggregation-controller") {
        let controller = ClusterRoleAggregation { reader: shared.reader.clone(), changes: shared.reader.clone(), client };
        tasks.spawn(async move { controller.run().await });
    }
    tasks
}
