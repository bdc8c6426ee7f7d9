//! The promises that hold after every pass, and those that hold once the run is at rest.

mod excuses;

use std::sync::Arc;
use std::time::Duration;

use dbplane::api::{Compute, Condition, Known, ProjectKey};
use dbplane::controller::object::Managed;
use dbplane::decide::names;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::Value;

use super::history::compute;
use super::in_memory::Resource;
use super::in_memory::cluster::{NAMESPACE, Request, RequestTarget, full_name, place};
use super::in_memory::promises::{
    self, BoundCompute, LiveCompute, LiveKey, Maker, RecordedKey, World,
};
use super::process::Process;
use super::rotating::MOST_KEYS;
use super::run::Run;
use super::simulation::{REQUEST_TIMEOUT, Simulation};
use super::tenant::is_tenants;

/// Checks the promises that hold at any time.
pub fn unbroken(run: &Run) -> Result<(), String> {
    if let Some(violation) = run.simulation.lock().ledger.violations.first() {
        return Err(violation.clone());
    }
    too_many_deletions(run)?;
    run.made_on_both()?;
    run.at_each_platform(unbroken_here)
}

fn unbroken_here(run: &Run) -> Result<(), String> {
    let world = world(run);
    for resource in computes(run) {
        let most = 1 + run.late(&resource);
        if let Some(twice) = promises::made_twice(&world, &resource.1, most) {
            return Err(twice);
        }
    }
    if let Some(wrong) = promises::bound_wrongly(&world).or_else(|| run.is_robbed()) {
        return Err(wrong);
    }
    let live = promises::live_keys(&world);
    if live > MOST_KEYS + run.late_keys() && run.history.lists_keys() {
        return Err(format!("{live} keys are live: {:?}", world.keys));
    }
    let forgotten = promises::forgotten_keys(&world);
    if forgotten.len() > run.late_keys() {
        Err(format!("the keys {forgotten:?} are forgotten"))
    } else {
        Ok(())
    }
}

fn computes(run: &Run) -> impl Iterator<Item = Resource> {
    (0..run.history.computes.len()).map(compute)
}

impl Simulation {
    /// Called when a key is created: a ProjectKey whose Secret holds no key must not be Ready.
    pub fn note_creation(&mut self, actor: &Resource) {
        let Some(object) = self.cluster.get::<Known<ProjectKey>>(&actor.1) else {
            return;
        };
        let secret = self.cluster.secrets.get(&full_name(
            Some(object.namespace()),
            &object.spec.secret.name,
        ));
        let holds_key =
            secret.is_some_and(|secret| secret.annotations().contains_key(names::SECRET_KEY_ID));
        let ready =
            |condition: &Condition| condition.type_ == "Ready" && condition.status == "True";
        if self.acting.as_ref() == Some(actor)
            && !holds_key
            && conditions(object.as_ref()).iter().any(ready)
        {
            let violation = format!("{} has no key, and says Ready", actor.1);
            self.ledger.violations.push(violation);
        }
    }
}

impl Simulation {
    /// Checks that a resource causes no writes in another namespace.
    pub fn note_write(&mut self, request: &Request) {
        let Some(actor) = self
            .acting
            .as_ref()
            .filter(|actor| actor.0 != "ClusterAccount")
        else {
            return;
        };
        let target = match request.target() {
            RequestTarget::Object(resource) => &resource.1,
            RequestTarget::Secret(name) => name,
            RequestTarget::Namespace(_) => return,
        };
        if place(target).0 != place(&actor.1).0 {
            let violation = format!(
                "{} {} has {target} written in another namespace",
                actor.0, actor.1
            );
            self.ledger.violations.push(violation);
        }
    }
}

/// Limits deletions of one process per minute. A request can take up to its timeout, so the window
/// is shorter by that.
fn too_many_deletions(run: &Run) -> Result<(), String> {
    let simulation = run.simulation.lock();
    let within = Duration::from_secs(60).saturating_sub(REQUEST_TIMEOUT);
    let (times, most) = (
        &simulation.ledger.deletions,
        run.history.deletes_per_minute as usize,
    );
    let crowded = times.iter().find(|first| {
        times
            .iter()
            .filter(|time| *time >= first && **time < **first + within)
            .count()
            > most
    });
    crowded.map_or(Ok(()), |first| {
        Err(format!(
            "more than {most} deletions within {within:?} from {first} on"
        ))
    })
}

/// All objects except those of the hostile tenant.
fn world(run: &Run) -> World {
    let simulation = run.simulation.lock();
    let unsaved = run.process.iter().flat_map(Process::unsaved_keys);
    let resources = own_objects::<Known<Compute>>(&simulation).map(BoundCompute::from);
    let project_keys = own_objects::<Known<ProjectKey>>(&simulation).map(RecordedKey::from);
    World {
        computes: live_computes(&simulation),
        keys: live_keys(&simulation),
        resources: resources
            .filter(|it| simulation.is_here(it.identity.platform()))
            .collect(),
        project_keys: project_keys
            .filter(|it| simulation.is_here(it.identity.platform()))
            .collect(),
        key_secrets: own_secrets(&simulation)
            .map(|(name, secret)| (name.clone(), id_in(secret)))
            .collect(),
        known_keys: own_secrets(&simulation)
            .filter_map(|(_, secret)| key_name_in(secret))
            .chain(unsaved)
            .collect(),
        keys_left: simulation.ledger.keys_left.clone(),
        strays: simulation.ledger.strays.clone(),
    }
}

