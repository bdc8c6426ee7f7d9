//! Selects the Computes of a set, and reads the state of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{FoundReplica, Member};
use crate::api::{
    Compute, ComputeType, Condition, Known, Management, ObjectMeta, ReadReplicaSetSpec, Uid,
};
use crate::decide::connection::Address;
use crate::decide::{Reason, kept};
use crate::domain::ComputeState;

/// The relation of a Compute to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Member,
    /// It has no controller, and the set selects it.
    Adoptable,
    /// The set controls it, but no longer selects it.
    Stranger,
}

/// The relation of `compute` to the set with this UID; `None` if there is none.
pub fn relation(spec: &ReadReplicaSetSpec, uid: &Uid, compute: &Compute) -> Option<Relation> {
    let selected = holds(
        compute.metadata.labels.as_ref(),
        &spec.selector.match_labels,
    );
    match controller(&compute.metadata) {
        Some(owner) if owner.uid == uid.as_str() => Some(if selected {
            Relation::Member
        } else {
            Relation::Stranger
        }),
        Some(_) => None,
        None => (selected && is_replica(spec, compute)).then_some(Relation::Adoptable),
    }
}

/// Returns true if an unreadable Compute with this metadata is a replica of the set with this UID.
pub fn is_replica_of(uid: &Uid, meta: &ObjectMeta) -> bool {
    controller(meta).is_some_and(|owner| owner.uid == uid.as_str())
        && meta.deletion_timestamp.is_none()
}

fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
}

/// Returns true if the set may adopt the Compute.
fn is_replica(spec: &ReadReplicaSetSpec, compute: &Compute) -> bool {
    let its = &compute.spec;
    its.type_ == ComputeType::ReadOnly
        && its.management == Management::Full
        && its.project_id == spec.template.spec.compute().project_id
        && compute.metadata.deletion_timestamp.is_none()
}

type Texts = BTreeMap<String, String>;

fn holds(stands: Option<&Texts>, wanted: &Texts) -> bool {
    wanted
        .iter()
        .all(|(name, value)| stands.and_then(|stands| stands.get(name)) == Some(value))
}

/// Returns a check that annotations contain all wanted ones. A long text may be kept as its digest,
/// which is computed once for all replicas.
fn annotated(wanted: &Texts) -> impl Fn(Option<&Texts>) -> bool {
    let wanted: Vec<_> = wanted
        .iter()
        .map(|(name, value)| (name, value, kept::text(value)))
        .collect();
    move |stands| {
        let stands = |name| stands.and_then(|stands| stands.get(name));
        wanted
            .iter()
            .all(|(name, value, kept)| stands(*name).is_some_and(|it| it == *value || it == kept))
    }
}

pub(super) fn named(compute: &Known<Compute>) -> Member {
    Member {
        name: compute.metadata.name.clone().unwrap_or_default(),
        uid: compute.uid().clone(),
        version: compute.metadata.resource_version.clone(),
    }
}

/// A Compute of the set, compared with the template.
pub(super) struct Replica {
    pub compute: Arc<Known<Compute>>,
    /// It is in the project and on the branch of the template.
    pub current: bool,
    /// Its spec, labels and annotations match the template.
    pub declared: bool,
}

/// The Computes of the set that are not in deletion, in the order of their numbers.
pub(super) fn replicas(spec: &ReadReplicaSetSpec, computes: &[FoundReplica]) -> Vec<Replica> {
    members(spec, computes, |meta| meta.deletion_timestamp.is_none())
}

/// The Computes in deletion, in the same order.
pub(super) fn leaving(spec: &ReadReplicaSetSpec, computes: &[FoundReplica]) -> Vec<Replica> {
    members(spec, computes, |meta| meta.deletion_timestamp.is_some())
}

