//! What can happen next.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;

use super::bound::{Bound, Subject};
use super::effects::{apply, calls_platform, changes_platform, compute, put, refusal, silence, writes};
use super::pass::{answer, pass};
use super::state::{Compute, Floating, Key, Platform, Print, Reading, State, at, process, version};
use super::tape::{Answer, Effect, Pending};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Process, resource: it observes, decides, and begins a step where one is due.
    Pass(usize, usize),
    /// What the step waits for is carried out and answered.
    Carried(usize, usize),
    /// What the step waits for is carried out, and not answered yet.
    Sent(usize, usize),
    /// The answer is lost: a write of the cluster is carried out, a call of the platform may be, at some time.
    AnswerLost(usize, usize),
    Refused(usize, usize),
    /// The process is told how the resource stands now.
    Told(usize, usize),
    /// The process reads the platform.
    Reads(usize),
    ReadsWhatWasBefore(usize),
    ReadFails(usize),
    /// A request whose answer was lost is carried out.
    CarriedLate(usize),
    ForeignOneAppears,
    UserDeletes(usize),
    /// The process dies; whether what it was waiting for has been sent.
    Dies(usize, bool),
    Leads,
    Tick,
}

/// Everything that can happen now, and what comes of it.
pub fn successors(bound: &Bound, state: &State) -> Vec<(Action, State)> {
    let mut next = Vec::new();
    let mut try_all = |actions: &[Action]| {
        next.extend(actions.iter().filter_map(|action| Some((*action, happen(bound, state, *action)?))));
    };
    for p in 0..state.processes.len() {
        for i in 0..bound.count() {
            try_all(&[
                Action::Carried(p, i),
                Action::Sent(p, i),
                Action::AnswerLost(p, i),
                Action::Refused(p, i),
                Action::Told(p, i),
                Action::Pass(p, i),
            ]);
        }
        try_all(&[
            Action::Reads(p),
            Action::ReadsWhatWasBefore(p),
            Action::ReadFails(p),
            Action::Dies(p, false),
            Action::Dies(p, true),
        ]);
    }
    for number in 0..state.platform.floating.len() {
        try_all(&[Action::CarriedLate(number)]);
    }
    for i in 0..bound.count() {
        try_all(&[Action::UserDeletes(i)]);
    }
    try_all(&[Action::ForeignOneAppears, Action::Leads]);
    if state.tick < bound.ticks {
        try_all(&[Action::Tick]);
    }
    next
}

/// What comes of an action; `None` where it cannot happen or changes nothing.
pub fn happen(bound: &Bound, state: &State, action: Action) -> Option<State> {
    match action {
        Action::Pass(p, i) => {
            let pass = pass(bound, state, p, i)?;
            // A pass without a step can teach the process something; otherwise nothing has happened.
            let record = |state: &State| super::state::hash(&state.processes[p]);
            (pass.step || record(&pass.state) != record(state)).then_some(pass.state)
        }
        Action::Carried(p, i) | Action::AnswerLost(p, i) | Action::Refused(p, i) => {
            answered(bound, state, action, p, i)
        }
        Action::Sent(p, i) => answered_later(bound, state, p, i),
        Action::Told(p, i) => told(state, p, i),
        Action::Reads(p) => read(bound, state, p, &state.platform, false),
        Action::ReadsWhatWasBefore(p) => {
            let mut next = state.clone();
            next.left.lagging = state.left.lagging.checked_sub(1)?;
            read(bound, &next, p, state.platform.before.as_ref()?, false)
        }
        Action::ReadFails(p) => {
            let mut next = state.clone();
            next.left.refused = state.left.refused.checked_sub(1)?;
            read(bound, &next, p, &state.platform, true)
        }
        Action::Dies(p, sends) => dies(bound, state, p, sends),
        Action::Leads => leads(bound, state),
        Action::CarriedLate(_) | Action::ForeignOneAppears | Action::UserDeletes(_) | Action::Tick => {
            elsewhere(bound, state, action)
        }
    }
}

fn answered(bound: &Bound, state: &State, action: Action, p: usize, i: usize) -> Option<State> {
    let Pending { effect, since, came } = pending(state, p, i)?;
    let mut next = state.clone();
    let came = match (action, came) {
        (Action::Carried(..), Some(came)) => came,
        (_, Some(_)) => return None,
        (action, None) => outcome(bound, &mut next, action, (&effect, since))?,
    };
    answer(bound, &mut next, p, i, came);
    Some(next)
}

fn outcome(bound: &Bound, next: &mut State, action: Action, (effect, since): (&Effect, u8)) -> Option<Answer> {
    Some(match action {
        Action::AnswerLost(..) => {
            next.left.lost = next.left.lost.checked_sub(1)?;
            sent(bound, next, effect, since);
            silence(effect)
        }
        Action::Refused(..) => {
            next.left.refused = next.left.refused.checked_sub(1)?;
            refusal(effect)
        }
        _ => apply(bound, next, effect),
    })
}

fn answered_later(bound: &Bound, state: &State, p: usize, i: usize) -> Option<State> {
    let Pending { effect, since, came: None } = pending(state, p, i)? else { return None };
    if calls_platform(&effect) || !writes(&effect) {
        return None;
    }
    let mut next = state.clone();
    next.left.slow = state.left.slow.checked_sub(1)?;
    let came = Some(apply(bound, &mut next, &effect));
    let mut flight = next.processes[p].records[i].flight.take()?.clone_inner();
    flight.pending = Some(Pending { effect, since, came });
    next.processes[p].records[i].flight = Some(Print::of(flight));
    Some(next)
}

