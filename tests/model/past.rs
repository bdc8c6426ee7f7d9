//! Past events that promises depend on, and that neither the platform nor the cluster shows any
//! more.

use std::collections::BTreeSet;

use dbplane::decide::identity::{ComputeIdentity, Origin};

use super::bound::{Bound, Subject};
use super::edits::is_orphaned;
use super::in_memory::{Request, Resource};
use super::promises::{bound_compute, recorded_key};
use super::remote::number;
use super::state::State;

#[derive(Clone, Debug, Default, Hash)]
pub struct Past {
    /// Computes that users have named in specs. Each is deleted with the resource bound to it.
    pub named: BTreeSet<u8>,
    /// Objects of resources whose policy at deletion was to keep them, and has not changed since.
    pub kept: BTreeSet<(usize, u8)>,
    /// Deleted resources whose objects were left to users.
    pub orphaned: BTreeSet<Resource>,
    /// Others' computes with the same settings as ours, where no mark distinguishes them.
    pub alike: BTreeSet<u8>,
    /// Computes made by a create whose resource has adopted such a compute instead. They are no
    /// longer looked for.
    pub overlooked: BTreeSet<u8>,
    /// Texts of the events that named computes.
    pub events: BTreeSet<String>,
    /// Number of keys created by the operator.
    pub keys: u8,
}

impl Past {
    /// Notes that resource `i` is being deleted now.
    pub fn deleted(&mut self, bound: &Bound, state: &State, i: usize) {
        let Some(stored) = state
            .cluster
            .objects
            .get(&bound.resource(i))
            .filter(|stored| is_orphaned(stored))
        else {
            return;
        };
        let has = match bound.subject {
            Subject::Computes { .. } => {
                let binding = &bound_compute(bound, stored).identity.binding;
                binding.as_ref().map(|binding| number(&binding.id))
            }
            Subject::Key { .. } => {
                let current = &recorded_key(bound, stored).identity.records.current;
                current.as_ref().and_then(|key| u8::try_from(key.id.0).ok())
            }
        };
        self.kept.extend(has.map(|id| (i, id)));
    }
}

/// Notes the effects of a request to the API server since `before`.
pub fn record_past(bound: &Bound, before: &State, state: &mut State, request: &Request) {
    match request {
        Request::Event { text, .. } if text.contains("ep-") => {
            state.past.events.insert(text.clone());
        }
        Request::Patch { resource, .. } | Request::ApplyStatus { resource, .. }
            if bound.is_of_key() || resource.0 == "Compute" =>
        {
            let was = before.cluster.objects.get(resource);
            match state.cluster.objects.get(resource) {
                None if was.is_some_and(|was| is_orphaned(was)) => {
                    state.past.orphaned.insert(resource.clone());
                }
                Some(_) if !state.past.alike.is_empty() => {
                    let was = was
                        .map(|was| bound_compute(bound, was).identity)
                        .unwrap_or_default();
                    mistaken(bound, &was, state, resource);
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// The resource is bound to another's compute that could not be distinguished from its own. It is
/// newer than the list before a create with unknown outcome. It counts as its own from now on, and
/// the create's real result is no longer looked for.
fn mistaken(bound: &Bound, was: &ComputeIdentity, state: &mut State, resource: &Resource) {
    let Some(binding) = bound_compute(bound, &state.cluster.objects[resource])
        .identity
        .binding
        .clone()
    else {
        return;
    };
    let id = number(&binding.id);
    let mut creates = was.intent.iter().chain(&was.unanswered);
    let is_new = creates.any(|create| {
        create
            .baseline
            .as_ref()
            .is_some_and(|known| !known.contains(&binding.id))
    });
    if binding.origin != Origin::Created || !is_new || !state.past.alike.remove(&id) {
        return;
    }
    for (other, compute) in &mut state.platform.computes {
        if *other == id {
            compute.made_for = Some(resource.clone());
        } else if compute.made_for.as_ref() == Some(resource) {
            state.past.overlooked.insert(*other);
        }
    }
    for floating in &mut state.platform.floating {
        if floating.creates_for(resource) {
            floating.in_time = None;
        }
    }
}
