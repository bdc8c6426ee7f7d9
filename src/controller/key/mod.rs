//! ProjectKey: observed through its Secret and the organization's keys, acted on through the account's client.

mod observe;
mod perform;
mod secret;

use jiff::Timestamp;
use kube::{Api, Client};

pub use observe::{key_listing, key_secret_view};
pub use perform::{flush, perform, write_unsaved};
pub use secret::secret_contents;

use super::kind::{Kind, Managed, StepError, namespaced};
use super::{Context, account_view};
use crate::api::{ProjectKey, ProjectKeyStatus};
use crate::decide::key::{self, KeyObserved, KeyStep};
use crate::decide::{Brake, Decision, Memory, Report};

impl Managed for ProjectKey {
    fn api(&self, client: &Client) -> Api<Self> {
        namespaced(self, client)
    }
}

/// The kind ProjectKey.
#[derive(Debug)]
pub struct ProjectKeys;

impl Kind for ProjectKeys {
    type Object = ProjectKey;
    type Observed = KeyObserved;
    type Step = KeyStep;

    async fn observe(context: &Context, object: &ProjectKey, now: Timestamp) -> Result<KeyObserved, kube::Error> {
        observe::observe(context, object, now).await
    }

    fn decide(object: &ProjectKey, observed: &KeyObserved, now: Timestamp) -> Decision<KeyStep> {
        key::decide(&object.spec, observed, now)
    }

    async fn perform(
        context: &Context,
        object: &ProjectKey,
        observed: &KeyObserved,
        step: &KeyStep,
    ) -> Result<(), StepError> {
        let begun = account_view::begin(context, &object.spec.account_ref, object, &observed.account);
        let Some(_under_way) = begun else { return Ok(()) };
        perform::perform(context, object, observed, step).await
    }

    fn status(report: &Report, object: &ProjectKey, observed: &KeyObserved, now: Timestamp) -> ProjectKeyStatus {
        key::status(report, observed, &object.status.clone().unwrap_or_default(), &object.spec, now)
    }

    fn remember(observed: &mut KeyObserved, memory: Memory) {
        observed.memory = memory;
    }

    fn removes(step: &KeyStep) -> Option<&str> {
        match step {
            KeyStep::Revoke { name, .. } => Some(name),
            _ => None,
        }
    }

    fn hold(observed: &mut KeyObserved, told: String) {
        observed.meta.brake = Brake::Paused(told);
    }
}
