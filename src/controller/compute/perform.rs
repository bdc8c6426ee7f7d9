//! Performs the steps for a Compute, and records each so that a successor can continue.

mod ask;
mod changes;
mod create;
mod delete;

use std::collections::{BTreeMap, BTreeSet};

use super::Computes;
use super::operations::shown;
use crate::api::{Compute, Known};
use crate::cluster::{Cluster, Event, MetadataPatch};
use crate::controller::access;
use crate::controller::connection::{self, ConnectionWrite};
use crate::controller::environment::{AdmittedCall, Environment, Occurrence, StepError};
use crate::controller::object::uid;
use crate::controller::pass::calls::{
    ActionLine, acted, failed, patch_metadata, publish, record, recording, restore,
};
use crate::controller::pass::{PROJECT_GONE, released};
use crate::controller::state::{AccountConnection, SharedConnection};
use crate::decide::compute::ComputeStep;
use crate::decide::connection::ConnectionSecret;
use crate::decide::identity::{Binding, ComputeIdentity, RestartRecord};
use crate::decide::{Action, Reason};
use crate::domain::{ComputeChange, ComputeId, Fault, Operation};
use crate::platform::PlatformClient;

pub async fn perform<E: Environment>(
    env: &E,
    object: &Known<Compute>,
    step: &ComputeStep,
) -> Result<(), StepError> {
    let work = ComputeWork { env, object };
    match step {
        ComputeStep::Create {
            intent,
            new,
            restart,
            seen,
        } => work.create(intent, new, restart, *seen).await,
        ComputeStep::Bind {
            binding, restored, ..
        } => {
            let bound = |known| recorded(step, known);
            work.link(binding, bound, *restored).await
        }
        ComputeStep::DropIntent { .. }
        | ComputeStep::RecordBinding { .. }
        | ComputeStep::RecordUnanswered { .. }
        | ComputeStep::RecordTwins { .. } => work.record(|known| recorded(step, known)).await,
        ComputeStep::Restore { record } => restore(env, object, record.as_deref()).await,
        ComputeStep::Change {
            id,
            change,
            parts,
            because,
            drift,
            restart,
        } => {
            work.change(id, change, because, restart.as_ref()).await?;
            work.remember_change(parts, *drift);
            Ok(())
        }
        ComputeStep::Restart { id, record } => work.restart(id, record).await,
        ComputeStep::RecordRestart { record, restarted } => {
            work.record_restart(record, restarted.as_ref()).await
        }
        ComputeStep::WriteConnection { secret, without } => {
            work.write_connection(secret, without).await
        }
        ComputeStep::Ask { id } => work.ask(id).await,
        ComputeStep::AskOperations { id } => work.ask_operations(id).await,
        ComputeStep::Delete { id } => work.delete(id, format!("Deleted compute {id}.")).await,
        ComputeStep::DeleteTwin { id } => work.delete_twin(id).await,
        ComputeStep::RemoveFinalizer => work.remove_finalizer().await,
        // The resource is the last place that records the strays.
        ComputeStep::RemoveFinalizerReportingStrays { event } => {
            let event = Event::warning(Reason::StrayCompute.as_str(), event);
            publish(env, object, &event).await;
            work.remove_finalizer().await
        }
        ComputeStep::ReleaseWithProject { event } => {
            publish(env, object, &Event::warning(PROJECT_GONE, event)).await;
            work.remove_finalizer().await
        }
    }
}

fn bound_to(binding: &Binding, restart: &RestartRecord, known: ComputeIdentity) -> ComputeIdentity {
    ComputeIdentity {
        binding: Some(binding.clone()),
        intent: None,
        restart: Some(restart.clone()),
        ..known
    }
}

/// The identity after a step that records something without a call to the platform.
fn recorded(step: &ComputeStep, known: ComputeIdentity) -> ComputeIdentity {
    match step {
        ComputeStep::Bind {
            binding,
            restart,
            unanswered,
            made,
            ..
        } => ComputeIdentity {
            unanswered: unanswered.clone(),
            made: made.clone(),
            ..bound_to(binding, restart, known)
        },
        ComputeStep::DropIntent { unanswered } => ComputeIdentity {
            intent: None,
            unanswered: unanswered.clone(),
            ..known
        },
        ComputeStep::RecordBinding { binding } => ComputeIdentity {
            binding: Some(binding.clone()),
            ..known
        },
        ComputeStep::RecordUnanswered { unanswered } => ComputeIdentity {
            unanswered: unanswered.clone(),
            ..known
        },
        ComputeStep::RecordTwins { twins } => ComputeIdentity {
            twins: twins.clone(),
            ..known
        },
        _ => known,
    }
}

