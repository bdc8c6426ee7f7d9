//! Compute: observed through the project's reader, acted on through the account's client.

mod claims;
mod observe;
mod perform;

pub use observe::{Seen, ids, learn, secret_view};
pub use perform::perform;

use jiff::Timestamp;
use kube::{Api, Client};

use super::kind::{Kind, Managed, StepError, namespaced};
use super::{Context, account_view};
use crate::api::{Compute, ComputeStatus};
use crate::decide::compute::{self, ComputeObserved, ComputeStep};
use crate::decide::{Brake, Decision, Memory, Report};

impl Managed for Compute {
    fn api(&self, client: &Client) -> Api<Self> {
        namespaced(self, client)
    }
}

/// The kind Compute.
#[derive(Debug)]
pub struct Computes;

impl Kind for Computes {
    type Object = Compute;
    type Observed = ComputeObserved;
    type Step = ComputeStep;

    async fn observe(context: &Context, object: &Compute, now: Timestamp) -> Result<ComputeObserved, kube::Error> {
        observe::observe(context, object, now).await
    }

    fn decide(object: &Compute, observed: &ComputeObserved, now: Timestamp) -> Decision<ComputeStep> {
        compute::decide(&object.spec, observed, now)
    }

    async fn perform(
        context: &Context,
        object: &Compute,
        observed: &ComputeObserved,
        step: &ComputeStep,
    ) -> Result<(), StepError> {
        let begun = account_view::begin(context, &object.spec.account_ref, object, &observed.account);
        let Some(_under_way) = begun else { return Ok(()) };
        perform::perform(context, object, step).await
    }

    fn status(report: &Report, object: &Compute, observed: &ComputeObserved, now: Timestamp) -> ComputeStatus {
        compute::status(report, observed, &object.status.clone().unwrap_or_default(), now)
    }

    fn remember(observed: &mut ComputeObserved, memory: Memory) {
        observed.memory = memory;
    }

    fn removes(step: &ComputeStep) -> Option<&str> {
        match step {
            ComputeStep::Delete { id } => Some(id),
            _ => None,
        }
    }

    fn hold(observed: &mut ComputeObserved, told: String) {
        observed.meta.brake = Brake::Paused(told);
    }
}
