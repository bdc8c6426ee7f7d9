//! Reports about a Secret that belongs to something else.

use super::{KeyCase, KeyDecision, KeySecretView};
use crate::decide::{Decision, Reason, Report};

pub(super) fn claimed(case: &KeyCase, other: &str) -> KeyDecision {
    let name = &case.spec.secret.name;
    let whose = match &case.secret {
        KeySecretView::Foreign(owner) => format!("Secret {name} is {owner}."),
        _ => format!("{other} wants Secret {name} as well, and is older."),
    };
    Decision::rest(Report::stalled(
        Reason::ClaimedByAnother,
        format!(
            "{whose} Delete one of the two. Or name another Secret in spec.secret.name, as long as this resource has no key."
        ),
    ))
}

pub(super) fn foreign(case: &KeyCase, owner: &str) -> KeyDecision {
    Decision::rest(Report::stalled(
        Reason::SecretNotOurs,
        format!(
            "Secret {} exists and is {owner}. dbplane does not change it. Delete it. Or name another Secret in spec.secret.name; if this resource has a key, create another \
             ProjectKey for that.",
            case.spec.secret.name
        ),
    ))
}
