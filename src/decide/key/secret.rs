//! The observed Secret of a key, as input of decisions.

use super::outcome::{NamedKey, keys};
use crate::decide::identity::{KeyIdentity, ProjectKeyIdentity};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySecretView {
    Absent,
    /// It belongs to something else, which the text names.
    Foreign(String),
    /// It contains this key as dbplane wrote it, for a former resource of this name. Both may come
    /// from a backup.
    Restored {
        key: KeyIdentity,
        version: String,
    },
    /// dbplane made it for a resource of this name. It has no owner now, and is still empty.
    Unowned {
        version: String,
    },
    /// It belongs to this resource.
    Ours(SecretContents),
}

/// The content of a Secret of this resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretContents {
    /// No key yet.
    Nothing,
    /// A key as dbplane wrote it. `as_declared`: the rest of the Secret is as declared.
    Key { key: KeyIdentity, as_declared: bool },
    /// Data that dbplane did not write.
    Altered,
}

/// A Secret from a backup is trusted if the record has its key: the two were written together.
pub(super) fn trusted(secret: &KeySecretView, identity: &ProjectKeyIdentity) -> KeySecretView {
    let KeySecretView::Restored { key, .. } = secret else {
        return secret.clone();
    };
    let intended = identity
        .intent
        .as_ref()
        .is_some_and(|intent| intent.name == key.name);
    let known = keys(&identity.records).any(|known| known == NamedKey::of(key.id, &key.name));
    if intended || known {
        return secret.clone();
    }
    KeySecretView::Foreign(
        "from an earlier resource, with a key that the record of this one does not have".to_owned(),
    )
}
