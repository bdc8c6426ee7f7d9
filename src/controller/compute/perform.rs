//! What is done for a Compute: one step, recorded where a successor finds it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use secrecy::SecretString;

use super::super::creating::Place;
use super::super::hands::{self, Hands, Usable, in_time, secret_outcome, write_replaceable};
use super::super::kind::{StepError, uid};
use crate::api::{Compute, LastOperation, Management};
use crate::cluster::{MetadataPatch, Note, Owner, SecretContent};
use crate::decide::compute::ComputeStep;
use crate::decide::identity::{Binding, CreateIntent, Origin, RestartRecord, Unanswered};
use crate::decide::memory::Problem;
use crate::decide::{Action, Reason, names};
use crate::platform::{Answer, ComputeChange, Fault, NewCompute, Operation, Platform};

/// Performs one step.
pub async fn perform<H: Hands>(hands: &H, object: &Compute, step: &ComputeStep) -> Result<(), StepError> {
    let work = Work { hands, object };
    match step {
        ComputeStep::Create { intent, new, restart } => work.create(intent, new, restart).await,
        ComputeStep::Bind { binding, restart, unanswered } => {
            work.link_to(binding, noting(unanswered).set(names::RESTART_RECORD, restart)).await
        }
        ComputeStep::DropIntent { unanswered } => {
            work.link(object, noting(unanswered).remove(names::CREATE_INTENT)).await.map(drop)
        }
        ComputeStep::RecordUnanswered { unanswered } => work.link(object, noting(unanswered)).await.map(drop),
        ComputeStep::AddFinalizer => work.link(object, MetadataPatch::new().finalizer(true)).await.map(drop),
        ComputeStep::Change { id, change, parts, because } => {
            work.change(id, change, because).await?;
            hands.traces().update(&uid(object), |trace| trace.memory.sent(parts, hands.now()));
            Ok(())
        }
        ComputeStep::Restart { id, record } => work.restart(id, record).await,
        ComputeStep::RecordRestart { record } => {
            work.link(object, MetadataPatch::new().set(names::RESTART_RECORD, record)).await.map(drop)
        }
        ComputeStep::WriteConnection { data } => work.write_connection(data).await,
        ComputeStep::Delete { id } => work.delete(id).await,
        ComputeStep::RemoveFinalizer => work.release().await,
        ComputeStep::RemoveFinalizerReportingStrays { strays } => work.release_beside(strays).await,
    }
}

/// Keeps what unanswered creates are recognized by.
fn noting(unanswered: &[CreateIntent]) -> MetadataPatch {
    match unanswered {
        [] => MetadataPatch::new().remove(names::UNANSWERED_CREATES),
        some => MetadataPatch::new().set(names::UNANSWERED_CREATES, &Unanswered { creates: some.to_vec() }),
    }
}

struct Work<'a, H> {
    hands: &'a H,
    object: &'a Compute,
}

