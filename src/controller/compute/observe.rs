//! Observes a Compute: its record, its account, the project's snapshot, the claims of other
//! Computes, and its Secret.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use super::others::{self, Seeker};
use super::relevant::{Filter, RelevantComputes};
use super::{Computes, secret};
use crate::api::{Compute, Known};
use crate::cluster::resource_version;
use crate::controller::access::{self, Access};
use crate::controller::connection;
use crate::controller::environment::{Effects, Environment, Observation, account_of, observed};
use crate::controller::index::Key;
use crate::controller::object::{AccountName, Managed, meta_observed, rank, uid};
use crate::controller::state::{AccountConnection, ResourceState};
use crate::decide::compute::{
    self, ClaimSubject, ComputeFacts, ComputeObserved, SnapshotState, looks_besides,
    may_rest_on_older_list,
};
use crate::decide::connection::Address;
use crate::decide::identity::{ComputeIdentity, Evidence, Record};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::{AccountView, Memory, Reason, later, names};
use crate::domain::{ComputeId, Support};
use crate::platform::LatestSnapshot;

pub(super) async fn observe<E: Environment>(
    env: &E,
    object: &Known<Compute>,
    now: Timestamp,
) -> Result<Observation<ComputeFacts, E::Client>, kube::Error> {
    let record = record(env, object);
    let known = recorded(&record);
    let wish = wished(&record);
    let sought = wish.as_ref().unwrap_or(&known);
    let access = access::of(env, object);
    let seeker = Seeker {
        object,
        known: &known,
        now,
    };
    let relevant = look(env, &seeker, sought, &access);
    let connection_secret = secret::of(env, object).await?;
    let credentials = secret::credentials(env, object).await?;
    let unused_secrets = secret::unused(env, object).await?;
    // No await from here on: the decision reserves what is free now.
    let connection = access.connection.as_deref();
    let shown = connection.map(|connection| connection.names);
    let name_support = relevant.name_support.max(shown.unwrap_or_default());
    let evidence = Evidence::now(name_support);
    let meta = meta_observed(object);
    let facts = ComputeFacts {
        identity: record.clone().map(|record| record.identity),
        waiting_since: object
            .status
            .as_ref()
            .and_then(|status| Some(status.waiting.as_ref()?.since)),
        restart_annotation: object.request(names::RESTART),
        not_created: not_created(object),
        claims: connection
            .map(|connection| {
                others::claims(env, &seeker, evidence, connection, &relevant.snapshot)
            })
            .unwrap_or_default(),
        snapshot: relevant.snapshot,
        platform: connection.map(|connection| env.settings().platform(connection)),
        project_gone: access.project_gone,
        connection_secret: connection::written(
            object.spec.connection.as_deref(),
            connection_secret.as_ref(),
        ),
        unused_secrets,
        secret: connection::view(connection_secret.as_ref()),
        credentials,
        last_seen: object.status.as_ref().and_then(Address::seen),
        name_support,
        returned: relevant.returned,
        stale_from: relevant.stale_from,
        wish,
    };
    let observed = observed(env, object, meta, access.view.clone(), facts);
    Ok(with_effects(env, object, &access, observed, now))
}

/// The record in the status, with the platforms' canonical names.
fn record<E: Environment>(
    env: &E,
    object: &Known<Compute>,
) -> Result<Record<ComputeIdentity>, InvalidAnnotation> {
    let platforms = &env.settings().platforms;
    let canonical = |identity: ComputeIdentity| identity.with_platforms(|url| platforms.of(url));
    Ok(object.record()?.into_owned().map(canonical))
}

/// The recorded identity; empty if the record is invalid.
fn recorded(record: &Result<Record<ComputeIdentity>, InvalidAnnotation>) -> ComputeIdentity {
    record
        .as_ref()
        .map(|record| record.identity.clone())
        .unwrap_or_default()
}

/// The record from a backup or a user's annotation.
fn wished(record: &Result<Record<ComputeIdentity>, InvalidAnnotation>) -> Option<ComputeIdentity> {
    record.as_ref().ok()?.wish.as_deref().cloned()
}

/// The computes that a user has declared not to be the results of creates.
fn not_created(object: &Known<Compute>) -> BTreeSet<ComputeId> {
    object
        .annotations()
        .get(names::NOT_CREATED)
        .map(|text| names::listed(text).map(ComputeId::from).collect())
        .unwrap_or_default()
}

