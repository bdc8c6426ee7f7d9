//! The promises as checks of a `World`, shared by the model check, the property tests and the crash
//! points. A check returns what it found, so that its caller can make its own exceptions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dbplane::api::{Compute, Known, ProjectKey};
use dbplane::decide::identity::{self, ComputeIdentity, Origin, ProjectKeyIdentity};
use dbplane::decide::record_of;
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

/// A valid key on the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveKey {
    pub id: i64,
    pub name: String,
    pub made_by: Maker,
}

/// The creator of a compute or key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// The operator, for the resource of this name if known.
    Operator(Option<String>),
    SomebodyElse,
}

impl Maker {
    fn is_operator(&self) -> bool {
        matches!(self, Self::Operator(_))
    }
}

/// A Compute with its record.
#[derive(Clone, Debug)]
pub struct BoundCompute {
    pub object: Arc<Known<Compute>>,
    pub identity: Arc<ComputeIdentity>,
}

/// A ProjectKey with its record.
#[derive(Clone, Debug)]
pub struct RecordedKey {
    pub object: Arc<Known<ProjectKey>>,
    pub identity: Arc<ProjectKeyIdentity>,
}

/// A foreign record counts as none.
impl From<Arc<Known<Compute>>> for BoundCompute {
    fn from(object: Arc<Known<Compute>>) -> Self {
        Self {
            identity: Arc::new(object.identity().unwrap_or_default()),
            object,
        }
    }
}

impl From<Arc<Known<ProjectKey>>> for RecordedKey {
    fn from(object: Arc<Known<ProjectKey>>) -> Self {
        Self {
            identity: Arc::new(recorded(&object)),
            object,
        }
    }
}

/// The keys of the record, or of the wish.
pub fn recorded(object: &Known<ProjectKey>) -> ProjectKeyIdentity {
    let record = object.record().ok();
    record
        .map(|record| record.identity_or_wish().clone())
        .unwrap_or_default()
}

/// True if the annotation equals the record in the status, as far as a restore needs it.
pub fn is_annotated(object: &Value) -> bool {
    let annotated = match object["kind"].as_str() {
        Some("Compute") => from_value::<Compute>(object.clone())
            .ok()
            .map(|it| record_of(&it).map(|it| it.is_annotated)),
        _ => from_value::<ProjectKey>(object.clone())
            .ok()
            .map(|it| record_of(&it).map(|it| it.is_annotated)),
    };
    annotated.is_some_and(|annotated| annotated.unwrap_or_default())
}

/// The input of the promises at one moment.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub computes: Vec<LiveCompute>,
    pub keys: Vec<LiveKey>,
    pub resources: Vec<BoundCompute>,
    pub project_keys: Vec<RecordedKey>,
    /// Secrets that hold a key, with the number of that key if the Secret names it.
    pub key_secrets: BTreeMap<String, Option<i64>>,
    /// Names of keys in the memory of a process, or recorded outside the record.
    pub known_keys: BTreeSet<String>,
    /// Names of valid but unused keys that users are asked to revoke.
    pub keys_left: BTreeSet<String>,
    /// Computes that users are asked to decide about, because a create may have made them.
    pub strays: BTreeSet<String>,
}

/// The words of a text. Whole words, so that a text about `ep-12` does not name `ep-1`.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.split(move |c| !part_of_name(c))
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
}

/// Never twice: more than `most` computes were created in time for one resource.
pub fn made_twice(world: &World, name: &str, most: usize) -> Option<String> {
    let of = Maker::Operator(Some(name.to_owned()));
    let made = world
        .computes
        .iter()
        .filter(|compute| compute.made_by == of && !compute.late);
    let made: Vec<_> = made.map(|compute| &compute.id).collect();
    (made.len() > most).then(|| format!("{made:?} were all created for {name}"))
}

/// Never twice: more computes were created in time than there are resources.
pub fn more_than_resources(world: &World) -> Option<String> {
    let ours = world
        .computes
        .iter()
        .filter(|compute| compute.made_by.is_operator() && !compute.late)
        .count();
    let resources = world.resources.len();
    (ours > resources).then(|| format!("{ours} computes of ours for {resources} resources"))
}

/// Never unasked: two resources are bound to one compute, or a foreign compute is bound as created.
pub fn bound_wrongly(world: &World) -> Option<String> {
    let mut taken = BTreeSet::new();
    for resource in &world.resources {
        let Some(binding) = &resource.identity.binding else {
            continue;
        };
        if !taken.insert(&binding.id) {
            return Some(format!("two resources are bound to {}", binding.id));
        }
        let found = world
            .computes
            .iter()
            .find(|compute| compute.id == *binding.id);
        if binding.origin == Origin::Created
            && found.is_some_and(|compute| !compute.made_by.is_operator())
        {
            return Some(format!(
                "{} is somebody else's and bound as if it had been created",
                binding.id
            ));
        }
    }
    None
}

/// Never lost: keys of ours that no record, Secret or process knows, and that no user is asked to
/// revoke.
pub fn forgotten_keys(world: &World) -> Vec<&LiveKey> {
    let recorded = |key: &LiveKey| {
        world
            .project_keys
            .iter()
            .any(|it| it.identity.names().any(|name| name == key.name))
    };
    let known =
        |key: &LiveKey| world.known_keys.contains(&key.name) || world.keys_left.contains(&key.name);
    world
        .keys
        .iter()
        .filter(|key| key.made_by.is_operator() && !recorded(key) && !known(key))
        .collect()
}

/// Never forgotten: computes of ours without a bound resource that no user is asked to decide
/// about.
pub fn forgotten_computes(world: &World) -> Vec<&LiveCompute> {
    let bound = |compute: &LiveCompute| {
        world.resources.iter().any(|it| {
            it.identity
                .binding
                .as_ref()
                .is_some_and(|binding| *binding.id == *compute.id)
        })
    };
    let stray = |compute: &LiveCompute| world.strays.contains(&compute.id);
    world
        .computes
        .iter()
        .filter(|it| it.made_by.is_operator() && !bound(it) && !stray(it))
        .collect()
}

/// Converging: why a Compute lacks its own compute; `None` if it has one.
pub fn without_compute(world: &World, resource: &BoundCompute) -> Option<String> {
    let Some(binding) = &resource.identity.binding else {
        return Some("it has no compute".to_owned());
    };
    let found = world
        .computes
        .iter()
        .find(|compute| compute.id == *binding.id);
    match found.map(|compute| &compute.made_by) {
        None => Some(format!("its compute {} is not there", binding.id)),
        Some(Maker::Operator(Some(name))) if *name != resource.object.name_any() => {
            Some(format!("its compute {} was made for {name}", binding.id))
        }
        Some(_) => None,
    }
}

/// Converging: why a ProjectKey has no usable key; `None` if it has one.
pub fn without_key(world: &World, resource: &RecordedKey) -> Option<String> {
    let Some(current) = &resource.identity.records.current else {
        return Some("it has no key".to_owned());
    };
    if !world
        .keys
        .iter()
        .any(|key| key.id == current.id.0 && key.name == current.name)
    {
        return Some(format!("its key {} is not live", current.name));
    }
    let held = world
        .key_secrets
        .get(&resource.object.spec.secret.name)
        .copied()
        .flatten();
    (held != Some(current.id.0))
        .then(|| format!("its Secret holds {held:?} and not {}", current.id))
}

/// Number of valid keys of ours.
pub fn live_keys(world: &World) -> usize {
    world
        .keys
        .iter()
        .filter(|key| key.made_by.is_operator())
        .count()
}
