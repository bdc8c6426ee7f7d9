//! What can happen next.

use std::sync::Arc;

use dbplane::controller::environment::{Kind, KindVisitor, Kinds};
use dbplane::controller::registry::AllKinds;
use dbplane::decide::names;
use dbplane::domain::Fault;
use kube::Resource as _;

use super::bound::{Bound, Subject};
use super::effects::{apply, calls_platform, changes_platform, compute, named_elsewhere, refusal, silence, writes};
use super::in_memory::cluster::Stored;
use super::in_memory::{Print, hash};
use super::pass::{answer, pass};
use super::people::{exposed, has_finalizer, is_recorded, people, rewritten};
use super::replay::{Answer, Base, Call, Effect, Flight, Pending, Replay, outside_of_passes};
use super::state::{Compute, Floating, Key, Platform, Read, State, at, process};

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
    /// The watch delivers the resource as it is now.
    Delivered(usize, usize),
    /// The process reads the platform.
    Reads(usize),
    ReadsWhatWasBefore(usize),
    ReadFails(usize),
    /// The list is answered, and lacks this compute.
    ReadsAllBut(usize, u8),
    /// A request whose answer was lost is carried out.
    CarriedLate(usize),
    ForeignOneAppears,
    /// Somebody deletes a compute in the console.
    Vanishes(u8),
    UserDeletes(usize),
    UserConfirms(usize),
    /// Somebody replaces the resource by its manifest.
    UserReplaces(usize),
    /// Somebody exports the resource, and applies the older record later.
    UserExports(usize),
    UserApplies(usize),
    KeyExchanged,
    AccountDeleted,
    /// The ClusterAccount ceases to admit the namespace, or admits it again.
    AdmissionChanged,
    /// The process dies; whether what it was waiting for has been sent.
    Dies(usize, bool),
    Leads,
    Tick,
}

