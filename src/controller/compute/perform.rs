//! Performs the steps for a Compute, and records each so that a successor can continue.

mod changes;

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::ResourceExt;
use tracing::warn;

use super::super::access;
use super::super::environment::{Environment, StepError};
use super::super::labels;
use super::super::object::uid;
use super::super::pass::calls::{
    ActionLine, Recording, acted, count_create, failed, hold, in_time, is_refusal, not_recorded,
    patch_metadata, publish, record, restore,
};
use super::super::pass::outcome::conclude;
use super::super::pass::{PROJECT_GONE, released};
use super::super::state::{Answer, Connection, SharedConnection};
use super::operations::shown;
use super::{Computes, linked};
use crate::api::{Compute, Management};
use crate::cluster::{Cluster, Event, MetadataPatch, Owner, resource_version};
use crate::decide::compute::{self, ComputeStep, Holder, Reserved, ReservedPlace};
use crate::decide::connection::ConnectionSecret;
use crate::decide::identity::{
    self, Binding, ComputeIdentity, CreateIntent, Evidence, Origin, RestartRecord,
};
use crate::decide::memory::ExistenceAnswer;
use crate::decide::{Action, Reason};
use crate::domain::{Fault, NewCompute, Operation};
use crate::platform::{Platform, PlatformClient};

pub async fn perform<E: Environment>(
    env: &E,
    object: &Compute,
    step: &ComputeStep,
) -> Result<(), StepError> {
    let work = Work { env, object };
    match step {
        ComputeStep::Create {
            intent,
            new,
            restart,
            seen,
        } => work.create(intent, new, restart, *seen).await,
        ComputeStep::Bind {
            binding,
            restart,
            unanswered,
            made,
            restored,
        } => {
            work.link(binding, restart, (unanswered, made), *restored)
                .await
        }
        ComputeStep::DropIntent { unanswered } => {
            work.record(|known| ComputeIdentity {
                intent: None,
                unanswered: unanswered.clone(),
                ..known
            })
            .await
        }
        ComputeStep::RecordBinding { binding } => {
            work.record(|known| ComputeIdentity {
                binding: Some(binding.clone()),
                ..known
            })
            .await
        }
        ComputeStep::RecordUnanswered { unanswered } => {
            work.record(|known| ComputeIdentity {
                unanswered: unanswered.clone(),
                ..known
            })
            .await
        }
        ComputeStep::RecordTwins { twins } => {
            work.record(|known| ComputeIdentity {
                twins: twins.clone(),
                ..known
            })
            .await
        }
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
            env.state().change_sent(&uid(object), parts, env.now());
            if *drift {
                parts.keys().for_each(|field| env.count_corrected(field));
            }
            Ok(())
        }
        ComputeStep::Restart { id, record } => work.restart(id, record).await,
        ComputeStep::RecordRestart { record, restarted } => {
            work.record_restart(record, restarted.as_deref()).await
        }
        ComputeStep::WriteConnection { secret, without } => {
            work.write_connection(secret, without).await
        }
        ComputeStep::Ask { id } => work.ask(id).await,
        ComputeStep::AskOperations { id } => work.ask_operations(id).await,
        ComputeStep::Delete { id } => work.delete(id, format!("Deleted compute {id}.")).await,
        ComputeStep::DeleteTwin { id } => work.delete_twin(id).await,
        ComputeStep::RemoveFinalizer => work.remove_finalizer().await,
        ComputeStep::RemoveFinalizerReportingStrays { event } => {
            // The resource is the last place that records them.
            publish(
                env,
                object,
                &Event::warning(Reason::StrayCompute.as_str(), event),
            )
            .await;
            work.remove_finalizer().await
        }
        ComputeStep::ReleaseWithProject { event } => {
            publish(env, object, &Event::warning(PROJECT_GONE, event)).await;
            work.remove_finalizer().await
        }
    }
}

/// The record of an object with a change applied.
fn recording<'a>(
    object: &Compute,
    change: impl FnOnce(ComputeIdentity) -> ComputeIdentity,
) -> Recording<'a> {
    let known = identity::of_compute(object).unwrap_or_default().identity;
    Recording::of(identity::written(&change(known), &object.metadata))
}

