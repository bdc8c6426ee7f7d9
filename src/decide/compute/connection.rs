//! The connection Secret: what a client needs to connect.

use std::collections::BTreeMap;

use super::super::{Action, Decision, Reason, Report};
use super::{Case, Choice, ComputeStep, SecretView};
use crate::domain::Compute;

/// The port that the platform's computes serve.
const POSTGRES_PORT: &str = "5432";

/// Writes the connection Secret where one is declared and differs.
pub(super) fn connection(case: &Case, compute: &Compute, report: &Report) -> Option<Choice> {
    let name = &case.spec.connection.as_ref()?.secret_name;
    let data = entries(compute)?;
    match &case.observed.secret {
        SecretView::NotWanted => None,
        SecretView::Foreign(owner) => Some(Decision::rest(Report::stalled(
            Reason::SecretNotOurs,
            format!(
                "Secret {name} exists and is {owner}. dbplane does not change it. Delete it, or choose another spec.connection.secretName."
            ),
        ))),
        SecretView::Ours(present) if data.iter().all(|(key, value)| present.get(key) == Some(value)) => None,
        SecretView::Absent | SecretView::Ours(_) => {
            Some(case.act(Action::WriteSecret, ComputeStep::WriteConnection { data }, report.clone()))
        }
    }
}

fn entries(compute: &Compute) -> Option<BTreeMap<String, String>> {
    let host = compute.host.clone()?;
    let entries = [
        ("host", host),
        ("port", POSTGRES_PORT.to_owned()),
        ("sslmode", "require".to_owned()),
        ("computeID", compute.id.clone()),
    ];
    Some(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
