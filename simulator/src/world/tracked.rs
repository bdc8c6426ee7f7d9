//! A map that remembers which of its entries changed, so that only those are written to the state file.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::RangeBounds;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An ordered map with a record of touched keys.
#[derive(Debug, Clone)]
pub struct Tracked<K, V> {
    entries: BTreeMap<K, V>,
    touched: BTreeSet<K>,
}

impl<K: Ord + Clone, V> Default for Tracked<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), touched: BTreeSet::new() }
    }
}

impl<K: Ord + Clone, V> Tracked<K, V> {
    /// The entry of `key`.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    /// The entry of `key`, to be changed: it counts as changed from here on.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        self.touched.insert(key.clone());
        Some(entry)
    }

    /// Adds or replaces an entry.
    pub fn insert(&mut self, key: K, value: V) {
        self.touched.insert(key.clone());
        self.entries.insert(key, value);
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.touched.insert(key.clone());
        Some(entry)
    }

    /// Puts back an entry that was read from storage: not a change.
    pub fn restore(&mut self, key: K, value: V) {
        self.entries.insert(key, value);
    }

    /// All entries in key order.
    pub fn iter(&self) -> btree_map::Iter<'_, K, V> {
        self.entries.iter()
    }

    /// The entries of a range of keys.
    pub fn range<R: RangeBounds<K>>(&self, range: R) -> btree_map::Range<'_, K, V> {
        self.entries.range(range)
    }

    /// Forgets which keys changed.
    pub fn forget_touched(&mut self) {
        self.touched.clear();
    }

    /// The keys changed since the last call, each with its entry, or `None` when it is gone.
    pub fn take_touched(&mut self) -> Vec<(K, Option<&V>)> {
        let touched = std::mem::take(&mut self.touched);
        touched
            .into_iter()
            .map(|key| {
                let entry = self.entries.get(&key);
                (key, entry)
            })
            .collect()
    }
}

/// Written as a list of pairs: JSON has no other than string keys.
impl<K: Serialize, V: Serialize> Serialize for Tracked<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.entries.iter())
    }
}

impl<'de, K, V> Deserialize<'de> for Tracked<K, V>
where
    K: Ord + Clone + Deserialize<'de>,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs: Vec<(K, V)> = Vec::deserialize(deserializer)?;
        Ok(Self { entries: pairs.into_iter().collect(), touched: BTreeSet::new() })
    }
}
