//! One pass of a process over one resource. The shipped code makes the pass; this module begins and
//! continues it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbplane::api::{Account, ClusterAccount, Known};
use dbplane::controller::object::AccountName;
use dbplane::controller::state::{AccountEntry, ResourceState};
use dbplane::decide::Report;
use dbplane::decide::brake::DeletionWindow;
use jiff::Timestamp;

use super::bound::Bound;
use super::in_memory::{Cluster, Print, hash};
use super::mutation::{MutatedAccounts, MutatedComputes, MutatedKeys, Mutation};
use super::remote::Remote;
use super::replay::{self, Answer, Base, Entry, Pending, PendingPass, Progress, Reached};
use super::state::{Process, ReadKeys, State};

/// The outcome of beginning a pass.
pub struct Pass {
    pub state: State,
    /// True if it waits for an effect.
    pub waits: bool,
    /// The report for the status.
    pub report: Option<Arc<Report>>,
}

/// Of this many memoized answers, one is recomputed and compared.
const RECHECKED: u64 = 16;

/// The result of a pass or of an answer to it: the parts of a process that it may change.
#[derive(Clone)]
pub struct After {
    /// The UID of the pass's resource.
    uid: String,
    resource: Option<Print<ResourceState>>,
    accounts: Print<BTreeMap<AccountName, AccountEntry<Remote>>>,
    deletions: Print<DeletionWindow>,
    connections: u64,
    wrote: bool,
    /// The known keys of the organization, if the pass has read or changed them.
    keys: Option<Option<Print<ReadKeys>>>,
    pending_pass: Option<Print<PendingPass>>,
    /// The report for the status.
    report: Option<Arc<Report>>,
}

/// Begins a pass of process `p` over resource `i`; `None` if that is not possible now.
pub fn pass(bound: &Bound, state: &State, p: usize, i: usize) -> Option<Pass> {
    let process = &state.processes[p];
    let resource = bound.resource(i);
    if process.pending_passes.contains_key(&i) || !process.caches.contains_key(&resource) {
        return None;
    }
    let question = hash(&(
        about(bound, process, i),
        state.tick,
        &state.cluster.secrets,
        state.cluster.terminating,
    ));
    let after = bound
        .memos
        .passes
        .get(question, || begin(bound, state, p, i, question));
    let (waits, report) = (after.pending_pass.is_some(), after.report.clone());
    let mut state = state.clone();
    after.adopt(bound, state.process_mut(p), i, true);
    Some(Pass {
        state,
        waits,
        report,
    })
}

/// A hash of all parts of a process that a pass over resource `i` depends on.
fn about(bound: &Bound, process: &Process, i: usize) -> u64 {
    let uid = process
        .caches
        .get(&bound.resource(i))
        .map(|stored| stored.uid().to_owned())
        .unwrap_or_default();
    let others: Vec<_> = process
        .resources
        .iter()
        .filter(|(other, _)| **other != uid)
        .map(|(other, it)| {
            (
                other,
                it.version,
                it.unanswered,
                it.in_step,
                it.reserved.as_ref().map(|it| (&it.place, it.evidence)),
            )
        })
        .collect();
    let own = (
        process.resources.get(&uid),
        process.wrote_since.contains(&i),
        process.connections,
        process.cut_off,
    );
    let seen = (&process.read, &process.keys);
    hash(&(
        i,
        process.number,
        own,
        others,
        &process.caches,
        &process.accounts,
        &process.deletions,
        seen,
    ))
}

fn begin(bound: &Bound, state: &State, p: usize, i: usize, question: u64) -> After {
    let process = &state.processes[p];
    let mut contents = process.contents();
    if bound.is(Mutation::SkipSerialization) {
        contents.resources = contents
            .resources
            .iter()
            .map(|(uid, resource)| {
                let mut without_turn = resource.clone();
                without_turn.reserved = None;
                (uid.clone(), without_turn)
            })
            .collect();
    }
    let base = Base {
        resource: bound.resource(i),
        contents,
        caches: process.caches.clone(),
        read: process.read.clone(),
        fresh: !process.wrote_since.contains(&i),
        keys: process.keys.clone(),
        settings: bound.settings(),
        statuses: bound.statuses(),
        records_events: bound.named > 0 || bound.alike > 0 || bound.repeated > 0,
        mutation: bound.mutation,
    };
    let base = Print::hashed(question, base);
    proceed(bound, state, Actor { p, i }, base, Vec::new())
}

