//! Compute: observed through the project's snapshot, acted on through the account's client.

mod observe;
mod operations;
mod others;
mod perform;
mod relevant;
mod secret;

use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;

use super::environment::{
    Change, Environment, Kind, Observation, Occurrence, Relations, StepError,
};
use super::index::Key;
use super::pass::forget;
use crate::api::{Compute, ComputeStatus, Known};
use crate::decide::compute::{self, ComputeFacts, ComputeObserved, ComputeStep};
use crate::decide::identity::{Binding, Origin};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::write_contention::{Repair, WrittenPart};
use crate::decide::{Decision, Report};
use crate::telemetry::metrics::CreateOutcome;

#[derive(Debug)]
pub struct Computes;

impl Kind for Computes {
    type Object = Known<Compute>;
    type Facts = ComputeFacts;
    type Step = ComputeStep;
    const USES_ACCOUNT: bool = true;
    const SELECTED: bool = true;

    async fn observe<E: Environment>(
        env: &E,
        object: &Known<Compute>,
        now: Timestamp,
    ) -> Result<Observation<ComputeFacts, E::Client>, kube::Error> {
        observe::observe(env, object, now).await
    }

    fn decide(
        object: &Known<Compute>,
        observed: &ComputeObserved,
        now: Timestamp,
    ) -> Decision<ComputeStep> {
        compute::decide(&object.spec, observed, now)
    }

    async fn perform<E: Environment>(
        env: &E,
        object: &Known<Compute>,
        step: &ComputeStep,
    ) -> Result<(), StepError> {
        perform::perform(env, object, step).await?;
        if matches!(step, ComputeStep::Bind { binding, restored: false, .. } if binding.origin == Origin::Created)
        {
            env.record(object, Occurrence::Create(CreateOutcome::Recovered));
        }
        Ok(())
    }

    fn status(
        report: &Report,
        object: &Known<Compute>,
        observed: &ComputeObserved,
        now: Timestamp,
    ) -> ComputeStatus {
        compute::status(
            report,
            &object.spec,
            observed,
            &object.status.clone().unwrap_or_default(),
            now,
        )
    }

    fn change<'a>(object: &Known<Compute>, step: &'a ComputeStep) -> Change<'a> {
        match step {
            ComputeStep::Restore { record } => {
                Change::Repair(Repair::of(WrittenPart::Metadata, record))
            }
            ComputeStep::WriteConnection { secret, .. } => Self::relations(object)
                .written_secret
                .map_or(Change::Other, |name| {
                    Change::Repair(Repair::of(WrittenPart::Secret(name.to_owned()), secret))
                }),
            ComputeStep::Delete { id } => Change::Delete(id),
            ComputeStep::DeleteTwin { id } => Change::DeleteStray(id),
            _ => Change::Other,
        }
    }

    fn relations(object: &Known<Compute>) -> Relations<'_> {
        let status = object.status.as_ref();
        let relations = Relations {
            account: Some(&object.spec.account_ref),
            project: Some(&object.spec.project_id),
            ..Relations::default()
        };
        relations.with_connection(
            object.spec.connection.as_deref(),
            status.map_or(&[], |status| status.unused_secrets.as_slice()),
        )
    }

    fn needs_finalizer(object: &Known<Compute>) -> bool {
        object
            .record()
            .is_ok_and(|record| compute::is_held(&object.spec, &record.identity))
    }

    fn platform_objects(object: &Known<Compute>) -> Result<Vec<String>, InvalidAnnotation> {
        Ok(object
            .record()?
            .identity_or_wish()
            .has(&object.spec.project_id))
    }

    fn keys(object: &Known<Compute>) -> Vec<Key> {
        let claimed = compute::claimed(object).into_iter().map(Key::Claim);
        claimed
            .chain(compute::wanted(&object.spec).into_iter().map(Key::Want))
            .collect()
    }

    fn on_deleted<E: Environment>(env: &E, object: &Known<Compute>) {
        forget::<Self, E>(env, object);
        env.stop_observing(object);
        wake_waiting(env, object);
    }

    fn on_released<E: Environment>(env: &E, object: &Known<Compute>) {
        wake_waiting(env, object);
    }
}

/// Wakes the Computes that may have waited for the create or the compute of `object`.
fn wake_waiting<E: Environment>(env: &E, object: &Known<Compute>) {
    for subject in compute::subjects(object) {
        let others = [Key::Claim(subject.clone()), Key::Want(subject)]
            .map(|key| env.objects_by::<Computes>(&key));
        others
            .iter()
            .flatten()
            .for_each(|other| env.wake(ObjectRef::from_obj(other.as_ref())));
    }
}

/// How a resource was bound to its compute, for users.
fn linked(Binding { id, origin, .. }: &Binding) -> String {
    match origin {
        Origin::Created => {
            format!("Found compute {id}, which an interrupted create had made.")
        }
        Origin::Adopted => format!("Adopted compute {id}."),
        Origin::Imported => format!("Imported compute {id}."),
        Origin::Observed => format!("Observing compute {id}."),
    }
}