fn live_computes(simulation: &Simulation) -> Vec<LiveCompute> {
    let made_for = |id: &String| simulation.ledger.computes.get(id);
    let computes = simulation.world.console_computes(None).into_iter();
    computes
        .filter(|compute| !made_for(&compute.id).is_some_and(is_tenants))
        .map(|compute| LiveCompute {
            made_by: maker(made_for(&compute.id)),
            id: compute.id,
            late: false,
        })
        .collect()
}

fn live_keys(simulation: &Simulation) -> Vec<LiveKey> {
    let made_for = |id: &i64| simulation.ledger.keys.get(id);
    let keys = simulation.world.console_keys().into_iter();
    keys.filter(|key| !key.revoked && !made_for(&key.id).is_some_and(is_tenants))
        .map(|key| LiveKey {
            made_by: maker(made_for(&key.id)),
            id: key.id,
            name: key.name,
        })
        .collect()
}

fn maker(made_for: Option<&Resource>) -> Maker {
    match made_for {
        Some(resource) => Maker::Operator(Some(resource.1.clone())),
        None => Maker::SomebodyElse,
    }
}

/// The objects of a kind in our namespace.
fn own_objects<K: Managed>(simulation: &Simulation) -> impl Iterator<Item = Arc<K>> {
    let objects = simulation.cluster.all::<K>().into_iter();
    objects.filter(|object| object.namespace().as_deref() == Some(NAMESPACE))
}

fn own_secrets(simulation: &Simulation) -> impl Iterator<Item = (&String, &Secret)> {
    let secrets = simulation.cluster.secrets.iter();
    secrets
        .filter(|(name, _)| place(name).0 == NAMESPACE)
        .map(|(name, secret)| (name, &**secret))
}

/// The id of the key that a Secret holds.
fn id_in(secret: &Secret) -> Option<i64> {
    secret.annotations().get(names::SECRET_KEY_ID)?.parse().ok()
}

/// The name of the key that a Secret's annotation records.
fn key_name_in(secret: &Secret) -> Option<String> {
    let text = secret.annotations().get(names::SECRET_KEY)?;
    let recorded: Value = serde_json::from_str(text).ok()?;
    Some(recorded["name"].as_str()?.to_owned())
}

/// The conditions of all resources, for error messages.
pub fn conditions_of_all(run: &Run) -> Vec<String> {
    let simulation = run.simulation.lock();
    let computes = simulation.cluster.all::<Known<Compute>>();
    let computes = computes
        .iter()
        .map(|object| (object.name_any(), conditions(object.as_ref())));
    let keys = simulation.cluster.all::<Known<ProjectKey>>();
    let keys = keys
        .iter()
        .map(|object| (object.name_any(), conditions(object.as_ref())));
    let text = |condition: &Condition| {
        format!(
            "{} {}: {}",
            condition.type_, condition.reason, condition.message
        )
    };
    computes
        .chain(keys)
        .map(|(name, conditions)| {
            format!(
                "{name}: {:?}",
                conditions.iter().map(text).collect::<Vec<_>>()
            )
        })
        .collect()
}

fn conditions<K: Managed>(object: &K) -> Vec<Condition> {
    let conditions = serde_json::to_value(object).unwrap()["status"]["conditions"].take();
    serde_json::from_value(conditions).unwrap_or_default()
}

fn reason<K: Managed>(object: &K, type_: &str) -> String {
    conditions(object)
        .into_iter()
        .find(|condition| condition.type_ == type_)
        .map_or_else(String::new, |found| found.reason)
}

/// Checks the promises that hold at rest.
pub fn kept(run: &Run) -> Result<(), String> {
    unbroken(run)?;
    run.at_each_platform(kept_here)
}

fn kept_here(run: &Run) -> Result<(), String> {
    let world = world(run);
    for resource in &world.resources {
        let kept = compute_kept(run, &world, resource);
        kept.map_err(|error| explained(&error, resource.object.as_ref()))?;
    }
    for resource in &world.project_keys {
        let kept = key_kept(run, &world, resource);
        kept.map_err(|error| explained(&error, resource.object.as_ref()))?;
    }
    for resource in computes(run) {
        nothing_left(run, &world, &resource)?;
    }
    let gone = world.project_keys.is_empty();
    if gone && promises::live_keys(&world) > run.late_keys() && run.history.lists_keys() {
        Err(format!("keys outlive their resource: {:?}", world.keys))
    } else {
        Ok(())
    }
}

fn explained<K: Managed>(error: &str, object: &K) -> String {
    format!("{}: {error}: {:#?}", object.name_any(), conditions(object))
}

