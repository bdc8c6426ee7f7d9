//! What people do: with their resources, in the platform's console, and with the operator's process.

use dbplane::api::{Compute, ProjectKey};
use dbplane::controller::Managed;
use dbplane::decide::names;
use dbplane_simulator::world::Profile;
use kube::ResourceExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::cluster::kind;
use super::faults::Hit;
use super::run::Run;
use super::stage::{PROJECT, Resource, Stage};

/// A whole story.
#[derive(Clone, Debug)]
pub struct Story {
    pub profile: Profile,
    pub computes: Vec<Declared>,
    pub key: bool,
    pub chapters: Vec<Chapter>,
    pub faults: Vec<Hit>,
}

#[derive(Clone, Debug)]
pub struct Declared {
    pub branch: u8,
    pub primary: bool,
    pub size: u8,
}

/// Something happens, and then the operator has so many seconds.
#[derive(Clone, Debug)]
pub struct Chapter {
    pub event: Event,
    pub seconds: u16,
}

#[derive(Clone, Debug)]
pub enum Event {
    Nothing,
    /// The process is killed between two passes.
    Kill,
    Resize(usize, u8),
    Restart(usize, u8),
    /// It is deleted, and applied again once it is gone; with the annotations that it had, or without.
    Delete(usize),
    Reapply(usize, bool),
    /// The cluster is rebuilt from a backup: new UIDs, no statuses.
    Rebuild,
    StatusRemoved(usize),
    Edited(usize),
    Copied(usize),
    ForeignCompute(u8, bool),
    ForeignKey,
    ComputeRemoved(usize),
    KeyRevoked,
    SecretRemoved,
    KeyDeleted,
    KeyReapplied(bool),
}

/// What a story is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Computes,
    Key,
}

pub fn event(subject: Subject) -> BoxedStrategy<Event> {
    let which = || 0..3_usize;
    let any_story = prop_oneof![
        3 => Just(Event::Nothing),
        2 => Just(Event::Kill),
        2 => Just(Event::Rebuild),
    ];
    let of_computes = prop_oneof![
        2 => (which(), 0..3_u8).prop_map(|(which, size)| Event::Resize(which, size)),
        1 => (which(), 0..3_u8).prop_map(|(which, token)| Event::Restart(which, token)),
        3 => which().prop_map(Event::Delete),
        2 => (which(), any::<bool>()).prop_map(|(which, backup)| Event::Reapply(which, backup)),
        1 => which().prop_map(Event::StatusRemoved),
        1 => which().prop_map(Event::Edited),
        1 => which().prop_map(Event::Copied),
        1 => (0..2_u8, any::<bool>()).prop_map(|(branch, primary)| Event::ForeignCompute(branch, primary)),
        1 => which().prop_map(Event::ComputeRemoved),
    ];
    let of_keys = prop_oneof![
        1 => Just(Event::ForeignKey),
        1 => Just(Event::KeyRevoked),
        1 => Just(Event::SecretRemoved),
        2 => Just(Event::KeyDeleted),
        2 => any::<bool>().prop_map(Event::KeyReapplied),
    ];
    match subject {
        Subject::Computes => prop_oneof![1 => any_story, 2 => of_computes].boxed(),
        Subject::Key => prop_oneof![1 => any_story, 1 => of_keys].boxed(),
    }
}

pub fn chapters(event: impl Strategy<Value = Event>) -> impl Strategy<Value = Vec<Chapter>> {
    let seconds = prop_oneof![0..10_u16, 0..150_u16];
    prop::collection::vec((event, seconds).prop_map(|(event, seconds)| Chapter { event, seconds }), 0..6)
}

pub fn profile() -> impl Strategy<Value = Profile> {
    prop_oneof![Just(Profile::Default), Just(Profile::Public), Just(Profile::Minimal)]
}

