//! The promises, over what is there: written once for the model checker, the property tests and the crash points. What each of
//! them has to excuse, it excuses itself: it tells by what was found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dbplane::api::{Compute, ProjectKey};
use dbplane::decide::identity::{self, ComputeIdentity, Origin, ProjectKeyIdentity};
use kube::ResourceExt;
use serde_json::{Value, from_value};

/// A compute on the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCompute {
    pub id: String,
    pub made_by: Maker,
    /// Made so late that its create counted as not carried out.
    pub late: bool,
}

/// A key on the platform that is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveKey {
    pub id: i64,
    pub name: String,
    pub made_by: Maker,
}

/// Who made something on the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// The operator, for the resource of this name, where that is known.
    Operator(Option<String>),
    SomebodyElse,
}

impl Maker {
    fn is_operator(&self) -> bool {
        matches!(self, Self::Operator(_))
    }
}

/// A Compute with what is recorded of it.
#[derive(Clone, Debug)]
pub struct BoundCompute {
    pub object: Arc<Compute>,
    pub identity: Arc<ComputeIdentity>,
}

/// A ProjectKey with what is recorded of it.
#[derive(Clone, Debug)]
pub struct RecordedKey {
    pub object: Arc<ProjectKey>,
    pub identity: Arc<ProjectKeyIdentity>,
}

/// A record that is not the resource's own says nothing.
impl From<Arc<Compute>> for BoundCompute {
    fn from(object: Arc<Compute>) -> Self {
        let record = identity::of_compute(&object).unwrap_or_default();
        Self { identity: Arc::new(record.identity), object }
    }
}

impl From<Arc<ProjectKey>> for RecordedKey {
    fn from(object: Arc<ProjectKey>) -> Self {
        let record = identity::of_key(&object).unwrap_or_default();
        Self { identity: Arc::new(record.identity_or_wish()), object }
    }
}

/// Whether the annotation is a copy of the record in the status, as far as a restore needs it.
pub fn is_annotated(object: &Value) -> bool {
    let annotated = match object["kind"].as_str() {
        Some("Compute") => {
            from_value(object.clone()).ok().map(|it| identity::of_compute(&it).map(|it| it.is_annotated))
        }
        _ => from_value(object.clone()).ok().map(|it| identity::of_key(&it).map(|it| it.is_annotated)),
    };
    annotated.is_some_and(|annotated| annotated.unwrap_or_default())
}

/// Everything that the promises are about, at one moment.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub computes: Vec<LiveCompute>,
    pub keys: Vec<LiveKey>,
    pub resources: Vec<BoundCompute>,
    pub project_keys: Vec<RecordedKey>,
    /// By the name of each Secret that holds a key: the number of that key, as far as the Secret tells.
    pub key_secrets: BTreeMap<String, Option<i64>>,
    /// The names of keys that are in the memory of a process, or recorded elsewhere than in the record.
    pub known_keys: BTreeSet<String>,
    /// The names of keys that people are asked to revoke, because they are valid and in nobody's use.
    pub keys_left: BTreeSet<String>,
    /// Computes that people are asked to decide about, because a create may have made them.
    pub strays: BTreeSet<String>,
}

/// What a text names: whole words, so that `ep-1` is not named by a text about `ep-12`.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.split(move |c| !part_of_name(c)).map(|word| word.trim_matches('.')).filter(|word| !word.is_empty())
}

/// Never twice: the computes that were made in time for one resource, where there are more than `most`.
pub fn made_twice(world: &World, name: &str, most: usize) -> Option<String> {
    let of = Maker::Operator(Some(name.to_owned()));
    let made = world.computes.iter().filter(|compute| compute.made_by == of && !compute.late);
    let made: Vec<_> = made.map(|compute| &compute.id).collect();
    (made.len() > most).then(|| format!("{made:?} were all created for {name}"))
}

/// Never twice: more computes of ours, made in time, than there are resources that could have them.
pub fn more_than_resources(world: &World) -> Option<String> {
    let ours = world.computes.iter().filter(|compute| compute.made_by.is_operator() && !compute.late).count();
    let resources = world.resources.len();
    (ours > resources).then(|| format!("{ours} computes of ours for {resources} resources"))
}

/// Never unasked: a compute that two resources are bound to, or that is somebody else's and bound as if it had been created.
pub fn bound_wrongly(world: &World) -> Option<String> {
    let mut taken = BTreeSet::new();
    for resource in &world.resources {
        let Some(binding) = &resource.identity.binding else { continue };
        if !taken.insert(&binding.id) {
            return Some(format!("two resources are bound to {}", binding.id));
        }
        let found = world.computes.iter().find(|compute| compute.id == binding.id);
        if binding.origin == Origin::Created && found.is_some_and(|compute| !compute.made_by.is_operator()) {
            return Some(format!("{} is somebody else's and bound as if it had been created", binding.id));
        }
    }
    None
}

/// Never lost: the keys of ours that neither records, nor Secrets, nor a process know of, and that nobody is asked to revoke.
pub fn forgotten_keys(world: &World) -> Vec<&LiveKey> {
    let recorded = |key: &LiveKey| world.project_keys.iter().any(|it| it.identity.names().any(|name| name == key.name));
    let known = |key: &LiveKey| world.known_keys.contains(&key.name) || world.keys_left.contains(&key.name);
    world.keys.iter().filter(|key| key.made_by.is_operator() && !recorded(key) && !known(key)).collect()
}

/// Never forgotten: the computes of ours that no resource is bound to and nobody is asked to decide about.
pub fn forgotten_computes(world: &World) -> Vec<&LiveCompute> {
    let bound = |compute: &LiveCompute| {
        world.resources.iter().any(|it| it.identity.binding.as_ref().is_some_and(|binding| binding.id == compute.id))
    };
    let stray = |compute: &LiveCompute| world.strays.contains(&compute.id);
    world.computes.iter().filter(|it| it.made_by.is_operator() && !bound(it) && !stray(it)).collect()
}

/// Converging: why a Compute does not have its own compute; `None` where it has.
pub fn without_compute(world: &World, resource: &BoundCompute) -> Option<String> {
    let Some(binding) = &resource.identity.binding else { return Some("it has no compute".to_owned()) };
    let found = world.computes.iter().find(|compute| compute.id == binding.id);
    match found.map(|compute| &compute.made_by) {
        None => Some(format!("its compute {} is not there", binding.id)),
        Some(Maker::Operator(Some(name))) if *name != resource.object.name_any() => {
            Some(format!("its compute {} was made for {name}", binding.id))
        }
        Some(_) => None,
    }
}

/// Converging: why a ProjectKey has no key that can be used; `None` where it has.
pub fn without_key(world: &World, resource: &RecordedKey) -> Option<String> {
    let Some(current) = &resource.identity.records.current else { return Some("it has no key".to_owned()) };
    if !world.keys.iter().any(|key| key.id == current.id && key.name == current.name) {
        return Some(format!("its key {} is not live", current.name));
    }
    let held = world.key_secrets.get(&resource.object.spec.secret.name).copied().flatten();
    (held != Some(current.id)).then(|| format!("its Secret holds {held:?} and not {}", current.id))
}

/// How many keys of ours are live.
pub fn live_keys(world: &World) -> usize {
    world.keys.iter().filter(|key| key.made_by.is_operator()).count()
}
