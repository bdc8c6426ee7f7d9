//! The actions of the model: everything that can happen next.

use std::sync::Arc;

use dbplane::controller::environment::{Kind, KindVisitor, Kinds};
use dbplane::controller::registry::AllKinds;
use dbplane::decide::names;
use kube::Resource as _;

use super::bound::Bound;
use super::edits::{Edit, edited};
use super::effects::{
    Meddling, answered_as_before, apply, calls_platform, changes_platform, meddled, refusal,
    repeated, silence, writes,
};
use super::in_memory::cluster::Stored;
use super::in_memory::forged::Forged;
use super::in_memory::{Print, Request, hash};
use super::mutation::{Mutation, as_if_its_own};
use super::pass::{answer, pass};
use super::people::{exposed, of_people, people, rewritten};
use super::replay::{Answer, Base, Call, Effect, Pending, PendingPass, Replay, outside_of_passes};
use super::state::{Floating, State, process};
use super::surroundings::{elsewhere, read};
use super::tenant::{FORGED, forges};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Process, resource: observes, decides, and begins a step if one is due.
    Pass(usize, usize),
    /// The pending effect is carried out and answered.
    Carried(usize, usize),
    /// A proxy sends the pending create twice. Both are carried out, and the second answer arrives.
    Repeated(usize, usize),
    /// The pending effect is carried out, and answered later.
    Sent(usize, usize),
    /// The answer is lost. A cluster write is carried out; a platform call may be, later.
    AnswerLost(usize, usize),
    Refused(usize, usize),
    /// A policy refuses or changes the write of a key's Secret.
    Meddled(usize, usize, Meddling),
    /// The platform answers as it would have one tick before.
    AnsweredAsBefore(usize, usize),
    /// The watch delivers the current version of the resource.
    Delivered(usize, usize),
    /// The process reads the platform.
    Reads(usize),
    ReadsWhatWasBefore(usize),
    ReadFails(usize),
    /// The list succeeds, but lacks this compute.
    ReadsAllBut(usize, u8),
    /// A request whose answer was lost is carried out.
    CarriedLate(usize),
    ForeignOneAppears,
    /// The same, with the same settings as ours.
    LikeOursAppears,
    /// A compute is deleted in the console.
    Vanishes(u8),
    UserDeletes(usize),
    UserEdits(usize, Edit),
    UserConfirms(usize),
    /// The resource is replaced by its manifest.
    UserReplaces(usize),
    /// The resource is exported; its older record may be applied later.
    UserExports(usize),
    UserApplies(usize),
    /// The record of the first one is applied to the second one.
    UserCopies(usize, usize),
    /// A tenant of another namespace seals a forged record in the annotation of its own Compute.
    TenantForges(Forged),
    KeyExchanged,
    AccountDeleted,
    /// The account of the other namespace is created.
    AccountAppears,
    /// The ClusterAccount stops admitting the namespace, or admits it again.
    AdmissionChanged,
    /// The process loses the API server. The flag is true if it got the pending requests.
    CutOff(usize, bool),
    /// The process dies. The flag is true if its pending requests were sent.
    Dies(usize, bool),
    Leads,
    Tick,
}

/// All possible actions and the resulting states.
pub fn successors(bound: &Bound, state: &State) -> Vec<(Action, State)> {
    attempts(bound, state)
        .into_iter()
        .filter_map(|action| Some((action, happen(bound, state, action)?)))
        .collect()
}

/// All actions to try in a state. Most of them are impossible in any given one.
fn attempts(bound: &Bound, state: &State) -> Vec<Action> {
    let exposed = exposed(bound, state);
    let mut actions = Vec::new();
    for p in 0..state.processes.len() {
        actions.extend(bound.all().flat_map(|i| of_resource(p, i)));
        actions.extend(of_process(p));
        actions.extend(exposed.iter().map(|id| Action::ReadsAllBut(p, *id)));
    }
    actions.extend((0..state.platform.floating.len()).map(Action::CarriedLate));
    actions.extend(exposed.into_iter().map(Action::Vanishes));
    actions.extend(of_people(bound, state));
    actions.extend(FORGED.map(Action::TenantForges));
    actions.extend([
        Action::ForeignOneAppears,
        Action::LikeOursAppears,
        Action::KeyExchanged,
        Action::AccountDeleted,
        Action::AccountAppears,
        Action::AdmissionChanged,
        Action::Leads,
    ]);
    if state.tick < bound.ticks {
        actions.push(Action::Tick);
    }
    actions
}

/// The actions of process `p` on resource `i`.
fn of_resource(p: usize, i: usize) -> [Action; 11] {
    [
        Action::Carried(p, i),
        Action::Repeated(p, i),
        Action::Sent(p, i),
        Action::AnswerLost(p, i),
        Action::Refused(p, i),
        Action::Meddled(p, i, Meddling::Refuses),
        Action::Meddled(p, i, Meddling::Alters),
        Action::Meddled(p, i, Meddling::Strips),
        Action::AnsweredAsBefore(p, i),
        Action::Delivered(p, i),
        Action::Pass(p, i),
    ]
}

