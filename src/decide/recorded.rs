//! The record of a resource that the operator knows.

use super::identity::{ComputeIdentity, ProjectKeyIdentity, Record, RecordedIdentity, read};
use super::seal::InvalidAnnotation;
use crate::api::{
    Account, ApiObject, ClusterAccount, Compute, Known, Parsed, ProjectKey, ReadReplicaSet,
};

/// A kind whose status may hold a record.
pub trait Recorded: ApiObject {
    /// The content of the record; `()` for a kind without a record.
    type Identity: RecordedIdentity;

    /// The text of the record in the status.
    fn record_text(&self) -> Option<&str> {
        None
    }
}

impl Recorded for Compute {
    type Identity = ComputeIdentity;

    fn record_text(&self) -> Option<&str> {
        self.status.as_ref()?.record.as_deref()
    }
}

impl Recorded for ProjectKey {
    type Identity = ProjectKeyIdentity;

    fn record_text(&self) -> Option<&str> {
        self.status.as_ref()?.record.as_deref()
    }
}

impl Recorded for ReadReplicaSet {
    type Identity = ();
}

impl Recorded for Account {
    type Identity = ();
}

impl Recorded for ClusterAccount {
    type Identity = ();
}

impl<K: Recorded> Parsed for K {
    type Parts = Result<Record<K::Identity>, InvalidAnnotation>;

    fn parse(&self) -> Self::Parts {
        record_of(self)
    }
}

/// Reads the record of an object.
///
/// # Errors
/// If the status has no record, and the annotation is not as dbplane wrote it. Also if another
/// version of dbplane wrote one of the two.
pub fn record_of<K: Recorded>(object: &K) -> Result<Record<K::Identity>, InvalidAnnotation> {
    read(object.meta(), object.record_text())
}

impl<K: Recorded> Known<K> {
    /// The record of the object.
    ///
    /// # Errors
    /// Like `record_of`.
    pub fn record(&self) -> Result<&Record<K::Identity>, &InvalidAnnotation> {
        self.parts().as_ref()
    }

    /// The content of the record about the object.
    ///
    /// # Errors
    /// Like `record_of`.
    pub fn identity(&self) -> Result<K::Identity, InvalidAnnotation> {
        self.record().map(K::Identity::of).map_err(Clone::clone)
    }
}
