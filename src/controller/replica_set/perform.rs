//! Performs the steps for a set: creates, adopts, releases, changes and deletes its Computes, each
//! in the version that was decided on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use serde_json::{Value, json};

use crate::api::{Compute, Known, ObjectMeta, ReadReplicaSet};
use crate::cluster::{Cluster, Event, Owner, merge_patch, resource_version};
use crate::controller::connection::{self, ConnectionWrite};
use crate::controller::environment::{Environment, StepError};
use crate::controller::labels;
use crate::controller::object::uid;
use crate::controller::pass::calls::{ActionLine, acted};
use crate::controller::state::Done;
use crate::decide::connection::ConnectionSecret;
use crate::decide::memory::ActionProblem;
use crate::decide::names::CONFIRM_DELETION;
use crate::decide::replica_set::{Member, SetStep};
use crate::decide::{Action, later};

/// How long a set's confirmation of the deletion of a Compute is valid. The brake compares it with
/// the API server's clock.
const CONFIRMED_FOR: Duration = Duration::from_secs(60);

pub(super) async fn perform<E: Environment>(
    env: &E,
    object: &Known<ReadReplicaSet>,
    step: &SetStep,
) -> Result<(), StepError> {
    let set = Set { env, object };
    match step {
        SetStep::Create { name } => set.create(name).await,
        SetStep::Adopt(member) => set.adopt(member).await,
        SetStep::Release(member) => set.release(member).await,
        SetStep::Update(member) => set.update(member).await,
        SetStep::UseAccount(member) => set.use_account(member).await,
        SetStep::Retire(member) => set.retire(member).await,
        SetStep::WriteConnection { secret, without } => set.write_connection(secret, without).await,
    }
}

struct Set<'a, E> {
    env: &'a E,
    object: &'a Known<ReadReplicaSet>,
}

