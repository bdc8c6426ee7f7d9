//! Histories of events: changes to resources, changes in the platform's console, and crashes of the
//! operator.

use dbplane_simulator::world::Profile;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::accounts::CREDENTIAL;
use super::elsewhere::Move;
use super::faults::Hit;
use super::in_memory::Resource;
use super::in_memory::cluster::Stored;
use super::mistakes::Mistake;
use super::role::ROLE;
use super::run::Run;
use super::simulation::{PROJECT, Simulation};
use super::tenant::Trick;

/// The input of one run.
#[derive(Clone, Debug)]
pub struct History {
    pub profile: Profile,
    pub computes: Vec<Declared>,
    pub key: bool,
    pub chapters: Vec<Chapter>,
    pub faults: Vec<Hit>,
    pub account: Access,
    /// Deletions per minute that need no confirmation.
    pub deletes_per_minute: u32,
}

/// The kind of account that the resources refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Account,
    ClusterAccount,
}

impl Access {
    pub fn resource(self) -> Resource {
        let kind = match self {
            Self::Account => "Account",
            Self::ClusterAccount => "ClusterAccount",
        };
        (kind, "prod".to_owned())
    }
}

#[derive(Clone, Debug)]
pub struct Declared {
    pub branch: u8,
    pub primary: bool,
    pub size: u8,
}

/// An event, and the seconds for which the operator then works.
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
    /// Declares a restart every two minutes and no suspension, where the platform shows that
    /// setting.
    Maintain(usize),
    /// Deleted, and applied again once it is gone, with or without its former annotations.
    Delete(usize),
    Reapply(usize, bool),
    /// The cluster is rebuilt from a backup: new UIDs, no statuses.
    Rebuild,
    StatusRemoved(usize),
    /// Replaced by its manifest, which has neither annotations nor finalizers.
    Replaced(usize),
    /// Its annotations are removed, possibly while it is being deleted.
    Stripped(usize),
    KeyReplaced,
    KeyStripped,
    /// Its record is exported, and the next such event applies the export.
    OlderRecord(usize),
    Edited(usize),
    Copied(usize),
    ForeignCompute(u8, bool),
    ForeignKey,
    ComputeRemoved(usize),
    KeyRevoked,
    SecretRemoved,
    /// The Secret with the user and password for connections gets this password, or is deleted.
    Role(Option<u8>),
    KeyDeleted,
    KeyReapplied(bool),
    /// Another key is requested with this annotation value.
    KeyRequested(u8),
    /// Declares in one of several ways how long the previous key stays valid, or not at all.
    KeyRotation(u8),
    /// The account's API key is replaced by another one, and the old one is revoked.
    CredentialExchanged,
    /// The account's API key is revoked, and the Secret gets no other one.
    CredentialRevoked,
    CredentialSecretDeleted,
    AccountDeleted,
    /// A ClusterAccount stops admitting the namespace, or admits it again.
    Admits(bool),
    /// A user confirms the pending deletions.
    Confirmed,
    /// A hostile tenant acts in its own namespace.
    Tenant(Trick),
    /// A user makes a mistake in the spec, as far as the definitions admit it, or corrects it.
    Mistaken(usize, Mistake),
    /// An account or a resource switches to another platform.
    Moved(Move),
}

/// The kind of resource that the events of a history change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Computes,
    Key,
}

