//! What holds in every state, and how things stand once all is quiet. The promises themselves are shared with the property
//! tests; what the bounds leave open is excused here.

use std::sync::Arc;

use dbplane::api::{Compute, ProjectKey};
use dbplane::decide::{Health, Reason, Report, identity, names};
use k8s_openapi::api::core::v1::Secret;

use super::bound::{Bound, Statuses, Subject};
use super::effects::secret_of;
use super::in_memory::cluster::Stored;
use super::in_memory::promises::{self, BoundCompute, LiveCompute, LiveKey, Maker, RecordedKey, World};
use super::in_memory::{Print, Resource};
use super::people::has_finalizer;
use super::replay::{Call, Effect};
use super::state::State;

/// The promise that is broken in this very state.
pub fn broken(bound: &Bound, state: &State) -> Option<String> {
    if let Some(violation) = state.violation {
        return Some(violation.to_owned());
    }
    if let Some(process) = state.processes.iter().find(|process| {
        let own = state.deletions.iter().filter(|(by, _, _)| *by == process.number);
        own.count() > bound.deletes_per_minute as usize
    }) {
        return Some(format!("process {} deleted more than a minute allows", process.number));
    }
    let world = world(bound, state);
    match bound.subject {
        Subject::Computes { .. } => {
            let twice = bound.subjects().find_map(|i| promises::made_twice(&world, &bound.resource(i).1, 1));
            let too_many = || promises::more_than_resources(&world).filter(|_| settled_deletes(state));
            twice.or_else(too_many).or_else(|| promises::bound_wrongly(&world))
        }
        Subject::Key { .. } => {
            let forgotten = promises::forgotten_keys(&world);
            let forgotten = forgotten.first().map(|key| format!("the key {} is forgotten", key.name));
            forgotten.or_else(|| piled_up(bound, &world))
        }
    }
}

/// A key is revoked before another is created for it; where that cannot be, three are the most that nobody has. Of two leaders
/// each may have one more under way.
fn piled_up(bound: &Bound, world: &World) -> Option<String> {
    let most = if bound.revokes() { 1 } else { 4 } + usize::from(bound.leaders - 1);
    let live = promises::live_keys(world);
    (live > most).then(|| format!("{live} keys are live"))
}

/// Everything that the promises are about.
fn world(bound: &Bound, state: &State) -> World {
    let made_for =
        |of: Option<&Resource>| of.map_or(Maker::SomebodyElse, |(_, name)| Maker::Operator(Some(name.clone())));
    let made_by = |foreign: bool| if foreign { Maker::SomebodyElse } else { Maker::Operator(None) };
    let computes = state.platform.computes.iter();
    let keys = state.platform.keys.iter();
    let of = |kind: &str| {
        let kind = kind.to_owned();
        state.cluster.objects.iter().filter(move |((this, _), _)| *this == kind).map(|(_, stored)| stored)
    };
    let resources = state.processes.iter().flat_map(|process| process.resources.values());
    let key_of = |secret: &Secret| {
        let held = secret.data.as_ref()?.get("api-key")?;
        let live = state.platform.keys.keys().find(|id| secret_of(**id).as_bytes() == held.0.as_slice());
        live.map(|id| i64::from(*id))
    };
    World {
        computes: computes
            .map(|(id, it)| LiveCompute {
                id: format!("ep-{id}"),
                made_by: made_for(it.made_for.as_ref()),
                late: it.late,
            })
            .collect(),
        keys: keys
            .map(|(id, it)| LiveKey { id: (*id).into(), name: it.name.clone(), made_by: made_by(it.foreign) })
            .collect(),
        resources: of("Compute").map(|stored| bound_compute(bound, stored)).collect(),
        project_keys: of("ProjectKey").map(|stored| recorded_key(bound, stored)).collect(),
        key_secrets: state.cluster.secrets.iter().map(|(name, secret)| (name.clone(), key_of(secret))).collect(),
        known_keys: resources.filter_map(|resource| Some(resource.key.unsaved.as_ref()?.key.name.clone())).collect(),
        reported: String::new(),
    }
}

/// A Compute with its record.
pub fn bound_compute(bound: &Bound, stored: &Print<Stored>) -> BoundCompute {
    let object = stored.typed::<Compute>();
    let identity = bound
        .memos
        .bound
        .get(super::in_memory::hash(stored), || Arc::new(identity::of_compute(&object).unwrap().identity));
    BoundCompute { object, identity }
}

fn recorded_key(bound: &Bound, stored: &Print<Stored>) -> RecordedKey {
    let object = stored.typed::<ProjectKey>();
    let identity = bound
        .memos
        .recorded
        .get(super::in_memory::hash(stored), || Arc::new(identity::of_key(&object).unwrap().identity));
    RecordedKey { object, identity }
}

