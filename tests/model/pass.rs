//! One pass of a process over one resource, as `controller::reconcile` makes it: observe, decide, begin a step. The shipped
//! rules decide and the shipped steps act; what is written here is how a process comes to its observation.

use std::collections::BTreeSet;

use dbplane::controller::{KeyTrace, Managed, StepError, secret_contents};
use dbplane::decide::compute::{self, ComputeObserved, Scope, SecretView, SnapshotState, claims};
use dbplane::decide::identity::{self, ComputeIdentity, InvalidAnnotations, ProjectKeyIdentity};
use dbplane::decide::key::{self, KeyListing, KeyObserved, KeySecretView, Probe};
use dbplane::decide::{AccountView, Decision, Report};
use dbplane::domain::{NameSupport, Support};
use dbplane::platform::Fault;
use kube::ResourceExt;
use kube::core::ObjectMeta;

use super::bound::{Bound, Subject, cluster, limits};
use super::effects::shown;
use super::mutation::Mutation;
use super::state::{Print, Reading, State, at, hash, version};
use super::tape::{self, Answer, Entry, Flight, Pending, Reached, Step};

/// What a pass came to.
pub struct Pass {
    pub state: State,
    pub step: bool,
    /// What the status would say.
    pub report: Option<Report>,
}

/// A pass of process `p` over resource `i`; `None` where it cannot be made now.
pub fn pass(bound: &Bound, state: &State, p: usize, i: usize) -> Option<Pass> {
    let record = &state.processes[p].records[i];
    let cache = record.cache.as_ref().filter(|_| record.flight.is_none())?;
    if record.trace.version > Some(version(cache)) {
        return None;
    }
    let process = &state.processes[p];
    let caches: Vec<_> = process.records.iter().map(|record| &record.cache).collect();
    let rest = (process.number, &process.reading, &process.creating, state.tick, &state.secret);
    let (after, step, report) = bound.memos.passes.get(hash(&(record, i, caches, rest)), || {
        let mut state = state.clone();
        let (step, report) = match bound.subject {
            Subject::Computes { .. } => decide_compute(bound, &mut state, p, i),
            Subject::Key { .. } => decide_key(bound, &mut state, p, i),
        };
        let stepping = step.is_some();
        if let Some(step) = step {
            begin(bound, &mut state, p, i, step);
        }
        (state.take(p, i), stepping, report)
    });
    let mut state = state.clone();
    state.put(p, i, after);
    Some(Pass { state, step, report })
}

fn begin(bound: &Bound, state: &mut State, p: usize, i: usize, step: Step) {
    let process = &state.processes[p];
    let record = &process.records[i];
    let flight = Flight {
        meta: record.cache.clone().unwrap(),
        step,
        trace: record.trace.clone_inner(),
        unsaved: record.unsaved.as_ref().map(Print::clone_inner),
        creating: process.creating.iter().copied().filter(|other| *other != i).collect(),
        tape: Vec::new(),
        pending: None,
        mutation: bound.mutation,
    };
    proceed(bound, state, p, i, flight);
}

/// Gives the step of `p` on `i` its answer, and runs it to its next effect or its end.
pub fn answer(bound: &Bound, state: &mut State, p: usize, i: usize, answer: Answer) {
    let process = &state.processes[p];
    let rest = (process.number, &process.creating, i, state.tick, format!("{answer:?}"));
    let after = bound.memos.answers.get(hash(&(&process.records[i], rest)), || {
        let mut state = state.clone();
        let mut flight = state.processes[p].records[i].flight.take().unwrap().clone_inner();
        flight.tape.push(Entry::Answer(answer));
        proceed(bound, &mut state, p, i, flight);
        state.take(p, i)
    });
    state.put(p, i, after);
}

fn proceed(bound: &Bound, state: &mut State, p: usize, i: usize, mut flight: Flight) {
    let progress = flight.run(i, state.now(p));
    let (now, tick) = (state.now(p), state.tick);
    let process = &mut state.processes[p];
    let mut trace = progress.trace;
    trace.wrote = None;
    let record = &mut process.records[i];
    record.unsaved = progress.unsaved.map(Print::of);
    record.fresh &= !progress.wrote || bound.is(Mutation::TrustOldReadings);
    if progress.begun && !process.creating.contains(&i) {
        process.creating.push(i);
        process.creating.sort_unstable();
    }
    match progress.reached {
        Reached::Effect(effect) => {
            flight.tape = progress.tape;
            flight.pending = Some(Pending { effect, since: tick, came: None });
            record.flight = Some(Print::of(flight));
        }
        Reached::End(result) => {
            if let Err(StepError::Failed(action, problem)) = result {
                trace.memory.failed(action, problem, 1, now);
            }
            record.flight = None;
            if record.cache.is_none() {
                process.creating.retain(|begun| *begun != i);
            }
        }
    }
    record.trace = Print::of(trace);
}