pub fn event(subject: Subject) -> BoxedStrategy<Event> {
    let which = || 0..3_usize;
    let of_any = prop_oneof![
        3 => Just(Event::Nothing),
        2 => Just(Event::Kill),
        2 => Just(Event::Rebuild),
        1 => Just(Event::CredentialExchanged),
        1 => Just(Event::CredentialRevoked),
        1 => Just(Event::CredentialSecretDeleted),
        1 => Just(Event::AccountDeleted),
        1 => any::<bool>().prop_map(Event::Admits),
        1 => Just(Event::Confirmed),
    ];
    let of_computes = prop_oneof![
        2 => (which(), 0..3_u8).prop_map(|(which, size)| Event::Resize(which, size)),
        1 => (which(), 0..3_u8).prop_map(|(which, token)| Event::Restart(which, token)),
        3 => which().prop_map(Event::Delete),
        2 => (which(), any::<bool>()).prop_map(|(which, backup)| Event::Reapply(which, backup)),
        1 => which().prop_map(Event::Maintain),
        1 => which().prop_map(Event::StatusRemoved),
        2 => which().prop_map(Event::Replaced),
        2 => which().prop_map(Event::Stripped),
        2 => which().prop_map(Event::OlderRecord),
        1 => which().prop_map(Event::Edited),
        1 => which().prop_map(Event::Copied),
        1 => (0..2_u8, any::<bool>()).prop_map(|(branch, primary)| Event::ForeignCompute(branch, primary)),
        1 => which().prop_map(Event::ComputeRemoved),
        2 => prop::option::weighted(0.7, 0..3_u8).prop_map(Event::Role),
        2 => (which(), mistake()).prop_map(|(which, mistake)| Event::Mistaken(which, mistake)),
    ];
    match subject {
        Subject::Computes => prop_oneof![1 => of_any, 2 => of_computes].boxed(),
        Subject::Key => prop_oneof![1 => of_any, 1 => event_of_keys()].boxed(),
    }
}

fn mistake() -> impl Strategy<Value = Mistake> {
    prop_oneof![
        Just(Mistake::ComputeId),
        Just(Mistake::Project),
        Just(Mistake::Account)
    ]
}

/// Events of a ProjectKey.
pub fn event_of_keys() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => Just(Event::ForeignKey),
        1 => Just(Event::KeyReplaced),
        1 => Just(Event::KeyStripped),
        1 => Just(Event::KeyRevoked),
        1 => Just(Event::SecretRemoved),
        2 => Just(Event::KeyDeleted),
        2 => any::<bool>().prop_map(Event::KeyReapplied),
        3 => (0..4_u8).prop_map(Event::KeyRequested),
        2 => (0..3_u8).prop_map(Event::KeyRotation),
    ]
}

pub fn chapters(event: impl Strategy<Value = Event>) -> impl Strategy<Value = Vec<Chapter>> {
    let seconds = prop_oneof![0..10_u16, 0..150_u16];
    prop::collection::vec(
        (event, seconds).prop_map(|(event, seconds)| Chapter { event, seconds }),
        0..6,
    )
}

pub fn profile() -> impl Strategy<Value = Profile> {
    prop_oneof![
        Just(Profile::Default),
        Just(Profile::Public),
        Just(Profile::Minimal)
    ]
}

pub fn account() -> impl Strategy<Value = Access> {
    prop_oneof![Just(Access::Account), Just(Access::ClusterAccount)]
}

pub fn deletes_per_minute() -> impl Strategy<Value = u32> {
    prop_oneof![3 => Just(30_u32), 1 => Just(1_u32)]
}

pub fn computes(
    count: impl Into<prop::collection::SizeRange>,
) -> impl Strategy<Value = Vec<Declared>> {
    let one = (0..2_u8, any::<bool>(), 0..3_u8);
    prop::collection::vec(
        one.prop_map(|(branch, primary, size)| Declared {
            branch,
            primary,
            size,
        }),
        count,
    )
}

pub fn compute(number: usize) -> Resource {
    ("Compute", format!("r{number}"))
}

pub fn key() -> Resource {
    ("ProjectKey", "ci".to_owned())
}

impl History {
    /// True if the platform lists and revokes keys.
    pub fn lists_keys(&self) -> bool {
        self.profile != Profile::Minimal
    }