/// A delete that was sent and not answered may still be carried out.
fn settled_deletes(state: &State) -> bool {
    let deletes = |effect: &Effect| matches!(effect, Effect::Platform(_, Call::DeleteCompute(_)));
    !state.platform.floating.iter().any(|floating| deletes(&floating.effect))
}

/// How a state in which nothing happens any more falls short; `reports` is what the resources say.
pub fn unfinished(bound: &Bound, state: &State, reports: &[Option<Arc<Report>>]) -> Option<String> {
    let world = world(bound, state);
    for (i, report) in bound.subjects().zip(reports) {
        let Some(stored) = state.cluster.objects.get(&bound.resource(i)) else { continue };
        let Some(report) = report else { return Some("it reports nothing".to_owned()) };
        let short = match bound.subject {
            _ if waits_for_a_person(bound, state, report) || waits_for_account(bound, state, stored, report) => None,
            _ if stored.is_deleting() => Some("the deletion does not end".to_owned()),
            _ if !has_finalizer(stored) => Some("no finalizer holds it".to_owned()),
            _ if bound.statuses() == Statuses::Record && !is_annotated(stored) => {
                Some("its record is not an annotation".to_owned())
            }
            Subject::Computes { .. } => unfinished_compute(&world, &bound_compute(bound, stored), report),
            Subject::Key { .. } => unfinished_key(bound, &world, &recorded_key(bound, stored)),
        };
        if short.is_some() {
            return short.map(|short| format!("{short}: {report:?}"));
        }
    }
    left_over(bound, state, &world, reports)
}

/// Whether the annotation has the same record as the status.
fn is_annotated(stored: &Stored) -> bool {
    stored.value["metadata"]["annotations"][names::RECORD] == stored.value["status"]["record"]
}

/// Where the evidence leaves it open, a person is asked.
fn waits_for_a_person(bound: &Bound, state: &State, report: &Report) -> bool {
    let tell_apart = bound.marks() || (bound.leaders == 1 && bound.foreign == 0 && !bound.late);
    match &report.health {
        Health::Stalled(Reason::AmbiguousCreate, _) => !tell_apart,
        Health::Stalled(Reason::RevocationUnsupported, _) => !bound.revokes(),
        Health::Stalled(Reason::DeletionPaused, _) => bound.is_braked(),
        Health::Stalled(Reason::NamespaceNotAllowed, _) => !admits(bound, state),
        // It waits for one that does.
        Health::Progressing(Reason::Creating | Reason::ConfirmingCreate, _) => !tell_apart && bound.count() > 1,
        _ => false,
    }
}

/// Who has nothing on the platform waits for an account that is deleted, or being deleted, until people create it anew. So does
/// who was beginning to have something in one process as the account went in another.
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

fn admits(bound: &Bound, state: &State) -> bool {
    let account = state.cluster.objects.get(&bound.account_resource());
    account.is_some_and(|account| account.value["spec"]["namespaces"]["names"].to_string().contains("shop"))
}

fn unfinished_compute(world: &World, resource: &BoundCompute, report: &Report) -> Option<String> {
    let short = promises::without_compute(world, resource);
    short.or_else(|| (!matches!(report.health, Health::Ready(..))).then(|| "it is not ready".to_owned()))
}

fn unfinished_key(bound: &Bound, world: &World, resource: &RecordedKey) -> Option<String> {
    let live = promises::live_keys(world);
    let short = promises::without_key(world, resource);
    short.or_else(|| (bound.revokes() && live > 1).then(|| format!("{live} keys are live")))
}

/// What is on the platform and no resource's, unless its resource names it, or cannot look at present.
fn left_over(bound: &Bound, state: &State, world: &World, reports: &[Option<Arc<Report>>]) -> Option<String> {
    if !matches!(bound.subject, Subject::Computes { .. }) {
        return None;
    }
    let known = |compute: &LiveCompute| {
        let made_for = bound.subjects().find(|i| compute.made_by == Maker::Operator(Some(bound.resource(*i).1)));
        let resource = made_for.and_then(|i| Some((i, state.cluster.objects.get(&bound.resource(i))?)));
        let Some((i, stored)) = resource else { return compute.late };
        let report = reports[i].as_deref();
        let identity = bound_compute(bound, stored).identity;
        let may_be_found = identity.intent.is_some() || !identity.unanswered.is_empty();
        let waits = report.is_some_and(|report| {
            waits_for_a_person(bound, state, report)
                && !matches!(report.health, Health::Stalled(Reason::AmbiguousCreate, _))
        });
        report.is_some_and(|report| format!("{report:?}").contains(&compute.id)) || waits && may_be_found
    };
    let forgotten = promises::forgotten_computes(world).into_iter().find(|compute| !known(compute))?;
    Some(format!("{} is left over, and nobody reports it", forgotten.id))
}
