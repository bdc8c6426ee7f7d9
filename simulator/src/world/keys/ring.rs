//! All API keys, indexed by id and token. Revoked keys are kept so that they stay refused.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::world::keys::secret::Token;
use crate::world::model::Key;
use crate::world::store::tracked::Tracked;

#[derive(Debug, Clone, Default)]
pub struct KeyRing {
    keys: Tracked<i64, Key>,
    by_token: BTreeMap<Token, i64>,
    /// Account and name of each valid key.
    names: BTreeSet<(String, String)>,
}

impl KeyRing {
    pub fn add(&mut self, key: Key) {
        self.index(&key);
        self.keys.insert(key.id, key);
    }

    /// Restores a key from storage.
    pub fn restore(&mut self, key: Key) {
        self.index(&key);
        self.keys.restore(key.id, key);
    }

    fn index(&mut self, key: &Key) {
        self.by_token.insert(key.token.clone(), key.id);
        if key.revoked_at.is_none() {
            self.names.insert(account_and_name(key));
        }
    }

    pub fn get(&self, id: i64) -> Option<&Key> {
        self.keys.get(&id)
    }

    pub fn find(&self, token: &Token) -> Option<&Key> {
        self.by_token.get(token).and_then(|id| self.keys.get(id))
    }

    /// True if the text is the token of a key, revoked or not.
    pub fn is_token(&self, text: &str) -> bool {
        self.by_token.contains_key(&Token::new(text))
    }

    /// True if the account has a valid key of this name.
    pub fn has_name(&self, account: &str, name: &str) -> bool {
        self.names.contains(&(account.to_owned(), name.to_owned()))
    }

    /// Records a use of the key.
    pub fn used(&mut self, id: i64, at: Timestamp, from: &str) {
        if let Some(key) = self.keys.get_mut(&id) {
            key.last_used_at = Some(at);
            from.clone_into(&mut key.last_used_from_addr);
        }
    }

    /// Revokes a key, forever. A revoked key stays unchanged.
    pub fn revoke(&mut self, id: i64, at: Timestamp) -> Option<&Key> {
        let key = self.keys.get_mut(&id)?;
        if key.revoked_at.is_none() {
            key.revoked_at = Some(at);
            let name = account_and_name(key);
            // Only in the public profile are names unique, so another valid key may have the same
            // name.
            if !self
                .iter()
                .any(|other| other.revoked_at.is_none() && account_and_name(other) == name)
            {
                self.names.remove(&name);
            }
        }
        self.get(id)
    }

    /// All keys in order of creation.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter().map(|(_, key)| key)
    }

    pub fn next_id(&self) -> i64 {
        self.keys.iter().next_back().map_or(1, |(id, _)| id + 1)
    }

    /// Clears the record of changed keys.
    pub fn forget_touched(&mut self) {
        self.keys.forget_touched();
    }

    /// The keys that changed since the last call.
    pub fn take_touched(&mut self) -> Vec<(i64, Option<&Key>)> {
        self.keys.take_touched()
    }
}

fn account_and_name(key: &Key) -> (String, String) {
    (key.reach.account().to_owned(), key.name.clone())
}

impl Serialize for KeyRing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for KeyRing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut ring = Self::default();
        for key in Vec::deserialize(deserializer)? {
            ring.restore(key);
        }
        Ok(ring)
    }
}
