//! ProjectKey: observed through its Secret and the organization's keys, acted on through the
//! account's client.

mod census;
mod flush;
mod in_use;
mod listing;
mod observe;
mod perform;
mod record;
mod save;
mod secret;
mod turn;

use jiff::Timestamp;
use kube::{Api, Client, Resource};

pub use census::census;
pub use flush::flush;

use super::environment::{Change, Environment, Kind, Observation, Relations, StepError};
use super::object::{Managed, Status, namespaced};
use super::pass::forget;
use crate::api::{Condition, ProjectKey, ProjectKeyStatus};
use crate::decide::identity::of_key;
use crate::decide::key::{self, KeyFacts, KeyObserved, KeyStep};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::write_contention::{Repair, WrittenPart};
use crate::decide::{Decision, Report};

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
    type Facts = KeyFacts;
    type Step = KeyStep;
    const USES_ACCOUNT: bool = true;

    async fn observe<E: Environment>(
        env: &E,
        object: &ProjectKey,
        now: Timestamp,
    ) -> Result<Observation<KeyFacts, E::Client>, kube::Error> {
        observe::observe(env, object, now).await
    }

    fn decide(object: &ProjectKey, observed: &KeyObserved, now: Timestamp) -> Decision<KeyStep> {
        key::decide(&object.spec, observed, now)
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

    fn change<'a>(object: &ProjectKey, step: &'a KeyStep) -> Change<'a> {
        match step {
            KeyStep::Restore { record } => {
                Change::Repair(Repair::of(WrittenPart::Metadata, record))
            }
            KeyStep::RewriteSecret => Change::Repair(Repair::of(
                WrittenPart::Secret(object.spec.secret.name.clone()),
                object.meta().generation,
            )),
            KeyStep::Revoke { name, .. } => Change::Delete(name),
            _ => Change::Other,
        }
    }

    fn relations(object: &ProjectKey) -> Relations<'_> {
        Relations {
            account: Some(&object.spec.account_ref),
            project: Some(&object.spec.project_id),
            written_secret: Some(&object.spec.secret.name),
            ..Relations::default()
        }
    }

    fn needs_finalizer(object: &ProjectKey) -> bool {
        of_key(object).is_ok_and(|record| key::is_held(&record.known()))
    }

    fn platform_objects(object: &ProjectKey) -> Result<Vec<String>, InvalidAnnotation> {
        Ok(of_key(object)?.known().has())
    }

    fn on_deleted<E: Environment>(env: &E, object: &ProjectKey) {
        forget::<Self, E>(env, object);
        env.stop_listing(object);
    }
}
