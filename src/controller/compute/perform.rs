//! What is done for a Compute: one step, recorded where a successor finds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use secrecy::SecretString;

use super::super::accounts::Handle;
use super::super::creating::Place;
use super::super::kind::{Managed, StepError, uid};
use super::super::{Context, account_view, secret_outcome};
use crate::api::{Compute, LastOperation, Management};
use crate::clock;
use crate::cluster::{Links, Note, Owner, SecretContent, resource_version};
use crate::decide::compute::ComputeStep;
use crate::decide::identity::{Binding, CreateIntent, Origin, RestartRecord};
use crate::decide::memory::Problem;
use crate::decide::{Action, names};
use crate::platform::{Answer, ComputeChange, Fault, Governed, NewCompute, Platform};

pub(super) async fn perform(context: &Context, object: &Compute, step: &ComputeStep) -> Result<(), StepError> {
    let work = Work { context, object };
    match step {
        ComputeStep::Create { intent, new, restart } => work.create(intent, new, restart).await,
        ComputeStep::Bind { binding, restart } => work.bind(object, binding, restart).await,
        ComputeStep::DropIntent => work.link(object, Links::new().remove(names::CREATE_INTENT)).await.map(drop),
        ComputeStep::AddFinalizer => work.link(object, Links::new().finalizer(true)).await.map(drop),
        ComputeStep::Change { id, change, parts, because } => {
            work.change(id, change, because).await?;
            context.traces.update(&uid(object), |trace| trace.memory.sent(parts, clock::now()));
            Ok(())
        }
        ComputeStep::Restart { id, record } => work.restart(id, record).await,
        ComputeStep::NoteRestart { record } => {
            work.link(object, Links::new().set(names::RESTART_RECORD, record)).await.map(drop)
        }
        ComputeStep::WriteConnection { data } => work.write_connection(data).await,
        ComputeStep::Delete { id } => work.delete(id).await,
        ComputeStep::Release => work.release().await,
    }
}

struct Work<'a> {
    context: &'a Context,
    object: &'a Compute,
}

