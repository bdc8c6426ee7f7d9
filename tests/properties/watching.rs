//! Runs controlled by a test step by step, and helpers to inspect their results.

use dbplane::api::{Compute, Known, ProjectKey};
use dbplane::decide::identity::{ComputeIdentity, ProjectKeyIdentity};
use dbplane_simulator::world::{Profile, World};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::history::{Access, Declared, History, compute, key};
use super::in_memory::Resource;
use super::injector::{Injected, Times};
use super::run::Run;

/// A history without events and faults.
pub fn history(computes: &[Declared], key: bool) -> History {
    History {
        profile: Profile::Public,
        computes: computes.to_vec(),
        key,
        chapters: Vec::new(),
        faults: Vec::new(),
        account: Access::Account,
        deletes_per_minute: 30,
    }
}

pub fn replica() -> Declared {
    Declared {
        branch: 0,
        primary: false,
        size: 0,
    }
}

impl Run<'_> {
    /// Events since the last call, except `Available`, with the platform's ids replaced.
    pub fn take_events(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.simulation.lock().ledger.events);
        let done = events.iter().filter(|(_, reason, _)| reason != "Available");
        done.map(|(name, reason, text)| format!("{name} {reason}: {}", without_ids(text)))
            .collect()
    }

    pub fn events_after(&mut self, seconds: u16, happens: impl FnOnce(&mut Self)) -> Vec<String> {
        happens(self);
        self.run_for(seconds).unwrap();
        self.take_events()
    }

    /// Creates a resource, or patches its spec.
    pub fn apply(&mut self, resource: &Resource, spec: &Value) {
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        if simulation.cluster.objects.contains_key(resource) {
            simulation.cluster.edit(resource, &json!({"spec": spec}))
        } else {
            simulation.cluster.create(resource, spec, &json!({}), now)
        }
    }

    pub fn annotate(&mut self, resource: &Resource, annotation: &str, value: &str) {
        self.simulation.lock().cluster.edit(
            resource,
            &json!({"metadata": {"annotations": {annotation: value}}}),
        );
    }

    pub fn delete_now(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        simulation.cluster.delete(resource, now);
    }

    pub fn inject(&mut self, at: &'static str, times: Times, what: Injected) {
        self.simulation.lock().injector.set(at, times, what);
    }

    /// Removes all injected faults.
    pub fn without_injected_faults(&mut self) {
        self.simulation.lock().injector = super::injector::Injector::default();
    }

    /// Acts in the platform's console.
    pub fn in_console<T>(&mut self, act: impl FnOnce(&mut World, Timestamp) -> T) -> T {
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        act(&mut simulation.world, now)
    }

    /// Number of requests to the platform for resources of this kind, since the start or the last
    /// clearing of the ledger.
    pub fn calls(&self, method: &str, kind: &'static str) -> usize {
        self.simulation
            .lock()
            .ledger
            .calls
            .get(&(method.to_owned(), Some(kind)))
            .copied()
            .unwrap_or_default()
    }

    pub fn is_there(&self, resource: &Resource) -> bool {
        self.simulation
            .lock()
            .cluster
            .objects
            .contains_key(resource)
    }

    pub fn finalizers_of(&self, resource: &Resource) -> Vec<String> {
        let finalizers =
            self.simulation.lock().cluster.objects[resource].value["metadata"]["finalizers"]
                .clone();
        serde_json::from_value(finalizers).unwrap_or_default()
    }

    pub fn status_of(&self, resource: &Resource) -> Value {
        self.simulation.lock().cluster.objects[resource].value["status"].clone()
    }

    /// The reason and message of a condition.
    pub fn condition(&self, resource: &Resource, type_: &str) -> String {
        let status = self.status_of(resource);
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions
            .iter()
            .find(|condition| condition["type"] == type_);
        found.map_or_else(String::new, |found| {
            let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", text("reason"), without_ids(&text("message")))
        })
    }

    /// The record of a Compute.
    pub fn record(&self, number: usize) -> ComputeIdentity {
        let object = self
            .simulation
            .lock()
            .cluster
            .get::<Known<Compute>>(&compute(number).1)
            .unwrap();
        object.identity().unwrap()
    }

    /// The record of the ProjectKey.
    pub fn key_record(&self) -> ProjectKeyIdentity {
        let object = self
            .simulation
            .lock()
            .cluster
            .get::<Known<ProjectKey>>(&key().1)
            .unwrap();
        object.record().unwrap().identity_or_wish().clone()
    }
}

fn without_ids(text: &str) -> String {
    let plain = |word: &str| {
        let bare = word.trim_end_matches(['.', ',', ':']);
        let number = |it: &str| it.strip_prefix('(')?.strip_suffix(')')?.parse::<i64>().ok();
        let plain = match bare {
            id if id.starts_with("ep-") => "ID",
            // A trailing colon marks the status of an answer instead.
            id if !word.ends_with(':') && number(id).is_some() => "(ID)",
            name if name.starts_with("ci-") => "NAME",
            _ => return word.to_owned(),
        };
        format!("{plain}{}", &word[bare.len()..])
    };
    text.trim_end_matches('.')
        .split(' ')
        .map(plain)
        .collect::<Vec<_>>()
        .join(" ")
}