/// Gives the pass of `p` over `i` its answer, and runs it to its next effect or its end.
pub fn answer(bound: &Bound, state: &mut State, p: usize, i: usize, answer: Answer) {
    let process = &state.processes[p];
    let pending_pass = process.pending_passes[&i].clone();
    let wrote = process.wrote_since.contains(&i);
    let moment = (
        process.number,
        process.cut_off,
        state.tick,
        &state.cluster.secrets,
        wrote,
        format!("{answer:?}"),
    );
    let question = hash(&(&pending_pass, moment));
    let proceed = || {
        let mut log = pending_pass.log.clone();
        log.push(Entry::Answer(answer.clone()));
        proceed(bound, state, Actor { p, i }, pending_pass.base.clone(), log)
    };
    let after = bound.memos.answers.get(question, proceed);
    // Passes with the same decision share a memo, whatever led to it. Some of them are recomputed
    // to verify that.
    if question.is_multiple_of(RECHECKED) {
        assert_eq!(
            after.print(),
            proceed().print(),
            "what a pass does next rests on more than it is told apart by"
        );
    }
    after.adopt(bound, state.process_mut(p), i, false);
}

/// Process `p` in its pass over resource `i`.
#[derive(Clone, Copy)]
struct Actor {
    p: usize,
    i: usize,
}

fn proceed(
    bound: &Bound,
    state: &State,
    actor: Actor,
    base: Print<Base>,
    log: Vec<Entry>,
) -> After {
    let Actor { p, i } = actor;
    let now = state.now(p);
    let reachable = (!state.processes[p].cut_off).then_some(&*state.cluster);
    let Progress {
        contents,
        log,
        resolved,
        wrote,
        keys,
        reached,
    } = run(&base, &log, now, reachable);
    let process = &state.processes[p];
    // Without the brake, and with a fixed account, a pass changes only the state of its own
    // resource.
    let shared = bound.account.is_some() || bound.is_braked();
    let uid = base.caches[&base.resource].uid().to_owned();
    let before = process.resources.get(&uid);
    let mut after = After {
        resource: contents
            .resources
            .get(&uid.as_str().into())
            .map(|now| Print::unless_same(before, now.clone())),
        accounts: process.accounts.clone(),
        deletions: process.deletions.clone(),
        connections: process.connections,
        wrote: process.wrote_since.contains(&i) || wrote && !bound.is(Mutation::TrustOldReadings),
        keys,
        pending_pass: None,
        report: None,
        uid,
    };
    if shared {
        after.accounts = Print::unless_same(Some(&process.accounts), contents.accounts);
        after.deletions = Print::unless_same(Some(&process.deletions), contents.deletions);
        after.connections = contents.connections;
    }
    match reached {
        Reached::Effect(effect) => {
            let pending = Pending {
                effect,
                since: state.tick,
                came: None,
            };
            after.pending_pass = Some(
                bound.memos.pending_pass(
                    PendingPass {
                        base,
                        log,
                        resolved,
                        pending,
                    }
                    .print(),
                ),
            );
        }
        Reached::End(Ok(pass)) => after.report = pass.report.map(Arc::new),
        Reached::End(Err(_)) => {}
    }
    after
}

/// Replays the pass of the resource's kind.
fn run(base: &Print<Base>, log: &[Entry], now: Timestamp, reachable: Option<&Cluster>) -> Progress {
    match base.resource.0 {
        "Compute" => replay::run::<MutatedComputes>(base, log, now, reachable),
        "ProjectKey" => replay::run::<MutatedKeys>(base, log, now, reachable),
        "Account" => replay::run::<MutatedAccounts<Known<Account>>>(base, log, now, reachable),
        _ => replay::run::<MutatedAccounts<Known<ClusterAccount>>>(base, log, now, reachable),
    }
}

impl After {
    /// Applies the result to a process. The first part of a pass saw the process as it still is, so
    /// its changes of shared state apply too. Later parts change only their own state.
    fn adopt(self, bound: &Bound, process: &mut Process, i: usize, beginning: bool) {
        let is_there = self.pending_pass.is_some()
            || process
                .caches
                .values()
                .any(|stored| stored.uid() == self.uid);
        if is_there && let Some(resource) = self.resource {
            process.resources.insert(self.uid, resource);
        } else {
            process.resources.remove(&self.uid);
        }
        if self.wrote {
            process.wrote_since.insert(i);
        } else {
            process.wrote_since.remove(&i);
        }
        if let Some(pending_pass) = self.pending_pass {
            process.pending_passes.insert(i, pending_pass);
        } else {
            process.pending_passes.remove(&i);
        }
        if let Some(keys) = self.keys {
            process.keys = keys;
        }
        if beginning {
            process.deletions = self.deletions;
            process.connections = self.connections;
        }
        // There is only one account.
        if beginning || i == bound.count() {
            process.accounts = self.accounts;
        }
    }

    fn print(&self) -> u64 {
        hash(&(
            &self.resource,
            &self.accounts,
            self.wrote,
            &self.keys,
            &self.pending_pass,
        ))
    }
}
