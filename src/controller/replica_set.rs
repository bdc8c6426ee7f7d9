//! ReadReplicaSet: observed through its Computes, acted on by creating, changing and deleting them.

mod observe;
mod perform;

use jiff::Timestamp;
use kube::Resource;

use super::environment::{Change, Environment, Kind, Observation, Relations, StepError};
use super::index::Key;
use super::object::uid;
use super::pass::forget;
use crate::api::{Compute, Known, ReadReplicaSet, ReadReplicaSetStatus};
use crate::decide::replica_set::{self, SetFacts, SetObserved, SetStep};
use crate::decide::write_contention::{Repair, WrittenPart};
use crate::decide::{Decision, Report};

#[derive(Debug)]
pub struct ReadReplicaSets;

impl Kind for ReadReplicaSets {
    type Object = Known<ReadReplicaSet>;
    type Facts = SetFacts;
    type Step = SetStep;

    async fn observe<E: Environment>(
        env: &E,
        object: &Known<ReadReplicaSet>,
        _: Timestamp,
    ) -> Result<Observation<SetFacts, E::Client>, kube::Error> {
        observe::observe(env, object).await
    }

    fn decide(
        object: &Known<ReadReplicaSet>,
        observed: &SetObserved,
        now: Timestamp,
    ) -> Decision<SetStep> {
        replica_set::decide(&object.spec, observed, now)
    }

    async fn perform<E: Environment>(
        env: &E,
        object: &Known<ReadReplicaSet>,
        step: &SetStep,
    ) -> Result<(), StepError> {
        perform::perform(env, object, step).await
    }

    fn status(
        report: &Report,
        object: &Known<ReadReplicaSet>,
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

    fn change<'a>(object: &Known<ReadReplicaSet>, step: &'a SetStep) -> Change<'a> {
        match step {
            SetStep::Update(member) => Change::Repair(Repair::of(
                WrittenPart::Compute(member.name.clone()),
                object.meta().generation,
            )),
            SetStep::WriteConnection { secret, .. } => Self::relations(object)
                .written_secret
                .map_or(Change::Other, |name| {
                    Change::Repair(Repair::of(WrittenPart::Secret(name.to_owned()), secret))
                }),
            _ => Change::Other,
        }
    }

    fn relations(object: &Known<ReadReplicaSet>) -> Relations<'_> {
        let status = object.status.as_ref();
        Relations::default().with_connection(
            object.spec.connection.as_ref(),
            status.map_or(&[], |status| status.unused_secrets.as_slice()),
        )
    }

    fn keys(object: &Known<ReadReplicaSet>) -> Vec<Key> {
        vec![Key::Selector(object.namespace().to_owned())]
    }

    fn selects(object: &Known<ReadReplicaSet>, compute: &Known<Compute>) -> bool {
        object.namespace() == compute.namespace()
            && replica_set::relation(&object.spec, uid(object), compute).is_some()
    }

    fn on_deleted<E: Environment>(env: &E, object: &Known<ReadReplicaSet>) {
        forget::<Self, E>(env, object);
    }
}