impl<E: Environment> Set<'_, E> {
    async fn create(&self, name: &str) -> Result<(), StepError> {
        let template = &self.object.spec.template;
        let compute = Compute {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.object.namespace().to_owned()),
                labels: Some(template.metadata.labels.clone()),
                annotations: Some(template.metadata.annotations.clone()),
                owner_references: Some(vec![Owner::of(self.object).reference]),
                ..ObjectMeta::default()
            },
            spec: template.spec.compute().clone(),
            status: None,
        };
        let created = self.done(
            Action::Create,
            name,
            self.env.cluster().create(&compute).await,
        )?;
        self.wrote(&created, Done::Created(name.to_owned()));
        let event = Event::normal("ReplicaCreated", format!("Created Compute {name}."));
        self.tell(labels::action(Action::Create), name, &event)
            .await;
        Ok(())
    }

    /// Reads the set again, because the cache may be stale: a set that is being deleted must not
    /// take Computes with it.
    async fn adopt(&self, member: &Member) -> Result<(), StepError> {
        let Some(compute) = self.find(member) else {
            return Ok(());
        };
        let set = self.env.cluster().current(self.object).await?;
        if set.is_none_or(|set| set.metadata.deletion_timestamp.is_some()) {
            return Ok(());
        }
        let owners = compute
            .owner_references()
            .iter()
            .cloned()
            .chain([Owner::of(self.object).reference]);
        self.own(&compute, owners.collect()).await?;
        let event = Event::normal(
            "ReplicaAdopted",
            format!("Compute {} belongs to this set now.", member.name),
        );
        self.tell(labels::action(Action::Adopt), &member.name, &event)
            .await;
        Ok(())
    }

    async fn release(&self, member: &Member) -> Result<(), StepError> {
        let Some(compute) = self.find(member) else {
            return Ok(());
        };
        let mine = uid(self.object);
        let others = compute
            .owner_references()
            .iter()
            .filter(|owner| owner.uid != mine.as_str())
            .cloned();
        self.own(&compute, others.collect()).await?;
        let event = Event::normal(
            "ReplicaReleased",
            format!(
                "Compute {} does not belong to this set any more.",
                member.name
            ),
        );
        self.tell(labels::RELEASE, &member.name, &event).await;
        Ok(())
    }

    async fn own(
        &self,
        compute: &Known<Compute>,
        owners: Vec<OwnerReference>,
    ) -> Result<(), StepError> {
        self.patch(
            Action::Adopt,
            compute,
            json!({"metadata": {"ownerReferences": owners}}),
        )
        .await
        .map(drop)
    }

    async fn update(&self, member: &Member) -> Result<(), StepError> {
        let Some(compute) = self.find(member) else {
            return Ok(());
        };
        let template = &self.object.spec.template;
        let spec = merge_patch(
            &json!(compute.spec),
            &json!(template.spec.of(&compute.spec)),
        );
        let metadata = json!({"labels": template.metadata.labels, "annotations": template.metadata.annotations});
        self.patch(
            Action::Change,
            &compute,
            json!({"metadata": metadata, "spec": spec}),
        )
        .await?;
        let event = Event::normal(
            "ReplicaChanged",
            format!("Changed Compute {} as the template says.", member.name),
        );
        self.tell(labels::action(Action::Change), &member.name, &event)
            .await;
        Ok(())
    }

    async fn use_account(&self, member: &Member) -> Result<(), StepError> {
        let Some(compute) = self.find(member) else {
            return Ok(());
        };
        let account = &self.object.spec.template.spec.compute().account_ref;
        let patch = merge_patch(&json!(compute.spec.account_ref), &json!(account));
        self.patch(
            Action::Change,
            &compute,
            json!({"spec": {"accountRef": patch}}),
        )
        .await?;
        let text = format!(
            "Changed Compute {} to the account that the template names.",
            member.name
        );
        self.tell(
            labels::action(Action::Change),
            &member.name,
            &Event::normal("ReplicaChanged", text),
        )
        .await;
        Ok(())
    }

    /// The number of replicas or the template declares this deletion, so the set confirms it for
    /// the brake on mass deletion.
    async fn retire(&self, member: &Member) -> Result<(), StepError> {
        let Some(compute) = self.find(member) else {
            return Ok(());
        };
        let until = later(self.env.now(), CONFIRMED_FOR).to_string();
        let confirmed = json!({"metadata": {"annotations": {CONFIRM_DELETION: until}}});
        let compute = self.patch(Action::Delete, &compute, confirmed).await?;
        self.done(
            Action::Delete,
            &member.name,
            self.env.cluster().delete(&compute).await,
        )?;
        self.wrote(&compute, Done::Deleted);
        let event = Event::normal(
            "ReplicaDeleted",
            format!("Deleted Compute {}.", member.name),
        );
        self.tell(labels::action(Action::Delete), &member.name, &event)
            .await;
        Ok(())
    }

    async fn write_connection(
        &self,
        secret: &ConnectionSecret,
        without: &BTreeSet<String>,
    ) -> Result<(), StepError> {
        let Some(declared) = &self.object.spec.connection else {
            return Ok(());
        };
        let before = self
            .object
            .status
            .as_ref()
            .and_then(|status| status.connection_secret.as_ref());
        let write = ConnectionWrite {
            name: &declared.secret_name,
            before,
            content: secret,
            without,
        };
        connection::write(self.env, self.object, write).await
    }

    /// The Compute, if it is unchanged since the decision.
    fn find(&self, member: &Member) -> Option<Arc<Known<Compute>>> {
        let namespace = self.object.namespace();
        let found = self
            .env
            .object(&ObjectRef::<Known<Compute>>::new(&member.name).within(namespace))?;
        (*found.uid() == member.uid && found.resource_version() == member.version).then_some(found)
    }

    async fn patch(
        &self,
        action: Action,
        compute: &Known<Compute>,
        mut patch: Value,
    ) -> Result<Known<Compute>, StepError> {
        patch["metadata"]["resourceVersion"] = json!(compute.resource_version());
        let patched = self.env.cluster().patch(compute, &patch).await;
        let patched = self.done(action, &compute.name_any(), patched)?;
        self.wrote(&patched, Done::Changed(resource_version(&patched)));
        Ok(patched)
    }

    fn wrote(&self, compute: &Known<Compute>, done: Done) {
        self.env
            .state()
            .child_written(uid(self.object), uid(compute), done);
    }

    /// A refusal by the API server is reported; after a conflict the next pass decides again.
    fn done<T>(
        &self,
        action: Action,
        name: &str,
        answer: Result<T, kube::Error>,
    ) -> Result<T, StepError> {
        match answer {
            Err(kube::Error::Api(status))
                if (400..500).contains(&status.code) && ![404, 409, 429].contains(&status.code) =>
            {
                let message = format!("Compute {name} could not be written: {}", status.message);
                Err(StepError::Failed(action, ActionProblem::Object(message)))
            }
            Err(error) => Err(StepError::Cluster(error)),
            Ok(value) => {
                self.env.state().action_succeeded(uid(self.object), action);
                Ok(value)
            }
        }
    }

    async fn tell(&self, action: &'static str, replica: &str, event: &Event) {
        acted(
            self.env,
            self.object,
            ActionLine {
                replica: Some(replica),
                ..ActionLine::of(action)
            },
            event,
        )
        .await;
    }
}
