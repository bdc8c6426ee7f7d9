//! Changes and restarts of a compute.

use jiff::Timestamp;
use tracing::info;

use super::ComputeWork;
use crate::api::{Compute, Known};
use crate::cluster::{Cluster, Event};
use crate::controller::compute::Computes;
use crate::controller::environment::{Environment, StepError};
use crate::controller::labels;
use crate::controller::object::uid;
use crate::controller::pass::calls::{record_call, recording};
use crate::controller::pass::outcome::conclude;
use crate::decide::Action;
use crate::decide::identity::{BeforeRestart, ComputeIdentity, RestartAnswer, RestartRecord};
use crate::domain::{ComputeChange, ComputeId, Operation};
use crate::platform::{ChangeAnswer, Platform};

impl<E: Environment> ComputeWork<'_, E> {
    /// If the change is a restart as well, that is recorded, so that a successor does not restart
    /// the compute again.
    pub(super) async fn change(
        &self,
        id: &ComputeId,
        change: &ComputeChange,
        because: &str,
        restart: Option<&RestartRecord>,
    ) -> Result<(), StepError> {
        let connection = self.connection()?;
        let mut stands = None;
        if let Some(restart) = restart {
            let restart = RestartRecord {
                at: self.env.now(),
                ..restart.clone()
            };
            let at = restart.at;
            let calling = recording(self.object, |known| ComputeIdentity {
                restart: Some(restart),
                ..known
            })?;
            stands = Some((
                at,
                record_call(self.env, self.object, Action::Change, at, calling).await?,
            ));
        }
        let answer = self
            .platform(&connection)
            .update_compute(&self.object.spec.project_id, id, change)
            .await;
        self.wrote();
        let answer = self.settle(Action::Change, answer)?;
        let answered = answered(&answer, id);
        self.started(answer.operations);
        let news = match &stands {
            Some((at, stands)) => self.restart_answered(*at, stands, answered).await?,
            None => Vec::new(),
        };
        let event = Event::normal("Changed", format!("Changed compute {id}: {because}."));
        self.done(labels::action(Action::Change), id, &event, news)
            .await;
        Ok(())
    }

    /// Record, call, record the answer. The outcome is recorded once the compute shows it.
    pub(super) async fn restart(
        &self,
        id: &ComputeId,
        restart: &RestartRecord,
    ) -> Result<(), StepError> {
        let Some(platform) = self.admitted(&*self.connection()?, Action::Restart).await? else {
            return Ok(());
        };
        let restart = &RestartRecord {
            at: self.env.now(),
            ..restart.clone()
        };
        let calling = |known| ComputeIdentity {
            restart: Some(restart.clone()),
            ..known
        };
        let stands = record_call(
            self.env,
            self.object,
            Action::Restart,
            restart.at,
            recording(self.object, calling)?,
        )
        .await?;
        let answer = platform
            .restart_compute(&self.object.spec.project_id, id)
            .await;
        self.wrote();
        let answer = self.settle(Action::Restart, answer)?;
        let answered = answered(&answer, id);
        self.started(answer.operations);
        info!(
            project = self.object.spec.project_id.as_str(),
            compute = id.as_str(),
            "Called the restart of compute {id}."
        );
        for event in self.restart_answered(restart.at, &stands, answered).await? {
            self.env.cluster().publish(self.object, &event).await;
        }
        Ok(())
    }

    /// Records that the platform has answered the recorded call.
    async fn restart_answered(
        &self,
        at: Timestamp,
        stands: &Known<Compute>,
        answered: RestartAnswer,
    ) -> Result<Vec<Event>, StepError> {
        // The write may fail.
        self.env
            .state()
            .restart_answered(uid(self.object), at, answered);
        let known = |known: ComputeIdentity| {
            let calling = |record: &RestartRecord| {
                record.calling.clone().map(|before| BeforeRestart {
                    answered: Some(answered),
                    ..before
                })
            };
            let restart = known.restart.map(|record| RestartRecord {
                calling: calling(&record),
                ..record
            });
            ComputeIdentity { restart, ..known }
        };
        Ok(conclude::<Computes, E>(self.env, stands, recording(stands, known)?).await?)
    }

    pub(super) async fn record_restart(
        &self,
        restart: &RestartRecord,
        restarted: Option<&ComputeId>,
    ) -> Result<(), StepError> {
        let change = |known| ComputeIdentity {
            restart: Some(restart.clone()),
            ..known
        };
        let Some(id) = restarted else {
            return self.record(change).await;
        };
        let news =
            conclude::<Computes, E>(self.env, self.object, recording(self.object, change)?).await?;
        let event = Event::normal("Restarted", format!("Restarted compute {id}."));
        self.done(labels::action(Action::Restart), id, &event, news)
            .await;
        Ok(())
    }
}

/// How the platform answered a call that restarts a compute: with that compute, or without it.
fn answered(answer: &ChangeAnswer, id: &ComputeId) -> RestartAnswer {
    let of_compute = |operation: &Operation| operation.compute_id.as_ref() == Some(id);
    let names_it = answer
        .compute
        .as_ref()
        .is_some_and(|compute| compute.id == *id);
    if names_it || answer.operations.iter().any(of_compute) {
        RestartAnswer::ForCompute
    } else {
        RestartAnswer::Plainly
    }
}
