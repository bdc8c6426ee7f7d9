//! What has resources decided on anew besides changes of their own: other resources, Secrets, the platform.

use std::sync::{Arc, Mutex, PoisonError};

use futures::{Stream, StreamExt};
use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::accounts::AccountName;
use crate::api::{Account, AccountKind, ClusterAccount, Compute, ProjectKey};
use crate::platform::RateLimited;

/// The sending sides, one for each kind.
#[derive(Clone, Debug)]
pub struct Triggers {
    computes: UnboundedSender<ObjectRef<Compute>>,
    keys: UnboundedSender<ObjectRef<ProjectKey>>,
    accounts: UnboundedSender<ObjectRef<Account>>,
    cluster_accounts: UnboundedSender<ObjectRef<ClusterAccount>>,
}

/// The receiving sides.
#[derive(Debug)]
pub struct Triggered {
    pub computes: UnboundedReceiver<ObjectRef<Compute>>,
    pub keys: UnboundedReceiver<ObjectRef<ProjectKey>>,
    pub accounts: UnboundedReceiver<ObjectRef<Account>>,
    pub cluster_accounts: UnboundedReceiver<ObjectRef<ClusterAccount>>,
}

/// Both sides.
pub fn channels() -> (Triggers, Triggered) {
    let (computes, computes_rx) = unbounded_channel();
    let (keys, keys_rx) = unbounded_channel();
    let (accounts, accounts_rx) = unbounded_channel();
    let (cluster_accounts, cluster_accounts_rx) = unbounded_channel();
    let triggered = Triggered {
        computes: computes_rx,
        keys: keys_rx,
        accounts: accounts_rx,
        cluster_accounts: cluster_accounts_rx,
    };
    (Triggers { computes, keys, accounts, cluster_accounts }, triggered)
}

impl Triggers {
    // A receiver that is gone means that the operator is stopping; then nothing has to be decided on any more.

    pub fn compute(&self, reference: ObjectRef<Compute>) {
        let _ = self.computes.send(reference);
    }

    pub fn key(&self, reference: ObjectRef<ProjectKey>) {
        let _ = self.keys.send(reference);
    }

    pub fn account(&self, name: &AccountName) {
        match name.kind {
            AccountKind::Account => {
                let reference = ObjectRef::new(&name.name).within(name.namespace.as_deref().unwrap_or_default());
                let _ = self.accounts.send(reference);
            }
            AccountKind::ClusterAccount => {
                let _ = self.cluster_accounts.send(ObjectRef::new(&name.name));
            }
        }
    }

    /// The side that the observers of the platform send to.
    pub fn for_observers(&self) -> UnboundedSender<ObjectRef<Compute>> {
        self.computes.clone()
    }

    /// Has an account decided on anew when the platform begins or ceases to refuse its credentials. Ends with the client.
    pub fn when_gate_moves(&self, platform: &Arc<RateLimited>, name: AccountName) {
        let mut gate = platform.watch_gate();
        let triggers = self.clone();
        tokio::spawn(async move {
            while gate.changed().await.is_ok() {
                triggers.account(&name);
            }
        });
    }
}

/// One receiving side, shared by the controllers of several namespaces.
#[derive(Debug)]
pub struct Fan<K: kube::runtime::reflector::Lookup>
where
    K::DynamicType: Clone + std::fmt::Debug + Eq + std::hash::Hash,
{
    outlets: Arc<Mutex<Vec<UnboundedSender<ObjectRef<K>>>>>,
}

impl<K> Fan<K>
where
    K: kube::runtime::reflector::Lookup<DynamicType = ()> + 'static,
{
    /// Spreads `source`.
    pub fn of(mut source: UnboundedReceiver<ObjectRef<K>>) -> Self {
        let outlets: Arc<Mutex<Vec<UnboundedSender<ObjectRef<K>>>>> = Arc::default();
        let shared = outlets.clone();
        tokio::spawn(async move {
            while let Some(reference) = source.recv().await {
                let mut outlets = shared.lock().unwrap_or_else(PoisonError::into_inner);
                outlets.retain(|outlet| outlet.send(reference.clone()).is_ok());
            }
        });
        Self { outlets }
    }

    /// What concerns `namespace`, or everything.
    pub fn outlet(&self, namespace: Option<String>) -> impl Stream<Item = ObjectRef<K>> + Send + 'static {
        let (sender, receiver) = unbounded_channel();
        self.outlets.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        let all = futures::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|item| (item, receiver))
        });
        all.filter(move |reference| std::future::ready(namespace.is_none() || reference.namespace == namespace))
    }
}
