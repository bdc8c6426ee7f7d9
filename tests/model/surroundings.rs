//! Spontaneous events on the platform, in the cluster and of time, and reads of the platform.

use dbplane::domain::{self, Fault, Role};

use super::actions::{Action, pending};
use super::bound::{Bound, Subject};
use super::effects::{apply, calls_platform, compute, named_elsewhere, silence};
use super::in_memory::cluster::Stored;
use super::in_memory::{Print, hash};
use super::pass::answer;
use super::people::{has_finalizer, is_recorded};
use super::replay::{Answer, Pending};
use super::state::{Compute, Floating, Key, Platform, Read, State, at};

/// Applies a spontaneous event on the platform, in the cluster, or of time.
pub fn elsewhere(bound: &Bound, state: &State, action: Action) -> Option<State> {
    let mut next = state.clone();
    match action {
        Action::CarriedLate(number) => {
            let Floating {
                effect, in_time, ..
            } = next.platform.floating.remove(number);
            if let Answer::Made(id) = apply(bound, &mut next, &effect)
                && let Some(made) = next.platform.computes.get_mut(&id)
            {
                made.late = in_time.is_some_and(|in_time| state.tick > in_time);
                next.past.overlooked.extend(in_time.is_none().then_some(id));
            }
        }
        Action::ForeignOneAppears => {
            next.left.foreign = state.left.foreign.checked_sub(1)?;
            foreign(bound, &mut next);
        }
        Action::LikeOursAppears => {
            next.left.alike = state.left.alike.checked_sub(1)?;
            alike(bound, &mut next);
        }
        Action::Vanishes(id) => {
            next.left.vanishing = state.left.vanishing.checked_sub(1)?;
            next.platform.computes.remove(&id)?;
        }
        Action::UserDeletes(i) => {
            next.left.deletions = state.left.deletions.checked_sub(1)?;
            let resource = bound.resource(i);
            // If a user removes the finalizer and deletes the resource before the next pass, its
            // compute is forgotten. That case is excluded.
            let held = |stored: &&Print<Stored>| {
                bound.replacements == 0 || has_finalizer(stored) || !is_recorded(stored)
            };
            state
                .cluster
                .objects
                .get(&resource)
                .filter(|stored| !stored.is_deleting())
                .filter(held)?;
            next.past.deleted(bound, state, i);
            next.cluster_mut().delete(&resource, at(0));
        }
        // A process that is cut off ends before the next tick.
        _ if state.processes.iter().any(|process| process.cut_off) => return None,
        _ => tick(bound, &mut next),
    }
    Some(next)
}

pub fn read(
    bound: &Bound,
    state: &State,
    p: usize,
    platform: &Platform,
    failed: bool,
) -> Option<State> {
    if matches!(bound.subject, Subject::Key { .. }) {
        return None;
    }
    let (key, connection) = state.processes[p].connection()?;
    let role = if bound.primaries {
        Role::Primary
    } else {
        Role::Replica
    };
    let shown = |elsewhere: bool| {
        let computes = platform
            .computes
            .iter()
            .filter(move |(_, found)| found.elsewhere == elsewhere);
        computes.map(|(id, found)| domain::Compute {
            role,
            ..compute(*id, found.name.clone(), found.setting, "p-1")
        })
    };
    let computes = if failed {
        Err(Fault::Server {
            status: 500,
            message: String::new(),
        })
    } else if key != state.platform.accepted {
        Err(Fault::Unauthorized {
            message: String::new(),
        })
    } else {
        let mut computes: Vec<domain::Compute> = shown(false).collect();
        if bound.marks() {
            computes.push(named_elsewhere());
        }
        computes.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(computes)
    };
    let elsewhere = shown(true).collect();
    let mut next = state.clone();
    let at = state.now(p);
    let process = next.process_mut(p);
    process.read = Some(Print::of(Read {
        connection,
        at,
        computes,
        elsewhere,
    }));
    process.wrote_since.clear();
    (hash(&next.processes[p]) != hash(&state.processes[p])).then_some(next)
}

/// Creates a foreign compute or key. Without names, its setting differs, since nothing else would
/// distinguish it from ours.
fn foreign(bound: &Bound, state: &mut State) {
    state.platform.made += 1;
    let id = state.platform.made;
    match bound.subject {
        Subject::Computes { marks, .. } => {
            let name = marks.then(|| "theirs".to_owned());
            state.platform.computes.insert(
                id,
                Compute {
                    name,
                    setting: marks,
                    ..Compute::default()
                },
            );
        }
        Subject::Key { .. } => {
            state.platform.keys.insert(
                id,
                Key {
                    name: "theirs".into(),
                    foreign: true,
                    elsewhere: false,
                },
            );
        }
    }
}

/// Creates a foreign compute with our settings and without a name. While the outcome of a create is
/// unknown, only a mark distinguishes it from ours.
fn alike(bound: &Bound, state: &mut State) {
    state.platform.made += 1;
    let id = state.platform.made;
    state.platform.computes.insert(
        id,
        Compute {
            setting: true,
            ..Compute::default()
        },
    );
    if !bound.marks() {
        state.past.alike.insert(id);
    }
}

fn tick(bound: &Bound, state: &mut State) {
    let lagging = Platform {
        before: None,
        floating: Vec::new(),
        ..state.platform.clone()
    };
    state.platform.before = (state.left.lagging > 0).then(|| Box::new(lagging));
    state.tick += 1;
    let tick = state.tick;
    state.deletions.retain(|(_, _, at)| at + 2 > tick);
    state
        .platform
        .floating
        .retain(|floating| floating.until >= tick);
    // A call of the platform that takes longer than a request may take gets no answer.
    for p in 0..state.processes.len() {
        for i in bound.all() {
            let waited =
                pending(state, p, i).filter(|it| calls_platform(&it.effect) && it.since + 1 < tick);
            if let Some(Pending { effect, .. }) = waited {
                answer(bound, state, p, i, silence(&effect));
            }
        }
    }
}
