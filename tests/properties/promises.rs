//! What holds after every pass, and how things stand once all is at rest.

use std::collections::BTreeSet;

use dbplane::api::{Compute, Condition, ProjectKey};
use dbplane::controller::{Hands, Managed};
use dbplane::decide::identity::{self, ComputeIdentity, ProjectKeyIdentity};
use dbplane::decide::names;
use dbplane_simulator::world::Profile;
use kube::ResourceExt;

use super::history::{compute, key};
use super::run::Run;
use super::stage::{Resource, Stage};

/// The promises that hold at any time.
pub fn unbroken(run: &Run) -> Result<(), String> {
    let stage = run.stage.lock();
    if let Some(violation) = stage.ledger.violations.first() {
        return Err(violation.clone());
    }
    for number in 0..run.story.computes.len() {
        let made = stage.made_for(&compute(number));
        if made.len() > run.most() {
            return Err(format!("{made:?} were all created for r{number}"));
        }
    }
    let known = known_keys(run, &stage);
    let keys = stage.keys_of(&key());
    let forgotten: Vec<_> =
        keys.iter().filter(|(_, name)| !known.contains(name) && !stage.ledger.told.contains(name)).collect();
    match forgotten.len() > run.late() {
        true => Err(format!("the keys {forgotten:?} are forgotten")),
        false => Ok(()),
    }
}

/// The names of all keys that annotations, Secrets or the process know of.
fn known_keys(run: &Run, stage: &Stage) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for object in stage.cluster.all::<ProjectKey>() {
        let identity = booked(&object);
        known.extend(identity.names().map(str::to_owned));
    }
    for secret in stage.cluster.secrets.values() {
        let recorded = secret.annotations().get(names::SECRET_KEY);
        known.extend(
            recorded.and_then(|text| {
                Some(serde_json::from_str::<serde_json::Value>(text).ok()?["name"].as_str()?.to_owned())
            }),
        );
    }
    let unsaved = run.process.iter().flat_map(|process| process.unsaved().all());
    known.extend(unsaved.map(|(_, key)| key.key.name));
    known
}

