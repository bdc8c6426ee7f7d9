//! The record of a resource that the operator knows.

use std::borrow::Cow;

use super::identity::{ComputeIdentity, ProjectKeyIdentity, Record, RecordedIdentity, read};
use super::seal::InvalidAnnotation;
use crate::api::{
    Account, ApiObject, ClusterAccount, Compute, Known, Parsed, ProjectKey, ReadReplicaSet,
};

/// The longest text in bytes whose parsed record is kept. Few records are longer.
const LONGEST_KEPT: usize = 2048;

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
    type Parts = Record<K::Identity>;
    type Invalid = InvalidAnnotation;

    fn parse(&self) -> Result<Self::Parts, InvalidAnnotation> {
        record_of(self)
    }

    /// Anybody who may edit the object can write the annotation. Thousands of small entries would
    /// take many times the memory of their text.
    fn keeps(&self, record: &Self::Parts) -> bool {
        let length = self.record_text().map_or(0, str::len);
        record.wish.is_none() && length <= LONGEST_KEPT
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
    pub fn record(&self) -> Result<Cow<'_, Record<K::Identity>>, InvalidAnnotation> {
        self.parts()
    }

    /// The content of the record about the object.
    ///
    /// # Errors
    /// Like `record_of`.
    pub fn identity(&self) -> Result<K::Identity, InvalidAnnotation> {
        self.record().map(|record| K::Identity::of(&record))
    }
}

#[cfg(test)]
mod tests;
