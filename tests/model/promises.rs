//! Checks of the promises in every state and at rest. The property tests share the promises; this
//! module excuses what the bounds leave open.

use std::sync::Arc;

use dbplane::api::{Compute, Known, ProjectKey};
use dbplane::decide::{Health, Reason, Report, Sync};
use k8s_openapi::api::core::v1::Secret;

use super::bound::{Bound, OTHER, Subject};
use super::edits::{STANDING_ACCOUNTS, StandingAccount};
use super::effects::secret_of;
use super::in_memory::cluster::Stored;
use super::in_memory::promises::{
    self, BoundCompute, LiveCompute, LiveKey, Maker, RecordedKey, World, recorded,
};
use super::in_memory::{Print, Resource};
use super::people::has_finalizer;
use super::remote::number;
use super::replay::{Call, Effect};
use super::state::State;
use super::tenant;

/// The promise that this state breaks.
pub fn broken(bound: &Bound, state: &State) -> Option<String> {
    if let Some(violation) = state.violation {
        return Some(violation.to_owned());
    }
    if let Some(process) = state.processes.iter().find(|process| {
        let own = state
            .deletions
            .iter()
            .filter(|(by, _, _)| *by == process.number);
        own.count() > bound.deletes_per_minute as usize
    }) {
        return Some(format!(
            "process {} deleted more than a minute allows",
            process.number
        ));
    }
    let world = world(bound, state);
    match bound.subject {
        Subject::Computes { .. } => broken_computes(bound, state, &world),
        Subject::Key { .. } => broken_keys(bound, state, &world),
    }
}

fn broken_computes(bound: &Bound, state: &State, world: &World) -> Option<String> {
    for i in bound.subjects() {
        let twice = promises::made_twice(world, name_of(&bound.resource(i)), 1);
        if twice.is_some() {
            return twice;
        }
    }
    let harmed = tenant::harmed(bound, state);
    if harmed.is_some() {
        return harmed;
    }
    let too_many = promises::more_than_resources(world);
    if too_many.is_some() && settled_deletes(state) {
        return too_many;
    }
    promises::bound_wrongly(world)
}

fn broken_keys(bound: &Bound, state: &State, world: &World) -> Option<String> {
    if let Some(key) = promises::forgotten_keys(world).first() {
        return Some(format!("the key {} is forgotten", key.name));
    }
    piled_up(bound, state, world).or_else(|| needless_keys(bound, state))
}

/// Limits valid keys. A key is revoked before another one is created; without revocation, at most
/// three more can exist that no Secret holds. Each further leader can add one.
fn piled_up(bound: &Bound, state: &State, world: &World) -> Option<String> {
    let most = if bound.revokes() { 1 } else { 4 } + usize::from(bound.leaders - 1);
    let live = promises::live_keys(world) - replaced_keys(bound, state, world);
    (live > most).then(|| format!("{live} keys are live"))
}

/// Number of keys that are replaced because their Secret was altered. They are revoked once the new
/// key is in the Secret.
fn replaced_keys(bound: &Bound, state: &State, world: &World) -> usize {
    if bound.meddled == 0 {
        return 0;
    }
    let Some(stored) = state.cluster.objects.get(&bound.resource(0)) else {
        return 0;
    };
    let identity = recorded_key(bound, stored).identity;
    let records = &identity.records;
    let mut replaced: Vec<i64> = records.previous.iter().map(|key| key.id.0).collect();
    if identity.intent.is_some() {
        replaced.extend(records.current.iter().map(|key| key.id.0));
    }
    world
        .keys
        .iter()
        .filter(|key| replaced.contains(&key.id))
        .count()
}

/// Only a lost secret justifies another key. A policy that changes a Secret does not.
fn needless_keys(bound: &Bound, state: &State) -> Option<String> {
    let most = 1 + bound.lost + bound.crashes + bound.leaders - 1;
    (state.past.keys > most).then(|| format!("{} keys were created for one", state.past.keys))
}

/// The name without the namespace.
fn name_of((_, name): &Resource) -> &str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

/// True if an event has named a compute.
fn is_reported(state: &State, id: &str) -> bool {
    state
        .past
        .events
        .iter()
        .any(|text| promises::words(text).any(|word| word == id))
}