    pub fn spec(&self, resource: &Resource) -> Option<Value> {
        if *resource == key() {
            return self.key.then(|| {
                json!({
                    "accountRef": {"name": "prod", "kind": self.account.resource().0},
                    "projectID": PROJECT,
                    "keyName": "ci",
                    "secret": {"name": "ci", "key": "api-key"},
                })
            });
        }
        let number = self.number(resource)?;
        let Declared { branch, size, .. } = self.computes[number];
        let mut connection = json!({"secretName": format!("to-r{number}")});
        if self.has_role() {
            connection["database"] = json!("shop");
            connection["credentialsFrom"] =
                json!({"name": ROLE, "usernameKey": "username", "passwordKey": "password"});
        }
        Some(json!({
            "accountRef": {"name": "prod", "kind": self.account.resource().0},
            "projectID": PROJECT,
            "branchID": format!("b{branch}"),
            "type": if self.is_primary(number) { "ReadWrite" } else { "ReadOnly" },
            "size": size_of(size),
            "postgresSettings": if size == 1 { json!({"work_mem": "64MB"}) } else { json!({}) },
            "connection": connection,
        }))
    }

    /// The number of the Compute with that name.
    fn number(&self, resource: &Resource) -> Option<usize> {
        (0..self.computes.len()).find(|number| compute(*number) == *resource)
    }

    /// At most one Compute per branch is a primary.
    pub fn is_primary(&self, number: usize) -> bool {
        let Declared {
            branch, primary, ..
        } = self.computes[number];
        primary
            && !self.computes[..number]
                .iter()
                .any(|other| other.primary && other.branch == branch)
    }

    pub fn resources(&self) -> Vec<Resource> {
        (0..self.computes.len())
            .map(compute)
            .chain(self.key.then(key))
            .collect()
    }
}

fn size_of(size: u8) -> Value {
    match size {
        0 => json!({"fixed": 1}),
        1 => json!({"fixed": 2}),
        _ => json!({"autoscaling": {"min": 1, "max": 4}}),
    }
}

/// Only in the hour in which every history begins, so that the run can settle afterwards.
const MAINTENANCE: &str = "*/2 8 5 1 *";

