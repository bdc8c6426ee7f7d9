//! Computes that are handed over to another name, and what belongs to whom then.

use dbplane::api::Compute;
use dbplane::decide::identity;
use kube::ResourceExt;
use serde_json::json;

use super::history::{History, compute};
use super::in_memory::Resource;
use super::in_memory::cluster::Stored;
use super::run::Run;
use super::simulation::Simulation;

/// The second name of a resource.
fn second(number: usize) -> Resource {
    ("Compute", format!("h{number}"))
}

/// Both names under which a Compute may be.
pub fn names(number: usize) -> [Resource; 2] {
    [compute(number), second(number)]
}

impl History {
    /// Which Compute has that name.
    pub fn number(&self, resource: &Resource) -> Option<usize> {
        (0..self.computes.len()).find(|number| names(*number).contains(resource))
    }
}

impl Run<'_> {
    /// The name that a Compute has at present.
    pub fn named(&self, number: usize) -> Resource {
        let [first, second] = names(number);
        if self.renamed.contains(&number) { second } else { first }
    }

    /// The resource gets its other name: declared, applied and deleted in this order.
    pub fn hand_over(&mut self, number: usize, order: u8) {
        let old = self.named(number);
        let new = names(number).into_iter().find(|name| *name != old).unwrap();
        let mut simulation = self.simulation.lock();
        let Some(spec) = self.history.spec(&new) else { return };
        if simulation.cluster.objects.contains_key(&new)
            || simulation.cluster.objects.get(&old).is_none_or(|stored| !is_bound(stored))
        {
            return;
        }
        let now = simulation.now;
        let declare = |simulation: &mut Simulation| {
            simulation.cluster.edit(&old, &json!({"spec": {"handOverTo": {"name": new.1}, "takeOverFrom": null}}));
        };
        let delete = |simulation: &mut Simulation| simulation.cluster.delete(&old, now);
        let mut asking = spec;
        asking["takeOverFrom"] = json!({"name": old.1});
        let apply = |simulation: &mut Simulation| simulation.cluster.create(&new, &asking, &json!({}), now);
        let acts: [&dyn Fn(&mut Simulation); 3] = match order % 3 {
            0 => [&declare, &apply, &delete],
            1 => [&apply, &declare, &delete],
            _ => [&declare, &delete, &apply],
        };
        acts.into_iter().for_each(|act| act(&mut simulation));
        drop(simulation);
        if !self.renamed.remove(&number) {
            self.renamed.insert(number);
        }
    }
}

impl Run<'_> {
    /// A person has deleted the one that was to take over before it has, or the account, through which nobody begins anything then.
    pub fn hand_over_waits(&self, object: &Compute) -> bool {
        let Some(number) = self.history.number(&("Compute", object.name_any())) else { return false };
        let objects = &self.simulation.lock().cluster.objects;
        let is_alone = names(number).iter().filter(|name| objects.contains_key(*name)).count() == 1;
        is_alone || objects.get(&self.history.account.resource()).is_some_and(|account| account.is_deleting())
    }
}

/// Whether it has a compute, and is held until that is gone.
fn is_bound(stored: &Stored) -> bool {
    let record = identity::of_compute(&stored.typed::<Compute>()).unwrap_or_default();
    let held = stored.value["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    record.identity.binding.is_some() && record.is_annotated && held && !stored.is_deleting()
}

impl Simulation {
    /// What a resource has taken over counts as made for it from then on: its predecessor may not touch that any more. It may only take
    /// over what is released to it, or what nobody has any more.
    pub fn note_hand_overs(&mut self) {
        for object in self.cluster.all::<Compute>() {
            let known = identity::of_compute(&object).unwrap_or_default().identity;
            let hand_over = known.hand_over;
            let (Some(binding), Some(predecessor), None) = (known.binding, hand_over.predecessor, hand_over.released)
            else {
                continue;
            };
            let former = ("Compute", predecessor.place.name);
            let name = object.name_any();
            if self.ledger.computes.get(&binding.id) != Some(&former) {
                continue;
            }
            let stands = self.cluster.get::<Compute>(&former.1);
            let is_released = stands.is_none_or(|stands| {
                let released = identity::of_compute(&stands).unwrap_or_default().identity.hand_over.released;
                released.is_some_and(|released| released.to.name == name)
            });
            if !is_released {
                let violation = format!("{name} has taken over {}, which {} has", binding.id, former.1);
                self.ledger.violations.push(violation);
            }
            self.ledger.computes.insert(binding.id, ("Compute", name));
        }
    }
}
