//! The side effects of a ProjectKey.

use crate::decide::identity::{KeyIntent, KeyRecords, ProjectKeyIdentity};
use crate::domain::KeyId;

/// One side effect.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyStep {
    /// Write the record again, and the finalizer, which keeps the resource until its keys are
    /// revoked or orphaned.
    Restore {
        record: Option<String>,
    },
    /// Create the Secret empty, so that anything that can fail fails before the key is created.
    PrepareSecret,
    /// Make this resource the owner of a Secret from a backup, if the Secret still has that
    /// version. `key` is the key in it.
    AdoptSecret {
        key: Option<String>,
        version: String,
    },
    /// Write the intent, create the key, write the Secret, record the key. `because` is the text of
    /// an event, if nobody requested the new key. `try_first`: the platform has to accept the key
    /// before it overwrites a working one.
    CreateKey {
        intent: KeyIntent,
        because: Option<String>,
        try_first: bool,
    },
    /// Ask the platform whether it accepts the key in memory.
    TryUnsaved,
    /// Record the key in memory as lost after the platform refused it. Drop its secret, and stop.
    GiveUpRefused {
        records: KeyRecords,
        message: String,
    },
    SaveSecret,
    /// Record a key in memory as lost after another leader gave it up. Drop its secret.
    GiveUpUnsaved {
        records: KeyRecords,
    },
    /// Write the declared parts of the Secret again, and keep the key in it.
    RewriteSecret,
    /// Write these key records and remove the intent.
    Record {
        records: KeyRecords,
        event: Option<String>,
    },
    /// Record the keys that are known now, and an open creation.
    RecordIdentity {
        identity: Box<ProjectKeyIdentity>,
    },
    /// Drop the keys that a user has revoked from the records, and record the user's confirmation.
    Acknowledge {
        records: KeyRecords,
        event: String,
    },
    /// Revoke a key, then write these key records. `in_use`: why it is revoked although possibly in
    /// use.
    Revoke {
        id: KeyId,
        name: String,
        records: KeyRecords,
        in_use: Option<String>,
    },
    ListKeys,
    /// Ask the platform whether it accepts the key in use.
    Probe,
    RemoveFinalizer,
    /// Report by an event with this text that the project is gone, then remove the finalizer.
    ReleaseWithProject {
        event: String,
    },
}
