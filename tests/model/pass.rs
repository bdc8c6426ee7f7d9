//! One pass of a process over one resource. The shipped pass looks, decides and performs; here it is begun, and gone on with.

use dbplane::api::{Account, ClusterAccount};
use dbplane::decide::Report;

use super::bound::Bound;
use super::in_memory::{Print, hash};
use super::mutation::{MutatedAccounts, MutatedComputes, MutatedKeys, Mutation};
use super::replay::{self, Answer, Base, Entry, Flight, Pending, Progress, Reached};
use super::state::{Process, State};

/// What a pass came to.
pub struct Pass {
    pub state: State,
    /// An effect is waited for.
    pub waits: bool,
    /// What the status would say.
    pub report: Option<Report>,
}

/// What a pass, or the answer that it is given, leaves behind: the process, and what would be reported.
pub type After = (Process, Option<Report>);

/// A pass of process `p` over resource `i`; `None` where it cannot be made now.
pub fn pass(bound: &Bound, state: &State, p: usize, i: usize) -> Option<Pass> {
    let process = &state.processes[p];
    let resource = bound.resource(i);
    if process.flights.contains_key(&i) || !process.caches.contains_key(&resource) {
        return None;
    }
    let question = hash(&(about(bound, process, i), state.tick, &state.cluster.secrets, state.cluster.terminating));
    let (after, report) = bound.memos.passes.get(question, || begin(bound, state, p, i, question));
    let waits = after.flights.contains_key(&i);
    let mut state = state.clone();
    adopt(bound, &mut state.processes[p], &after, i, true);
    Some(Pass { state, waits, report })
}

/// Everything of a process that a pass over resource `i` depends on.
fn about(bound: &Bound, process: &Process, i: usize) -> u64 {
    let uid = process.caches.get(&bound.resource(i)).map(|stored| stored.uid().to_owned()).unwrap_or_default();
    let others: Vec<_> = process
        .resources
        .iter()
        .filter(|(other, _)| **other != uid)
        .map(|(other, it)| (other, it.version, it.in_step, it.create.is_some()))
        .collect();
    let own = (process.resources.get(&uid), process.wrote_since.contains(&i), process.connections);
    hash(&(i, process.number, own, others, &process.caches, &process.accounts, &process.deletions, &process.read))
}

fn begin(bound: &Bound, state: &State, p: usize, i: usize, question: u64) -> After {
    let process = &state.processes[p];
    let mut contents = process.contents();
    if bound.is(Mutation::SkipSerialization) {
        contents.resources.values_mut().for_each(|resource| resource.create = None);
    }
    let base = Base {
        resource: bound.resource(i),
        contents,
        caches: process.caches.clone(),
        read: process.read.clone(),
        fresh: !process.wrote_since.contains(&i),
        settings: bound.settings(),
        statuses: bound.statuses(),
        mutation: bound.mutation,
    };
    proceed(bound, state, (p, i), (Print::hashed(question, base), Vec::new()))
}

/// Gives the pass of `p` on `i` its answer, and runs it to its next effect or its end.
pub fn answer(bound: &Bound, state: &mut State, p: usize, i: usize, answer: Answer) {
    let process = &state.processes[p];
    let flight = process.flights[&i].clone();
    let wrote = process.wrote_since.contains(&i);
    let moment = (process.number, state.tick, &state.cluster.secrets, wrote, format!("{answer:?}"));
    let question = hash(&(&flight, moment));
    let (after, _) = bound.memos.answers.get(question, || {
        let mut tape = flight.tape.clone();
        tape.push(Entry::Answer(answer));
        proceed(bound, state, (p, i), (flight.base.clone(), tape))
    });
    adopt(bound, &mut state.processes[p], &after, i, false);
}

fn proceed(bound: &Bound, state: &State, (p, i): (usize, usize), (base, tape): (Print<Base>, Vec<Entry>)) -> After {
    let now = state.now(p);
    let Progress { contents, tape, wrote, reached } = match base.resource.0 {
        "Compute" => replay::run::<MutatedComputes>(&base, &tape, now, &state.cluster),
        "ProjectKey" => replay::run::<MutatedKeys>(&base, &tape, now, &state.cluster),
        "Account" => replay::run::<MutatedAccounts<Account>>(&base, &tape, now, &state.cluster),
        _ => replay::run::<MutatedAccounts<ClusterAccount>>(&base, &tape, now, &state.cluster),
    };
    let mut after = state.processes[p].clone();
    let uid = base.caches[&base.resource].uid().to_owned();
    // Where nothing depends on the brake and the account stands, only the resource's own part changes.
    let shared = bound.account.is_some() || bound.statuses();
    after.remember(contents, &uid, shared);
    if wrote && !bound.is(Mutation::TrustOldReadings) {
        after.wrote_since.insert(i);
    }
    after.flights.remove(&i);
    match reached {
        Reached::Effect(effect) => {
            let pending = Pending { effect, since: state.tick, came: None };
            after.flights.insert(i, Flight { base, tape, pending }.print());
            (after, None)
        }
        Reached::End(Ok(pass)) => (after, pass.report),
        Reached::End(Err(_)) => (after, None),
    }
}

/// Takes over what a pass left behind. What it changed at its beginning, it changed in the process as it was; later it changes
/// only what is its own.
fn adopt(bound: &Bound, process: &mut Process, after: &Process, i: usize, beginning: bool) {
    let own = |process: &Process| {
        process.flights.get(&i).map(|flight| flight.base.resource.clone()).unwrap_or_else(|| bound.resource(i))
    };
    let uid = uid_of(process, after, &own(process), i);
    let is_there = |uid: &String| after.flights.contains_key(&i) || process.caches.values().any(|it| it.uid() == uid);
    let uid_there = uid.as_ref().filter(|uid| is_there(uid));
    match uid_there.and_then(|uid| after.resources.get(uid)) {
        Some(resource) => drop(process.resources.insert(uid.unwrap(), resource.clone())),
        None => drop(uid.and_then(|uid| process.resources.remove(&uid))),
    }
    match after.wrote_since.contains(&i) {
        true => process.wrote_since.insert(i),
        false => process.wrote_since.remove(&i),
    };
    match after.flights.get(&i) {
        Some(flight) => drop(process.flights.insert(i, flight.clone())),
        None => drop(process.flights.remove(&i)),
    }
    if beginning {
        process.accounts = after.accounts.clone();
        process.deletions = after.deletions.clone();
        process.connections = after.connections;
    } else if i == bound.count() {
        // There is one account.
        process.accounts = after.accounts.clone();
    }
}

/// The UID of the resource that a pass is made over: the one that it began with.
fn uid_of(process: &Process, after: &Process, resource: &super::in_memory::Resource, i: usize) -> Option<String> {
    let begun = |process: &Process| {
        let flight = process.flights.get(&i)?;
        Some(flight.base.caches[&flight.base.resource].uid().to_owned())
    };
    begun(process).or_else(|| begun(after)).or_else(|| Some(process.caches.get(resource)?.uid().to_owned()))
}