struct Work<'a, E> {
    env: &'a E,
    object: &'a Compute,
}

impl<E: Environment> Work<'_, E> {
    /// Intent, call, binding: after a crash in between, a successor can find out the result.
    async fn create(
        &self,
        intent: &CreateIntent,
        new: &NewCompute,
        restart: &RestartRecord,
        seen: Timestamp,
    ) -> Result<(), StepError> {
        let uid = uid(self.object);
        let before = identity::of_compute(self.object)
            .unwrap_or_default()
            .identity
            .binding;
        let (branch, type_) = (intent.branch.clone(), self.object.spec.type_);
        let evidence = compute::turn(type_, intent.evidence());
        if !self.reserve(
            intent.platform.as_ref(),
            Reserved::Create { branch, type_ },
            evidence,
        ) {
            return Ok(());
        }
        let place = self
            .admitted_create(intent, seen)
            .await
            .inspect_err(|_| self.env.state().gave_up(&uid));
        let Some(platform) = place? else {
            return Ok(());
        };
        let intent = &CreateIntent {
            at: self.env.now(),
            ..intent.clone()
        };
        let intended = self.record_intent(intent).await?;
        let answer = platform
            .create_compute(&self.object.spec.project_id, new)
            .await;
        count_create(self.env, self.object, &answer);
        self.wrote();
        let (created, operations) = self.settle(Action::Create, answer)?;
        self.started(operations);
        if let (Ok(connection), true) = (self.connection(), new.name == created.name) {
            access::names_shown(self.env, self.object, &connection, created.support.names);
        }
        let binding = Binding {
            id: created.id.clone(),
            project: self.object.spec.project_id.clone(),
            platform: intent.platform.clone(),
            branch: Some(intent.branch.clone()),
            origin: Origin::Created,
            at: intent.at,
        };
        self.env.state().compute_created(
            &uid,
            Answer {
                at: intent.at,
                compute: created.clone(),
            },
        );
        let bound = recording(&intended, |known| ComputeIdentity {
            binding: Some(binding),
            intent: None,
            made: intent.made_in(&known.made, &created),
            restart: Some(restart.clone()),
            ..known
        });
        let news = self.bind(&intended, bound).await?;
        let text = format!(
            "Created compute {} on branch {}.",
            created.id, intent.branch
        );
        let event = match before {
            Some(before) => {
                let because = format!(
                    "Compute {} no longer exists. {text} Its host is another one.",
                    before.id
                );
                Event::warning("Recreated", because)
            }
            None => Event::once("Created", text),
        };
        self.done(labels::action(Action::Create), &created.id, &event, news)
            .await;
        Ok(())
    }

    async fn record_intent(&self, intent: &CreateIntent) -> Result<Compute, StepError> {
        let (held, first) = self.hold().await?;
        self.env
            .state()
            .call_recorded(&uid(self.object), Action::Create, intent.at);
        let intended = |known| ComputeIdentity {
            intent: Some(intent.clone()),
            binding: None,
            ..known
        };
        let report = Some(&compute::creating());
        let recorded = record(
            self.env,
            &held,
            Recording {
                report,
                ..recording(&held, intended)
            },
        )
        .await;
        self.answered(first, &recorded);
        let recorded = recorded.map_err(not_recorded(self.env, self.object, Action::Create))?;
        in_time(self.env, (Action::Create, intent.at))?;
        Ok(recorded)
    }

    /// Prepares the resource for the write of a reservation, and adds the finalizer if it has to
    /// have one. Also returns whether no earlier write without an answer may contain the
    /// reservation.
    async fn hold(&self) -> Result<(Compute, bool), StepError> {
        let (state, uid) = (self.env.state(), uid(self.object));
        let first = state.recording(&uid, resource_version(self.object));
        if self.object.spec.management == Management::Observe {
            return Ok((self.object.clone(), first));
        }
        let held = hold(self.env, self.object).await.inspect_err(|_| {
            if first {
                state.not_recorded(&uid);
            }
        })?;
        state.recording(&uid, resource_version(&held));
        Ok((held, first))
    }

    /// Settles a reservation after its write. Without an answer it may be written, so it stays
    /// until a version shows that. A refusal frees it, unless an earlier write had no answer.
    fn answered<T>(&self, first: bool, answer: &Result<T, kube::Error>) {
        let (state, uid) = (self.env.state(), uid(self.object));
        match answer {
            Ok(_) => state.recorded(&uid),
            Err(error) if first && is_refusal(error) => state.not_recorded(&uid),
            Err(_) => {}
        }
    }

    /// Binds the resource to an existing compute.
    async fn link(
        &self,
        binding: &Binding,
        restart: &RestartRecord,
        (unanswered, made): (&[CreateIntent], &[CreateIntent]),
        restored: bool,
    ) -> Result<(), StepError> {
        let bound = |known| ComputeIdentity {
            binding: Some(binding.clone()),
            intent: None,
            unanswered: unanswered.to_vec(),
            made: made.to_vec(),
            restart: Some(restart.clone()),
            ..known
        };
        if !self.reserve(
            binding.platform.as_ref(),
            Reserved::Compute(binding.id.clone()),
            Evidence::ByBaseline,
        ) {
            return Ok(());
        }
        let (held, first) = self.hold().await?;
        let news = self.bind(&held, recording(&held, bound)).await;
        self.answered(first, &news);
        let news = news?;
        let text = if restored {
            format!("Found compute {} again.", binding.id)
        } else {
            linked(binding)
        };
        self.done(
            labels::LINK,
            &binding.id,
            &Event::once("Linked", text),
            news,
        )
        .await;
        Ok(())
    }

    async fn bind(
        &self,
        object: &Compute,
        bound: Recording<'_>,
    ) -> Result<Vec<Event>, kube::Error> {
        let news = conclude::<Computes, E>(self.env, object, bound).await?;
        self.env.state().compute_bound(&uid(object));
        Ok(news)
    }

    async fn ask(&self, id: &str) -> Result<(), StepError> {
        let connection = self.connection()?;
        let answer = self
            .platform(&connection)
            .has_compute(&self.object.spec.project_id, id)
            .await;
        let exists = answer.map_err(failed(Action::Ask))?;
        self.env.state().compute_asked(
            &uid(self.object),
            ExistenceAnswer {
                at: self.env.now(),
                exists,
            },
        );
        Ok(())
    }

    async fn ask_operations(&self, id: &str) -> Result<(), StepError> {
        let connection = self.connection()?;
        let listed = match self
            .platform(&connection)
            .list_operations(&self.object.spec.project_id, id)
            .await
        {
            Ok(listed) => {
                let (operations, unreadable) = listed.into_parts();
                if !unreadable.is_empty() {
                    warn!(list = "operations", entries = %unreadable, "entries of a list cannot be read");
                }
                Some(shown(operations))
            }
            Err(Fault::Unsupported { .. }) => None,
            Err(fault) => return Err(failed(Action::AskOperations)(fault)),
        };
        self.env
            .state()
            .operations_asked(&uid(self.object), listed.as_deref(), self.env.now());
        Ok(())
    }

    /// The next list shows whether the compute is gone.
    async fn delete(&self, id: &str, evidence: String) -> Result<(), StepError> {
        let connection = self.connection()?;
        let answer = self
            .platform(&connection)
            .delete_compute(&self.object.spec.project_id, &id.to_owned())
            .await;
        self.wrote();
        if answer.as_ref().map_or_else(Fault::is_missing, |()| true) {
            self.env
                .state()
                .compute_deleted(&uid(self.object), id, self.env.now());
        }
        let answer = answer.or_else(|fault| {
            if matches!(fault, Fault::NotFound { .. }) {
                Ok(())
            } else {
                Err(fault)
            }
        });
        self.settle(Action::Delete, answer)?;
        self.done(
            labels::action(Action::Delete),
            id,
            &Event::once("Deleted", evidence),
            Vec::new(),
        )
        .await;
        Ok(())
    }

    /// Reserves the compute first, so that no resource is bound to it meanwhile.
    async fn delete_twin(&self, id: &str) -> Result<(), StepError> {
        let platform = self.env.settings().platform(&*self.connection()?);
        if !self.reserve(
            Some(&platform),
            Reserved::Compute(id.to_owned()),
            Evidence::ByBaseline,
        ) {
            return Ok(());
        }
        let evidence = format!(
            "Deleted compute {id}, which a create of this resource had made besides, and nobody used."
        );
        let deleted = self.delete(id, evidence).await;
        self.env.state().gave_up(&uid(self.object));
        deleted
    }

    async fn write_connection(
        &self,
        secret: &ConnectionSecret,
        without: &BTreeSet<String>,
    ) -> Result<(), StepError> {
        let (Some(connection), Some(owner)) =
            (&self.object.spec.connection, Owner::of(self.object))
        else {
            return Ok(());
        };
        let before = self
            .object
            .status
            .as_ref()
            .and_then(|status| status.connection_secret.as_ref());
        super::super::connection::write(
            self.env,
            self.object,
            (connection, &owner),
            (secret, without),
            before,
        )
        .await
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

    /// Reserves what is about to be recorded. `false` if another resource was faster since the
    /// decision; the next pass sees which one.
    fn reserve(&self, platform: Option<&String>, what: Reserved, evidence: Evidence) -> bool {
        let project = self.object.spec.project_id.clone();
        let place = ReservedPlace {
            platform: platform.cloned().unwrap_or_default(),
            project,
            what,
        };
        self.env.state().reserve(
            &uid(self.object),
            place,
            Holder::of(&self.object.metadata),
            evidence,
        )
    }

    /// A place in the account's budget, taken before the call is recorded; `None` if the process
    /// stops meanwhile.
    async fn admitted(
        &self,
        at: &Connection<E::Client>,
        action: Action,
    ) -> Result<Option<E::Client>, StepError> {
        self.env
            .admit_change(&self.platform(at))
            .await
            .map_err(failed(action))
    }

    /// Like `admitted`, for a create. If the list with its baseline is too old by then, the place
    /// is kept for the next pass, which has a newer one.
    async fn admitted_create(
        &self,
        intent: &CreateIntent,
        seen: Timestamp,
    ) -> Result<Option<E::Client>, StepError> {
        let uid = uid(self.object);
        let is_current = |place| compute::is_current(intent, seen, place, self.env.now());
        let connection = self.connection_to(intent.platform.as_deref())?;
        let kept = self.env.state().take_place(&uid);
        if kept.is_some() && is_current(kept) {
            return Ok(Some(self.platform(&connection).with_place()));
        }
        let place = self.admitted(&connection, Action::Create).await?;
        if is_current(None) {
            return Ok(place);
        }
        if place.is_some() {
            self.env
                .state()
                .keep_place(&uid, self.env.now(), self.env.tick());
        }
        Ok(None)
    }

    /// The client, with its calls counted for the namespace of the resource.
    fn platform(&self, connection: &Connection<E::Client>) -> E::Client {
        connection
            .platform
            .for_namespace(&self.object.namespace().unwrap_or_default())
    }

    /// A connection to the recorded platform.
    fn connection(&self) -> Result<SharedConnection<E::Client>, StepError> {
        let identity = identity::of_compute(self.object)
            .unwrap_or_default()
            .identity;
        self.connection_to(identity.platform())
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
        record(self.env, self.object, recording(self.object, change)).await?;
        Ok(())
    }

    /// A call that changes something has ended: only snapshots that begin from now on show its
    /// effect.
    fn wrote(&self) {
        self.env
            .state()
            .platform_written(&uid(self.object), self.env.tick());
    }

    fn settle<T>(&self, action: Action, answer: Result<T, Fault>) -> Result<T, StepError> {
        self.env
            .state()
            .compute_changed(&uid(self.object), action, answer.as_ref().err());
        answer.map_err(failed(action))
    }

    fn started(&self, operations: Vec<Operation>) {
        self.env
            .state()
            .operations_started(&uid(self.object), &shown(operations));
    }

    /// Reports what was done, and then the new parts of the report.
    async fn done(&self, action: &'static str, id: &str, event: &Event, news: Vec<Event>) {
        let project = Some(self.object.spec.project_id.as_str());
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
