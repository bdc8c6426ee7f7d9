//! What is remembered of all resources, and by what some of them are found at once.

use std::collections::{BTreeMap, BTreeSet};

use super::ResourceState;
use super::compute::Turn;
use crate::decide::Reason;

/// By UID.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    all: BTreeMap<String, ResourceState>,
    /// Who has begun a create that is not resolved.
    creating: BTreeMap<Turn, BTreeSet<String>>,
    /// How many of a kind wait for this.
    waiting: BTreeMap<(String, Reason), usize>,
}

impl Resources {
    pub fn get(&self, uid: &str) -> Option<&ResourceState> {
        self.all.get(uid)
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &ResourceState)> {
        self.all.iter()
    }

    /// Who has this turn.
    pub fn creating(&self, turn: &Turn) -> impl Iterator<Item = &str> {
        self.creating.get(turn).into_iter().flatten().map(String::as_str)
    }

    pub fn waiting(&self, kind: &str, reason: Reason) -> usize {
        self.waiting.get(&(kind.to_owned(), reason)).copied().unwrap_or_default()
    }

    /// Changes what is remembered of a resource, of which nothing may be known yet.
    pub fn change<T>(&mut self, uid: &str, change: impl FnOnce(&mut ResourceState) -> T) -> T {
        let mut resource = self.remove(uid).unwrap_or_default();
        let done = change(&mut resource);
        self.insert(uid.to_owned(), resource);
        done
    }

    /// The same where something is known of it.
    pub fn change_known<T>(&mut self, uid: &str, change: impl FnOnce(&mut ResourceState) -> T) -> Option<T> {
        self.all.contains_key(uid).then(|| self.change(uid, change))
    }

    pub fn remove(&mut self, uid: &str) -> Option<ResourceState> {
        let resource = self.all.remove(uid)?;
        if let Some(create) = &resource.create
            && let Some(creating) = self.creating.get_mut(&create.turn)
        {
            creating.remove(uid);
            if creating.is_empty() {
                self.creating.remove(&create.turn);
            }
        }
        if let Some(waiting) = resource.waits.as_ref().and_then(|waits| self.waiting.get_mut(waits)) {
            *waiting -= 1;
        }
        Some(resource)
    }

    fn insert(&mut self, uid: String, resource: ResourceState) {
        if let Some(create) = &resource.create {
            self.creating.entry(create.turn.clone()).or_default().insert(uid.clone());
        }
        if let Some(waits) = &resource.waits {
            *self.waiting.entry(waits.clone()).or_default() += 1;
        }
        self.all.insert(uid, resource);
    }
}

impl IntoIterator for Resources {
    type Item = (String, ResourceState);
    type IntoIter = std::collections::btree_map::IntoIter<String, ResourceState>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}

impl FromIterator<(String, ResourceState)> for Resources {
    fn from_iter<I: IntoIterator<Item = (String, ResourceState)>>(resources: I) -> Self {
        let mut all = Self::default();
        resources.into_iter().for_each(|(uid, resource)| all.insert(uid, resource));
        all
    }
}
