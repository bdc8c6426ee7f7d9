//! What to report where a Secret is another one's.

use super::super::identity::KeyIdentity;
use super::super::{Decision, Reason, Report};
use super::{Case, Choice};

pub(super) fn claimed(case: &Case, other: &str) -> Choice {
    Decision::rest(Report::stalled(
        Reason::ClaimedByAnother,
        format!(
            "{other} writes Secret {}. Delete one of the two; spec.secret.name cannot be changed.",
            case.spec.secret.name
        ),
    ))
}

/// Its key is another resource's, which has taken it over.
pub(super) fn claimed_key(case: &Case, current: &KeyIdentity) -> Option<Report> {
    let other = case.observed.claims.get(&current.name)?;
    let message = format!("{other} has taken over key {}. Delete this resource: the key stays valid.", current.name);
    Some(Report::stalled(Reason::ClaimedByAnother, message))
}

pub(super) fn foreign(case: &Case, owner: &str) -> Choice {
    Decision::rest(Report::stalled(
        Reason::SecretNotOurs,
        format!(
            "Secret {} exists and is {owner}. dbplane does not change it. Delete it, or delete this resource and create one with another spec.secret.name.",
            case.spec.secret.name
        ),
    ))
}
