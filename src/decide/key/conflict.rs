//! What to report where a Secret is another one's.

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

pub(super) fn foreign(case: &Case, owner: &str) -> Choice {
    Decision::rest(Report::stalled(
        Reason::SecretNotOurs,
        format!(
            "Secret {} exists and is {owner}. dbplane does not change it. Delete it, or delete this resource and create one with another spec.secret.name.",
            case.spec.secret.name
        ),
    ))
}