impl Work<'_> {
    /// Intent, call, binding: whatever happens in between, a successor finds out what became of it.
    async fn create(&self, intent: &CreateIntent, new: &NewCompute, restart: &RestartRecord) -> Result<(), StepError> {
        let uid = uid(self.object);
        let Some(_turn) = self.context.creating.begin(&uid, self.place(&intent.branch)?) else {
            // Another create on the branch was begun since the decision.
            let message = "another create on the branch comes first".to_owned();
            let busy = Fault::Busy { message, retry_after: None };
            return Err(StepError::Failed(Action::Create, Problem::Platform(busy)));
        };
        let Some(platform) = self.admitted(Action::Create).await? else { return Ok(()) };
        let intent = &CreateIntent { at: clock::now(), ..intent.clone() };
        let links = Links::new().finalizer(true).set(names::CREATE_INTENT, intent).remove(names::BINDING);
        let intended = self.link(self.object, links).await?;
        self.context.in_time(Action::Create, intent.at)?;
        let answer = platform.create_compute(&self.object.spec.project_id, new).await;
        self.wrote();
        let created = match self.settle(Action::Create, answer)? {
            Answer { compute: Some(created), operations } => {
                self.operation(&operations);
                created
            }
            Answer { compute: None, .. } => {
                let fault =
                    Fault::Undecodable { path: "endpoint".into(), message: "the answer holds no compute".into() };
                return Err(StepError::Failed(Action::Create, Problem::Platform(fault)));
            }
        };
        let binding = Binding {
            id: created.id.clone(),
            project: self.object.spec.project_id.clone(),
            origin: Origin::Created,
            at: intent.at,
        };
        self.context.traces.update(&uid, |trace| trace.memory.created = Some(created.id.clone()));
        self.bind(&intended, &binding, restart).await
    }

    async fn bind(&self, object: &Compute, binding: &Binding, restart: &RestartRecord) -> Result<(), StepError> {
        let links = Links::new()
            .set(names::BINDING, binding)
            .set(names::RESTART_RECORD, restart)
            .remove(names::CREATE_INTENT)
            .finalizer(self.object.spec.management == Management::Full);
        self.link(object, links).await?;
        self.context.traces.update(&uid(object), |trace| trace.memory.created = None);
        let said = match binding.origin {
            Origin::Created => format!("Created compute {} on branch {}.", binding.id, object.spec.branch_id),
            Origin::Adopted => format!("Took over compute {}.", binding.id),
            Origin::Imported => format!("Imported compute {}.", binding.id),
            Origin::Observed => format!("Observing compute {}.", binding.id),
        };
        let reason = if binding.origin == Origin::Created { "Created" } else { "Linked" };
        self.note(&Note::normal(reason, said)).await;
        Ok(())
    }

    async fn change(&self, id: &str, change: &ComputeChange, because: &str) -> Result<(), StepError> {
        let handle = self.handle()?;
        let answer = handle.platform.update_compute(&self.object.spec.project_id, id, change).await;
        self.wrote();
        let answer = self.settle(Action::Change, answer)?;
        self.operation(&answer.operations);
        self.note(&Note::normal("Changed", format!("Changed compute {id}: {because}."))).await;
        Ok(())
    }

    /// Record, call, complete the record: each token restarts once.
    async fn restart(&self, id: &str, record: &RestartRecord) -> Result<(), StepError> {
        let Some(platform) = self.admitted(Action::Restart).await? else { return Ok(()) };
        let record = &RestartRecord { at: clock::now(), ..record.clone() };
        let recorded = self.link(self.object, Links::new().set(names::RESTART_RECORD, record)).await?;
        self.context.in_time(Action::Restart, record.at)?;
        let answer = platform.restart_compute(&self.object.spec.project_id, &id.to_owned()).await;
        self.wrote();
        let answer = self.settle(Action::Restart, answer)?;
        self.operation(&answer.operations);
        let done = RestartRecord { calling: None, ..record.clone() };
        self.link(&recorded, Links::new().set(names::RESTART_RECORD, &done)).await?;
        self.note(&Note::normal("Restarted", format!("Restarted compute {id}."))).await;
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), StepError> {
        let handle = self.handle()?;
        let answer = match handle.platform.delete_compute(&self.object.spec.project_id, &id.to_owned()).await {
            // Whether it is gone is shown by the next list.
            Err(Fault::NotFound { .. }) => Ok(()),
            other => other,
        };
        self.wrote();
        self.settle(Action::Delete, answer)?;
        self.context.traces.update(&uid(self.object), |trace| trace.memory.deleted = Some(clock::now()));
        self.note(&Note::normal("Deleted", format!("Deleted compute {id}."))).await;
        Ok(())
    }

    async fn write_connection(&self, data: &BTreeMap<String, String>) -> Result<(), StepError> {
        let (Some(connection), Some(owner)) = (&self.object.spec.connection, Owner::of(self.object)) else {
            return Ok(());
        };
        let content = SecretContent {
            data: data.iter().map(|(key, value)| (key.clone(), SecretString::from(value.as_str()))).collect(),
            ..SecretContent::default()
        };
        let written = self.context.secrets.write_own(&owner, &connection.secret_name, &content).await;
        secret_outcome(self.context, &uid(self.object), written, &connection.secret_name)
    }

    async fn release(&self) -> Result<(), StepError> {
        self.link(self.object, Links::new().finalizer(false)).await?;
        self.context.observers.forget(&kube::runtime::reflector::ObjectRef::from_obj(self.object));
        self.context.traces.forget(&uid(self.object));
        self.context.account_may_go(&self.object.spec.account_ref, self.object);
        Ok(())
    }

    fn place(&self, branch: &str) -> Result<Place, StepError> {
        Ok(Place {
            platform: self.handle()?.access.base_url.trim_end_matches('/').to_owned(),
            project: self.object.spec.project_id.clone(),
            branch: branch.to_owned(),
        })
    }

    /// A place in the account's budget, taken before the call is recorded; `None` where the operator stops meanwhile.
    async fn admitted(&self, action: Action) -> Result<Option<Governed>, StepError> {
        let handle = self.handle()?;
        let admitted = self.context.unless_stopped(handle.platform.admit_change()).await.transpose();
        admitted.map_err(|fault| StepError::Failed(action, Problem::Platform(fault)))
    }

    fn handle(&self) -> Result<Arc<Handle>, StepError> {
        let (_, entry) = account_view::of(self.context, &self.object.spec.account_ref, self.object);
        entry.and_then(|entry| entry.handle).ok_or_else(|| {
            let message = "the account's credentials are gone".to_owned();
            StepError::Failed(Action::Change, Problem::Platform(Fault::Transport { message }))
        })
    }

    async fn link(&self, object: &Compute, links: Links) -> Result<Compute, StepError> {
        let patched = links.apply(&object.api(&self.context.client), object).await?;
        self.context.traces.update(&uid(object), |trace| trace.version = resource_version(&patched));
        Ok(patched)
    }

    fn wrote(&self) {
        let tick = self.context.observers.tick();
        self.context.traces.update(&uid(self.object), |trace| trace.wrote = Some(tick));
    }

    fn settle<T>(&self, action: Action, answer: Result<T, Fault>) -> Result<T, StepError> {
        self.context.traces.update(&uid(self.object), |trace| {
            trace.memory.changing |= answer.as_ref().err().is_none_or(Fault::may_have_happened);
            if answer.is_ok() {
                trace.memory.succeeded(action);
            }
        });
        answer.map_err(|fault| StepError::Failed(action, Problem::Platform(fault)))
    }

    fn operation(&self, operations: &[crate::platform::Operation]) {
        let Some(first) = operations.first() else { return };
        let operation =
            LastOperation { id: first.id.clone(), action: first.action.clone(), status: first.status.clone() };
        self.context.traces.update(&uid(self.object), |trace| trace.memory.last_operation = Some(operation));
    }

    async fn note(&self, note: &Note) {
        tracing::info!(reason = note.reason, text = note.text, name = self.object.name_any(), "done");
        self.context.events.publish(self.object, note).await;
    }
}