fn told(state: &State, p: usize, i: usize) -> Option<State> {
    let seen = |meta: &Option<Print<ObjectMeta>>| meta.as_ref().map(|meta| version(meta));
    if seen(&state.processes[p].records[i].cache) == seen(&state.objects[i]) {
        return None;
    }
    let mut next = state.clone();
    let process = &mut next.processes[p];
    process.records[i].cache.clone_from(&state.objects[i]);
    if state.objects[i].is_none() && process.records[i].flight.is_none() {
        process.creating.retain(|begun| *begun != i);
    }
    Some(next)
}

fn dies(bound: &Bound, state: &State, p: usize, sends: bool) -> Option<State> {
    let mut next = state.clone();
    next.left.crashes = state.left.crashes.checked_sub(1)?;
    let waiting: Vec<_> = (0..bound.count()).filter_map(|i| pending(state, p, i)).collect();
    if sends && waiting.is_empty() {
        return None;
    }
    for pending in waiting.iter().filter(|pending| sends && pending.came.is_none()) {
        sent(bound, &mut next, &pending.effect, pending.since);
    }
    next.processes.remove(p);
    Some(next)
}

fn leads(bound: &Bound, state: &State) -> Option<State> {
    if state.processes.len() >= usize::from(bound.leaders) {
        return None;
    }
    let mut next = state.clone();
    next.processes.push(process(&state.objects, state.begun));
    next.begun += 1;
    Some(next)
}

/// What happens on the platform, in the cluster, or to the time by itself.
fn elsewhere(bound: &Bound, state: &State, action: Action) -> Option<State> {
    let mut next = state.clone();
    match action {
        Action::CarriedLate(number) => {
            let floating = next.platform.floating.remove(number);
            apply(bound, &mut next, &floating.effect);
        }
        Action::ForeignOneAppears => {
            next.left.foreign = state.left.foreign.checked_sub(1)?;
            foreign(bound, &mut next);
        }
        Action::UserDeletes(i) => {
            next.left.deletions = state.left.deletions.checked_sub(1)?;
            let mut meta = state.objects[i].as_ref().filter(|meta| meta.deletion_timestamp.is_none())?.clone_inner();
            meta.deletion_timestamp = Some(Time(at(0)));
            meta.resource_version = Some((version(&meta) + 1).to_string());
            put(&mut next, i, Print::of(meta));
        }
        _ => tick(bound, &mut next),
    }
    Some(next)
}

pub fn pending(state: &State, p: usize, i: usize) -> Option<Pending> {
    state.processes[p].records[i].flight.as_ref()?.pending.clone()
}

/// What was sent and is not answered: the cluster has done it, the platform may do it within a request's time.
fn sent(bound: &Bound, state: &mut State, effect: &Effect, since: u8) {
    if changes_platform(effect) {
        let until = if bound.late { u8::MAX } else { since + 1 };
        state.platform.floating.push(Floating { effect: effect.clone(), until });
    } else if !calls_platform(effect) {
        apply(bound, state, effect);
    }
}

fn read(bound: &Bound, state: &State, p: usize, platform: &Platform, failed: bool) -> Option<State> {
    if matches!(bound.subject, Subject::Key { .. }) {
        return None;
    }
    let shown = platform.computes.iter();
    let shown = shown.map(|(id, found)| compute(*id, found.name.clone(), found.setting, "p-1"));
    let computes = if failed { Vec::new() } else { shown.collect() };
    let mut next = state.clone();
    let process = &mut next.processes[p];
    process.reading = Some(Print::of(Reading { at: state.now(p), computes, failed }));
    process.records.iter_mut().for_each(|record| record.fresh = true);
    (super::state::hash(&next.processes[p]) != super::state::hash(&state.processes[p])).then_some(next)
}

/// Somebody else's. Where nothing but what it looks like tells it from ours, it looks otherwise.
fn foreign(bound: &Bound, state: &mut State) {
    state.platform.made += 1;
    let id = state.platform.made;
    match bound.subject {
        Subject::Computes { marks, .. } => {
            let name = marks.then(|| "theirs".to_owned());
            state.platform.computes.insert(id, Compute { name, foreign: true, setting: marks });
        }
        Subject::Key { .. } => drop(state.platform.keys.insert(id, Key { name: "theirs".into(), foreign: true })),
    }
}

fn tick(bound: &Bound, state: &mut State) {
    let lagging = Platform { before: None, floating: Vec::new(), ..state.platform.clone() };
    state.platform.before = (state.left.lagging > 0).then(|| Box::new(lagging));
    state.tick += 1;
    let tick = state.tick;
    state.platform.floating.retain(|floating| floating.until >= tick);
    // Who waits for the platform for longer than a request may take is told that no answer came.
    for p in 0..state.processes.len() {
        for i in 0..bound.count() {
            let waited = pending(state, p, i).filter(|it| calls_platform(&it.effect) && it.since + 1 < tick);
            if let Some(Pending { effect, .. }) = waited {
                answer(bound, state, p, i, silence(&effect));
            }
        }
    }
}
