//! What is remembered of all resources, and by what some of them are found at once.

use std::collections::{BTreeMap, BTreeSet};

use super::ResourceState;
use super::compute::Turn;
use crate::decide::Reason;
use crate::decide::identity::Told;

/// By UID.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    all: BTreeMap<String, Box<ResourceState>>,
    /// Who has begun a create that is not resolved.
    creating: BTreeMap<Turn, BTreeSet<String>>,
    /// How many of a kind wait for this.
    waiting: BTreeMap<(String, Reason), usize>,
}

/// By what a resource is found, besides its UID.
#[derive(Debug, Default, PartialEq)]
struct Found {
    turn: Option<Turn>,
    waits: Option<(String, Reason)>,
}

impl Found {
    fn of(resource: &ResourceState) -> Self {
        let turn = resource.create.as_ref().map(|create| create.turn.clone());
        Self { turn, waits: resource.waits.clone() }
    }
}

impl Resources {
    pub fn get(&self, uid: &str) -> Option<&ResourceState> {
        self.all.get(uid).map(AsRef::as_ref)
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &ResourceState)> {
        self.all.iter().map(|(uid, resource)| (uid, resource.as_ref()))
    }

    /// Who has this turn, and how their creates are told.
    pub fn creating(&self, turn: &Turn) -> impl Iterator<Item = (&str, Told)> {
        let told = |uid: &str| Some(self.get(uid)?.create.as_ref()?.told);
        let creating = self.creating.get(turn).into_iter().flatten();
        creating.filter_map(move |uid| Some((uid.as_str(), told(uid)?)))
    }

    /// Those for which nobody waits any more are among them, with none.
    pub fn waiting(&self, kind: &str) -> BTreeMap<Reason, usize> {
        let of_kind = self.waiting.iter().filter(|((of, _), _)| of == kind);
        of_kind.map(|((_, reason), count)| (*reason, *count)).collect()
    }

    /// Changes what is remembered of a resource, of which nothing may be known yet.
    pub fn change<T>(&mut self, uid: &str, change: impl FnOnce(&mut ResourceState) -> T) -> T {
        let resource = self.all.entry(uid.to_owned()).or_default();
        let before = Found::of(resource);
        let done = change(resource);
        let after = Found::of(resource);
        self.refile(uid, before, after);
        done
    }

    /// The same where something is known of it.
    pub fn change_known<T>(&mut self, uid: &str, change: impl FnOnce(&mut ResourceState) -> T) -> Option<T> {
        self.all.contains_key(uid).then(|| self.change(uid, change))
    }

    pub fn remove(&mut self, uid: &str) -> Option<ResourceState> {
        let resource = self.all.remove(uid)?;
        self.refile(uid, Found::of(&resource), Found::default());
        Some(*resource)
    }

    fn refile(&mut self, uid: &str, before: Found, after: Found) {
        if before == after {
            return;
        }
        if let Some(turn) = before.turn
            && let Some(creating) = self.creating.get_mut(&turn)
        {
            creating.remove(uid);
            if creating.is_empty() {
                self.creating.remove(&turn);
            }
        }
        if let Some(waiting) = before.waits.and_then(|waits| self.waiting.get_mut(&waits)) {
            *waiting -= 1;
        }
        if let Some(turn) = after.turn {
            self.creating.entry(turn).or_default().insert(uid.to_owned());
        }
        if let Some(waits) = after.waits {
            *self.waiting.entry(waits).or_default() += 1;
        }
    }
}

impl FromIterator<(String, ResourceState)> for Resources {
    fn from_iter<I: IntoIterator<Item = (String, ResourceState)>>(resources: I) -> Self {
        let mut all = Self::default();
        for (uid, resource) in resources {
            all.change(&uid, |known| *known = resource);
        }
        all
    }
}