fn decide_compute(bound: &Bound, state: &mut State, p: usize, i: usize) -> (Option<Step>, Option<Report>) {
    let now = state.now(p);
    let object = tape::compute(state.processes[p].records[i].cache.as_ref().unwrap().clone_inner());
    // Who draws from an old version conflicts before the number is used.
    let draw = u32::try_from(version(&object.metadata)).unwrap();
    let meta = object.meta_observed();
    let identity = linked(bound, &state.processes[p].records[i].cache.clone().unwrap());
    let known = identity.clone().unwrap_or_default();
    let process = &mut state.processes[p];
    let record = &mut process.records[i];
    let (snapshot, name_support) = snapshot(bound, process.reading.as_ref().filter(|_| record.fresh));
    let mut trace = record.trace.clone_inner();
    trace.memory.note_unresolved(known.recorded(), now);
    if let (Some(binding), SnapshotState::Taken { computes, .. }) = (&known.binding, &snapshot) {
        let found = computes.iter().find(|compute| compute.id == binding.id);
        compute::remember(&mut trace.memory, &object.spec, found, now);
    }
    record.trace = Print::of(trace);
    let memory = record.trace.memory.clone();
    if known.binding.is_some() || known.intent.is_none() {
        process.creating.retain(|begun| *begun != i);
    }
    let ids: BTreeSet<String> = match &snapshot {
        SnapshotState::Taken { computes, .. } => computes.iter().map(|compute| compute.id.clone()).collect(),
        _ => BTreeSet::new(),
    };
    let scope = Scope::of(&object, &known, &ids);
    let caches: Vec<_> = process.records.iter().map(|record| &record.cache).collect();
    let claims = bound.memos.claims.get(hash(&(i, caches, &process.creating, &ids)), || {
        let others = process.records.iter().enumerate().filter(|(other, _)| *other != i);
        let others = others.filter_map(|(_, other)| Some(tape::compute(other.cache.as_ref()?.clone_inner())));
        let others: Vec<_> = others.filter(|other| scope.concerns(other)).collect();
        let begun = |uid: &str| process.creating.iter().any(|other| format!("{other:08}-uid") == uid);
        claims(&object, &others, begun)
    });
    let mut observed = ComputeObserved {
        uid: object.uid().unwrap(),
        meta,
        identity,
        account: AccountView::Usable { organization: Some("org".into()) },
        snapshot,
        claims,
        secret: SecretView::NotWanted,
        name_support,
        memory,
        stale_from: None,
        limits: limits(),
        cluster: cluster(),
        draw,
    };
    if let Some(mutation) = bound.mutation {
        mutation.observing_compute(&mut observed, now);
    }
    let Decision { step, report, .. } = compute::decide(&object.spec, &observed, now);
    (step.map(Step::Compute), report)
}

fn snapshot(bound: &Bound, reading: Option<&Print<Reading>>) -> (SnapshotState, NameSupport) {
    match reading {
        None => (SnapshotState::Pending, NameSupport::Unseen),
        Some(reading) if reading.failed => {
            (SnapshotState::Failed(Fault::Server { status: 500, message: String::new() }), NameSupport::Unseen)
        }
        Some(reading) => {
            let name_support = if bound.marks() { NameSupport::Kept } else { Support::among(&reading.computes).names };
            (SnapshotState::Taken { at: reading.at, computes: reading.computes.clone() }, name_support)
        }
    }
}

/// What the annotations of a Compute say.
pub fn linked(bound: &Bound, meta: &Print<ObjectMeta>) -> Result<ComputeIdentity, InvalidAnnotations> {
    bound.memos.linked.get(hash(meta), || {
        let object = tape::compute(meta.clone_inner());
        identity::of_compute(object.annotations(), object.meta_observed().object_key())
    })
}

/// What the annotations of a ProjectKey say.
pub fn booked(bound: &Bound, meta: &Print<ObjectMeta>) -> Result<ProjectKeyIdentity, InvalidAnnotations> {
    bound.memos.booked.get(hash(meta), || {
        let object = tape::key(meta.clone_inner());
        identity::of_key(object.annotations(), object.meta_observed().object_key())
    })
}

fn decide_key(bound: &Bound, state: &mut State, p: usize, i: usize) -> (Option<Step>, Option<Report>) {
    let now = state.now(p);
    let record = &state.processes[p].records[i];
    let object = tape::key(record.cache.as_ref().unwrap().clone_inner());
    let draw = u32::try_from(version(&object.metadata)).unwrap();
    let meta = object.meta_observed();
    let secret = match &state.secret {
        None => KeySecretView::Absent,
        Some(secret) => KeySecretView::Ours(secret_contents(&object.spec, &shown(secret), "https://platform").0),
    };
    let identity = booked(bound, &state.processes[p].records[i].cache.clone().unwrap());
    let intended = identity.as_ref().ok().and_then(|identity| identity.intent.as_ref()).map(|intent| intent.at);
    let mut trace = record.trace.clone_inner();
    trace.memory.note_unresolved(intended, now);
    let unsaved = record.unsaved.as_ref().map(|unsaved| unsaved.key.clone());
    state.processes[p].records[i].trace = Print::of(trace.clone());
    let mut observed = KeyObserved {
        uid: object.uid().unwrap(),
        identity,
        meta,
        account: AccountView::Usable { organization: Some("org".into()) },
        secret,
        created: at(0),
        rival: None,
        secret_deleting: false,
        revoked: None,
        // A reading is decided on for ten seconds, which is less than a tick.
        listing: match &trace.key {
            KeyTrace { listing: Some((_, KeyListing::NotOffered)), .. } => KeyListing::NotOffered,
            KeyTrace { listing: Some((at, listing)), .. } if *at == now => listing.clone(),
            _ => KeyListing::NotRead,
        },
        probe: trace.key.probe.unwrap_or(Probe::NotAsked(None)),
        unsaved,
        memory: trace.memory,
        limits: limits(),
        cluster: cluster(),
        draw,
    };
    if let Some(mutation) = bound.mutation {
        mutation.observing_key(&mut observed);
    }
    let Decision { mut step, report, .. } = key::decide(&object.spec, &observed, now);
    if let (Some(mutation), Some(step)) = (bound.mutation, &mut step) {
        mutation.choosing_key(step);
    }
    (step.map(|step| Step::Key(step, Box::new(observed))), report)
}
