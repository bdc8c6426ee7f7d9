//! Computes and keys that are handed over to another name, and what belongs to whom then.

use dbplane::api::{Compute, ProjectKey};
use dbplane::decide::identity::{self, KeyIdentity, ProjectKeyIdentity};
use kube::ResourceExt;
use serde_json::json;

use super::history::{History, annotations, compute, key};
use super::in_memory::Resource;
use super::in_memory::cluster::Stored;
use super::run::Run;
use super::simulation::Simulation;

/// The names under which a Compute may be.
pub fn names(number: usize) -> [Resource; 3] {
    [compute(number), ("Compute", format!("h{number}")), ("Compute", format!("i{number}"))]
}

/// The same for the ProjectKey.
pub fn key_names() -> [Resource; 3] {
    [key(), ("ProjectKey", "di".to_owned()), ("ProjectKey", "ei".to_owned())]
}

/// In which order it is declared, applied and deleted; or the first one stays.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    DeclareApplyDelete,
    ApplyDeclareDelete,
    DeclareDeleteApply,
    ApplyDeclare,
}

pub const ORDERS: [Order; 4] =
    [Order::DeclareApplyDelete, Order::ApplyDeclareDelete, Order::DeclareDeleteApply, Order::ApplyDeclare];

impl History {
    /// Which Compute has that name.
    pub fn number(&self, resource: &Resource) -> Option<usize> {
        (0..self.computes.len()).find(|number| names(*number).contains(resource))
    }

    /// The names of the resource that has this one.
    fn names_of(&self, resource: &Resource) -> Option<[Resource; 3]> {
        let of_compute = self.number(resource).map(names);
        of_compute.or_else(|| Some(key_names()).filter(|names| names.contains(resource)))
    }

    /// The other names of a resource.
    pub fn other_names(&self, resource: &Resource) -> impl Iterator<Item = Resource> {
        self.names_of(resource).into_iter().flatten().filter(|name| name != resource).collect::<Vec<_>>().into_iter()
    }
}