/// The input of the promises. Objects left to users count as theirs.
fn world(bound: &Bound, state: &State) -> World {
    let resources = state
        .processes
        .iter()
        .flat_map(|process| process.resources.values());
    World {
        computes: live_computes(state),
        keys: live_keys(bound, state),
        resources: of_kind(state, "Compute")
            .map(|stored| bound_compute(bound, stored))
            .collect(),
        project_keys: of_kind(state, "ProjectKey")
            .map(|stored| recorded_key(bound, stored))
            .collect(),
        key_secrets: state
            .cluster
            .secrets
            .iter()
            .map(|(name, secret)| (name.clone(), key_in(state, secret)))
            .collect(),
        known_keys: resources
            .filter_map(|resource| Some(resource.key.unsaved.as_ref()?.key.name.clone()))
            .collect(),
        ..World::default()
    }
}

fn live_computes(state: &State) -> Vec<LiveCompute> {
    let made_by = |id: &u8, made_for: Option<&Resource>| match made_for {
        Some(resource) if !is_left_to_users(state, resource) => {
            if state.past.overlooked.contains(id) {
                Maker::SomebodyElse
            } else {
                Maker::Operator(Some(name_of(resource).to_owned()))
            }
        }
        _ => Maker::SomebodyElse,
    };
    let gone = |of: Option<&Resource>| of.is_some_and(|of| !state.cluster.objects.contains_key(of));
    let computes = state.platform.computes.iter();
    computes
        .map(|(id, it)| {
            let name = format!("ep-{id}");
            LiveCompute {
                made_by: made_by(id, it.made_for.as_ref()),
                late: it.late || it.twin || gone(it.made_for.as_ref()) && is_reported(state, &name),
                id: name,
            }
        })
        .collect()
}

fn live_keys(bound: &Bound, state: &State) -> Vec<LiveKey> {
    let are_left = is_left_to_users(state, &bound.resource(0));
    let keys = state.platform.keys.iter();
    keys.map(|(id, it)| LiveKey {
        id: (*id).into(),
        name: it.name.clone(),
        made_by: if it.foreign || are_left {
            Maker::SomebodyElse
        } else {
            Maker::Operator(None)
        },
    })
    .collect()
}

fn is_left_to_users(state: &State, resource: &Resource) -> bool {
    state.past.orphaned.contains(resource)
}

fn of_kind<'a>(state: &'a State, kind: &'a str) -> impl Iterator<Item = &'a Print<Stored>> {
    state
        .cluster
        .objects
        .iter()
        .filter(move |((this, _), _)| *this == kind)
        .map(|(_, stored)| stored)
}

/// The id of the valid key that a Secret holds.
fn key_in(state: &State, secret: &Secret) -> Option<i64> {
    let held = secret.data.as_ref()?.get("api-key")?;
    let mut live = state.platform.keys.keys();
    let id = live.find(|id| secret_of(**id).as_bytes() == held.0.as_slice())?;
    Some(i64::from(*id))
}

/// A Compute with its record.
pub fn bound_compute(bound: &Bound, stored: &Print<Stored>) -> BoundCompute {
    let object = stored.typed::<Known<Compute>>().unwrap();
    let identity = bound.memos.bound.get(super::in_memory::hash(stored), || {
        Arc::new(object.identity().unwrap_or_default())
    });
    BoundCompute { object, identity }
}

/// A ProjectKey with its record.
pub fn recorded_key(bound: &Bound, stored: &Print<Stored>) -> RecordedKey {
    let object = stored.typed::<Known<ProjectKey>>().unwrap();
    let identity = bound
        .memos
        .recorded
        .get(super::in_memory::hash(stored), || {
            Arc::new(recorded(&object))
        });
    RecordedKey { object, identity }
}

/// False while a delete without an answer may still be carried out.
fn settled_deletes(state: &State) -> bool {
    let deletes = |effect: &Effect| matches!(effect, Effect::Platform(_, Call::DeleteCompute(_)));
    !state
        .platform
        .floating
        .iter()
        .any(|floating| deletes(&floating.effect))
}