/// Everything that can happen now, and what comes of it.
pub fn successors(bound: &Bound, state: &State) -> Vec<(Action, State)> {
    let mut next = Vec::new();
    let exposed = exposed(bound, state);
    let mut try_all = |actions: &[Action]| {
        next.extend(actions.iter().filter_map(|action| Some((*action, happen(bound, state, *action)?))));
    };
    for p in 0..state.processes.len() {
        for i in bound.all() {
            try_all(&[
                Action::Carried(p, i),
                Action::Sent(p, i),
                Action::AnswerLost(p, i),
                Action::Refused(p, i),
                Action::Delivered(p, i),
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
        for id in &exposed {
            try_all(&[Action::ReadsAllBut(p, *id)]);
        }
    }
    for number in 0..state.platform.floating.len() {
        try_all(&[Action::CarriedLate(number)]);
    }
    for id in &exposed {
        try_all(&[Action::Vanishes(*id)]);
    }
    for i in bound.subjects() {
        try_all(&[
            Action::UserDeletes(i),
            Action::UserConfirms(i),
            Action::UserReplaces(i),
            Action::UserExports(i),
            Action::UserApplies(i),
        ]);
    }
    try_all(&[
        Action::ForeignOneAppears,
        Action::KeyExchanged,
        Action::AccountDeleted,
        Action::AdmissionChanged,
        Action::Leads,
    ]);
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
            // A pass that waits for nothing can teach the process something; otherwise nothing has happened.
            let before = hash(&state.processes[p]);
            (pass.waits || hash(&pass.state.processes[p]) != before).then(|| with_deletion(bound, pass.state, p, i))
        }
        Action::Carried(p, i) | Action::AnswerLost(p, i) | Action::Refused(p, i) => {
            answered(bound, state, action, p, i)
        }
        Action::Sent(p, i) => answered_later(bound, state, p, i),
        Action::Delivered(p, i) => delivered(bound, state, p, i),
        Action::Reads(p) => read(bound, state, p, &state.platform, false),
        Action::ReadsWhatWasBefore(p) => {
            let mut next = state.clone();
            next.left.lagging = state.left.lagging.checked_sub(1)?;
            read(bound, &next, p, state.platform.before.as_ref()?, false)
        }
        Action::ReadsAllBut(p, id) => {
            let mut next = state.clone();
            next.left.partial = state.left.partial.checked_sub(1)?;
            let mut shown = state.platform.clone();
            shown.computes.remove(&id)?;
            read(bound, &next, p, &shown, false)
        }
        Action::ReadFails(p) => {
            let mut next = state.clone();
            next.left.refused = state.left.refused.checked_sub(1)?;
            read(bound, &next, p, &state.platform, true)
        }
        Action::Dies(p, sends) => dies(bound, state, p, sends),
        Action::Leads => leads(bound, state),
        Action::CarriedLate(_)
        | Action::ForeignOneAppears
        | Action::Vanishes(_)
        | Action::UserDeletes(_)
        | Action::Tick => elsewhere(bound, state, action),
        Action::UserReplaces(i) | Action::UserExports(i) | Action::UserApplies(i) => rewritten(bound, state, action, i),
        Action::UserConfirms(_) | Action::KeyExchanged | Action::AccountDeleted | Action::AdmissionChanged => {
            people(bound, state, action)
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
    Some(with_deletion(bound, next, p, i))
}

/// Keeps in mind what is about to be deleted without a person's confirmation.
fn with_deletion(bound: &Bound, mut state: State, p: usize, i: usize) -> State {
    let Some(Pending { effect: Effect::Platform(_, Call::DeleteCompute(id)), .. }) = pending(&state, p, i) else {
        return state;
    };
    let stored = state.cluster.objects.get(&bound.resource(i));
    let confirmed = stored.is_some_and(|it| it.value["metadata"]["annotations"][names::CONFIRM_DELETION] == "true");
    let known = state.deletions.iter().any(|(_, other, _)| *other == id);
    if bound.is_braked() && !confirmed && !known {
        state.deletions.push((state.processes[p].number, id, state.tick));
    }
    state
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
    let flight = next.processes[p].flights.get(&i)?.clone_inner();
    let flight = Flight { pending: Pending { effect, since, came }, ..flight };
    next.process_mut(p).flights.insert(i, flight.print());
    Some(next)
}

fn delivered(bound: &Bound, state: &State, p: usize, i: usize) -> Option<State> {
    let resource = bound.resource(i);
    let before = state.processes[p].caches.get(&resource);
    let now = state.cluster.objects.get(&resource);
    if before == now {
        return None;
    }
    let mut next = state.clone();
    match now {
        Some(now) => drop(next.process_mut(p).caches.insert(resource, now.clone())),
        None => {
            next.process_mut(p).caches.remove(&resource);
            gone(bound, &mut next, p, before?);
        }
    }
    Some(next)
}

/// The process hears that an object is gone.
fn gone(bound: &Bound, state: &mut State, p: usize, stored: &Print<Stored>) {
    let now = state.now(p);
    let process = state.process_mut(p);
    let base = Base {
        resource: bound.account_resource(),
        contents: process.contents(),
        caches: process.caches.clone(),
        read: None,
        fresh: true,
        settings: bound.settings(),
        statuses: bound.statuses(),
        mutation: bound.mutation,
    };
    let base = Print::hashed(0, base);
    let contents = outside_of_passes(&base, now, |env| AllKinds::each(&mut Gone { env, stored }));
    process.remember(contents, stored.uid(), true);
}

struct Gone<'a> {
    env: &'a Replay,
    stored: &'a Stored,
}

impl KindVisitor for Gone<'_> {
    fn visit<K: Kind>(&mut self) {
        if self.stored.value["kind"] == K::Object::kind(&()).as_ref() {
            K::on_deleted(self.env, self.stored.typed::<K::Object>().as_ref());
        }
    }
}

fn dies(bound: &Bound, state: &State, p: usize, sends: bool) -> Option<State> {
    let mut next = state.clone();
    next.left.crashes = state.left.crashes.checked_sub(1)?;
    let waiting: Vec<_> = bound.all().filter_map(|i| pending(state, p, i)).collect();
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
    next.processes.push(Arc::new(process(bound, &state.cluster, state.begun)));
    next.begun += 1;
    Some(next)
}

/// What happens on the platform, in the cluster, or to the time by itself.
fn elsewhere(bound: &Bound, state: &State, action: Action) -> Option<State> {
    let mut next = state.clone();
    match action {
        Action::CarriedLate(number) => {
            let Floating { effect, in_time, .. } = next.platform.floating.remove(number);
            if let Answer::Made(id) = apply(bound, &mut next, &effect)
                && let Some(made) = next.platform.computes.get_mut(&id)
            {
                made.late = state.tick > in_time;
            }
        }
        Action::ForeignOneAppears => {
            next.left.foreign = state.left.foreign.checked_sub(1)?;
            foreign(bound, &mut next);
        }
        Action::Vanishes(id) => {
            next.left.vanishing = state.left.vanishing.checked_sub(1)?;
            next.platform.computes.remove(&id)?;
        }
        Action::UserDeletes(i) => {
            next.left.deletions = state.left.deletions.checked_sub(1)?;
            let resource = bound.resource(i);
            // Who removes the finalizer and deletes before the next pass has the resource forgotten.
            let held =
                |stored: &&Print<Stored>| bound.replacements == 0 || has_finalizer(stored) || !is_recorded(stored);
            state.cluster.objects.get(&resource).filter(|stored| !stored.is_deleting()).filter(held)?;
            next.cluster_mut().delete(&resource, at(0));
        }
        _ => tick(bound, &mut next),
    }
    Some(next)
}

pub fn pending(state: &State, p: usize, i: usize) -> Option<Pending> {
    state.processes[p].flights.get(&i).map(|flight| flight.pending.clone())
}

/// What was sent and is not answered: the cluster has done it, the platform may do it within a request's time.
fn sent(bound: &Bound, state: &mut State, effect: &Effect, since: u8) {
    if changes_platform(effect) {
        let in_time = since + 1;
        let until = if bound.late { u8::MAX } else { in_time };
        state.platform.floating.push(Floating { effect: effect.clone(), until, in_time });
    } else if !calls_platform(effect) {
        apply(bound, state, effect);
    }
}

fn read(bound: &Bound, state: &State, p: usize, platform: &Platform, failed: bool) -> Option<State> {
    if matches!(bound.subject, Subject::Key { .. }) {
        return None;
    }
    let (key, connection) = state.processes[p].connection()?;
    let shown = platform.computes.iter();
    let shown = shown.map(|(id, found)| compute(*id, found.name.clone(), found.setting, "p-1"));
    let computes = match failed {
        true => Err(Fault::Server { status: 500, message: String::new() }),
        false if key != state.platform.accepted => Err(Fault::Unauthorized { message: String::new() }),
        false => Ok(shown.chain(bound.marks().then(named_elsewhere)).collect()),
    };
    let computes = computes.map(|mut computes: Vec<dbplane::domain::Compute>| {
        computes.sort_by(|one, other| one.id.cmp(&other.id));
        computes
    });
    let mut next = state.clone();
    let at = state.now(p);
    let process = next.process_mut(p);
    process.read = Some(Print::of(Read { connection, at, computes }));
    process.wrote_since.clear();
    (hash(&next.processes[p]) != hash(&state.processes[p])).then_some(next)
}

/// Somebody else's. Where nothing but what it looks like tells it from ours, it looks otherwise.
fn foreign(bound: &Bound, state: &mut State) {
    state.platform.made += 1;
    let id = state.platform.made;
    match bound.subject {
        Subject::Computes { marks, .. } => {
            let name = marks.then(|| "theirs".to_owned());
            state.platform.computes.insert(id, Compute { name, made_for: None, setting: marks, late: false });
        }
        Subject::Key { .. } => drop(state.platform.keys.insert(id, Key { name: "theirs".into(), foreign: true })),
    }
}

fn tick(bound: &Bound, state: &mut State) {
    let lagging = Platform { before: None, floating: Vec::new(), ..state.platform.clone() };
    state.platform.before = (state.left.lagging > 0).then(|| Box::new(lagging));
    state.tick += 1;
    let tick = state.tick;
    state.deletions.retain(|(_, _, at)| at + 2 > tick);
    state.platform.floating.retain(|floating| floating.until >= tick);
    // Who waits for the platform for longer than a request may take gets no answer.
    for p in 0..state.processes.len() {
        for i in bound.all() {
            let waited = pending(state, p, i).filter(|it| calls_platform(&it.effect) && it.since + 1 < tick);
            if let Some(Pending { effect, .. }) = waited {
                answer(bound, state, p, i, silence(&effect));
            }
        }
    }
}
