//! Slots: so many passes of one kind run at the same time for each account and namespace. Passes that wait for a slow platform, or
//! for the rate budget of its account, hold up nobody else's. What is new, changed or not as declared yet does not wait behind what only is
//! looked at again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kube::{Resource, ResourceExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::environment::Kind;
use super::super::object::{AccountName, Managed};
use super::super::pass::label;

/// The slots of everybody.
#[derive(Debug)]
pub struct Slots {
    each: usize,
    /// By what [`owner`] says.
    owners: Mutex<HashMap<String, Weak<Owned>>>,
}

/// The slots of one owner.
#[derive(Debug)]
struct Owned {
    all: Arc<Semaphore>,
    /// Those of all that may be used for what stands as declared.
    standing: Arc<Semaphore>,
}

/// A slot. It is free again when this is dropped.
#[derive(Debug)]
pub struct Slot {
    _owned: Arc<Owned>,
    _all: OwnedSemaphorePermit,
    _standing: Option<OwnedSemaphorePermit>,
}

impl Slots {
    /// So many for each owner.
    pub fn new(each: u16) -> Self {
        Self { each: usize::from(each), owners: Mutex::default() }
    }

    /// Waits for a slot for a pass over `object`, first come, first served among its like.
    pub async fn take<K: Kind>(&self, object: &K::Object) -> Option<Slot> {
        self.of(owner::<K>(object), object.stands()).await
    }

    async fn of(&self, owner: String, stands: bool) -> Option<Slot> {
        let owned = self.owned(owner);
        // Never closed.
        let standing = if stands { Some(owned.standing.clone().acquire_owned().await.ok()?) } else { None };
        let all = owned.all.clone().acquire_owned().await.ok()?;
        Some(Slot { _owned: owned, _all: all, _standing: standing })
    }

    fn owned(&self, owner: String) -> Arc<Owned> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = owners.get(&owner).and_then(Weak::upgrade) {
            return known;
        }
        // Kept by the slots, and by those who wait for one.
        owners.retain(|_, owned| owned.strong_count() > 0);
        let slots = |count: usize| Arc::new(Semaphore::new(count));
        let owned = Arc::new(Owned { all: slots(self.each), standing: slots((self.each * 3 / 4).max(1)) });
        owners.insert(owner, Arc::downgrade(&owned));
        owned
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
        let first = slots.of(owner("slow", "shop"), false).await;
        let _second = slots.of(owner("slow", "shop"), false).await;
        let mut third = Box::pin(slots.of(owner("slow", "shop"), false));
        assert!(third.as_mut().now_or_never().is_none(), "both slots are taken");
        assert!(slots.of(owner("slow", "bank"), false).now_or_never().is_some(), "another namespace has its own");
        assert!(slots.of(owner("fast", "shop"), false).now_or_never().is_some(), "another account has its own");
        drop(first);
        assert!(tokio::time::timeout(Duration::from_secs(5), third).await.is_ok(), "one is free again");
    }

    #[tokio::test]
    async fn what_stands_as_declared_leaves_slots_for_what_does_not() {
        for (each, for_standing) in [(1, 1), (2, 1), (4, 3), (16, 12)] {
            let slots = Slots::new(each);
            let mut taken = Vec::new();
            while let Some(Some(slot)) = slots.of(owner("prod", "shop"), true).now_or_never() {
                taken.push(slot);
            }
            assert_eq!(taken.len(), for_standing, "of {each}");
            let waiting: Vec<_> = (0..100).map(|_| Box::pin(slots.of(owner("prod", "shop"), true))).collect();
            while let Some(Some(slot)) = slots.of(owner("prod", "shop"), false).now_or_never() {
                taken.push(slot);
            }
            assert_eq!(taken.len(), usize::from(each));
            drop(waiting);
        }
    }

    #[tokio::test]
    async fn what_nobody_uses_is_not_kept() {
        let slots = Slots::new(1);
        for number in 0..100 {
            drop(slots.of(owner(&format!("account-{number}"), "shop"), false).await);
        }
        let kept = slots.owners.lock().unwrap().len();
        assert!(kept <= 1, "{kept} are kept");
    }
}
