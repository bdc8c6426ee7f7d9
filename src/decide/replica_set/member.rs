//! Which Computes belong to a set, and how each of them stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::super::connection::Address;
use super::super::kept;
use super::{Found, Member};
use crate::api::{Compute, ComputeType, Condition, Management, ObjectMeta, ReadReplicaSetSpec};
use crate::domain::ComputeState;

/// What a Compute has to do with a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It belongs to it.
    Member,
    /// Nobody controls it, and the set selects it.
    Adoptable,
    /// The set controls it, and does not select it any more.
    Stranger,
}

/// What `compute` has to do with the set of this UID; `None` for nothing.
pub fn relation(spec: &ReadReplicaSetSpec, uid: &str, compute: &Compute) -> Option<Relation> {
    let selected = holds(compute.metadata.labels.as_ref(), &spec.selector.match_labels);
    match controller(&compute.metadata) {
        Some(owner) if owner.uid == uid => Some(if selected { Relation::Member } else { Relation::Stranger }),
        Some(_) => None,
        None => (selected && is_replica(spec, compute)).then_some(Relation::Adoptable),
    }
}

/// Whether the Compute with this metadata, which cannot be read, is a replica of the set of this UID.
pub fn is_replica_of(uid: &str, meta: &ObjectMeta) -> bool {
    controller(meta).is_some_and(|owner| owner.uid == uid) && meta.deletion_timestamp.is_none()
}

fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether a Compute could be one of the set's.
fn is_replica(spec: &ReadReplicaSetSpec, compute: &Compute) -> bool {
    let its = &compute.spec;
    its.type_ == ComputeType::ReadOnly
        && its.management == Management::Full
        && its.project_id == spec.template.spec.compute().project_id
        && compute.metadata.deletion_timestamp.is_none()
}

type Texts = BTreeMap<String, String>;

fn holds(stands: Option<&Texts>, wanted: &Texts) -> bool {
    wanted.iter().all(|(name, value)| stands.and_then(|stands| stands.get(name)) == Some(value))
}

/// Whether annotations have all that are wanted. A long text may be kept as its digest, which is made once for all replicas.
fn annotated(wanted: &Texts) -> impl Fn(Option<&Texts>) -> bool {
    let wanted: Vec<_> = wanted.iter().map(|(name, value)| (name, value, kept::text(value))).collect();
    move |stands| {
        let stands = |name| stands.and_then(|stands| stands.get(name));
        wanted.iter().all(|(name, value, kept)| stands(*name).is_some_and(|it| it == *value || it == kept))
    }
}

pub(super) fn named(compute: &Compute) -> Member {
    let ObjectMeta { name, uid, resource_version, .. } = compute.metadata.clone();
    Member { name: name.unwrap_or_default(), uid: uid.unwrap_or_default(), version: resource_version }
}

/// A Compute of the set that is not being deleted.
pub(super) struct Replica {
    pub compute: Arc<Compute>,
    /// It is on the branch of the template.
    pub current: bool,
    /// Its spec, labels and annotations are those of the template.
    pub declared: bool,
}

/// The Computes of the set, in the order of their numbers.
pub(super) fn replicas(spec: &ReadReplicaSetSpec, computes: &[Found]) -> Vec<Replica> {
    members(spec, computes, |meta| meta.deletion_timestamp.is_none())
}

/// Those that are being deleted, in the same order.
pub(super) fn leaving(spec: &ReadReplicaSetSpec, computes: &[Found]) -> Vec<Replica> {
    members(spec, computes, |meta| meta.deletion_timestamp.is_some())
}

fn members(spec: &ReadReplicaSetSpec, computes: &[Found], wanted: fn(&ObjectMeta) -> bool) -> Vec<Replica> {
    let template = &spec.template;
    let is_annotated = annotated(&template.metadata.annotations);
    let is_wanted = |found: &&Found| found.relation == Relation::Member && wanted(&found.compute.metadata);
    let replica = |found: &Found| {
        let compute = found.compute.clone();
        let current = compute.spec.branch_id == template.spec.compute().branch_id;
        let declared = template.spec.is_of(&compute.spec)
            && holds(compute.metadata.labels.as_ref(), &template.metadata.labels)
            && is_annotated(compute.metadata.annotations.as_ref());
        Replica { compute, current, declared }
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
        self.compute.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == kind)
    }

    fn is(&self, kind: &str, status: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == status)
    }

    /// The status is about the spec as it is now.
    fn is_observed(&self) -> bool {
        let observed = self.compute.status.as_ref().and_then(|status| status.observed_generation);
        observed.is_some() && observed == self.compute.metadata.generation
    }

    pub fn is_ready(&self) -> bool {
        self.is("Ready", "True")
    }

    pub fn is_stalled(&self) -> bool {
        self.is("Stalled", "True") && !self.is_ready() && !self.is_unknown()
    }

    /// A person is needed for what it is now declared to be, or for its deletion, whether or not it serves meanwhile.
    pub fn is_refused(&self) -> bool {
        self.is_observed() && self.is("Stalled", "True")
    }

    /// A person has paused it: what is declared of it is not looked at.
    pub fn is_paused(&self) -> bool {
        self.is("Paused", "True")
    }

    /// The platform could be asked about it, and its status says what was seen, in states that dbplane knows.
    pub fn is_seen(&self) -> bool {
        let Some(status) = &self.compute.status else { return false };
        let mut states = [&status.state, &status.pending_state].into_iter().flatten();
        let are_known = states.all(|word| ComputeState::from(word.clone()).is_known());
        status.last_seen_serving.is_some() && status.unseen_since.is_none() && are_known
    }

    /// Nothing is lost with it: it was seen not to serve. One that cannot be seen, or whose status is of a version that did not say so,
    /// may serve.
    pub fn serves_nobody(&self) -> bool {
        let status = self.compute.status.as_ref();
        self.is_seen() && status.is_some_and(|status| status.last_seen_serving == Some(false))
    }

    /// It is used through another account than the template's.
    pub fn has_other_account(&self, spec: &ReadReplicaSetSpec) -> bool {
        self.compute.spec.account_ref != spec.template.spec.compute().account_ref
    }

    /// dbplane could not look at it.
    pub fn is_unknown(&self) -> bool {
        self.is("Ready", "Unknown") && !self.is_paused()
    }

    /// It is ready, and so is what was declared last, on the platform too.
    pub fn is_settled(&self) -> bool {
        self.current && self.declared && self.is_observed() && self.is_ready() && self.is("Synced", "True")
    }

    /// It can be used, and what was declared last is not in force: dbplane waits, or a person is needed.
    pub fn is_held_back(&self) -> bool {
        self.is_ready() && (self.is_observed() && self.is("Synced", "False") || self.is_paused())
    }

    /// It serves clients at present.
    pub fn is_active(&self) -> bool {
        let state = self.compute.status.as_ref().and_then(|status| status.state.as_deref());
        state == Some(ComputeState::Active.to_string().as_str())
    }

    /// Where clients reach it, once that is known.
    pub fn address(&self) -> Option<Address> {
        Address::seen(self.compute.status.as_ref()?)
    }
}
