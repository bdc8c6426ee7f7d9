//! What people and tools do to the records of resources.

use dbplane::decide::names;
use serde_json::json;

use super::history::annotations;
use super::in_memory::cluster::Stored;
use super::in_memory::{Print, Resource};
use super::run::Run;

impl Run<'_> {
    /// Whether the annotation is not the record that the status has. Nobody can take both away.
    pub fn is_rewritten(&self, resource: &Resource) -> bool {
        let simulation = self.simulation.lock();
        let Some(stored) = simulation.cluster.objects.get(resource) else { return false };
        let record = &stored.value["status"]["record"];
        !record.is_null() && stored.value["metadata"]["annotations"][names::RECORD] != *record
    }

    pub fn replace(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let stored = simulation.cluster.objects.get(resource);
        let copied = |stored: &&Print<Stored>| !stored.value["status"]["record"].is_null() && !stored.is_deleting();
        if stored.filter(copied).is_some() {
            simulation.cluster.replace(resource);
        }
    }

    /// All annotations are removed.
    pub fn strip(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let stored = simulation.cluster.objects.get(resource);
        if stored.is_some_and(|stored| stored.value["status"]["record"].is_string()) {
            simulation.cluster.edit(resource, &json!({"metadata": {"annotations": null}}));
        }
    }

    pub fn apply_older(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let Some(stored) = simulation.cluster.objects.get(resource).filter(|stored| !stored.is_deleting()) else {
            return;
        };
        let (metadata, status) = (&stored.value["metadata"], &stored.value["status"]);
        let record = metadata["annotations"][names::RECORD].clone();
        let uid = stored.uid().to_owned();
        match self.exported.get(&uid).cloned() {
            None if record.is_string() => drop(self.exported.insert(uid, record)),
            Some(older) if status["record"].is_string() => {
                simulation.cluster.edit(resource, &json!({"metadata": {"annotations": {names::RECORD: older}}}));
            }
            _ => {}
        }
    }

    pub fn tamper(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let Some(annotations) = annotations(&simulation, resource) else { return };
        let Some(text) = annotations[names::RECORD].as_str() else { return };
        let edited = text.replacen("\"id\":\"ep-", "\"id\":\"ep-x", 1);
        simulation.cluster.edit(resource, &json!({"metadata": {"annotations": {names::RECORD: edited}}}));
    }

    pub fn copy(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let (Some(spec), Some(annotations)) = (self.history.spec(resource), annotations(&simulation, resource)) else {
            return;
        };
        let copy = ("Compute", format!("copy-of-{}", resource.1));
        if super::history::annotations(&simulation, &copy).is_some() || annotations[names::RECORD].is_null() {
            return;
        }
        let now = simulation.now;
        simulation.cluster.create(&copy, &spec, &annotations, now);
        self.copied = true;
    }

    /// Everything gets a new UID; Secrets lose their owners, as backup tools have it.
    pub fn rebuild(&mut self) {
        self.kill();
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        for resource in simulation.cluster.resources() {
            let object = simulation.cluster.forget(&resource).unwrap();
            let going = !object["metadata"]["deletionTimestamp"].is_null();
            let mut annotations = object["metadata"]["annotations"].clone();
            if let Some(record) = object["status"]["record"].as_str()
                && annotations[names::RECORD].is_null()
            {
                // The backup was made before.
                annotations[names::RECORD] = json!(record);
            }
            simulation.cluster.create(&resource, &object["spec"], &annotations, now);
            let held = json!({"metadata": {"finalizers": object["metadata"]["finalizers"]}});
            simulation.cluster.edit(&resource, &held);
            if going {
                simulation.cluster.delete(&resource, now);
            }
        }
        for secret in simulation.cluster.secrets.values_mut() {
            let mut ownerless = secret.clone_inner();
            ownerless.metadata.owner_references = None;
            *secret = Print::of(ownerless);
        }
    }
}
