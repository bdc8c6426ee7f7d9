//! Computes and keys that are handed over to another name, and what belongs to whom then.

use dbplane::api::{Compute, ProjectKey};
use dbplane::decide::identity;
use kube::ResourceExt;
use serde_json::json;

use super::history::{History, compute, key};
use super::in_memory::Resource;
use super::in_memory::cluster::Stored;
use super::run::Run;
use super::simulation::Simulation;

/// Both names under which a Compute may be.
pub fn names(number: usize) -> [Resource; 2] {
    [compute(number), ("Compute", format!("h{number}"))]
}

/// The same for the ProjectKey.
pub fn key_names() -> [Resource; 2] {
    [key(), ("ProjectKey", "di".to_owned())]
}

impl History {
    /// Which Compute has that name.
    pub fn number(&self, resource: &Resource) -> Option<usize> {
        (0..self.computes.len()).find(|number| names(*number).contains(resource))
    }

    /// The other name of a resource.
    pub fn other_name(&self, resource: &Resource) -> Option<Resource> {
        let of_compute = self.number(resource).map(names);
        let both = of_compute.or_else(|| Some(key_names()).filter(|names| names.contains(resource)))?;
        both.into_iter().find(|name| name != resource)
    }
}

impl Run<'_> {
    /// The name that a resource has at present, of which this is one.
    fn present(&self, first: Resource) -> Resource {
        let second = || self.history.other_name(&first);
        second().filter(|_| self.renamed.contains(&first)).unwrap_or(first)
    }

    pub fn named(&self, number: usize) -> Resource {
        self.present(compute(number))
    }

    pub fn named_key(&self) -> Resource {
        self.present(key())
    }

    /// The resource with this first name gets its other one: declared, applied and deleted in this order.
    pub fn hand_over(&mut self, first: &Resource, order: u8) {
        let old = self.present(first.clone());
        let Some((new, mut asking)) = self.history.other_name(&old).and_then(|new| {
            let spec = self.history.spec(&new)?;
            Some((new, spec))
        }) else {
            return;
        };
        let mut simulation = self.simulation.lock();
        if simulation.cluster.objects.contains_key(&new)
            || simulation.cluster.objects.get(&old).is_none_or(|stored| !has_something(stored))
        {
            return;
        }
        let now = simulation.now;
        let declare = |simulation: &mut Simulation| {
            simulation.cluster.edit(&old, &json!({"spec": {"handOverTo": {"name": new.1}, "takeOverFrom": null}}));
        };
        let delete = |simulation: &mut Simulation| simulation.cluster.delete(&old, now);
        asking["takeOverFrom"] = json!({"name": old.1});
        let apply = |simulation: &mut Simulation| simulation.cluster.create(&new, &asking, &json!({}), now);
        let acts: [&dyn Fn(&mut Simulation); 3] = match order % 3 {
            0 => [&declare, &apply, &delete],
            1 => [&apply, &declare, &delete],
            _ => [&declare, &delete, &apply],
        };
        acts.into_iter().for_each(|act| act(&mut simulation));
        drop(simulation);
        if !self.renamed.remove(first) {
            self.renamed.insert(first.clone());
        }
    }

    /// A person has deleted the one that was to take over before it has, or the account, through which nobody begins anything then.
    pub fn hand_over_waits(&self, resource: &Resource) -> bool {
        let Some(other) = self.history.other_name(resource) else { return false };
        let objects = &self.simulation.lock().cluster.objects;
        let account = objects.get(&self.history.account.resource());
        !objects.contains_key(&other) || account.is_some_and(|account| account.is_deleting())
    }
}

/// Whether it has something on the platform, and is held until that is gone.
fn has_something(stored: &Stored) -> bool {
    let (has, is_annotated) = match stored.value["kind"].as_str() {
        Some("Compute") => {
            let record = identity::of_compute(&stored.typed::<Compute>()).unwrap_or_default();
            (record.identity.binding.is_some(), record.is_annotated)
        }
        _ => {
            let record = identity::of_key(&stored.typed::<ProjectKey>()).unwrap_or_default();
            (record.identity.records.current.is_some(), record.is_annotated)
        }
    };
    let held = stored.value["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    has && is_annotated && held && !stored.is_deleting()
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
