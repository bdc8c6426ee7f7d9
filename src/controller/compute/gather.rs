//! Collects the facts for a Compute: its record, its account, the project's snapshot, other
//! Computes, and its Secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::access::{self, Access};
use super::super::environment::{Environment, PassSettings};
use super::super::index::Key;
use super::super::object::{AccountName, is_recorded, uid};
use super::super::state::{Connection, ResourceState};
use super::relevant::{Filter, RelevantComputes};
use super::{Computes, secret};
use crate::api::Compute;
use crate::cluster::{Owner, SecretState};
use crate::decide::compute::{
    ClaimSubject, Reservations, Reserved, ReservedPlace, SnapshotState, looks_besides,
    may_rest_on_older_list, relevant_subjects,
};
use crate::decide::connection::CredentialsView;
use crate::decide::identity::{self, ComputeIdentity, Record};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::{AccountView, later};
use crate::domain::{NameSupport, Support};
use crate::platform::LatestSnapshot;

/// The input of `assemble`.
#[derive(Debug)]
pub struct Facts<P> {
    pub record: Result<Record<ComputeIdentity>, InvalidAnnotation>,
    pub access: Access<P>,
    pub relevant: RelevantComputes,
    pub others: Others,
    /// The connection Secret, if one is declared and may be needed.
    pub secret: Option<(Owner, SecretState)>,
    /// The user and the password for the connection Secret.
    pub credentials: CredentialsView,
    /// Secrets that it wrote while spec.connection named them, and that still exist.
    pub unused_secrets: Vec<String>,
    pub remembered: ResourceState,
    pub settings: PassSettings,
    /// A random number, for a unique name.
    pub random: u32,
    pub now: Timestamp,
}

/// Possible claims of others on the platform that the account leads to.
#[derive(Debug, Default)]
pub struct Others {
    /// Other Computes, and whether their accounts admit them.
    pub computes: Vec<(Arc<Compute>, bool)>,
    /// Unreadable Computes with a record, as far as their metadata shows.
    pub unreadable: Vec<Arc<ObjectMeta>>,
    /// True if any Compute cannot be read, recorded or not. What it declares is unknown.
    pub incomplete: bool,
    pub reserved: Reservations,
}

impl<P> Facts<P> {
    /// The recorded identity; empty if the record is invalid.
    pub fn known(&self) -> ComputeIdentity {
        self.record.clone().unwrap_or_default().identity
    }

    /// The recorded identity, or else the wish: the computes to look for.
    pub fn looked_for(&self) -> ComputeIdentity {
        self.record.clone().unwrap_or_default().identity_or_wish()
    }

    /// The platform's support for names, as seen in any project.
    pub fn names(&self) -> NameSupport {
        self.access
            .connection
            .as_ref()
            .map(|connection| connection.names)
            .unwrap_or_default()
    }
}

pub(super) async fn gather<E: Environment>(
    env: &E,
    object: &Compute,
    now: Timestamp,
) -> Result<Facts<E::Client>, kube::Error> {
    let platforms = &env.settings().platforms;
    let record = identity::of_compute(object)
        .map(|record| record.map(|identity| identity.with_platforms(|url| platforms.of(url))));
    let Record {
        identity: known,
        wish,
        ..
    } = record.clone().unwrap_or_default();
    let sought = wish.as_ref().unwrap_or(&known);
    let access = access::of(env, object);
    let (relevant, remembered) = look(env, object, (&known, sought), &access, now);
    let secret = secret::of(env, object).await?;
    let credentials = secret::credentials(env, object).await?;
    let unused_secrets = secret::unused(env, object).await?;
    Ok(Facts {
        // Read last: no await may come between this and the reservation that the decision makes.
        others: others(
            env,
            object,
            &known,
            (access.connection.as_deref(), &relevant.snapshot),
        ),
        record,
        access,
        relevant,
        secret,
        credentials,
        unused_secrets,
        remembered,
        settings: env.settings().clone(),
        random: env.random(),
        now,
    })
}

/// The part of the newest snapshot that concerns `sought`, if it began after our last write.
fn look<E: Environment>(
    env: &E,
    object: &Compute,
    (known, sought): (&ComputeIdentity, &ComputeIdentity),
    access: &Access<E::Client>,
    now: Timestamp,
) -> (RelevantComputes, ResourceState) {
    let uid = uid(object);
    let (AccountView::Usable { .. }, Some(connection)) = (&access.view, &access.connection) else {
        if access.connection.is_none() {
            // The account is gone, so the project is no longer read through it.
            env.stop_observing(object);
        }
        return (RelevantComputes::default(), env.state().resource(&uid));
    };
    let mut remembered = env.state().looking(&uid, connection.number);
    let repeated = looks_besides(known, env.settings().limits.settle, now);
    let filter = Filter::of(object, sought, repeated);
    let mut latest = env.latest_snapshot(
        object,
        connection,
        filter.interest(&remembered, remembered.awaiting),
    );
    let awaiting = is_awaiting(object, sought, &remembered, &latest);
    let begins = known.binding.is_none() && remembered.wrote.is_none();
    let demands = begins && !may_rest_on(env, object, sought, connection, &latest);
    if demands {
        remembered.wrote = Some(env.state().list_wanted(&uid, env.tick()));
    }
    if env.state().awaiting(&uid, awaiting) || demands {
        latest = env.latest_snapshot(object, connection, filter.interest(&remembered, awaiting));
    }
    access::tell_of_list(
        env,
        &AccountName::of(&object.spec.account_ref, object),
        &latest,
    );
    // At least one poll is given the chance to succeed.
    let grace = connection
        .poll_interval
        .saturating_add(env.settings().limits.settle);
    let reliable_until = |at| later(at, grace);
    let relevant = RelevantComputes::of(
        &latest,
        &filter,
        (remembered.wrote.as_ref(), now),
        reliable_until,
    );
    if remembered.is_answered() && latest.since(remembered.wrote_at()).is_some() {
        env.state().answer_outdated(&uid);
    }
    (relevant, remembered)
}

