//! The memory of all resources, with indexes for fast lookups.

use std::collections::{BTreeMap, BTreeSet};

use super::ResourceState;
use super::compute::Reservation;
use crate::api::Uid;
use crate::decide::Reason;
use crate::decide::compute::ReservedPlace;

/// By UID.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    all: BTreeMap<Uid, Box<ResourceState>>,
    /// The UIDs of the resources that have reserved a place.
    reserved: BTreeMap<ReservedPlace, BTreeSet<Uid>>,
    /// How many resources wait for a reason.
    waiting: BTreeMap<Wait, usize>,
}

/// Why a resource waits although nothing is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    pub kind: String,
    /// Empty for a kind without namespaces.
    pub namespace: String,
    pub reason: Reason,
}

/// The index entries of a resource.
#[derive(Debug, Default, PartialEq)]
struct IndexEntries {
    place: Option<ReservedPlace>,
    waits: Option<Wait>,
}

impl IndexEntries {
    fn of(resource: &ResourceState) -> Self {
        let place = resource
            .reserved
            .as_ref()
            .map(|reserved| reserved.place.clone());
        Self {
            place,
            waits: resource.waits.clone(),
        }
    }
}

impl Resources {
    pub fn get(&self, uid: &Uid) -> Option<&ResourceState> {
        self.all.get(uid).map(AsRef::as_ref)
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Uid, &ResourceState)> {
        self.all
            .iter()
            .map(|(uid, resource)| (uid, resource.as_ref()))
    }

    /// The resources that have reserved a place.
    pub fn reserved(&self, place: &ReservedPlace) -> impl Iterator<Item = (&Uid, &Reservation)> {
        let uids = self.reserved.get(place).into_iter().flatten();
        uids.filter_map(|uid| Some((uid, self.get(uid)?.reserved.as_ref()?)))
    }

    /// How many resources wait, and why.
    pub fn waiting(&self) -> &BTreeMap<Wait, usize> {
        &self.waiting
    }

    /// Changes the memory of a resource, which is created if there is none.
    pub fn change<T>(&mut self, uid: &Uid, change: impl FnOnce(&mut ResourceState) -> T) -> T {
        let resource = self.all.entry(uid.clone()).or_default();
        let before = IndexEntries::of(resource);
        let done = change(resource);
        let after = IndexEntries::of(resource);
        self.refile(uid, before, after);
        done
    }

    /// Like `change`, but only if there is a memory of the resource.
    pub fn change_known<T>(
        &mut self,
        uid: &Uid,
        change: impl FnOnce(&mut ResourceState) -> T,
    ) -> Option<T> {
        self.all.contains_key(uid).then(|| self.change(uid, change))
    }

    pub fn change_all(&mut self, change: impl Fn(&mut ResourceState)) {
        for uid in self.all.keys().cloned().collect::<Vec<_>>() {
            self.change(&uid, &change);
        }
    }

    pub fn remove(&mut self, uid: &Uid) -> Option<ResourceState> {
        let resource = self.all.remove(uid)?;
        self.refile(uid, IndexEntries::of(&resource), IndexEntries::default());
        Some(*resource)
    }

    fn refile(&mut self, uid: &Uid, before: IndexEntries, after: IndexEntries) {
        if before == after {
            return;
        }
        if let Some(place) = before.place
            && let Some(uids) = self.reserved.get_mut(&place)
        {
            uids.remove(uid);
            if uids.is_empty() {
                self.reserved.remove(&place);
            }
        }
        if let Some(waits) = before.waits
            && let Some(waiting) = self.waiting.get_mut(&waits)
        {
            *waiting -= 1;
            if *waiting == 0 {
                self.waiting.remove(&waits);
            }
        }
        if let Some(place) = after.place {
            self.reserved.entry(place).or_default().insert(uid.clone());
        }
        if let Some(waits) = after.waits {
            *self.waiting.entry(waits).or_default() += 1;
        }
    }
}

impl FromIterator<(Uid, ResourceState)> for Resources {
    fn from_iter<I: IntoIterator<Item = (Uid, ResourceState)>>(resources: I) -> Self {
        let mut all = Self::default();
        for (uid, resource) in resources {
            all.change(&uid, |known| *known = resource);
        }
        all
    }
}
