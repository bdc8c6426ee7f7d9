//! The copy of the record in the annotation, for backups without status. It is written last, when
//! nothing else is to be done.

use jiff::Timestamp;
use kube::Resource;
use tracing::warn;

use super::refused::{is_request_refused, refusal_of};
use super::write_contention as contention;
use crate::cluster::{Cluster, MetadataPatch, resource_version};
use crate::controller::environment::{Environment, Kind};
use crate::controller::labels;
use crate::controller::object::uid;
use crate::decide::memory::ActionProblem;
use crate::decide::names::RECORD;
use crate::decide::write_contention::{self, Repair};
use crate::decide::{Action, Observed, Wake};
use crate::text::sentence;

/// The state of the copy.
pub struct Copy {
    what: What,
    /// The message about the refusal of the last attempt.
    pub refused: Option<String>,
}

enum What {
    UpToDate,
    Due(String),
    /// Something else changes the copy each time, or the API server refuses it.
    Waits(Timestamp),
}

impl Copy {
    /// Compares the copy with the observed record.
    ///
    /// # Errors
    /// If the API server was unavailable or refused.
    pub async fn of<K: Kind, E: Environment>(
        env: &E,
        object: &K::Object,
        observed: &Observed<K::Facts>,
    ) -> Result<Self, kube::Error> {
        let meta = &observed.meta;
        if !meta.record_lost || meta.deleting || meta.paused {
            return Ok(Self::UP_TO_DATE);
        }
        let Some(text) = meta.record.clone() else {
            return Ok(Self::UP_TO_DATE);
        };
        let memory = env.state().resource(uid(object)).memory;
        let refused = memory
            .failures()
            .find(|(action, _)| *action == Action::CopyRecord);
        let refused = refused.map(|(_, failure)| labels::text(&failure.problem));
        let backoff = memory
            .backoff(Action::CopyRecord, meta.generation, env.now())
            .map(|backoff| backoff.until);
        let waits = match backoff {
            None => contention::waits_until::<K, E>(env, object, &repair(&text)).await?,
            until => until,
        };
        Ok(Self {
            what: waits.map_or(What::Due(text), What::Waits),
            refused,
        })
    }

    const UP_TO_DATE: Self = Self {
        what: What::UpToDate,
        refused: None,
    };

    /// When the copy may be written, if it has to wait.
    pub fn waits(&self) -> Option<Timestamp> {
        if let What::Waits(until) = self.what {
            Some(until)
        } else {
            None
        }
    }

    /// Writes the copy if it is due. Returns when to decide again after a refusal; nothing else
    /// waits for the copy.
    ///
    /// # Errors
    /// If the API server was unavailable.
    pub async fn write<K: Kind, E: Environment>(
        self,
        env: &E,
        object: &K::Object,
    ) -> Result<Wake, kube::Error> {
        let What::Due(text) = self.what else {
            return Ok(Wake::OnChange);
        };
        let (uid, repair) = (uid(object), repair(&text));
        let written = match env
            .cluster()
            .patch_metadata(object, &MetadataPatch::new().record(text))
            .await
        {
            // The object was deleted during the pass.
            Err(kube::Error::Api(error)) if error.code == 404 => return Ok(Wake::OnChange),
            Err(error) if is_request_refused(&error) => {
                let (refuser, cause) = refusal_of(&error);
                let message = format!(
                    "{} refuses the annotation {RECORD}, the copy of the record for backups without status: {cause} Change what it complains \
                     of. dbplane tries again every minute.",
                    sentence(&refuser.to_string())
                );
                let action = labels::action(Action::CopyRecord);
                warn!(action, error = message, "the copy of the record is refused");
                let (failure, now) = (ActionProblem::Object(message), env.now());
                let generation = object.meta().generation.unwrap_or_default();
                env.state().change_memory(uid, |memory| {
                    memory.failed(Action::CopyRecord, failure, generation, now);
                });
                return Ok(Wake::At(now));
            }
            other => other?,
        };
        env.state().wrote_version(uid, resource_version(&written));
        env.state().repaired(uid, repair, env.now());
        env.state().action_succeeded(uid, Action::CopyRecord);
        Ok(Wake::OnChange)
    }
}

fn repair(text: &str) -> Repair {
    Repair::of(write_contention::WrittenPart::Metadata, text)
}