/// The actions of process `p` on all its resources.
fn of_process(p: usize) -> [Action; 7] {
    [
        Action::Reads(p),
        Action::ReadsWhatWasBefore(p),
        Action::ReadFails(p),
        Action::CutOff(p, false),
        Action::CutOff(p, true),
        Action::Dies(p, false),
        Action::Dies(p, true),
    ]
}

/// The state after an action; `None` if it is impossible or changes nothing.
pub fn happen(bound: &Bound, state: &State, action: Action) -> Option<State> {
    match action {
        Action::Pass(p, i) => {
            let pass = pass(bound, state, p, i)?;
            // A pass without an effect counts only if it changes the memory of the process.
            let before = hash(&state.processes[p]);
            (pass.waits || hash(&pass.state.processes[p]) != before)
                .then(|| with_deletion(bound, pass.state, p, i))
        }
        Action::Carried(p, i)
        | Action::Repeated(p, i)
        | Action::AnswerLost(p, i)
        | Action::Refused(p, i)
        | Action::Meddled(p, i, _)
        | Action::AnsweredAsBefore(p, i) => answered(bound, state, action, p, i),
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
        Action::CutOff(p, sends) => cut_off(bound, state, p, sends),
        Action::Dies(p, sends) => dies(bound, state, p, sends),
        Action::Leads => leads(bound, state),
        Action::CarriedLate(_)
        | Action::ForeignOneAppears
        | Action::LikeOursAppears
        | Action::Vanishes(_)
        | Action::UserDeletes(_)
        | Action::Tick => elsewhere(bound, state, action),
        Action::TenantForges(what) => forges(bound, state, what),
        Action::UserEdits(i, edit) => edited(bound, state, i, edit),
        Action::UserReplaces(i)
        | Action::UserExports(i)
        | Action::UserApplies(i)
        | Action::UserCopies(_, i) => rewritten(bound, state, action, i),
        Action::UserConfirms(_)
        | Action::KeyExchanged
        | Action::AccountDeleted
        | Action::AccountAppears
        | Action::AdmissionChanged => people(bound, state, action),
    }
}

fn answered(bound: &Bound, state: &State, action: Action, p: usize, i: usize) -> Option<State> {
    let Pending {
        effect,
        since,
        came,
    } = pending(state, p, i)?;
    let mut next = state.clone();
    let came = match (action, came) {
        (Action::Carried(..), _) if is_unreachable(state, p, &effect) => silence(&effect),
        _ if is_unreachable(state, p, &effect) => return None,
        (Action::Carried(..), Some(came)) => came,
        (_, Some(_)) => return None,
        (action, None) => outcome(bound, &mut next, action, &effect, since)?,
    };
    answer(bound, &mut next, p, i, came);
    Some(with_deletion(bound, next, p, i))
}

/// Records a pending deletion that no user has confirmed.
fn with_deletion(bound: &Bound, mut state: State, p: usize, i: usize) -> State {
    let Some(Pending {
        effect: Effect::Platform(_, Call::DeleteCompute(id)),
        ..
    }) = pending(&state, p, i)
    else {
        return state;
    };
    let stored = state.cluster.objects.get(&bound.resource(i));
    let confirmed = stored
        .is_some_and(|it| it.value["metadata"]["annotations"][names::CONFIRM_DELETION].is_string());
    let known = state.deletions.iter().any(|(_, other, _)| *other == id);
    if bound.is_braked() && !confirmed && !known {
        state
            .deletions
            .push((state.processes[p].number, id, state.tick));
    }
    state
}

fn outcome(
    bound: &Bound,
    next: &mut State,
    action: Action,
    effect: &Effect,
    since: u8,
) -> Option<Answer> {
    let is_event = matches!(effect, Effect::Cluster(Request::Event { .. }));
    Some(match action {
        // No step waits for events.
        Action::AnswerLost(..) | Action::Refused(..) if is_event => return None,
        Action::AnswerLost(..) => {
            next.left.lost = next.left.lost.checked_sub(1)?;
            sent(bound, next, effect, since);
            silence(effect)
        }
        Action::Repeated(..) => {
            next.left.repeated = next.left.repeated.checked_sub(1)?;
            repeated(bound, next, effect)?
        }
        Action::Refused(..) => {
            next.left.refused = next.left.refused.checked_sub(1)?;
            refusal(effect)
        }
        Action::Meddled(_, _, how) => {
            next.left.meddled = next.left.meddled.checked_sub(1)?;
            meddled(bound, next, effect, how)?
        }
        Action::AnsweredAsBefore(..) => {
            next.left.lagging = next.left.lagging.checked_sub(1)?;
            answered_as_before(next, effect)?
        }
        _ => apply(bound, next, effect),
    })
}

fn answered_later(bound: &Bound, state: &State, p: usize, i: usize) -> Option<State> {
    let Pending {
        effect,
        since,
        came: None,
    } = pending(state, p, i)?
    else {
        return None;
    };
    if calls_platform(&effect) || !writes(&effect) || state.processes[p].cut_off {
        return None;
    }
    let mut next = state.clone();
    next.left.slow = state.left.slow.checked_sub(1)?;
    let came = Some(apply(bound, &mut next, &effect));
    let pending_pass = next.processes[p].pending_passes.get(&i)?.clone_inner();
    let pending_pass = PendingPass {
        pending: Pending {
            effect,
            since,
            came,
        },
        ..pending_pass
    };
    next.process_mut(p)
        .pending_passes
        .insert(i, pending_pass.print());
    Some(next)
}