fn members(
    spec: &ReadReplicaSetSpec,
    computes: &[FoundReplica],
    wanted: fn(&ObjectMeta) -> bool,
) -> Vec<Replica> {
    let template = &spec.template;
    let is_annotated = annotated(&template.metadata.annotations);
    let is_wanted = |found: &&FoundReplica| {
        found.relation == Relation::Member && wanted(&found.compute.metadata)
    };
    let replica = |found: &FoundReplica| {
        let compute = found.compute.clone();
        let (its, wanted) = (&compute.spec, template.spec.compute());
        let current = (&its.project_id, &its.branch_id) == (&wanted.project_id, &wanted.branch_id);
        let declared = template.spec.is_of(&compute.spec)
            && holds(compute.metadata.labels.as_ref(), &template.metadata.labels)
            && is_annotated(compute.metadata.annotations.as_ref());
        Replica {
            compute,
            current,
            declared,
        }
    };
    let mut replicas: Vec<_> = computes.iter().filter(is_wanted).map(replica).collect();
    replicas.sort_by_cached_key(|replica| (replica.name().len(), replica.name()));
    replicas
}

impl Replica {
    pub fn name(&self) -> String {
        self.compute.metadata.name.clone().unwrap_or_default()
    }

    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.compute
            .status
            .as_ref()?
            .conditions
            .iter()
            .find(|condition| condition.type_ == kind)
    }

    fn is(&self, kind: &str, status: &str) -> bool {
        self.condition(kind)
            .is_some_and(|condition| condition.status == status)
    }

    /// The status is about the present spec.
    fn is_observed(&self) -> bool {
        let observed = self
            .compute
            .status
            .as_ref()
            .and_then(|status| status.observed_generation);
        observed.is_some() && observed == self.compute.metadata.generation
    }

    pub fn is_ready(&self) -> bool {
        self.is("Ready", "True")
    }

    pub fn is_stalled(&self) -> bool {
        self.is("Stalled", "True") && !self.is_ready() && !self.is_unknown()
    }

    /// Its present spec or its deletion needs attention, even if it still serves.
    pub fn is_refused(&self) -> bool {
        self.is_observed() && self.is("Stalled", "True")
    }

    /// A user has paused it, so its spec is not reconciled.
    pub fn is_paused(&self) -> bool {
        self.is("Paused", "True")
    }

    /// The platform could be asked about it, and its status reports only states that dbplane knows.
    pub fn is_seen(&self) -> bool {
        let Some(status) = &self.compute.status else {
            return false;
        };
        let mut states = [&status.state, &status.pending_state].into_iter().flatten();
        let are_known = states.all(|word| ComputeState::from(word.clone()).is_known());
        status.last_seen_serving.is_some() && status.unseen_since.is_none() && are_known
    }

    /// Deleting it loses no connection: it was observed not to serve. An unseen compute may serve,
    /// and so may one whose status an older version wrote without that field.
    pub fn serves_nobody(&self) -> bool {
        let status = self.compute.status.as_ref();
        self.is_seen() && status.is_some_and(|status| status.last_seen_serving == Some(false))
    }

    /// It uses another account than the template.
    pub fn has_other_account(&self, spec: &ReadReplicaSetSpec) -> bool {
        self.compute.spec.account_ref != spec.template.spec.compute().account_ref
    }

    /// dbplane could not observe it.
    pub fn is_unknown(&self) -> bool {
        self.is("Ready", "Unknown") && !self.is_paused()
    }

    /// It is ready, and its last declared spec is in force on the platform.
    pub fn is_settled(&self) -> bool {
        self.current && self.declared && self.is_observed() && self.is_ready() && self.is_in_force()
    }

    /// Its spec is in force on the platform. A stray compute beside a usable one is the reason of
    /// Synced only then.
    fn is_in_force(&self) -> bool {
        let stray = self
            .condition("Synced")
            .is_some_and(|synced| synced.reason == Reason::StrayCompute.as_str());
        self.is("Synced", "True") || stray
    }

    /// It is usable, but its last declared spec is not in force: dbplane waits, or it needs
    /// attention.
    pub fn is_held_back(&self) -> bool {
        self.is_ready() && (self.is_observed() && self.is("Synced", "False") || self.is_paused())
    }

    /// It serves clients at present.
    pub fn is_active(&self) -> bool {
        let state = self
            .compute
            .status
            .as_ref()
            .and_then(|status| status.state.as_deref());
        state == Some(ComputeState::Active.to_string().as_str())
    }

    /// The address for clients, once known.
    pub fn address(&self) -> Option<Address> {
        Address::seen(self.compute.status.as_ref()?)
    }
}
