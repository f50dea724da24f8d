//! The built-in controllers; what every server does on its own is in [`super::hooks`].

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::{sync::watch, task::AbortHandle};

use super::hooks::Bootstrap;
use crate::{
    chain::{Shared, client::InProcess},
    controllers::{
        ApiClient, namespace::NamespaceDeletion, rbac_aggregation::ClusterRoleAggregation, root_ca::RootCaPublisher,
        service_account::DefaultServiceAccount,
    },
    options::ValidatedOptions,
    pki::{Newcomer, issued, to_pem},
    server::current::Current,
};

/// The built-in loops; which of them run follows the configuration.
pub struct Controllers {
    hands: Hands,
    /// What verifies this server, told to whoever publishes it.
    authority: watch::Sender<Option<Arc<str>>>,
    running: BTreeMap<&'static str, AbortHandle>,
    bootstrap: Arc<Bootstrap>,
}

/// What a loop is made of.
struct Hands {
    shared: Arc<Shared>,
    client: Arc<dyn ApiClient>,
    authority: watch::Receiver<Option<Arc<str>>>,
}

impl Controllers {
    pub fn new(shared: Arc<Shared>, current: &Current, bootstrap: Arc<Bootstrap>) -> Self {
        let client = Arc::new(InProcess::new(current.clone(), "kenter/controllers"));
        let (sender, authority) = watch::channel(None);
        Self { hands: Hands { shared, client, authority }, authority: sender, running: BTreeMap::new(), bootstrap }
    }

    /// What has to happen before the server goes, besides ending what runs.
    pub async fn stop(&self) {
        self.bootstrap.stop().await;
    }

    /// Starts what is on and stops what is off. `own`: the certificates that kenter made for itself, where it did.
    pub fn apply(&mut self, options: &ValidatedOptions, own: Option<&Newcomer>) {
        self.bootstrap.apply(options, own.map(|own| own.authority_pem.as_str()));
        self.publish(root_authority(options, own));
        for (name, make) in LOOPS {
            let wanted = options.controllers.enabled.contains(name);
            match (wanted, self.running.contains_key(name)) {
                (true, false) => {
                    let task = tokio::spawn(make(&self.hands));
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

    fn publish(&self, authority: Option<Arc<str>>) {
        self.authority.send_if_modified(|known| {
            let changes = *known != authority;
            *known = authority;
            changes
        });
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        self.running.values().for_each(AbortHandle::abort);
    }
}

type Make = fn(&Hands) -> BoxFuture<'static, ()>;

/// Requests that were let into a namespace before it was marked are stored by then: they have passed admission, and
/// what is left of them is a commit.
const SETTLE: Duration = Duration::from_millis(100);

/// Every loop by its switch's name (kube-controller-manager's).
const LOOPS: [(&str, Make); 4] = [
    ("namespace-controller", |hands| {
        let (reader, client) = (hands.shared.reader.clone(), hands.client.clone());
        let controller = NamespaceDeletion { reader: reader.clone(), changes: reader, client, settle: SETTLE };
        Box::pin(async move { controller.run().await })
    }),
    ("serviceaccount-controller", |hands| {
        let (reader, client) = (hands.shared.reader.clone(), hands.client.clone());
        let controller = DefaultServiceAccount { reader: reader.clone(), changes: reader, client };
        Box::pin(async move { controller.run().await })
    }),
    ("root-ca-certificate-publisher-controller", |hands| {
        let (reader, client) = (hands.shared.reader.clone(), hands.client.clone());
        let authority = hands.authority.clone();
        let controller = RootCaPublisher { reader: reader.clone(), changes: reader, client, authority };
        Box::pin(async move { controller.run().await })
    }),
    ("clusterrole-aggregation-controller", |hands| {
        let (reader, client) = (hands.shared.reader.clone(), hands.client.clone());
        let controller = ClusterRoleAggregation { reader: reader.clone(), changes: reader, client };
        Box::pin(async move { controller.run().await })
    }),
];

/// The switches of all loops.
pub fn names() -> impl Iterator<Item = &'static str> {
    LOOPS.iter().map(|(name, _)| *name)
}

/// What verifies the certificate this server shows inside the cluster, as PEM: the authority kenter made, else the
/// client authorities where they issued the certificate (as kubeadm sets things up), else what the certificate's own
/// file says.
fn root_authority(options: &ValidatedOptions, own: Option<&Newcomer>) -> Option<Arc<str>> {
    if let Some(own) = own {
        return Some(own.authority_pem.as_str().into());
    }
    let shown = options.serving.tls.certificate.as_ref()?;
    let leaf = shown.chain.first()?;
    let text = |pem: &[u8]| std::str::from_utf8(pem).ok().map(Arc::from);
    if let Some(clients) = &options.authentication.client_ca
        && clients.certificates.iter().any(|authority| issued(authority, leaf))
    {
        return text(&clients.pem);
    }
    let last = shown.chain.last()?;
    if issued(last, last) { Some(to_pem(last).into()) } else { None }
}
