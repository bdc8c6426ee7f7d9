//! The brake on mass deletion, as one process applies it to what it deletes on the platform because a resource goes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use super::Context;
use super::kind::{Kind, Managed, uid};
use crate::decide::brake::{Refusal, Window};
use crate::decide::{Brake, Decision, Reason};

/// The deletions of the last minute, and who waits.
#[derive(Debug, Default)]
pub struct Deletions {
    window: Mutex<Window>,
    /// The kind of each resource that waits, by its UID.
    waiting: Mutex<BTreeMap<String, String>>,
}

impl Context {
    /// Has a deletion on the platform wait where there are too many of them: what to tell, or `None` where it may be made.
    pub(super) fn braked<K: Kind>(&self, object: &K::Object, step: &K::Step, now: Timestamp) -> Option<String> {
        object.meta().deletion_timestamp.as_ref()?;
        let target = K::removes(step)?;
        let kind = K::Object::kind(&());
        let meta = object.meta_observed();
        let limit = self.settings.limits.deletes_per_minute;
        if limit > 0 && meta.brake != Brake::Confirmed {
            let others_wait = self.others_wait(object);
            // Counted as it is admitted, so that passes that run at the same time do not share one place.
            let admitted = locked(&self.deletions.window).admit(target, limit, others_wait, now);
            if let Err(refusal) = admitted {
                return Some(Refusal::text(refusal, &kind, &meta));
            }
        }
        self.metrics.deletes(&kind);
        None
    }

    /// Notes whether a resource waits now that it was decided on.
    pub(super) fn waits<K: Kind>(&self, object: &K::Object, decision: &Decision<K::Step>) {
        let told = decision.report.as_ref().is_some_and(|report| report.headline().0 == Reason::DeletionPaused);
        let kind = K::Object::kind(&()).into_owned();
        self.waiting(&kind, |waiting| match told && decision.step.is_none() {
            true => waiting.insert(uid(object), kind.clone()).is_none(),
            false => waiting.remove(&uid(object)).is_some(),
        });
    }

    /// Nobody waits for a resource that is gone.
    pub(super) fn waits_no_more<K: Managed>(&self, object: &K) {
        self.waiting(&K::kind(&()), |waiting| waiting.remove(&uid(object)).is_some());
    }

    fn waiting(&self, kind: &str, change: impl FnOnce(&mut BTreeMap<String, String>) -> bool) {
        let mut waiting = locked(&self.deletions.waiting);
        if change(&mut waiting) {
            self.metrics.deletions_paused(kind, waiting.values().filter(|of| *of == kind).count());
        }
    }

    /// Whether another resource of the namespace was told to wait; its own status says so, also to the next process.
    fn others_wait<K: Managed>(&self, object: &K) -> bool {
        let (me, namespace) = (uid(object), object.namespace());
        !self.stores.computes.filter(|other| waits(other, &me, namespace.as_deref())).is_empty()
            || !self.stores.keys.filter(|other| waits(other, &me, namespace.as_deref())).is_empty()
    }
}

fn waits<K: Managed>(other: &K, me: &str, namespace: Option<&str>) -> bool {
    other.meta().deletion_timestamp.is_some()
        && other.meta().namespace.as_deref() == namespace
        && uid(other) != me
        && matches!(other.meta_observed().brake, Brake::Paused(_))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