impl<H: Hands> Work<'_, H> {
    /// Intent, call, binding: whatever happens in between, a successor finds out what became of it.
    async fn create(&self, intent: &CreateIntent, new: &NewCompute, restart: &RestartRecord) -> Result<(), StepError> {
        let uid = uid(self.object);
        let Some(_turn) = self.hands.creating().begin(&uid, self.place(&intent.branch)?) else {
            // Another create on the branch was begun since the decision.
            let message = "another create on the branch comes first".to_owned();
            let busy = Fault::Busy { message, retry_after: None };
            return Err(StepError::Failed(Action::Create, Problem::Platform(busy)));
        };
        let Some(platform) = self.admitted(Action::Create).await? else { return Ok(()) };
        let intent = &CreateIntent { at: self.hands.now(), ..intent.clone() };
        let links = MetadataPatch::new().finalizer(true).set(names::CREATE_INTENT, intent).remove(names::BINDING);
        let intended = self.link(self.object, links).await?;
        self.recorded(Action::Create, intent.at)?;
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
        self.hands.traces().update(&uid, |trace| trace.memory.created = Some(created.id.clone()));
        self.bind(&intended, &binding, MetadataPatch::new().set(names::RESTART_RECORD, restart)).await?;
        self.note(&Note::normal("Created", format!("Created compute {} on branch {}.", created.id, intent.branch)))
            .await;
        Ok(())
    }

    /// A compute that exists.
    async fn link_to(&self, binding: &Binding, links: MetadataPatch) -> Result<(), StepError> {
        self.bind(self.object, binding, links).await?;
        let id = &binding.id;
        let said = match binding.origin {
            Origin::Created => format!("Found compute {id}, which an interrupted create had brought forth."),
            Origin::Adopted => format!("Took over compute {id}."),
            Origin::Imported => format!("Imported compute {id}."),
            Origin::Observed => format!("Observing compute {id}."),
        };
        self.note(&Note::normal("Linked", said)).await;
        Ok(())
    }

    async fn bind(&self, object: &Compute, binding: &Binding, links: MetadataPatch) -> Result<(), StepError> {
        let links = links
            .set(names::BINDING, binding)
            .remove(names::CREATE_INTENT)
            .finalizer(self.object.spec.management == Management::Full);
        self.link(object, links).await?;
        self.hands.traces().update(&uid(object), |trace| trace.memory.created = None);
        Ok(())
    }

    async fn change(&self, id: &str, change: &ComputeChange, because: &str) -> Result<(), StepError> {
        let account = self.account()?;
        let answer = account.platform.update_compute(&self.object.spec.project_id, id, change).await;
        self.wrote();
        let answer = self.settle(Action::Change, answer)?;
        self.operation(&answer.operations);
        self.note(&Note::normal("Changed", format!("Changed compute {id}: {because}."))).await;
        Ok(())
    }

    /// Record, call, complete the record: each token restarts once.
    async fn restart(&self, id: &str, record: &RestartRecord) -> Result<(), StepError> {
        let Some(platform) = self.admitted(Action::Restart).await? else { return Ok(()) };
        let record = &RestartRecord { at: self.hands.now(), ..record.clone() };
        let recorded = self.link(self.object, MetadataPatch::new().set(names::RESTART_RECORD, record)).await?;
        self.recorded(Action::Restart, record.at)?;
        let answer = platform.restart_compute(&self.object.spec.project_id, &id.to_owned()).await;
        self.wrote();
        let answer = self.settle(Action::Restart, answer)?;
        self.operation(&answer.operations);
        let done = RestartRecord { calling: None, ..record.clone() };
        self.link(&recorded, MetadataPatch::new().set(names::RESTART_RECORD, &done)).await?;
        self.note(&Note::normal("Restarted", format!("Restarted compute {id}."))).await;
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), StepError> {
        let account = self.account()?;
        let answer = match account.platform.delete_compute(&self.object.spec.project_id, &id.to_owned()).await {
            // Whether it is gone is shown by the next list.
            Err(Fault::NotFound { .. }) => Ok(()),
            other => other,
        };
        self.wrote();
        self.settle(Action::Delete, answer)?;
        self.hands.traces().update(&uid(self.object), |trace| trace.memory.deleted = Some(self.hands.now()));
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
        let written = write_replaceable(self.hands, &owner, &connection.secret_name, &content).await;
        secret_outcome(self.hands, &uid(self.object), written, &connection.secret_name)
    }

    async fn release(&self) -> Result<(), StepError> {
        self.link(self.object, MetadataPatch::new().finalizer(false)).await?;
        self.hands.unwatch(self.object);
        self.hands.traces().forget(&uid(self.object));
        self.hands.account_may_go(&self.object.spec.account_ref, self.object);
        Ok(())
    }

    async fn release_beside(&self, strays: &[String]) -> Result<(), StepError> {
        let text = format!(
            "A create of this resource that was never answered may have brought forth {} late. It is billed, and it is left: \
             delete it in the platform's console, or import it with spec.computeID of another Compute.",
            strays.join(", ")
        );
        self.release().await?;
        self.note(&Note::warning(Reason::StrayCompute.as_str(), text)).await;
        Ok(())
    }

    fn place(&self, branch: &str) -> Result<Place, StepError> {
        Ok(Place {
            platform: self.account()?.base_url.trim_end_matches('/').to_owned(),
            project: self.object.spec.project_id.clone(),
            branch: branch.to_owned(),
        })
    }

    /// A place in the account's budget, taken before the call is recorded; `None` where the operator stops meanwhile.
    async fn admitted(&self, action: Action) -> Result<Option<H::Platform>, StepError> {
        let account = self.account()?;
        let admitted = self.hands.admit_change(&account.platform).await;
        admitted.map_err(|fault| StepError::Failed(action, Problem::Platform(fault)))
    }

    fn account(&self) -> Result<Usable<H::Platform>, StepError> {
        hands::account_of(self.hands, &self.object.spec.account_ref, self.object, Action::Change)
    }

    async fn link(&self, object: &Compute, links: MetadataPatch) -> Result<Compute, StepError> {
        hands::link(self.hands, object, links).await
    }

    /// A call is recorded and about to be made.
    fn recorded(&self, action: Action, at: Timestamp) -> Result<(), StepError> {
        self.hands.traces().update(&uid(self.object), |trace| trace.memory.recorded(action, at));
        in_time(self.hands, action, at)
    }

    fn wrote(&self) {
        let tick = self.hands.tick();
        self.hands.traces().update(&uid(self.object), |trace| trace.wrote = Some(tick));
    }

    fn settle<T>(&self, action: Action, answer: Result<T, Fault>) -> Result<T, StepError> {
        self.hands.traces().update(&uid(self.object), |trace| {
            trace.memory.changing |= answer.as_ref().err().is_none_or(Fault::may_have_happened);
            if answer.is_ok() {
                trace.memory.succeeded(action);
            }
        });
        answer.map_err(|fault| StepError::Failed(action, Problem::Platform(fault)))
    }

    fn operation(&self, operations: &[Operation]) {
        let Some(first) = operations.first() else { return };
        let operation = LastOperation {
            id: first.id.clone(),
            action: first.action.clone(),
            status: first.status.clone(),
            failures: first.failures.filter(|failures| *failures > 0),
        };
        self.hands.traces().update(&uid(self.object), |trace| trace.memory.last_operation = Some(operation));
    }

    async fn note(&self, note: &Note) {
        hands::note(self.hands, self.object, note).await;
    }
}