/// Updates the memory from the observation, and finds the objects to requeue.
fn with_effects<E: Environment>(
    env: &E,
    object: &Known<Compute>,
    access: &Access<E::Client>,
    mut observed: ComputeObserved,
    now: Timestamp,
) -> Observation<ComputeFacts, E::Client> {
    observed.memory = updated_memory(object, &observed, now);
    let mut effects = Effects {
        requeue_accounts: access.wake.iter().cloned().collect(),
        ..Effects::default()
    };
    let identity = observed.identity.as_ref();
    if identity.map_or(true, |identity| identity.open_create().is_none()) {
        let ending = env
            .state()
            .ending_reservation(&observed.uid, resource_version(object));
        effects.ends_reservation = ending.is_some();
        if ending == Some(Evidence::ByBaseline) {
            effects.requeue_compute = next_in_line(env, object);
        }
    }
    if compute::misses_its_project(&observed) {
        // The account then looks for the project.
        effects
            .requeue_accounts
            .extend(account_of::<Computes>(object));
    }
    effects.memory = Some(observed.memory.clone());
    Observation { observed, effects }
}

fn updated_memory(object: &Known<Compute>, observed: &ComputeObserved, now: Timestamp) -> Memory {
    let mut memory = observed.memory.clone();
    let (generation, status) = (observed.meta.generation, object.status.as_ref());
    memory.operation_shown(status.and_then(|status| status.last_operation.as_ref()));
    compute::foresee(&mut memory, &object.spec, generation, now);
    let known = observed.identity.as_ref().ok();
    memory.note_unresolved(known.and_then(ComputeIdentity::recorded), now);
    let nothing = ComputeIdentity::default();
    let known = known.unwrap_or(&nothing);
    compute::watch_twins(&mut memory, known, &observed.meta, &observed.account, now);
    let binding = &observed.wish.as_ref().unwrap_or(known).binding;
    if let (Some(binding), SnapshotState::Taken { computes, .. }) = (binding, &observed.snapshot) {
        let shown = computes.find(Some(&binding.id), |compute| compute.id == binding.id);
        let declared = compute::VersionedSpec {
            spec: &object.spec,
            generation,
        };
        compute::remember(&mut memory, declared, status, &shown, now);
    }
    memory
}

/// The Compute whose create on the branch comes next. The others poll: if all were requeued, each
/// would be reconciled at each turn.
fn next_in_line<E: Environment>(
    env: &E,
    object: &Known<Compute>,
) -> Option<ObjectRef<Known<Compute>>> {
    let next = on_branch(env, object)
        .into_iter()
        .filter(|other| other.spec.type_ == object.spec.type_ && waits_its_turn(other))
        .min_by_key(|other| rank(other.as_ref()))?;
    Some(ObjectRef::from_obj(next.as_ref()))
}

/// The other Computes that declare the branch.
fn on_branch<E: Environment>(env: &E, object: &Known<Compute>) -> Vec<Arc<Known<Compute>>> {
    let branch = ClaimSubject::Branch {
        project: object.spec.project_id.clone(),
        branch: object.spec.branch_id.clone(),
    };
    let mut others = env.objects_by::<Computes>(&Key::Want(branch));
    others.retain(|other| uid(other.as_ref()) != uid(object));
    others
}

/// True if its status says that another create, or another resource, comes first.
fn waits_its_turn(compute: &Known<Compute>) -> bool {
    let reasons = [
        Reason::Creating,
        Reason::ConfirmingCreate,
        Reason::ClaimedByAnother,
    ]
    .map(Reason::as_str);
    let mut conditions = compute.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|it| it.type_ == "Ready" && reasons.contains(&it.reason.as_str()))
}

/// The part of the newest snapshot that concerns `sought`, if it began after our last write.
fn look<E: Environment>(
    env: &E,
    seeker: &Seeker<'_>,
    sought: &ComputeIdentity,
    access: &Access<E::Client>,
) -> RelevantComputes {
    let Seeker { object, known, now } = *seeker;
    let uid = uid(object);
    let (AccountView::Usable { .. }, Some(connection)) = (&access.view, &access.connection) else {
        if access.connection.is_none() {
            // The account is gone, so the project is no longer read through it.
            env.stop_observing(object);
        }
        return RelevantComputes::default();
    };
    let mut remembered = env.state().looking(uid, connection.number);
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
        remembered.wrote = Some(env.state().list_wanted(uid, env.tick()));
    }
    if env.state().awaiting(uid, awaiting) || demands {
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
        remembered.wrote.as_ref(),
        now,
        reliable_until,
    );
    if remembered.is_answered() && latest.since(remembered.wrote_at()).is_some() {
        env.state().answer_outdated(uid);
    }
    relevant
}

/// True if the known snapshot is enough for a resource without a compute that was not observed
/// before.
fn may_rest_on<E: Environment>(
    env: &E,
    object: &Known<Compute>,
    known: &ComputeIdentity,
    connection: &AccountConnection<E::Client>,
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
    object: &Known<Compute>,
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
