//! ReadReplicaSet: observed through its Computes, acted on by creating, changing and deleting them.

mod gather;
mod perform;

use jiff::Timestamp;
use kube::{Api, Client, Resource, ResourceExt};

pub use gather::Facts;

use super::environment::{Environment, Kind, StepError};
use super::index::Key;
use super::object::{Managed, Status, namespaced, uid};
use super::pass::forget;
use crate::api::{Condition, ReadReplicaSet, ReadReplicaSetStatus};
use crate::decide::replica_set::{self, SetObserved, SetStep};
use crate::decide::write_contention::{Repair, WrittenPart};
use crate::decide::{Decision, Memory, Report};

impl Managed for ReadReplicaSet {
    fn api<O>(client: &Client, namespace: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self::Scope>,
    {
        namespaced(client, namespace)
    }
}

impl Status for ReadReplicaSetStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn observed_generation_mut(&mut self) -> &mut Option<i64> {
        &mut self.observed_generation
    }

    fn handled_reconcile(&self) -> Option<&String> {
        self.last_handled_reconcile_at.as_ref()
    }
}

#[derive(Debug)]
pub struct ReadReplicaSets;

impl Kind for ReadReplicaSets {
    type Object = ReadReplicaSet;
    type Facts<E: Environment> = Facts;
    type Observed = SetObserved;
    type Step = SetStep;

    async fn gather<E: Environment>(
        env: &E,
        object: &ReadReplicaSet,
        _: Timestamp,
    ) -> Result<Facts, kube::Error> {
        gather::gather(env, object).await
    }

    fn assemble<E: Environment>(object: &ReadReplicaSet, facts: &Facts) -> SetObserved {
        gather::assemble(object, facts)
    }

    fn decide(
        object: &ReadReplicaSet,
        observed: &SetObserved,
        now: Timestamp,
    ) -> Decision<SetStep> {
        replica_set::decide(&object.spec, observed, now)
    }

    async fn perform<E: Environment>(
        env: &E,
        object: &ReadReplicaSet,
        step: &SetStep,
    ) -> Result<(), StepError> {
        perform::perform(env, object, step).await
    }

    fn status(
        report: &Report,
        object: &ReadReplicaSet,
        observed: &SetObserved,
        now: Timestamp,
    ) -> ReadReplicaSetStatus {
        replica_set::status(
            report,
            &object.spec,
            observed,
            &object.status.clone().unwrap_or_default(),
            now,
        )
    }

    fn repair(object: &ReadReplicaSet, step: &SetStep) -> Option<Repair> {
        match step {
            SetStep::Update(member) => Some(Repair::of(
                WrittenPart::Compute(member.name.clone()),
                object.meta().generation,
            )),
            SetStep::WriteConnection { secret, .. } => Some(Repair::of(
                WrittenPart::Secret(Self::written_secret(object)?.to_owned()),
                secret,
            )),
            _ => None,
        }
    }

    fn set_memory(observed: &mut SetObserved, memory: Memory) {
        observed.memory = memory;
    }

    fn written_secret(object: &ReadReplicaSet) -> Option<&str> {
        object
            .spec
            .connection
            .as_ref()
            .map(|connection| connection.secret_name.as_str())
    }

    fn read_secret(object: &ReadReplicaSet) -> Option<&str> {
        Some(
            object
                .spec
                .connection
                .as_ref()?
                .credentials_from
                .as_ref()?
                .name
                .as_str(),
        )
    }

    fn unused_secrets(object: &ReadReplicaSet) -> &[String] {
        object
            .status
            .as_ref()
            .map_or(&[], |status| status.unused_secrets.as_slice())
    }

    fn keys(object: &ReadReplicaSet) -> Vec<Key> {
        vec![Key::Selector(object.namespace().unwrap_or_default())]
    }

    fn selects(object: &ReadReplicaSet, compute: &crate::api::Compute) -> bool {
        object.namespace() == compute.namespace()
            && replica_set::relation(&object.spec, &uid(object), compute).is_some()
    }

    fn on_deleted<E: Environment>(env: &E, object: &ReadReplicaSet) {
        forget::<Self, E>(env, object);
    }
}
