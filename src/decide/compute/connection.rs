//! The connection Secret of a Compute.

use super::{ComputeCase, ComputeDecision, ComputeStep};
use crate::api::Management;
use crate::decide::connection::{Address, Declared, SecretDue, Target};
use crate::decide::{Action, Decision, Report};
use crate::domain::Compute;

fn follow_last_address(case: &ComputeCase, report: &Report) -> Option<ComputeDecision> {
    let binding = case.identity.binding.as_ref()?;
    let address = case.observed.last_seen.as_ref()?;
    if case.spec.management != Management::Full || binding.id != address.id {
        return None;
    }
    written(case, address, report)
}

/// While the platform cannot be read, the Secret still follows the spec and the credentials. Its
/// address is the one last seen.
pub(super) fn meanwhile(case: &ComputeCase, report: Report) -> ComputeDecision {
    match follow_last_address(case, &report) {
        Some(choice) if choice.step.is_some() => choice,
        Some(choice) => Decision::rest(report).no_later(choice.wake),
        None => Decision::rest(report),
    }
}

/// Writes the connection Secret if one is declared and differs.
pub(super) fn connection(
    case: &ComputeCase,
    compute: &Compute,
    report: &Report,
) -> Option<ComputeDecision> {
    written(case, &Address::of(compute)?, report)
}

fn declared<'a>(case: &'a ComputeCase) -> Option<Declared<'a>> {
    let (credentials, secret) = (&case.observed.credentials, &case.observed.secret);
    case.spec.connection.as_ref().map(|connection| Declared {
        connection,
        credentials,
        secret,
    })
}

fn written(case: &ComputeCase, address: &Address, report: &Report) -> Option<ComputeDecision> {
    match declared(case)?.due(&Target::from(address.clone()))? {
        SecretDue::Foreign(report) => Some(Decision::rest(report)),
        SecretDue::Write { secret, without } => {
            let step = ComputeStep::WriteConnection { secret, without };
            Some(case.act(Action::WriteSecret, step, report.clone()))
        }
    }
}

/// Reports declared parts of the connection Secret that cannot be written. The compute serves all
/// the same.
pub(super) fn incomplete(
    case: &ComputeCase,
    compute: &Compute,
    report: &Report,
) -> Option<ComputeDecision> {
    let sync = declared(case)?.incomplete(&Address::of(compute)?.into())?;
    Some(Decision::rest(report.clone().with_sync(sync)))
}
