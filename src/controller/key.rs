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
use kube::Resource;

pub use census::census;
pub use flush::flush;

use super::environment::{Change, Environment, Kind, Observation, Relations, StepError};
use super::pass::forget;
use crate::api::{Known, ProjectKey, ProjectKeyStatus};
use crate::decide::key::{self, KeyFacts, KeyObserved, KeyStep};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::write_contention::{Repair, WrittenPart};
use crate::decide::{Decision, Report};

#[derive(Debug)]
pub struct ProjectKeys;

impl Kind for ProjectKeys {
    type Object = Known<ProjectKey>;
    type Facts = KeyFacts;
    type Step = KeyStep;
    const USES_ACCOUNT: bool = true;

    async fn observe<E: Environment>(
        env: &E,
        object: &Known<ProjectKey>,
        now: Timestamp,
    ) -> Result<Observation<KeyFacts, E::Client>, kube::Error> {
        observe::observe(env, object, now).await
    }

    fn decide(
        object: &Known<ProjectKey>,
        observed: &KeyObserved,
        now: Timestamp,
    ) -> Decision<KeyStep> {
        key::decide(&object.spec, observed, now)
    }

    async fn perform<E: Environment>(
        env: &E,
        object: &Known<ProjectKey>,
        step: &KeyStep,
    ) -> Result<(), StepError> {
        perform::perform(env, object, step).await
    }

    fn status(
        report: &Report,
        object: &Known<ProjectKey>,
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

    fn change<'a>(object: &Known<ProjectKey>, step: &'a KeyStep) -> Change<'a> {
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

    fn relations(object: &Known<ProjectKey>) -> Relations<'_> {
        Relations {
            account: Some(&object.spec.account_ref),
            project: Some(&object.spec.project_id),
            written_secret: Some(&object.spec.secret.name),
            ..Relations::default()
        }
    }

    fn needs_finalizer(object: &Known<ProjectKey>) -> bool {
        object
            .identity()
            .is_ok_and(|identity| key::is_held(&identity))
    }

    fn platform_objects(object: &Known<ProjectKey>) -> Result<Vec<String>, InvalidAnnotation> {
        Ok(object.identity()?.has())
    }

    fn on_deleted<E: Environment>(env: &E, object: &Known<ProjectKey>) {
        forget::<Self, E>(env, object);
        env.stop_listing(object);
    }
}
