//! Slots: so many passes of one kind run at the same time for each account and namespace. Passes that wait for a slow platform, or
//! for the rate budget of its account, hold up nobody else's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kube::{Resource, ResourceExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::environment::Kind;
use super::super::object::AccountName;
use super::super::pass::label;

/// The slots of everybody.
#[derive(Debug)]
pub struct Slots {
    each: usize,
    /// By what [`owner`] says.
    owners: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Slots {
    /// So many for each owner.
    pub fn new(each: u16) -> Self {
        Self { each: usize::from(each), owners: Mutex::default() }
    }

    /// Waits for a slot for a pass over `object`, first come, first served. It is free again when what is returned is dropped.
    pub async fn take<K: Kind>(&self, object: &K::Object) -> Option<OwnedSemaphorePermit> {
        self.of(owner::<K>(object)).await
    }

    async fn of(&self, owner: String) -> Option<OwnedSemaphorePermit> {
        // Never closed.
        self.semaphore(owner).acquire_owned().await.ok()
    }

    fn semaphore(&self, owner: String) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = owners.get(&owner).and_then(Weak::upgrade) {
            return known;
        }
        // Kept by the permits, and by those who wait for one.
        owners.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.each));
        owners.insert(owner, Arc::downgrade(&semaphore));
        semaphore
    }
}

/// Whose slots a pass over `object` needs. An account has its own.
fn owner<K: Kind>(object: &K::Object) -> String {
    let Some(reference) = K::account(object) else { return label(object) };
    let namespace = object.namespace().unwrap_or_default();
    format!("{} of {} in {namespace}", K::Object::kind(&()), AccountName::of(reference, object))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::controller::compute::Computes;

    fn owner(account: &str, namespace: &str) -> String {
        let spec = json!({
            "accountRef": {"kind": "ClusterAccount", "name": account}, "projectID": "p", "branchID": "br-1", "type": "ReadOnly",
        });
        let compute = json!({"metadata": {"name": "orders", "namespace": namespace}, "spec": spec});
        super::owner::<Computes>(&serde_json::from_value(compute).unwrap())
    }

    #[tokio::test]
    async fn who_waits_holds_up_nobody_of_another_account_or_namespace() {
        let slots = Slots::new(2);
        let first = slots.of(owner("slow", "shop")).await;
        let _second = slots.of(owner("slow", "shop")).await;
        let mut third = Box::pin(slots.of(owner("slow", "shop")));
        assert!(third.as_mut().now_or_never().is_none(), "both slots are taken");
        assert!(slots.of(owner("slow", "bank")).now_or_never().is_some(), "another namespace has its own");
        assert!(slots.of(owner("fast", "shop")).now_or_never().is_some(), "another account has its own");
        drop(first);
        assert!(tokio::time::timeout(Duration::from_secs(5), third).await.is_ok(), "one is free again");
    }

    #[tokio::test]
    async fn what_nobody_uses_is_not_kept() {
        let slots = Slots::new(1);
        for number in 0..100 {
            drop(slots.of(owner(&format!("account-{number}"), "shop")).await);
        }
        let kept = slots.owners.lock().unwrap().len();
        assert!(kept <= 1, "{kept} are kept");
    }
}