impl Run<'_> {
    /// The name that a resource has at present, of which this is the first.
    fn present(&self, first: &Resource) -> Resource {
        self.renamed.get(first).unwrap_or(first).clone()
    }

    pub fn named(&self, number: usize) -> Resource {
        self.present(&compute(number))
    }

    pub fn named_key(&self) -> Resource {
        self.present(&key())
    }

    /// The resource with this first name gets one of its other names.
    pub fn hand_over(&mut self, first: &Resource, which: usize, order: Order) {
        let old = self.present(first);
        let Some(new) = self.history.other_names(&old).nth(which) else { return };
        let Some(mut asking) = self.history.spec(&new) else { return };
        let mut simulation = self.simulation.lock();
        let objects = &simulation.cluster.objects;
        if objects.get(&old).is_none_or(|stored| !has_something(stored)) {
            return;
        }
        // One that has handed over before may take over again.
        let stands = objects.get(&new).map(|stored| stored.is_deleting() || has_something(stored));
        if stands == Some(true) {
            return;
        }
        let (now, backup) = (simulation.now, annotations(&simulation, &old));
        self.backups.extend(backup.map(|annotations| (old.clone(), annotations)));
        let declare = |simulation: &mut Simulation| {
            simulation.cluster.edit(&old, &json!({"spec": {"handOverTo": {"name": new.1}, "takeOverFrom": null}}));
        };
        let delete = |simulation: &mut Simulation| simulation.cluster.delete(&old, now);
        asking["takeOverFrom"] = json!({"name": old.1});
        let apply = |simulation: &mut Simulation| match stands {
            None => simulation.cluster.create(&new, &asking, &json!({}), now),
            Some(_) => {
                let asks = json!({"spec": {"takeOverFrom": {"name": old.1}, "handOverTo": null}});
                simulation.cluster.edit(&new, &asks);
            }
        };
        let acts: &[&dyn Fn(&mut Simulation)] = match order {
            Order::DeclareApplyDelete => &[&declare, &apply, &delete],
            Order::ApplyDeclareDelete => &[&apply, &declare, &delete],
            Order::DeclareDeleteApply => &[&declare, &delete, &apply],
            Order::ApplyDeclare => &[&apply, &declare],
        };
        acts.iter().for_each(|act| act(&mut simulation));
        drop(simulation);
        self.restored.remove(&new);
        self.renamed.insert(first.clone(), new);
    }

    /// A name that the resource had before is brought back as it was then, by a backup; or is deleted again.
    pub fn restore(&mut self, first: &Resource, which: usize) {
        let present = self.present(first);
        let Some(former) = self.history.other_names(&present).nth(which) else { return };
        if self.simulation.lock().cluster.objects.contains_key(&former) {
            return self.delete(&former);
        }
        let (Some(annotations), Some(spec)) = (self.backups.get(&former), self.history.spec(&former)) else { return };
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        simulation.cluster.create(&former, &spec, annotations, now);
        drop(simulation);
        self.restored.insert(former);
    }

    /// What it waits for is not there, as people have it; or the account is being deleted, through which nobody begins anything then.
    pub fn hand_over_waits(&self, resource: &Resource) -> bool {
        let objects = &self.simulation.lock().cluster.objects;
        let Some(spec) = objects.get(resource).map(|stored| &stored.value["spec"]) else { return false };
        let other = |field: &str| spec[field]["name"].as_str().map(|name| (resource.0, name.to_owned()));
        let others = [other("handOverTo"), other("takeOverFrom")];
        let account = objects.get(&self.history.account.resource());
        others.into_iter().flatten().any(|other| !objects.contains_key(&other))
            || account.is_some_and(|account| account.is_deleting())
    }

    /// Whether people have brought back what others have by now: one of the names of this resource.
    pub fn is_claimed_twice(&self, resource: &Resource) -> bool {
        self.history.names_of(resource).into_iter().flatten().any(|name| self.restored.contains(&name))
    }
}

/// Whether it has something on the platform, and is held until that is gone.
fn has_something(stored: &Stored) -> bool {
    let (has, is_annotated) = match stored.value["kind"].as_str() {
        Some("Compute") => {
            let record = identity::of_compute(&stored.typed::<Compute>()).unwrap_or_default();
            let stays = record.identity.hand_over.released.is_none();
            (record.identity.binding.is_some() && stays, record.is_annotated)
        }
        _ => {
            let record = identity::of_key(&stored.typed::<ProjectKey>()).unwrap_or_default();
            let stays = record.identity.hand_over.released.is_none();
            (record.identity.records.current.is_some() && stays, record.is_annotated)
        }
    };
    let held = stored.value["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    has && is_annotated && held && !stored.is_deleting()
}

impl Simulation {
    /// A key that another resource has taken over since is not this one's to revoke.
    pub fn note_revocation(&mut self, id: &str, actor: &Resource) {
        let known = |object: &ProjectKey| identity::of_key(object).unwrap_or_default().identity;
        let taken = |known: &ProjectKeyIdentity| known.hand_over.predecessor.as_ref().map(|from| from.released);
        let mine = self.cluster.get::<ProjectKey>(&actor.1).map(|object| known(&object)).unwrap_or_default();
        let recorded = |name: &str| mine.names().any(|own| own == name);
        let later = self.cluster.all::<ProjectKey>().into_iter().find(|object| {
            let theirs = known(object);
            let uses = |key: &&KeyIdentity| key.id.to_string() == id;
            let Some(key) = theirs.records.current.as_ref().filter(uses) else { return false };
            let has_it = theirs.hand_over.released.is_none() && object.name_any() != actor.1;
            has_it && (!recorded(&key.name) || taken(&theirs) > taken(&mine))
        });
        if let Some(other) = later {
            let violation = format!("{} has revoked key {id}, which {} has taken over", actor.1, other.name_any());
            self.ledger.violations.push(violation);
        }
    }

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
