//! Compute: observed through the project's snapshot, acted on through the account's client.

mod assemble;
mod gather;
mod operations;
mod perform;
mod relevant;
mod secret;

use std::sync::Arc;

use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource};

pub use gather::Facts;

use super::access;
use super::environment::{Environment, Kind, StepError};
use super::index::Key;
use super::object::{AccountName, Managed, Status, namespaced, rank, uid};
use super::pass::forget;
use crate::api::{AccountRef, Compute, ComputeSpec, ComputeStatus, Condition};
use crate::cluster::resource_version;
use crate::decide::compute::{self, ClaimSubject, ComputeObserved, ComputeStep, SnapshotState};
use crate::decide::identity::{Binding, Evidence, Origin, of_compute};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::write_contention::{Repair, WrittenPart};
use crate::decide::{AccountView, Brake, Decision, Memory, Meta, Reason, Report};
use crate::telemetry::metrics::CreateOutcome;

impl Managed for Compute {
    fn api<O>(client: &Client, namespace: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self::Scope>,
    {
        namespaced(client, namespace)
    }
}

impl Status for ComputeStatus {
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

    fn record(&self) -> Option<&String> {
        self.record.as_ref()
    }

    fn record_mut(&mut self) -> Option<&mut Option<String>> {
        Some(&mut self.record)
    }

    fn tell(&mut self, report: &Report, generation: i64, now: Timestamp) {
        self.conditions = report.conditions(&self.conditions, generation, now);
        self.observed_generation = report.observed_generation(self.observed_generation, generation);
    }
}

#[derive(Debug)]
pub struct Computes;

impl Kind for Computes {
    type Object = Compute;
    type Facts<E: Environment> = Facts<E::Client>;
    type Observed = ComputeObserved;
    type Step = ComputeStep;
    const USES_ACCOUNT: bool = true;
    const SELECTED: bool = true;

    async fn gather<E: Environment>(
        env: &E,
        object: &Compute,
        now: Timestamp,
    ) -> Result<Facts<E::Client>, kube::Error> {
        gather::gather(env, object, now).await
    }

    fn assemble<E: Environment>(object: &Compute, facts: &Facts<E::Client>) -> ComputeObserved {
        assemble::assemble(object, facts)
    }

    fn learn<E: Environment>(
        env: &E,
        object: &Compute,
        facts: &Facts<E::Client>,
        observed: &mut ComputeObserved,
        now: Timestamp,
    ) {
        observed.memory = env.state().learned(&observed.uid, |memory| {
            memory.operation_shown(
                object
                    .status
                    .as_ref()
                    .and_then(|status| status.last_operation.as_ref()),
            );
            compute::foresee(memory, &object.spec, observed.meta.generation, now);
            let known = facts.known();
            memory.note_unresolved(known.recorded(), now);
            compute::watch_twins(memory, &known, &observed.meta, &observed.account, now);
            if let (Some(binding), SnapshotState::Taken { computes, .. }) =
                (&facts.looked_for().binding, &observed.snapshot)
            {
                let shown = computes.find(Some(&binding.id), |compute| compute.id == binding.id);
                let declared = compute::VersionedSpec {
                    spec: &object.spec,
                    generation: observed.meta.generation,
                };
                compute::remember(memory, declared, object.status.as_ref(), &shown, now);
            }
        });
    }

    fn decide(
        object: &Compute,
        observed: &ComputeObserved,
        now: Timestamp,
    ) -> Decision<ComputeStep> {
        compute::decide(&object.spec, observed, now)
    }

    fn announce<E: Environment>(
        env: &E,
        object: &Compute,
        facts: &Facts<E::Client>,
        observed: &ComputeObserved,
    ) {
        let resolved = facts
            .record
            .as_ref()
            .map_or(true, |record| record.identity.open_create().is_none());
        let over = || {
            env.state()
                .resolved(&observed.uid, resource_version(object))
        };
        if resolved && over().is_some_and(|reserved| reserved.evidence == Evidence::ByBaseline) {
            // Wake only the next in line: otherwise all that wait would be reconciled at each turn.
            // The others poll.
            let waits = |other: &Arc<Compute>| {
                other.spec.type_ == object.spec.type_ && waits_its_turn(other)
            };
            let next = on_branch(env, object)
                .into_iter()
                .filter(waits)
                .min_by_key(|other| rank(other.as_ref()));
            next.into_iter()
                .for_each(|other| env.wake(ObjectRef::from_obj(other.as_ref())));
        }
        if let Some(account) = &facts.access.wake {
            access::wake(env, account);
        }
        if compute::misses_its_project(observed) {
            // The account then looks for the project.
            access::wake(env, &AccountName::of(&object.spec.account_ref, object));
        }
    }

