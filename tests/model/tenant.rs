//! A hostile tenant: it owns the namespace of the second Compute and forges records in its
//! annotation. Its account reaches the project of the first Compute, which has a compute.

use dbplane::decide::names::RECORD;
use serde_json::json;

use super::bound::{Bound, compute_spec};
use super::edits::STANDING_ACCOUNTS;
use super::in_memory::forged::{Forged, Victim, sealed};
use super::promises::bound_compute;
use super::state::{State, at};

/// The forged records.
pub const FORGED: [Forged; 5] = [
    Forged::Binding,
    Forged::Intent,
    Forged::Unanswered,
    Forged::Mark,
    Forged::Nonsense,
];

/// The index of the tenant's resource.
pub const TENANTS: usize = 1;

/// Forges a record in the annotation of the tenant's resource, which is created if necessary.
pub fn forges(bound: &Bound, state: &State, what: Forged) -> Option<State> {
    let mut next = state.clone();
    next.left.forgeries = state.left.forgeries.checked_sub(1)?;
    let own = bound.resource(TENANTS);
    if !state.cluster.objects.contains_key(&own) {
        next.cluster_mut()
            .create(&own, &compute_spec(bound), &json!({}), at(0));
    }
    let stored = next
        .cluster
        .objects
        .get(&own)
        .filter(|stored| !stored.is_deleting())?;
    let victims = state.cluster.objects.get(&bound.resource(0))?;
    let binding = &bound_compute(bound, victims).identity.binding;
    let made = state
        .platform
        .computes
        .values()
        .find(|it| it.made_for.as_ref() == Some(&bound.resource(0)));
    let victim = Victim {
        platform: STANDING_ACCOUNTS[0].url,
        project: "p-1",
        branch: "br-1",
        compute: binding.as_ref().map(|binding| binding.id.to_string()),
        mark: made.and_then(|made| made.name.clone()),
    };
    let text = sealed(&own, stored.uid(), what.record(&victim, at(state.tick)));
    if stored.value["metadata"]["annotations"][RECORD] == text {
        return None;
    }
    next.cluster_mut()
        .edit(&own, &json!({"metadata": {"annotations": {RECORD: text}}}));
    Some(next)
}

/// Harm to the first resource, which only the tenant could have caused.
pub fn harmed(bound: &Bound, state: &State) -> Option<String> {
    if bound.forgeries == 0 {
        return None;
    }
    let victim = bound.resource(0);
    let stored = state.cluster.objects.get(&victim)?;
    let made: Vec<u8> = state
        .platform
        .computes
        .iter()
        .filter(|(_, it)| it.made_for.as_ref() == Some(&victim))
        .map(|(id, _)| *id)
        .collect();
    let bound_to = bound_compute(bound, stored)
        .identity
        .binding
        .as_ref()
        .map(|binding| binding.id.to_string());
    let has_its_own = matches!(made.as_slice(), [id] if bound_to == Some(format!("ep-{id}")));
    (!has_its_own).then(|| {
        format!("{made:?} are there for another namespace, which is bound to {bound_to:?}")
    })
}