fn delivered(bound: &Bound, state: &State, p: usize, i: usize) -> Option<State> {
    let resource = bound.resource(i);
    let before = state.processes[p].caches.get(&resource);
    if state.processes[p].cut_off {
        return None;
    }
    let now = state.cluster.objects.get(&resource).map(|now| {
        if bound.is(Mutation::FollowAnnotations) {
            as_if_its_own(now)
        } else {
            now.clone()
        }
    });
    if before == now.as_ref() {
        return None;
    }
    let mut next = state.clone();
    match now {
        Some(now) => drop(next.process_mut(p).caches.insert(resource, now)),
        None => {
            next.process_mut(p).caches.remove(&resource);
            gone(bound, &mut next, p, before?);
        }
    }
    Some(next)
}

/// The process is notified that an object is gone.
fn gone(bound: &Bound, state: &mut State, p: usize, stored: &Print<Stored>) {
    let now = state.now(p);
    let process = state.process_mut(p);
    let base = Base {
        resource: bound.account_resource(),
        contents: process.contents(),
        caches: process.caches.clone(),
        read: None,
        fresh: true,
        keys: None,
        settings: bound.settings(),
        statuses: bound.statuses(),
        records_events: false,
        mutation: bound.mutation,
    };
    let base = Print::hashed(0, base);
    let contents = outside_of_passes(&base, now, |env| AllKinds::each(&mut Gone { env, stored }));
    process.remember(contents, stored.uid(), true);
    process.keys = None;
}

struct Gone<'a> {
    env: &'a Replay,
    stored: &'a Stored,
}

impl KindVisitor for Gone<'_> {
    fn visit<K: Kind>(&mut self) {
        if self.stored.value["kind"] == K::Object::kind(&()).as_ref() {
            K::on_deleted(self.env, self.stored.typed::<K::Object>().unwrap().as_ref());
        }
    }
}

/// From now on the API server does nothing for process `p`.
fn cut_off(bound: &Bound, state: &State, p: usize, sends: bool) -> Option<State> {
    let mut next = state.clone();
    next.left.cut_offs = state.left.cut_offs.checked_sub(1)?;
    next.process_mut(p).cut_off = true;
    let waiting = waiting(bound, state, p)
        .filter(|pending| !calls_platform(&pending.effect))
        .collect();
    send(bound, next, sends, waiting)
}

fn is_unreachable(state: &State, p: usize, effect: &Effect) -> bool {
    state.processes[p].cut_off && !calls_platform(effect)
}

fn dies(bound: &Bound, state: &State, p: usize, sends: bool) -> Option<State> {
    let mut next = state.clone();
    // A process that is cut off ends by itself.
    let is_cut_off = state.processes[p].cut_off;
    next.left.crashes = state.left.crashes.checked_sub(u8::from(!is_cut_off))?;
    let waiting = waiting(bound, state, p)
        .filter(|pending| !is_unreachable(state, p, &pending.effect))
        .collect();
    let mut next = send(bound, next, sends, waiting)?;
    next.processes.remove(p);
    Some(next)
}

/// The effects that process `p` waits for.
fn waiting(bound: &Bound, state: &State, p: usize) -> impl Iterator<Item = Pending> {
    bound.all().filter_map(move |i| pending(state, p, i))
}

/// Sends the pending effects, or not. `None` if there is nothing to send.
fn send(bound: &Bound, mut state: State, sends: bool, waiting: Vec<Pending>) -> Option<State> {
    if sends && waiting.is_empty() {
        return None;
    }
    for pending in waiting
        .iter()
        .filter(|pending| sends && pending.came.is_none())
    {
        sent(bound, &mut state, &pending.effect, pending.since);
    }
    Some(state)
}

fn leads(bound: &Bound, state: &State) -> Option<State> {
    if state.processes.len() >= usize::from(bound.leaders) {
        return None;
    }
    let mut next = state.clone();
    next.processes
        .push(Arc::new(process(bound, &state.cluster, state.begun)));
    next.begun += 1;
    Some(next)
}

pub fn pending(state: &State, p: usize, i: usize) -> Option<Pending> {
    state.processes[p]
        .pending_passes
        .get(&i)
        .map(|pending_pass| pending_pass.pending.clone())
}

/// A request without an answer: the cluster carries it out at once, the platform possibly within a
/// request's time.
fn sent(bound: &Bound, state: &mut State, effect: &Effect, since: u8) {
    if changes_platform(effect) {
        let in_time = since + 1;
        let until = if bound.late { u8::MAX } else { in_time };
        state.platform.floating.push(Floating {
            effect: effect.clone(),
            until,
            in_time: Some(in_time),
        });
    } else if !calls_platform(effect) {
        apply(bound, state, effect);
    }
}
