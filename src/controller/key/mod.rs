//! ProjectKey: observed through its Secret and the organization's keys, acted on through the
//! account's client.

mod assemble;
mod census;
mod flush;
mod gather;
mod in_use;
mod listing;
mod perform;
mod record;
mod save;
mod secret;
mod turn;

use jiff::Timestamp;
use kube::{Api, Client, Resource};

pub use census::census;
pub use flush::flush;
pub use gather::Facts;
pub use secret::{NOT_READ, assumed as assumed_key_secret};

use super::access;
use super::environment::{Environment, Kind, StepError};
use super::object::{AccountName, Managed, Status, namespaced};
use super::pass::forget;
use crate::api::{AccountRef, Condition, ProjectKey, ProjectKeyStatus};
use crate::decide::account::are_many;
use crate::decide::identity::of_key;
use crate::decide::key::{self, KeyObserved, KeyStep};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::write_contention::{Repair, WrittenPart};
use crate::decide::{AccountView, Brake, Decision, Memory, Meta, Report};

impl Managed for ProjectKey {
    fn api<O>(client: &Client, namespace: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self::Scope>,
    {
        namespaced(client, namespace)
    }
}

impl Status for ProjectKeyStatus {
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
}

#[derive(Debug)]
pub struct ProjectKeys;

impl Kind for ProjectKeys {
    type Object = ProjectKey;
    type Facts<E: Environment> = Facts<E::Client>;
    type Observed = KeyObserved;
    type Step = KeyStep;
    const USES_ACCOUNT: bool = true;

    async fn gather<E: Environment>(
        env: &E,
        object: &ProjectKey,
        now: Timestamp,
    ) -> Result<Facts<E::Client>, kube::Error> {
        gather::gather(env, object, now).await
    }

    fn assemble<E: Environment>(object: &ProjectKey, facts: &Facts<E::Client>) -> KeyObserved {
        assemble::assemble(object, facts)
    }

    fn learn<E: Environment>(
        env: &E,
        _object: &ProjectKey,
        facts: &Facts<E::Client>,
        observed: &mut KeyObserved,
        now: Timestamp,
    ) {
        let intended = facts.record.clone().unwrap_or_default().known().intent;
        observed.memory = env.state().learned(&observed.uid, |memory| {
            memory.note_unresolved(intended.map(|intent| intent.at), now);
        });
    }

    fn decide(object: &ProjectKey, observed: &KeyObserved, now: Timestamp) -> Decision<KeyStep> {
        key::decide(&object.spec, observed, now)
    }

    fn announce<E: Environment>(
        env: &E,
        object: &ProjectKey,
        facts: &Facts<E::Client>,
        observed: &KeyObserved,
    ) {
        if let Some(account) = &facts.access.wake {
            access::wake(env, account);
        }
        let name = AccountName::of(&object.spec.account_ref, object);
        let reported = env.state().account(&name).map(|entry| entry.many_keys);
        if facts
            .listed
            .count()
            .map(are_many)
            .is_some_and(|many| reported.is_some_and(|reported| reported != many))
        {
            access::wake(env, &name);
        }
        if key::may_miss_its_project(observed) {
            // The account then looks for the project.
            access::wake(env, &name);
        }
    }

    async fn perform<E: Environment>(
        env: &E,
        object: &ProjectKey,
        step: &KeyStep,
    ) -> Result<(), StepError> {
        perform::perform(env, object, step).await
    }

    fn status(
        report: &Report,
        object: &ProjectKey,
        observed: &KeyObserved,
        now: Timestamp,
    ) -> ProjectKeyStatus {
        key::status(
            report,
            observed,
            &object.status.clone().unwrap_or_default(),
            &object.spec,
            now,
        )
    }

    fn set_memory(observed: &mut KeyObserved, memory: Memory) {
        observed.memory = memory;
    }

    fn repair(object: &ProjectKey, step: &KeyStep) -> Option<Repair> {
        match step {
            KeyStep::Restore { record } => Some(Repair::of(WrittenPart::Metadata, record)),
            KeyStep::RewriteSecret => Some(Repair::of(
                WrittenPart::Secret(Self::written_secret(object)?.to_owned()),
                object.meta().generation,
            )),
            _ => None,
        }
    }

    fn removes(step: &KeyStep) -> Option<&str> {
        match step {
            KeyStep::Revoke { name, .. } => Some(name),
            _ => None,
        }
    }

    fn set_brake(observed: &mut KeyObserved, brake: Brake) {
        observed.meta.brake = brake;
    }

    fn is_held(object: &ProjectKey) -> bool {
        of_key(object).is_ok_and(|record| key::is_held(&record.known()))
    }

    fn account(object: &ProjectKey) -> Option<&AccountRef> {
        Some(&object.spec.account_ref)
    }

    fn meta(observed: &KeyObserved) -> Option<&Meta> {
        Some(&observed.meta)
    }

    fn account_view(observed: &KeyObserved) -> Option<&AccountView> {
        Some(&observed.account)
    }

    fn project(object: &ProjectKey) -> Option<&str> {
        Some(&object.spec.project_id)
    }

    fn written_secret(object: &ProjectKey) -> Option<&str> {
        Some(&object.spec.secret.name)
    }

    fn has(object: &ProjectKey) -> Result<Vec<String>, InvalidAnnotation> {
        Ok(of_key(object)?.known().has())
    }

    fn on_deleted<E: Environment>(env: &E, object: &ProjectKey) {
        forget::<Self, E>(env, object);
        env.stop_listing(object);
    }
}