    async fn perform<E: Environment>(
        env: &E,
        object: &Compute,
        step: &ComputeStep,
    ) -> Result<(), StepError> {
        perform::perform(env, object, step).await?;
        if matches!(step, ComputeStep::Bind { binding, restored: false, .. } if binding.origin == Origin::Created)
        {
            env.count_create(&Compute::kind(&()), CreateOutcome::Recovered);
        }
        Ok(())
    }

    fn status(
        report: &Report,
        object: &Compute,
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

    fn set_memory(observed: &mut ComputeObserved, memory: Memory) {
        observed.memory = memory;
    }

    fn repair(object: &Compute, step: &ComputeStep) -> Option<Repair> {
        match step {
            ComputeStep::Restore { record } => Some(Repair::of(WrittenPart::Metadata, record)),
            ComputeStep::WriteConnection { secret, .. } => Some(Repair::of(
                WrittenPart::Secret(Self::written_secret(object)?.to_owned()),
                secret,
            )),
            _ => None,
        }
    }

    fn removes(step: &ComputeStep) -> Option<&str> {
        match step {
            ComputeStep::Delete { id } => Some(id),
            _ => None,
        }
    }

    fn removes_besides(step: &ComputeStep) -> Option<&str> {
        match step {
            ComputeStep::DeleteTwin { id } => Some(id),
            _ => None,
        }
    }

    fn set_brake(observed: &mut ComputeObserved, brake: Brake) {
        observed.meta.brake = brake;
    }

    fn account(object: &Compute) -> Option<&AccountRef> {
        Some(&object.spec.account_ref)
    }

    fn meta(observed: &ComputeObserved) -> Option<&Meta> {
        Some(&observed.meta)
    }

    fn account_view(observed: &ComputeObserved) -> Option<&AccountView> {
        Some(&observed.account)
    }

    fn is_held(object: &Compute) -> bool {
        of_compute(object).is_ok_and(|record| compute::is_held(&object.spec, &record.identity))
    }

    fn project(object: &Compute) -> Option<&str> {
        Some(&object.spec.project_id)
    }

    fn written_secret(object: &Compute) -> Option<&str> {
        object
            .spec
            .connection
            .as_ref()
            .map(|connection| connection.secret_name.as_str())
    }

    fn read_secret(object: &Compute) -> Option<&str> {
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

    fn unused_secrets(object: &Compute) -> &[String] {
        object
            .status
            .as_ref()
            .map_or(&[], |status| status.unused_secrets.as_slice())
    }

    fn has(object: &Compute) -> Result<Vec<String>, InvalidAnnotation> {
        Ok(of_compute(object)?
            .identity_or_wish()
            .has(&object.spec.project_id))
    }

    fn keys(object: &Compute) -> Vec<Key> {
        let claimed = compute::claimed(object).into_iter().map(Key::Claim);
        claimed
            .chain(compute::wanted(&object.spec).into_iter().map(Key::Want))
            .collect()
    }

    fn on_deleted<E: Environment>(env: &E, object: &Compute) {
        forget::<Self, E>(env, object);
        env.stop_observing(object);
        wake_waiting(env, object);
    }

    fn on_released<E: Environment>(env: &E, object: &Compute) {
        wake_waiting(env, object);
    }
}

/// Wakes the Computes that may have waited for the create or the compute of `object`.
fn wake_waiting<E: Environment>(env: &E, object: &Compute) {
    for subject in compute::subjects(object) {
        let others = [Key::Claim(subject.clone()), Key::Want(subject)]
            .map(|key| env.objects_by::<Computes>(&key));
        others
            .iter()
            .flatten()
            .for_each(|other| env.wake(ObjectRef::from_obj(other.as_ref())));
    }
}

/// True if its status says that another create, or another resource, comes first.
fn waits_its_turn(compute: &Compute) -> bool {
    let reasons = [
        Reason::Creating,
        Reason::ConfirmingCreate,
        Reason::ClaimedByAnother,
    ]
    .map(Reason::as_str);
    let conditions = compute.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .any(|it| it.type_ == "Ready" && reasons.contains(&it.reason.as_str()))
}

/// The other Computes that declare the branch.
fn on_branch<E: Environment>(env: &E, object: &Compute) -> Vec<Arc<Compute>> {
    let Compute {
        spec: ComputeSpec {
            project_id,
            branch_id,
            ..
        },
        ..
    } = object;
    let branch = ClaimSubject::Branch {
        project: project_id.clone(),
        branch: branch_id.clone(),
    };
    let mut others = env.objects_by::<Computes>(&Key::Want(branch));
    others.retain(|other| uid(other.as_ref()) != uid(object));
    others
}

/// How a resource was bound to its compute, for users.
fn linked(Binding { id, origin, .. }: &Binding) -> String {
    match origin {
        Origin::Created => format!("Found compute {id}, which an interrupted create had made."),
        Origin::Adopted => format!("Adopted compute {id}."),
        Origin::Imported => format!("Imported compute {id}."),
        Origin::Observed => format!("Observing compute {id}."),
    }
}
