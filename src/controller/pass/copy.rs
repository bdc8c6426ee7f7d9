//! The copy of a record in the annotation, for backups without status. It is written last, where nothing else is to be done.

use jiff::Timestamp;

use super::super::environment::{Environment, Kind};
use super::super::object::uid;
use super::undone;
use crate::cluster::{Cluster, MetadataPatch, resource_version};
use crate::decide::Meta;
use crate::decide::repairs::{Repair, What};

/// The state of the copy.
pub enum Copy {
    UpToDate,
    Due(String),
    /// Something else changes it each time.
    Waits(Timestamp),
}

impl Copy {
    /// Compares the copy with the record that was observed.
    ///
    /// # Errors
    /// Where the API server could not be asked, or refused.
    pub async fn of<K: Kind, E: Environment>(
        env: &E,
        object: &K::Object,
        observed: &K::Observed,
    ) -> Result<Self, kube::Error> {
        let is_wanted = |meta: &&Meta| meta.record_lost && !meta.deleting && !meta.paused;
        let Some(text) = K::meta(observed).filter(is_wanted).and_then(|meta| meta.record.clone()) else {
            return Ok(Self::UpToDate);
        };
        let waits = undone::waits_until::<K, E>(env, object, &repair(&text)).await?;
        Ok(waits.map_or(Self::Due(text), Self::Waits))
    }

    /// Writes it where it is due.
    ///
    /// # Errors
    /// Where the API server could not be asked, or refused.
    pub async fn write<K: Kind, E: Environment>(self, env: &E, object: &K::Object) -> Result<(), kube::Error> {
        let Self::Due(text) = self else { return Ok(()) };
        let (uid, repair) = (uid(object), repair(&text));
        let written = match env.cluster().patch_metadata(object, &MetadataPatch::new().record(text)).await {
            // The object was deleted while we looked at it.
            Err(kube::Error::Api(error)) if error.code == 404 => return Ok(()),
            other => other?,
        };
        env.state().wrote_version(&uid, resource_version(&written));
        env.state().repaired(&uid, repair, env.now());
        Ok(())
    }
}

fn repair(text: &str) -> Repair {
    Repair::of(What::Metadata, text)
}
