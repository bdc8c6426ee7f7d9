//! What holds in every state, and how things stand once all is quiet.

use std::collections::BTreeSet;

use dbplane::decide::identity::Origin;
use dbplane::decide::{Health, Reason, Report, Sync};
use kube::core::ObjectMeta;

use super::bound::{Bound, Subject};
use super::effects::secret_of;
use super::pass::{booked, linked};
use super::state::{Print, State};
use super::tape;

/// The promise that is broken in this very state.
pub fn broken(bound: &Bound, state: &State) -> Option<String> {
    if let Some(violation) = state.violation {
        return Some(violation.to_owned());
    }
    match bound.subject {
        Subject::Computes { .. } => computes(bound, state),
        Subject::Key { .. } => keys(bound, state),
    }
}

fn computes(bound: &Bound, state: &State) -> Option<String> {
    let resources = state.objects.iter().flatten().count();
    let ours = state.platform.computes.values().filter(|compute| !compute.foreign).count();
    if ours > resources && !bound.late && settled_deletes(state) {
        return Some(format!("{ours} computes of ours for {resources} resources"));
    }
    let mut taken = BTreeSet::new();
    for meta in state.objects.iter().flatten() {
        let Some(binding) = linked(bound, meta).unwrap().binding else { continue };
        if !taken.insert(binding.id.clone()) {
            return Some(format!("two resources are bound to {}", binding.id));
        }
        let found = state.platform.computes.get(&number(&binding.id));
        if binding.origin == Origin::Created && found.is_some_and(|compute| compute.foreign) {
            return Some(format!("{} is somebody else's and bound as if it had been created", binding.id));
        }
    }
    None
}

/// A delete that was sent and not answered may still be carried out.
fn settled_deletes(state: &State) -> bool {
    !state.platform.floating.iter().any(|floating| matches!(floating.effect, tape::Effect::DeleteCompute(_)))
}

fn keys(bound: &Bound, state: &State) -> Option<String> {
    let known = known_names(bound, state);
    let forgotten = state.platform.keys.values().find(|key| !key.foreign && !known.contains(&key.name))?;
    Some(format!("the key {} is forgotten", forgotten.name))
}

/// The names of all keys that the annotations, the Secret or a process's memory tell of.
fn known_names(bound: &Bound, state: &State) -> BTreeSet<String> {
    let records = state.processes.iter().flat_map(|process| &process.records);
    let unsaved = records.filter_map(|record| Some(record.unsaved.as_ref()?.key.name.clone()));
    let recorded = state.objects.iter().flatten().flat_map(|meta| {
        let identity = booked(bound, meta).unwrap();
        identity.names().map(str::to_owned).collect::<Vec<_>>()
    });
    unsaved.chain(recorded).collect()
}

/// How a state in which nothing happens any more falls short; `reports` is what the resources say.
pub fn unfinished(bound: &Bound, state: &State, reports: &[Option<Report>]) -> Option<String> {
    for (meta, report) in state.objects.iter().zip(reports) {
        let Some(meta) = meta else { continue };
        let report = report.as_ref()?;
        let short = match bound.subject {
            _ if waits_for_a_person(bound, report) => None,
            _ if meta.deletion_timestamp.is_some() => Some("the deletion does not end".to_owned()),
            Subject::Computes { .. } => unfinished_compute(bound, state, meta, report),
            Subject::Key { .. } => unfinished_key(bound, state, meta),
        };
        if short.is_some() {
            return short.map(|short| format!("{short}: {report:?}"));
        }
    }
    left_over(bound, state, reports)
}

/// Where the evidence leaves it open, a person is asked.
fn waits_for_a_person(bound: &Bound, report: &Report) -> bool {
    let tell_apart = bound.marks() || (bound.leaders == 1 && bound.foreign == 0 && !bound.late);
    match &report.health {
        Health::Stalled(Reason::AmbiguousCreate, _) => !tell_apart,
        Health::Stalled(Reason::RevocationUnsupported, _) => !bound.revokes(),
        // It waits for one that does.
        Health::Progressing(Reason::Creating | Reason::ConfirmingCreate, _) => !tell_apart && bound.count() > 1,
        _ => false,
    }
}

fn unfinished_compute(bound: &Bound, state: &State, meta: &Print<ObjectMeta>, report: &Report) -> Option<String> {
    let Some(binding) = linked(bound, meta).unwrap().binding else { return Some("it has no compute".to_owned()) };
    if !state.platform.computes.contains_key(&number(&binding.id)) {
        return Some(format!("its compute {} is gone", binding.id));
    }
    (!matches!(report.health, Health::Ready(..))).then(|| "it is not ready".to_owned())
}

fn unfinished_key(bound: &Bound, state: &State, meta: &Print<ObjectMeta>) -> Option<String> {
    let Some(current) = booked(bound, meta).unwrap().records.current else { return Some("it has no key".to_owned()) };
    let id = u8::try_from(current.id).unwrap();
    let held = state.secret.as_ref().and_then(|secret| secret.data.get("api-key").cloned());
    if held != Some(secret_of(id)) || !state.platform.keys.contains_key(&id) {
        return Some(format!("its Secret does not hold the live key {id}"));
    }
    let live = state.platform.keys.values().filter(|key| !key.foreign).count();
    (bound.revokes() && live > 1).then(|| format!("{live} keys are live"))
}

/// What is on the platform and no resource's, unless it is told.
fn left_over(bound: &Bound, state: &State, reports: &[Option<Report>]) -> Option<String> {
    let stalled = reports.iter().flatten().any(|report| waits_for_a_person(bound, report));
    if !matches!(bound.subject, Subject::Computes { .. }) || stalled {
        return None;
    }
    let taken: BTreeSet<u8> = state
        .objects
        .iter()
        .flatten()
        .filter_map(|meta| Some(number(&linked(bound, meta).unwrap().binding?.id)))
        .collect();
    let mut others = state.platform.computes.iter().filter(|(id, found)| !found.foreign && !taken.contains(id));
    let told = |id: u8| {
        reports.iter().flatten().any(|report| {
            matches!(&report.sync, Sync::OutOfSync(Reason::StrayCompute, text) if text.contains(&format!("ep-{id}")))
        })
    };
    let (id, _) = others.find(|(id, _)| !(bound.late && (told(**id) || state.objects.iter().any(Option::is_none))))?;
    Some(format!("ep-{id} is left over, and nobody says so"))
}

fn number(id: &str) -> u8 {
    id.trim_start_matches("ep-").parse().unwrap()
}