/// What the resources say.
pub fn said(run: &Run) -> Vec<String> {
    let stage = run.stage.lock();
    let computes = stage.cluster.all::<Compute>();
    let computes = computes.iter().map(|object| (object.name_any(), conditions(object)));
    let keys = stage.cluster.all::<ProjectKey>();
    let keys = keys.iter().map(|object| (object.name_any(), conditions(object)));
    let text = |condition: &Condition| format!("{} {}: {}", condition.type_, condition.reason, condition.message);
    computes
        .chain(keys)
        .map(|(name, conditions)| format!("{name}: {:?}", conditions.iter().map(text).collect::<Vec<_>>()))
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

/// The promises that hold at rest.
pub fn kept(run: &Run) -> Result<(), String> {
    unbroken(run)?;
    let stage = run.stage.lock();
    for object in stage.cluster.all::<Compute>() {
        compute_kept(run, &stage, &object)
            .map_err(|error| format!("{}: {error}: {:#?}", object.name_any(), conditions(&object)))?;
    }
    for object in stage.cluster.all::<ProjectKey>() {
        key_kept(run, &stage, &object)
            .map_err(|error| format!("{}: {error}: {:#?}", object.name_any(), conditions(&object)))?;
    }
    for number in 0..run.story.computes.len() {
        nothing_left(run, &stage, &compute(number))?;
    }
    let gone = stage.cluster.get::<ProjectKey>(&key().1).is_none();
    let left = stage.keys_of(&key());
    match gone && left.len() > run.late() && run.story.profile != Profile::Minimal {
        true => Err(format!("the keys {left:?} outlive their resource")),
        false => Ok(()),
    }
}

fn compute_kept(run: &Run, stage: &Stage, object: &Compute) -> Result<(), String> {
    let resource = ("Compute", object.name_any());
    let reason = reason(object, "Ready");
    if run.tampered.contains(&resource) {
        return match reason.as_str() {
            "BindingConflict" => Ok(()),
            _ => Err("its links are not its own, and nobody says so".to_owned()),
        };
    }
    if run.person_asked(object, &reason) {
        return Ok(());
    }
    if object.metadata.deletion_timestamp.is_some() {
        return Err("its deletion does not end".to_owned());
    }
    let Some(binding) = linked(object).binding else { return Err("it has no compute".to_owned()) };
    if !stage.made_for(&resource).contains(&binding.id) {
        return Err(format!("its compute {} is not there, or not its own", binding.id));
    }
    match reason.as_str() {
        "Available" => Ok(()),
        _ => Err("it is not ready".to_owned()),
    }
}

fn key_kept(run: &Run, stage: &Stage, object: &ProjectKey) -> Result<(), String> {
    let reason = reason(object, "Ready");
    let by_hand = ["RevocationUnsupported", "KeysLeft"];
    if run.story.profile == Profile::Minimal && by_hand.contains(&reason.as_str()) {
        return Ok(());
    }
    if reason == "SecretNotOurs" && is_empty_and_unowned(stage) {
        return Ok(());
    }
    if object.metadata.deletion_timestamp.is_some() {
        return Err("its deletion does not end".to_owned());
    }
    let Some(current) = booked(object).book.current else { return Err("it has no key".to_owned()) };
    let live = stage.keys_of(&key());
    if !live.iter().any(|(id, name)| *id == current.id && *name == current.name) {
        return Err(format!("its key {} is not live", current.name));
    }
    let held =
        stage.cluster.secrets.get("ci").and_then(|secret| secret.annotations().get(names::SECRET_KEY_ID).cloned());
    if held != Some(current.id.to_string()) {
        return Err(format!("its Secret holds {held:?} and not {}", current.id));
    }
    match live.len() > 1 + run.late() && run.story.profile != Profile::Minimal {
        true => Err(format!("more than one key is live: {live:?}")),
        false => Ok(()),
    }
}

/// It was restored without its owner from a backup that was made before it held a key: nothing tells whose it is.
fn is_empty_and_unowned(stage: &Stage) -> bool {
    let found = stage.cluster.secrets.get("ci");
    found.is_some_and(|secret| secret.data.is_none() && secret.owner_references().is_empty())
}

/// What was created for a resource is its own, or it is told.
fn nothing_left(run: &Run, stage: &Stage, resource: &Resource) -> Result<(), String> {
    let object = stage.cluster.get::<Compute>(&resource.1);
    if run.tampered.contains(resource)
        || object.as_ref().is_some_and(|object| run.person_asked(object, &reason(object, "Ready")))
    {
        return Ok(());
    }
    let bound = object.as_ref().and_then(|object| linked(object).binding).map(|binding| binding.id);
    let told = object.iter().flat_map(conditions).map(|condition| condition.message).collect::<String>();
    let left = stage.made_for(resource).into_iter().filter(|id| bound.as_ref() != Some(id));
    let forgotten: Vec<String> =
        left.filter(|id| !told.contains(id.as_str()) && !stage.ledger.told.contains(id.as_str())).collect();
    // What comes after its resource is gone, nobody is left to notice.
    let unnoticed = if object.is_none() { run.late() } else { 0 };
    match forgotten.len() > unnoticed {
        true => Err(format!("{forgotten:?} were created for {} and are left: {told}", resource.1)),
        false => Ok(()),
    }
}

impl Run<'_> {
    /// How many computes a resource may ever have at once.
    fn most(&self) -> usize {
        1 + self.late()
    }

    /// How many requests may be carried out when nobody reckons with them any more. A key that such a one brings forth is
    /// found when its resource is deleted.
    fn late(&self) -> usize {
        self.story.faults.iter().filter(|hit| hit.fault.is_late()).count()
    }

    /// Where the evidence leaves it open, a person is asked.
    fn person_asked(&self, object: &Compute, reason: &str) -> bool {
        let branch: u8 = object.spec.branch_id.trim_start_matches('b').parse().unwrap();
        let primary = object.spec.type_ == dbplane::api::ComputeType::ReadWrite;
        let foreign = |primary| self.foreign.contains(&(branch, primary));
        match reason {
            "AmbiguousCreate" | "PrimaryExists" => foreign(primary),
            // A copy that is older declares the same primary, until a person deletes it.
            "ClaimedByAnother" => primary && self.tampered.iter().any(|(_, name)| name.starts_with("copy-of-")),
            // It waits for one on the branch that does.
            "Creating" | "ConfirmingCreate" => {
                conditions(object).iter().any(|condition| condition.message.contains("comes first"))
                    && (foreign(true) || foreign(false))
            }
            _ => false,
        }
    }
}

fn linked(object: &Compute) -> ComputeIdentity {
    identity::of_compute(object.annotations(), object.meta_observed().object_key()).unwrap_or_default()
}

fn booked(object: &ProjectKey) -> ProjectKeyIdentity {
    identity::of_key(object.annotations(), object.meta_observed().object_key()).unwrap_or_default()
}