/// True if the known snapshot is enough for a resource without a compute that was not observed
/// before.
fn may_rest_on<E: Environment>(
    env: &E,
    object: &Compute,
    known: &ComputeIdentity,
    connection: &Connection<E::Client>,
    latest: &LatestSnapshot,
) -> bool {
    let computes = latest
        .snapshot
        .as_ref()
        .map(|snapshot| snapshot.items.as_slice())
        .unwrap_or_default();
    let names = access::names_shown(env, object, connection, Support::among(computes).names);
    may_rest_on_older_list(&object.spec, known, computes, names)
}

fn is_awaiting(
    object: &Compute,
    known: &ComputeIdentity,
    remembered: &ResourceState,
    latest: &LatestSnapshot,
) -> bool {
    latest.snapshot.as_ref().is_some_and(|snapshot| {
        let shown = known
            .binding
            .as_ref()
            .map(|binding| snapshot.compute(&binding.id));
        let deleting = object.metadata.deletion_timestamp.is_some();
        crate::decide::compute::is_awaiting(known, deleting, &remembered.memory, shown)
    })
}

/// The claims of others on the branches and computes that matter to `object`, and the reservations
/// of this process.
fn others<E: Environment>(
    env: &E,
    object: &Compute,
    known: &ComputeIdentity,
    (connection, snapshot): (Option<&Connection<E::Client>>, &SnapshotState),
) -> Others {
    let Some(connection) = connection else {
        return Others::default();
    };
    let (me, ids) = (uid(object), ids(snapshot));
    let (platform, project) = (
        env.settings().platform(connection),
        object.spec.project_id.clone(),
    );
    let reserved = |what| {
        let place = ReservedPlace {
            platform: platform.clone(),
            project: project.clone(),
            what,
        };
        env.state().reserved_by_others(&me, &place)
    };
    let create = Reserved::Create {
        branch: object.spec.branch_id.clone(),
        type_: object.spec.type_,
    };
    let computes = ids
        .iter()
        .filter_map(|id| Some((id.clone(), reserved(Reserved::Compute(id.clone())).pop()?.0)));
    // Before the statuses are read: a reservation that has ended is in a status.
    let reserved = Reservations {
        creates: reserved(create),
        computes: computes.collect(),
    };
    let relevant_subjects = relevant_subjects(&object.spec, known, &ids)
        .into_iter()
        .map(Key::Claim);
    // An additional compute of a create may be another resource's, or may be declared by one.
    let made = known.made.iter().filter(|_| ids.len() > 1);
    let branches = made.clone().map(|create| ClaimSubject::Branch {
        project: project.clone(),
        branch: create.branch.clone(),
    });
    let besides = ids.iter().filter(|_| made.clone().next().is_some());
    let besides = besides.map(|id| ClaimSubject::Compute {
        project: project.clone(),
        id: id.clone(),
    });
    let besides = besides.flat_map(|subject| [Key::Claim(subject.clone()), Key::Want(subject)]);
    let keys = relevant_subjects
        .chain(branches.map(Key::Claim))
        .chain(besides);
    let claimants = keys.flat_map(|key| env.objects_by::<Computes>(&key));
    let mut computes: BTreeMap<String, Arc<Compute>> = claimants
        .map(|other| (uid(other.as_ref()), other))
        .collect();
    computes.remove(&me);
    let is_admitted = |other: &Compute| {
        let account = AccountName::of(&other.spec.account_ref, other);
        let namespace = other.metadata.namespace.as_deref().unwrap_or_default();
        access::is_granted(env, &account, namespace, &other.spec.project_id)
    };
    let computes = computes
        .into_values()
        .map(|other| (other.clone(), is_admitted(&other)))
        .collect();
    let mut unreadable = env.unreadable::<Compute>();
    let incomplete = !unreadable.is_empty();
    unreadable.retain(|meta| is_recorded(meta));
    Others {
        computes,
        unreadable,
        incomplete,
        reserved,
    }
}

/// The IDs in the snapshot, also of unreadable entries that show one.
fn ids(snapshot: &SnapshotState) -> BTreeSet<String> {
    let SnapshotState::Taken { computes, .. } = snapshot else {
        return BTreeSet::new();
    };
    computes
        .shown()
        .iter()
        .map(|compute| &compute.id)
        .chain(computes.unreadable().ids())
        .cloned()
        .collect()
}
