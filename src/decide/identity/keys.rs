//! The record of a ProjectKey: every key it ever had that is not known to be revoked.

use std::collections::BTreeSet;

use crate::domain::{KeyId, OrganizationId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIdentity {
    pub id: KeyId,
    pub name: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

/// A key that was replaced and is to be revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredKey {
    pub id: KeyId,
    pub name: String,
    pub since: Timestamp,
    /// When to revoke it, or the earliest time if spec.rotation waits for something.
    pub retire_at: Timestamp,
    /// The key was usable when it was replaced, so a client may still use it. spec.rotation
    /// declares how to wait for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotated: bool,
    /// The key was seen to work. A list that shows no use of it therefore does not show its uses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worked: bool,
    /// The last use in the lists, if they show one and spec.rotation waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_use: Option<LastUse>,
}

/// A last use, and since when every list has shown it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastUse {
    /// By the platform's clock, and compared only with other times of that clock. Absent if the key
    /// was never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// By the operator's clock.
    pub since: Timestamp,
}

/// A key that may exist without a secret in dbplane, or that could not be revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<KeyId>,
    pub name: String,
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "LostBecause::is_unanswered")]
    pub because: LostBecause,
    /// If dbplane cannot revoke the key: the start of the first list without it, with no later list
    /// that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LostBecause {
    /// Its secret never arrived.
    #[default]
    Unanswered,
    /// It was in use, was replaced, and could not be revoked.
    Retired,
    /// The platform answered the creation with this number and another name or project.
    OtherKey,
    /// The platform did not accept it when it was first used.
    Refused,
}

impl LostBecause {
    fn is_unanswered(&self) -> bool {
        *self == Self::Unanswered
    }
}

/// All keys that a ProjectKey ever had and that are not known to be revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecords {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<KeyIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    /// The number of the key in use, if it was tried before the switch to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<KeyId>,
    /// The last request for another key that was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_for: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<RetiredKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostKey>,
    /// The organization of these keys. In another organization they can be neither found nor
    /// revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<OrganizationId>,
    /// The base URL of the platform that made these keys. Requests with these keys, or about them,
    /// go to no other platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The names of keys that are known only from an annotation or a Secret, from a backup or
    /// forged: users can write both. The platform has to list such a key under its number and name
    /// before it is revoked.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub restored: BTreeSet<String>,
    /// When an unanswered creation began whose key no list has shown. The key may still appear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Timestamp>,
    /// The last confirmation of revoked keys by a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
}

/// A user's confirmation that keys were revoked by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// A digest of the annotation.
    pub annotation: String,
    /// The keys that the annotation named and that were dropped from the records.
    pub keys: Vec<String>,
}

/// The intent to create a key, recorded before the call. From then on the key may exist under this
/// name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIntent {
    pub name: String,
    pub at: Timestamp,
    /// When to revoke the replaced key; absent if no key is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retire_previous_at: Option<Timestamp>,
    /// The replaced key is known to be revoked already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previous_revoked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<OrganizationId>,
    /// The base URL of the platform that receives the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The replaced key is usable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotates: bool,
    /// The replaced key was seen to work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_working: bool,
    /// The request of a user that this key serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
}

impl KeyRecords {
    /// The records once the intended key is in its Secret. The replaced key is retired. It is
    /// dropped at once only if it is known to be revoked.
    pub fn succeeded_by(&self, key: KeyIdentity, intent: &KeyIntent) -> Self {
        let mut records = self.of(intent);
        records.rotated_for = intent.requested.clone().or(records.rotated_for);
        let tried = std::mem::replace(&mut records.tried, intent.rotates.then_some(key.id));
        let Some(before) = records
            .current
            .replace(key.clone())
            .filter(|before| before.id != key.id)
        else {
            return records;
        };
        records.rotated_at = Some(intent.at);
        if !intent.previous_revoked {
            let retire_at = intent.retire_previous_at.unwrap_or(intent.at);
            records.previous.push(RetiredKey {
                id: before.id,
                name: before.name,
                since: intent.at,
                retire_at,
                rotated: intent.rotates,
                worked: intent.replaces_working || tried == Some(before.id),
                last_use: None,
            });
        }
        records
    }

    /// The records with the organization and the platform of the intended key.
    pub fn of(&self, intent: &KeyIntent) -> Self {
        let organization = intent
            .organization
            .clone()
            .or_else(|| self.organization.clone());
        let platform = intent.platform.clone().or_else(|| self.platform.clone());
        Self {
            organization,
            platform,
            ..self.clone()
        }
    }

    /// The records after a key was found in its Secret. Only the Secret shows its number, so the
    /// key counts as restored.
    pub fn found_in_secret(&self, key: &KeyIdentity, intent: &KeyIntent) -> Self {
        let mut records = self.succeeded_by(key.clone(), intent);
        records.restored.insert(key.name.clone());
        records
    }

    /// Drops the names of restored keys that are no longer recorded.
    #[must_use]
    pub fn tidied(mut self) -> Self {
        let names: BTreeSet<String> = self.names().map(str::to_owned).collect();
        self.restored.retain(|name| names.contains(name));
        self
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        let current = self.current.iter().map(|key| key.name.as_str());
        let previous = self.previous.iter().map(|key| key.name.as_str());
        current
            .chain(previous)
            .chain(self.lost.iter().map(|key| key.name.as_str()))
    }
}

/// The record of a ProjectKey.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectKeyIdentity {
    #[serde(default)]
    pub records: KeyRecords,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<KeyIntent>,
}

impl ProjectKeyIdentity {
    /// The names of all keys that exist or may exist.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.records
            .names()
            .chain(self.intent.iter().map(|intent| intent.name.as_str()))
    }

    /// Returns true if a key of this name is intended or in use. Without any record, every name is
    /// expected.
    pub fn expects(&self, name: &str) -> bool {
        let intended = self
            .intent
            .as_ref()
            .is_some_and(|intent| intent.name == name);
        let in_use = self
            .records
            .current
            .as_ref()
            .is_some_and(|current| current.name == name);
        intended || in_use || *self == Self::default()
    }

    /// The organization of the keys, if there are keys and it was recorded.
    pub fn organization(&self) -> Option<&OrganizationId> {
        self.names().next()?;
        let intended = self
            .intent
            .as_ref()
            .and_then(|intent| intent.organization.as_ref());
        intended.or(self.records.organization.as_ref())
    }

    /// The platform of the keys, if there are keys and it was recorded.
    pub fn platform(&self) -> Option<&str> {
        self.names().next()?;
        let intended = self
            .intent
            .as_ref()
            .and_then(|intent| intent.platform.as_deref());
        intended.or(self.records.platform.as_deref())
    }

    /// Marks all keys as restored: they are from an annotation, and the operator did not record
    /// them for this object.
    #[must_use]
    pub fn restored(mut self) -> Self {
        self.records.restored = self.names().map(str::to_owned).collect();
        self
    }

    /// Replaces each platform by the result of `of`.
    #[must_use]
    pub fn with_platforms(mut self, of: impl Fn(&str) -> String) -> Self {
        let recorded = self
            .intent
            .iter_mut()
            .map(|intent| &mut intent.platform)
            .chain([&mut self.records.platform]);
        recorded
            .flatten()
            .for_each(|platform| *platform = of(platform));
        self
    }

    /// Sets the platform of the keys.
    #[must_use]
    pub fn with_platform(mut self, platform: &str) -> Self {
        self.records.platform = Some(platform.to_owned());
        self.intent
            .iter_mut()
            .for_each(|intent| intent.platform = Some(platform.to_owned()));
        self
    }
}