struct ComputeWork<'a, E> {
    env: &'a E,
    object: &'a Known<Compute>,
}

impl<E: Environment> ComputeWork<'_, E> {
    fn remember_change(&self, parts: &BTreeMap<String, ComputeChange>, drift: bool) {
        let env = self.env;
        env.state().change_sent(uid(self.object), parts, env.now());
        if drift {
            for field in parts.keys() {
                env.record(self.object, Occurrence::Corrected { field });
            }
        }
    }

    async fn write_connection(
        &self,
        secret: &ConnectionSecret,
        without: &BTreeSet<String>,
    ) -> Result<(), StepError> {
        let Some(connection) = &self.object.spec.connection else {
            return Ok(());
        };
        let before = self
            .object
            .status
            .as_ref()
            .and_then(|status| status.connection_secret.as_ref());
        let write = ConnectionWrite {
            name: &connection.secret_name,
            before,
            content: secret,
            without,
        };
        connection::write(self.env, self.object, write).await
    }

    async fn remove_finalizer(&self) -> Result<(), StepError> {
        patch_metadata(
            self.env,
            self.object,
            &MetadataPatch::new().finalizer(false),
        )
        .await?;
        self.env.stop_observing(self.object);
        released::<Computes, E>(self.env, self.object);
        Ok(())
    }

    /// A place in the account's budget, taken before the call is recorded; `None` if the process
    /// stops meanwhile.
    async fn admitted(
        &self,
        at: &AccountConnection<E::Client>,
        action: Action,
    ) -> Result<Option<E::Client>, StepError> {
        self.env
            .admit(&self.platform(at), AdmittedCall::Change)
            .await
            .map_err(failed(action))
    }

    /// The client, with its calls counted for the namespace of the resource.
    fn platform(&self, connection: &AccountConnection<E::Client>) -> E::Client {
        connection.platform.for_namespace(self.object.namespace())
    }

    /// A connection to the recorded platform.
    fn connection(&self) -> Result<SharedConnection<E::Client>, StepError> {
        self.connection_to(self.object.identity()?.platform())
    }

    fn connection_to(
        &self,
        platform: Option<&str>,
    ) -> Result<SharedConnection<E::Client>, StepError> {
        match platform {
            Some(platform) => {
                access::connection_to(self.env, self.object, platform, Action::Change)
            }
            // Earlier versions did not record the platform.
            None => access::connection(self.env, self.object, Action::Change),
        }
    }

    async fn record(
        &self,
        change: impl FnOnce(ComputeIdentity) -> ComputeIdentity,
    ) -> Result<(), StepError> {
        record(self.env, self.object, recording(self.object, change)?).await?;
        Ok(())
    }

    /// A call that changes something has ended: only snapshots that begin from now on show its
    /// effect.
    fn wrote(&self) {
        self.env
            .state()
            .platform_written(uid(self.object), self.env.tick());
    }

    fn settle<T>(&self, action: Action, answer: Result<T, Fault>) -> Result<T, StepError> {
        self.env
            .state()
            .compute_changed(uid(self.object), action, answer.as_ref().err());
        answer.map_err(failed(action))
    }

    fn started(&self, operations: Vec<Operation>) {
        self.env
            .state()
            .operations_started(uid(self.object), &shown(operations));
    }

    /// Reports what was done, and then the new parts of the report.
    async fn done(&self, action: &'static str, id: &ComputeId, event: &Event, news: Vec<Event>) {
        let project = Some(&self.object.spec.project_id);
        acted(
            self.env,
            self.object,
            ActionLine {
                project,
                compute: Some(id),
                ..ActionLine::of(action)
            },
            event,
        )
        .await;
        for event in &news {
            self.env.cluster().publish(self.object, event).await;
        }
    }
}
