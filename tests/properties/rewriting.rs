//! Changes to the records of resources by users and tools.

use dbplane::api::{Compute, Known};
use dbplane::decide::identity::ComputeIdentity;
use dbplane::decide::names;
use serde_json::json;

use super::history::annotations;
use super::in_memory::cluster::Stored;
use super::in_memory::promises::is_annotated;
use super::in_memory::{Print, Resource};
use super::run::Run;

impl Run<'_> {
    /// True if the annotation differs from the record in the status. Such a status is kept, so that
    /// a resource never loses both.
    pub fn is_rewritten(&self, resource: &Resource) -> bool {
        let simulation = self.simulation.lock();
        let Some(stored) = simulation.cluster.objects.get(resource) else {
            return false;
        };
        stored.value["status"]["record"].is_string() && !is_annotated(&stored.value)
    }

    /// True if the outcome of a create is open. Only the status records that outcome.
    pub fn is_creating(&self, resource: &Resource) -> bool {
        let object = self
            .simulation
            .lock()
            .cluster
            .get::<Known<Compute>>(&resource.1);
        let Some(object) = object else { return false };
        object.record().is_ok_and(|record| {
            let ComputeIdentity {
                intent, unanswered, ..
            } = record.identity_or_wish();
            intent.is_some() || !unanswered.is_empty()
        })
    }

    pub fn replace(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let stored = simulation.cluster.objects.get(resource);
        let copied = |stored: &&Print<Stored>| {
            !stored.value["status"]["record"].is_null() && !stored.is_deleting()
        };
        if stored.filter(copied).is_some() {
            simulation.cluster.replace(resource);
        }
    }

    /// Removes all annotations.
    pub fn strip(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let stored = simulation.cluster.objects.get(resource);
        if stored.is_some_and(|stored| stored.value["status"]["record"].is_string()) {
            simulation
                .cluster
                .edit(resource, &json!({"metadata": {"annotations": null}}));
        }
    }

    pub fn apply_older(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let Some(stored) = simulation
            .cluster
            .objects
            .get(resource)
            .filter(|stored| !stored.is_deleting())
        else {
            return;
        };
        let (metadata, status) = (&stored.value["metadata"], &stored.value["status"]);
        let record = metadata["annotations"][names::RECORD].clone();
        let uid = stored.uid().to_owned();
        match self.exported.get(&uid).cloned() {
            None if record.is_string() => drop(self.exported.insert(uid, record)),
            Some(older) if status["record"].is_string() => {
                simulation.cluster.edit(
                    resource,
                    &json!({"metadata": {"annotations": {names::RECORD: older}}}),
                );
            }
            _ => {}
        }
    }

    pub fn tamper(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let Some(annotations) = annotations(&simulation, resource) else {
            return;
        };
        let Some(text) = annotations[names::RECORD].as_str() else {
            return;
        };
        let edited = text.replacen("\"id\":\"ep-", "\"id\":\"ep-x", 1);
        simulation.cluster.edit(
            resource,
            &json!({"metadata": {"annotations": {names::RECORD: edited}}}),
        );
    }

    pub fn copy(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        let (Some(spec), Some(annotations)) = (
            self.history.spec(resource),
            annotations(&simulation, resource),
        ) else {
            return;
        };
        let copy = ("Compute", format!("copy-of-{}", resource.1));
        if super::history::annotations(&simulation, &copy).is_some()
            || annotations[names::RECORD].is_null()
        {
            return;
        }
        let now = simulation.now;
        simulation.cluster.create(&copy, &spec, &annotations, now);
        self.copied = true;
    }

    /// Recreates all resources with new UIDs, and removes the owners of Secrets, as backup tools
    /// do. The backup is taken while no create is open: only the annotation of a record survives,
    /// and it is written last.
    pub fn rebuild(&mut self) {
        let resources = self.simulation.lock().cluster.resources();
        if resources
            .iter()
            .any(|resource| resource.0 == "Compute" && self.is_creating(resource))
        {
            return;
        }
        self.kill();
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        for resource in simulation.cluster.resources() {
            let object = simulation.cluster.forget(&resource).unwrap();
            let going = !object["metadata"]["deletionTimestamp"].is_null();
            let mut annotations = object["metadata"]["annotations"].clone();
            if let Some(record) = object["status"]["record"].as_str() {
                // The annotation always equals the record once nothing is left to write.
                annotations[names::RECORD] = json!(record);
            }
            simulation
                .cluster
                .create(&resource, &object["spec"], &annotations, now);
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