impl Run<'_> {
    pub fn happen(&mut self, event: &Event) {
        match event {
            Event::Nothing => {}
            Event::Kill => self.kill(),
            Event::Resize(which, size) => self.edit(
                *which,
                &json!({"spec": {"size": null}}),
                &json!({"spec": {"size": size_of(*size)}}),
            ),
            Event::Restart(which, token) => self.ask_for_restart(*which, &format!("t{token}")),
            Event::Maintain(which) => self.maintain(*which),
            Event::Delete(which) => self.delete(&compute(*which)),
            Event::Reapply(which, backup) => self.reapply(&compute(*which), *backup),
            Event::Rebuild => self.rebuild(),
            Event::StatusRemoved(which)
                if self.is_rewritten(&compute(*which)) || self.is_creating(&compute(*which)) => {}
            Event::StatusRemoved(which) => self.edit(*which, &json!({"status": null}), &json!({})),
            Event::Replaced(which) => self.replace(&compute(*which)),
            Event::KeyReplaced => self.replace(&key()),
            Event::Stripped(which) => self.strip(&compute(*which)),
            Event::KeyStripped => self.strip(&key()),
            Event::OlderRecord(which) => self.apply_older(&compute(*which)),
            Event::Edited(which) => self.tamper(&compute(*which)),
            Event::Copied(which) => self.copy(&compute(*which)),
            Event::ForeignCompute(branch, primary) => self.foreign_compute(*branch, *primary),
            Event::ForeignKey => self.foreign_key(),
            Event::ComputeRemoved(which) => self.remove_compute(&compute(*which)),
            Event::KeyRevoked => {
                let mut simulation = self.simulation.lock();
                let now = simulation.now;
                for (id, _) in simulation.keys_of(&key()) {
                    simulation.world.console_revoke_key(id, now).unwrap();
                }
            }
            Event::SecretRemoved => drop(self.simulation.lock().cluster.secrets.remove("ci")),
            Event::Role(password) => self.put_role(*password),
            Event::CredentialExchanged => self.exchange_credential(),
            Event::CredentialRevoked => self.revoke_credentials(),
            Event::CredentialSecretDeleted => {
                let mut simulation = self.simulation.lock();
                let now = simulation.now;
                simulation.cluster.delete_secret(CREDENTIAL, now);
            }
            Event::AccountDeleted => {
                let mut simulation = self.simulation.lock();
                let now = simulation.now;
                simulation
                    .cluster
                    .delete(&self.history.account.resource(), now);
            }
            Event::Admits(admits) => self.admit(*admits),
            Event::Confirmed => self.confirm(),
            Event::Tenant(trick) => self.play(trick),
            Event::Mistaken(which, mistake) => self.mistake(*which, *mistake),
            Event::Moved(what) => self.move_away(*what),
            Event::KeyDeleted => self.delete(&key()),
            Event::KeyReapplied(backup) => self.reapply(&key(), *backup),
            Event::KeyRequested(value) => self.request_key(*value),
            Event::KeyRotation(way) => self.declare_rotation(*way),
        }
    }

    fn edit(&mut self, which: usize, first: &Value, then: &Value) {
        let mut simulation = self.simulation.lock();
        simulation.cluster.edit(&compute(which), first);
        simulation.cluster.edit(&compute(which), then);
    }

    fn ask_for_restart(&mut self, which: usize, token: &str) {
        let mut simulation = self.simulation.lock();
        let (resource, spec) = (compute(which), json!({"spec": {"restartToken": token}}));
        let Some(object) = simulation.cluster.objects.get(&resource) else {
            return;
        };
        if object.value["spec"]["restartToken"] != token {
            *simulation
                .ledger
                .restarts_asked
                .entry((resource.clone(), token.to_owned()))
                .or_default() += 1;
        }
        simulation.cluster.edit(&resource, &spec);
    }

    fn maintain(&mut self, which: usize) {
        let mut spec = json!({"maintenance": {"restart": {"schedule": MAINTENANCE, "startingDeadline": "1m"}}});
        if self.history.profile != Profile::Minimal {
            spec["scaleToZero"] = json!({"never": true});
        }
        self.edit(which, &json!({}), &json!({"spec": spec}));
    }

    pub fn delete(&mut self, resource: &Resource) {
        let mut simulation = self.simulation.lock();
        if simulation
            .cluster
            .objects
            .get(resource)
            .is_some_and(|stored| is_without_finalizer(stored))
        {
            // The object would be gone before the operator could notice.
            return;
        }
        let now = simulation.now;
        if let Some(annotations) = annotations(&simulation, resource) {
            self.backups.insert(resource.clone(), annotations);
        }
        simulation.cluster.delete(resource, now);
    }

    fn reapply(&mut self, resource: &Resource, backup: bool) {
        let mut simulation = self.simulation.lock();
        let Some(spec) = self.history.spec(resource) else {
            return;
        };
        if simulation.cluster.objects.contains_key(resource) {
            return;
        }
        let annotations = match self.backups.get(resource) {
            Some(annotations) if backup => annotations.clone(),
            _ => json!({}),
        };
        let now = simulation.now;
        simulation
            .cluster
            .create(resource, &spec, &annotations, now);
    }
}

/// True if users have removed the finalizer of a resource that has something on the platform.
fn is_without_finalizer(stored: &Stored) -> bool {
    let finalizers = &stored.value["metadata"]["finalizers"];
    stored.value["status"]["record"].is_string() && finalizers.as_array().is_none_or(Vec::is_empty)
}

/// The annotations of an object; `None` if it does not exist.
pub fn annotations(simulation: &Simulation, resource: &Resource) -> Option<Value> {
    let annotations =
        simulation.cluster.objects.get(resource)?.value["metadata"]["annotations"].clone();
    Some(if annotations.is_object() {
        annotations
    } else {
        json!({})
    })
}