fn compute_kept(run: &Run, world: &World, resource: &BoundCompute) -> Result<(), String> {
    let object = resource.object.as_ref();
    let reason = reason(object, "Ready");
    if object.record().is_err() {
        return match reason.as_str() {
            "BindingConflict" => Ok(()),
            _ => Err("its record is not its own, and nobody reports it".to_owned()),
        };
    }
    if run.person_asked(object, &reason)
        || run.waits_for_account(object, &reason)
        || run.asks_about_a_repeated_create(object)
    {
        return Ok(());
    }
    if object.metadata.deletion_timestamp.is_some() {
        return Err("its deletion does not end".to_owned());
    }
    match promises::without_compute(world, resource) {
        Some(short) => Err(short),
        None if reason == "Available" => connection_kept(run, object),
        None => Err("it is not ready".to_owned()),
    }
}

/// The connection Secret has the host of the compute, and the current password or none, even after
/// a crash between two writes.
fn connection_kept(run: &Run, object: &Known<Compute>) -> Result<(), String> {
    let simulation = run.simulation.lock();
    let entry = |secret: &str, name: &str| {
        let data = simulation
            .cluster
            .secrets
            .get(secret)?
            .data
            .as_ref()?
            .get(name)?;
        Some(String::from_utf8(data.0.clone()).unwrap())
    };
    let Some(connection) = &object.spec.connection else {
        return Ok(());
    };
    let host = object
        .status
        .as_ref()
        .and_then(|status| status.host.clone());
    let password = connection
        .credentials_from
        .as_ref()
        .and_then(|from| entry(&from.name, &from.password_key));
    let uri = password.as_ref().zip(host.as_ref());
    let uri = uri.map(|(password, host)| {
        format!("postgresql://app:{password}@{host}:5432/shop?sslmode=require")
    });
    let wrong = [("host", host), ("password", password), ("uri", uri)]
        .into_iter()
        .find(|(name, wanted)| entry(&connection.secret_name, name) != *wanted);
    wrong.map_or(Ok(()), |(name, _)| {
        Err(format!(
            "the entry {name} of its connection Secret is not right"
        ))
    })
}

fn key_kept(run: &Run, world: &World, resource: &RecordedKey) -> Result<(), String> {
    let object = resource.object.as_ref();
    let reason = reason(object, "Ready");
    if !run.history.lists_keys() && reason == "RevocationUnsupported" {
        return Ok(());
    }
    if reason == "SecretNotOurs" && is_empty_and_unowned(&run.simulation.lock())
        || run.waits_for_account(object, &reason)
    {
        return Ok(());
    }
    if object.metadata.deletion_timestamp.is_some() {
        return Err("its deletion does not end".to_owned());
    }
    if let Some(short) = promises::without_key(world, resource) {
        return Err(short);
    }
    if promises::live_keys(world) > 1 + run.late_keys() && run.history.lists_keys() {
        Err(format!("more than one key is live: {:?}", world.keys))
    } else {
        Ok(())
    }
}

/// True if the Secret was restored without its owner, from a backup older than its key. Its owner
/// cannot be determined then.
fn is_empty_and_unowned(simulation: &Simulation) -> bool {
    let found = simulation.cluster.secrets.get("ci");
    found.is_some_and(|secret| secret.data.is_none() && secret.owner_references().is_empty())
}

/// A compute created for a resource is bound to it, or a condition asks a user to decide about it.
fn nothing_left(run: &Run, world: &World, resource: &Resource) -> Result<(), String> {
    let object = world
        .resources
        .iter()
        .map(|it| it.object.as_ref())
        .find(|object| object.name_any() == resource.1);
    let invalid = |object: &Known<Compute>| object.record().is_err();
    if object
        .is_some_and(|object| invalid(object) || run.person_asked(object, &reason(object, "Ready")))
    {
        return Ok(());
    }
    let asking = |condition: &Condition| {
        ["StrayCompute", "AmbiguousCreate", "PrimaryExists"].contains(&condition.reason.as_str())
    };
    let asked: String = object
        .iter()
        .flat_map(|object| conditions(*object))
        .filter(asking)
        .map(|it| it.message + "\n")
        .collect();
    let of = Maker::Operator(Some(resource.1.clone()));
    let left = promises::forgotten_computes(world)
        .into_iter()
        .filter(|compute| compute.made_by == of);
    let forgotten: Vec<_> = left
        .filter(|compute| !promises::words(&asked).any(|word| word == compute.id))
        .collect();
    // A compute that arrives after its resource is gone stays unnoticed: a recreated resource does
    // not know of it.
    let uid = object.map(|object| object.uid().to_string());
    let unnoticed = run.late_for(resource, |maker| Some(maker) != uid.as_deref());
    if forgotten.len() > unnoticed + run.repeated_unread(resource, uid.as_deref()) {
        Err(format!(
            "{forgotten:?} were created for {} and are left: {asked}",
            resource.1
        ))
    } else {
        Ok(())
    }
}
