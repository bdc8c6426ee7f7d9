//! The claims of other Computes on what a Compute declares or is bound to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::Computes;
use crate::api::{Compute, Known, Uid};
use crate::controller::access;
use crate::controller::environment::Environment;
use crate::controller::index::Key;
use crate::controller::object::{AccountName, is_recorded};
use crate::controller::state::AccountConnection;
use crate::decide::compute::{
    self, ClaimSubject, Claims, Mine, Other, Reservations, Reserved, ReservedPlace, SnapshotState,
    relevant_subjects,
};
use crate::decide::identity::{self, ComputeIdentity, Evidence};
use crate::domain::ComputeId;

/// A Compute that looks for its compute on the platform.
#[derive(Clone, Copy)]
pub(super) struct Seeker<'a> {
    pub object: &'a Known<Compute>,
    /// The recorded identity.
    pub known: &'a ComputeIdentity,
    pub now: Timestamp,
}

/// The claims of others on the branches and computes that matter to a Compute.
pub(super) fn claims<E: Environment>(
    env: &E,
    seeker: &Seeker<'_>,
    evidence: Evidence,
    connection: &AccountConnection<E::Client>,
    snapshot: &SnapshotState,
) -> Claims {
    let settings = env.settings();
    let platform = settings.platform(connection);
    let ids = ids(snapshot);
    // Before the statuses are read: a reservation that has ended is in a status.
    let reserved = reservations(env, seeker.object, &platform, &ids);
    let claimants = claimants(env, seeker, &ids);
    let unreadable = env.unreadable::<Known<Compute>>();
    // An invalid record claims nothing: anybody can write the annotation that makes it invalid.
    let canonical =
        |identity: ComputeIdentity| identity.with_platforms(|url| settings.platforms.of(url));
    let readable = claimants.iter().map(|other| Other {
        meta: &other.metadata,
        spec: Some(&other.spec),
        identity: canonical(other.identity().unwrap_or_default()),
        admitted: is_admitted(env, other),
    });
    let recorded = unreadable.iter().filter(|meta| is_recorded(meta));
    let unread = recorded.map(|meta| Other {
        meta: meta.as_ref(),
        spec: None,
        identity: canonical(identity::of_unreadable(meta).unwrap_or_default().identity),
        admitted: true,
    });
    let mine = Mine {
        object: seeker.object,
        identity: seeker.known,
        platform: &platform,
        evidence,
        now: seeker.now,
    };
    Claims {
        incomplete: !unreadable.is_empty(),
        ..compute::claims(mine, readable.chain(unread), &reserved)
    }
}

/// The places that other resources of this process have reserved.
fn reservations<E: Environment>(
    env: &E,
    object: &Known<Compute>,
    platform: &str,
    ids: &BTreeSet<ComputeId>,
) -> Reservations {
    let me = object.uid();
    let reserved = |what| {
        let place = ReservedPlace {
            platform: platform.to_owned(),
            project: object.spec.project_id.clone(),
            what,
        };
        env.state().reserved_by_others(me, &place)
    };
    let create = Reserved::Create {
        branch: object.spec.branch_id.clone(),
        type_: object.spec.type_,
    };
    let computes = ids
        .iter()
        .filter_map(|id| Some((id.clone(), reserved(Reserved::Compute(id.clone())).pop()?.0)));
    Reservations {
        computes: computes.collect(),
        creates: reserved(create),
    }
}

/// The other Computes that claim what matters to this one.
fn claimants<E: Environment>(
    env: &E,
    seeker: &Seeker<'_>,
    ids: &BTreeSet<ComputeId>,
) -> Vec<Arc<Known<Compute>>> {
    let object = seeker.object;
    let project = &object.spec.project_id;
    let mut keys: Vec<Key> = relevant_subjects(&object.spec, seeker.known, ids)
        .into_iter()
        .map(Key::Claim)
        .collect();
    // An additional compute of a create may be another resource's, or may be declared by one.
    let made = &seeker.known.made;
    if ids.len() > 1 {
        keys.extend(made.iter().map(|create| {
            Key::Claim(ClaimSubject::Branch {
                project: project.clone(),
                branch: create.branch.clone(),
            })
        }));
        if !made.is_empty() {
            keys.extend(ids.iter().flat_map(|id| {
                let subject = ClaimSubject::Compute {
                    project: project.clone(),
                    id: id.clone(),
                };
                [Key::Claim(subject.clone()), Key::Want(subject)]
            }));
        }
    }
    let mut claimants: BTreeMap<Uid, Arc<Known<Compute>>> = keys
        .iter()
        .flat_map(|key| env.objects_by::<Computes>(key))
        .map(|other| (other.uid().clone(), other))
        .collect();
    claimants.remove(object.uid());
    claimants.into_values().collect()
}

fn is_admitted<E: Environment>(env: &E, other: &Known<Compute>) -> bool {
    let account = AccountName::of(&other.spec.account_ref, other);
    let namespace = other.metadata.namespace.as_deref().unwrap_or_default();
    access::is_granted(env, &account, namespace, &other.spec.project_id)
}

/// The IDs in the snapshot, also of unreadable entries that show one.
fn ids(snapshot: &SnapshotState) -> BTreeSet<ComputeId> {
    let SnapshotState::Taken { computes, .. } = snapshot else {
        return BTreeSet::new();
    };
    computes
        .shown()
        .iter()
        .map(|compute| compute.id.clone())
        .chain(computes.unreadable().ids().cloned().map(ComputeId::from))
        .collect()
}