/// The unfinished work in a state at rest. `reports` are the resources' reports.
pub fn unfinished(bound: &Bound, state: &State, reports: &[Option<Arc<Report>>]) -> Option<String> {
    let world = world(bound, state);
    for (i, report) in bound.subjects().zip(reports) {
        let Some(stored) = state.cluster.objects.get(&bound.resource(i)) else {
            continue;
        };
        let Some(report) = report else {
            return Some("it reports nothing".to_owned());
        };
        let short = match bound.subject {
            // The tenant's own resource gets no promise.
            _ if bound.forgeries > 0 && i == tenant::TENANTS => None,
            _ if waits_for_a_person(bound, state, report)
                || waits_for_account(bound, state, stored, report)
                || waits_for_an_edit(bound, state, stored, report) =>
            {
                None
            }
            _ if stored.is_deleting() => Some("the deletion does not end".to_owned()),
            _ if !has_finalizer(stored) => Some("no finalizer holds it".to_owned()),
            _ if !promises::is_annotated(&stored.value) => {
                Some("its record is not an annotation".to_owned())
            }
            Subject::Computes { .. } => {
                unfinished_compute(&world, &bound_compute(bound, stored), report)
            }
            Subject::Key { .. } => unfinished_key(bound, &world, &recorded_key(bound, stored)),
        };
        if short.is_some() {
            return short.map(|short| format!("{short}: {report:?}"));
        }
    }
    left_over(bound, state, &world, reports)
}

/// True if the evidence is ambiguous, so that a user has to decide.
fn waits_for_a_person(bound: &Bound, state: &State, report: &Report) -> bool {
    // The computes of a repeated create look alike without marks. Only the answer identifies one.
    let repeated = state.left.repeated < bound.repeated;
    let alone = bound.leaders == 1 && bound.foreign == 0 && bound.alike == 0;
    let tell_apart = bound.marks() || (alone && !bound.late && !repeated);
    match &report.health {
        Health::Stalled(Reason::AmbiguousCreate, _) => !tell_apart,
        Health::Stalled(Reason::RevocationUnsupported, _) => !bound.revokes(),
        Health::Stalled(Reason::DeletionPaused, _) => bound.is_braked(),
        Health::Stalled(Reason::NamespaceNotAllowed, _) => !admits(bound, state),
        Health::Stalled(Reason::ClaimedByAnother, _) => {
            bound.primaries && some_have_theirs(bound, state)
        }
        Health::Stalled(Reason::AccountNotFound, _) => {
            bound.primaries
                && state
                    .cluster
                    .objects
                    .keys()
                    .all(|(_, name)| *name != format!("{OTHER}/prod"))
        }
        // It waits for another Compute that needs a decision.
        Health::Progressing(Reason::Creating | Reason::ConfirmingCreate, _) => {
            !tell_apart && bound.count() > 1
        }
        _ => false,
    }
}

/// A resource with nothing on the platform waits for an account that is missing or being deleted,
/// until users recreate it. So does a resource that begins to use the platform in one process while
/// another one releases the account.
fn waits_for_account(bound: &Bound, state: &State, stored: &Stored, report: &Report) -> bool {
    let account = state.cluster.objects.get(&bound.account_resource());
    let goes = account.is_none_or(|account| account.is_deleting());
    let says_so = matches!(
        &report.health,
        Health::Stalled(Reason::AccountNotFound, _) | Health::Unknown(Reason::AccountNotReady, _)
    );
    let unknown = account.is_none() && state.begun > 1;
    bound.account_deletion && goes && says_so && (!has_finalizer(stored) || unknown)
}

/// True if a spec or a record contradicts the actual state, so that a user has to correct it.
fn waits_for_an_edit(
    bound: &Bound,
    state: &State,
    stored: &Print<Stored>,
    report: &Report,
) -> bool {
    let ((Health::Stalled(reason, _), _) | (Health::Ready(..), Sync::Refused(reason, _))) =
        (&report.health, &report.sync)
    else {
        return false;
    };
    if bound.is_of_key() {
        return *reason == Reason::BindingConflict && moved(bound, state, stored);
    }
    let named = stored.value["spec"]["computeID"].as_str();
    let resource = bound_compute(bound, stored);
    let bound_to = resource
        .identity
        .binding
        .as_ref()
        .map(|binding| binding.id.as_str());
    let there = |id: &str| state.platform.computes.contains_key(&number(id));
    match reason {
        Reason::ComputeNotFound => bound_to.is_none() && named.is_some_and(|id| !there(id)),
        // The tenant's spec names the compute of the other namespace.
        Reason::ClaimedByAnother if bound.forgeries > 0 => {
            let first = state.cluster.objects.get(&bound.resource(0));
            let binding =
                first.and_then(|first| bound_compute(bound, first).identity.binding.clone());
            bound_to.is_none() && binding.is_some_and(|binding| named == Some(binding.id.as_str()))
        }
        Reason::BindingConflict => {
            let contradicts = bound_to.is_some() && named.is_some() && bound_to != named;
            let copied = resource
                .object
                .record()
                .is_err_and(|invalid| invalid.is_copy());
            contradicts || copied || moved(bound, state, stored)
        }
        _ => false,
    }
}