pub fn computes(count: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<Declared>> {
    let one = (0..2_u8, any::<bool>(), 0..3_u8);
    prop::collection::vec(one.prop_map(|(branch, primary, size)| Declared { branch, primary, size }), count)
}

pub fn compute(number: usize) -> Resource {
    ("Compute", format!("r{number}"))
}

pub fn key() -> Resource {
    ("ProjectKey", "ci".to_owned())
}

impl Story {
    pub fn spec(&self, resource: &Resource) -> Option<Value> {
        if *resource == key() {
            return self.key.then(|| {
                json!({
                    "accountRef": {"name": "prod"},
                    "projectID": PROJECT,
                    "keyName": "ci",
                    "secret": {"name": "ci", "key": "api-key"},
                })
            });
        }
        let number = (0..self.computes.len()).find(|number| compute(*number) == *resource)?;
        let Declared { branch, size, .. } = self.computes[number];
        Some(json!({
            "accountRef": {"name": "prod"},
            "projectID": PROJECT,
            "branchID": format!("b{branch}"),
            "type": if self.is_primary(number) { "ReadWrite" } else { "ReadOnly" },
            "size": size_of(size),
            "connection": {"secretName": format!("to-r{number}")},
        }))
    }

    /// A branch has one primary.
    pub fn is_primary(&self, number: usize) -> bool {
        let Declared { branch, primary, .. } = self.computes[number];
        primary && !self.computes[..number].iter().any(|other| other.primary && other.branch == branch)
    }

    pub fn resources(&self) -> Vec<Resource> {
        (0..self.computes.len()).map(compute).chain(self.key.then(key)).collect()
    }
}

fn size_of(size: u8) -> Value {
    match size {
        0 => json!({"fixed": 1}),
        1 => json!({"fixed": 2}),
        _ => json!({"autoscaling": {"min": 1, "max": 4}}),
    }
}

impl Run<'_> {
    pub fn happen(&mut self, event: &Event) {
        match event {
            Event::Nothing => {}
            Event::Kill => self.kill(),
            Event::Resize(which, size) => {
                self.edit(*which, &json!({"spec": {"size": null}}), &json!({"spec": {"size": size_of(*size)}}))
            }
            Event::Restart(which, token) => {
                self.edit(*which, &json!({}), &json!({"spec": {"restartToken": format!("t{token}")}}))
            }
            Event::Delete(which) => self.delete(&compute(*which)),
            Event::Reapply(which, backup) => self.reapply(&compute(*which), *backup),
            Event::Rebuild => self.rebuild(),
            Event::StatusRemoved(which) => self.edit(*which, &json!({"status": null}), &json!({})),
            Event::Edited(which) => self.tamper(&compute(*which)),
            Event::Copied(which) => self.copy(&compute(*which)),
            Event::ForeignCompute(branch, primary) => self.foreign_compute(*branch, *primary),
            Event::ForeignKey => {
                let mut stage = self.stage.lock();
                let now = stage.now;
                let name = format!("theirs-{}", stage.world.console_keys().len());
                stage.world.console_create_organization_key("org", &name, Some(PROJECT.into()), now).unwrap();
            }
            Event::ComputeRemoved(which) => self.remove_compute(&compute(*which)),
            Event::KeyRevoked => {
                let mut stage = self.stage.lock();
                let now = stage.now;
                for (id, _) in stage.keys_of(&key()) {
                    stage.world.console_revoke_key(id, now).unwrap();
                }
            }
            Event::SecretRemoved => drop(self.stage.lock().cluster.secrets.remove("ci")),
            Event::KeyDeleted => self.delete(&key()),
            Event::KeyReapplied(backup) => self.reapply(&key(), *backup),
        }
    }

    fn edit(&mut self, which: usize, first: &Value, then: &Value) {
        let mut stage = self.stage.lock();
        stage.cluster.edit(&compute(which), first);
        stage.cluster.edit(&compute(which), then);
    }

    fn delete(&mut self, resource: &Resource) {
        let mut stage = self.stage.lock();
        let now = stage.now;
        if let Some(annotations) = annotations(&stage, resource) {
            self.backups.insert(resource.clone(), annotations);
        }
        stage.cluster.delete(resource, now);
    }

    fn reapply(&mut self, resource: &Resource, backup: bool) {
        let mut stage = self.stage.lock();
        let Some(spec) = self.story.spec(resource) else { return };
        if annotations(&stage, resource).is_some() {
            return;
        }
        let annotations = self.backups.get(resource).filter(|_| backup).cloned().unwrap_or_else(|| json!({}));
        let now = stage.now;
        stage.cluster.create(resource, &spec, &annotations, now);
    }

    /// Everything gets a new UID; Secrets lose their owners, as backup tools have it.
    fn rebuild(&mut self) {
        self.kill();
        let mut stage = self.stage.lock();
        let now = stage.now;
        for resource in stage.cluster.resources() {
            let object = stage.cluster.forget(&resource).unwrap();
            let going = !object["metadata"]["deletionTimestamp"].is_null();
            let annotations = &object["metadata"]["annotations"];
            stage.cluster.create(&resource, &object["spec"], annotations, now);
            let held = json!({"metadata": {"finalizers": object["metadata"]["finalizers"]}});
            stage.cluster.edit(&resource, &held);
            if going {
                stage.cluster.delete(&resource, now);
            }
        }
        for secret in stage.cluster.secrets.values_mut() {
            secret.metadata.owner_references = None;
        }
    }

    fn tamper(&mut self, resource: &Resource) {
        let mut stage = self.stage.lock();
        let Some(annotations) = annotations(&stage, resource) else { return };
        let Some(text) = annotations[names::BINDING].as_str() else { return };
        let edited = text.replacen("\"id\":\"ep-", "\"id\":\"ep-x", 1);
        stage.cluster.edit(resource, &json!({"metadata": {"annotations": {names::BINDING: edited}}}));
        self.tampered.insert(resource.clone());
    }

    fn copy(&mut self, resource: &Resource) {
        let mut stage = self.stage.lock();
        let (Some(spec), Some(annotations)) = (self.story.spec(resource), annotations(&stage, resource)) else {
            return;
        };
        let copy = ("Compute", format!("copy-of-{}", resource.1));
        if self::annotations(&stage, &copy).is_some() || annotations[names::BINDING].is_null() {
            return;
        }
        let now = stage.now;
        stage.cluster.create(&copy, &spec, &annotations, now);
        self.tampered.insert(copy);
    }

    fn foreign_compute(&mut self, branch: u8, primary: bool) {
        let mut stage = self.stage.lock();
        let now = stage.now;
        let kind = if primary { "read_write" } else { "read_only" };
        // Of a size that no resource declares: without marks, nothing tells a compute that is just alike.
        let attributes = json!({
            "branch_id": format!("b{branch}"), "type": kind,
            "autoscaling_limit_min_cu": 8, "autoscaling_limit_max_cu": 8,
        });
        if stage.world.console_create_compute(PROJECT, &attributes, now).is_ok() {
            self.foreign.insert((branch, primary));
        }
    }

    fn remove_compute(&mut self, resource: &Resource) {
        let mut stage = self.stage.lock();
        let now = stage.now;
        for id in stage.made_for(resource) {
            // One that is busy or protected stays.
            let _ = stage.world.console_delete_compute(&id, now);
        }
    }
}

/// The annotations of an object, where there is one.
pub fn annotations(stage: &Stage, resource: &Resource) -> Option<Value> {
    fn of<K: Managed>(stage: &Stage, name: &str) -> Option<Value> {
        Some(json!(stage.cluster.get::<K>(name)?.annotations()))
    }
    match resource.0 == kind::<Compute>() {
        true => of::<Compute>(stage, &resource.1),
        false => of::<ProjectKey>(stage, &resource.1),
    }
}