/// True if the account refers to another platform or organization than the recorded one. The same
/// holds for another spelling of the platform if no compute shows that it is the same.
fn moved(bound: &Bound, state: &State, stored: &Print<Stored>) -> bool {
    if bound.moves == 0 {
        return false;
    }
    let account = StandingAccount::of(stored);
    if bound.is_of_key() {
        let theirs = recorded_key(bound, stored).identity.organization().cloned();
        return theirs.is_some_and(|theirs| theirs != account.organization);
    }
    let identity = bound_compute(bound, stored).identity;
    let recorded = STANDING_ACCOUNTS
        .iter()
        .find(|account| Some(account.url) == identity.platform());
    let shown = identity
        .binding
        .as_ref()
        .is_some_and(|it| state.platform.computes.contains_key(&number(&it.id)));
    recorded.is_some_and(|recorded| {
        if shown {
            recorded.key != account.key
        } else {
            recorded.url != account.url
        }
    })
}

/// True if some resource is bound to an existing compute.
fn some_have_theirs(bound: &Bound, state: &State) -> bool {
    let stored = bound
        .subjects()
        .filter_map(|i| state.cluster.objects.get(&bound.resource(i)));
    let mut ids = stored.filter_map(|stored| {
        Some(
            bound_compute(bound, stored)
                .identity
                .binding
                .as_ref()?
                .id
                .clone(),
        )
    });
    ids.any(|id| state.platform.computes.contains_key(&number(&id)))
}

fn admits(bound: &Bound, state: &State) -> bool {
    let account = state.cluster.objects.get(&bound.account_resource());
    account.is_some_and(|account| {
        account.value["spec"]["namespaces"]["names"]
            .to_string()
            .contains("shop")
    })
}

fn unfinished_compute(world: &World, resource: &BoundCompute, report: &Report) -> Option<String> {
    let short = promises::without_compute(world, resource);
    short.or_else(|| {
        (!matches!(report.health, Health::Ready(..))).then(|| "it is not ready".to_owned())
    })
}

fn unfinished_key(bound: &Bound, world: &World, resource: &RecordedKey) -> Option<String> {
    let live = promises::live_keys(world);
    let short = promises::without_key(world, resource);
    short.or_else(|| (bound.revokes() && live > 1).then(|| format!("{live} keys are live")))
}

/// True if the report asks a user to decide about this compute.
fn asks_about(report: &Report, id: &str) -> bool {
    let (Report {
        health: Health::Stalled(Reason::AmbiguousCreate, text),
        ..
    }
    | Report {
        sync: Sync::OutOfSync(Reason::StrayCompute, text),
        ..
    }) = report
    else {
        return false;
    };
    promises::words(text).any(|word| word == id)
}

/// Computes that belong to no resource, unless their resource reports them or currently cannot
/// observe them.
fn left_over(
    bound: &Bound,
    state: &State,
    world: &World,
    reports: &[Option<Arc<Report>>],
) -> Option<String> {
    if !matches!(bound.subject, Subject::Computes { .. }) {
        return None;
    }
    let known = |compute: &LiveCompute| {
        let made_for = bound.subjects().find(|i| {
            compute.made_by == Maker::Operator(Some(name_of(&bound.resource(*i)).to_owned()))
        });
        let resource =
            made_for.and_then(|i| Some((i, state.cluster.objects.get(&bound.resource(i))?)));
        let is_twin = state.platform.computes[&number(&compute.id)].twin;
        let Some((i, stored)) = resource else {
            return if is_twin {
                !bound.marks() && is_reported(state, &compute.id)
            } else {
                compute.late
            };
        };
        let report = reports[i].as_deref();
        let identity = bound_compute(bound, stored).identity;
        let may_be_found = identity.intent.is_some() || !identity.unanswered.is_empty();
        let waits = report.is_some_and(|report| {
            (waits_for_a_person(bound, state, report)
                || waits_for_an_edit(bound, state, stored, report))
                && !matches!(report.health, Health::Stalled(Reason::AmbiguousCreate, _))
        });
        report.is_some_and(|report| asks_about(report, &compute.id)) || waits && may_be_found
    };
    let forgotten = promises::forgotten_computes(world)
        .into_iter()
        .find(|compute| !known(compute))?;
    Some(format!(
        "{} is left over, and nobody reports it",
        forgotten.id
    ))
}
