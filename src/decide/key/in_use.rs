//! Secrets that accounts read their credentials from: their keys are not revoked while the accounts
//! use them.

use std::time::Duration;

use super::{KeyCase, KeyDecision};
use crate::decide::account::shortened;
use crate::decide::{Decision, Reason, Report, later};

/// An account whose credentials are in the Secret of a ProjectKey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAccount {
    /// Kind and name, for messages.
    pub label: String,
    /// Resources, other than ProjectKeys, with objects on the platform that only these credentials
    /// reach. ProjectKeys do not count: a project-scoped key creates no keys. If they counted, two
    /// of them could wait for each other forever.
    pub users: Vec<String>,
    /// It calls the platform with the present content of the Secret, or not at all, and has no call
    /// with an earlier key in progress.
    pub follows: bool,
}

/// How soon to check again whether an account uses the new key. The switch takes seconds.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How often to check whether a key of a resource in deletion is in use. When its last user is
/// gone, its Secret changes, which requeues the resource at once.
const RARELY: Duration = Duration::from_secs(30);

/// Delays the deletion of a resource while others use its key; `None` if none does.
pub(super) fn waits(case: &KeyCase) -> Option<KeyDecision> {
    let used: Vec<String> = case
        .observed
        .accounts
        .iter()
        .filter(|account| !account.users.is_empty())
        .map(described)
        .collect();
    if used.is_empty() {
        return None;
    }
    let secret = &case.spec.secret.name;
    let message = format!(
        "The key in Secret {secret} is needed for: {}.",
        used.join("; ")
    );
    let report = Report::progressing(Reason::InUse, message);
    Some(Decision::wait(report, later(case.now, RARELY)))
}

fn described(account: &KeyAccount) -> String {
    format!(
        "{}, which {} work through",
        account.label,
        shortened(&account.users)
    )
}

/// The accounts that may still use a replaced key, for messages; `None` if there are none.
pub(super) fn behind(case: &KeyCase) -> Option<String> {
    let behind: Vec<&str> = case
        .observed
        .accounts
        .iter()
        .filter(|account| !account.follows)
        .map(|account| account.label.as_str())
        .collect();
    (!behind.is_empty()).then(|| shortened(&behind))
}

/// Returns true if a replaced key is kept past the end of its overlap. No other key is created
/// meanwhile, because keys would pile up.
pub(super) fn keeps_replaced(case: &KeyCase) -> bool {
    case.identity
        .records
        .previous
        .iter()
        .any(|key| key.retire_at <= case.now)
        && behind(case).is_some()
}

/// Why a replaced key is not revoked although its overlap is over.
pub(super) fn kept(key: &str, accounts: &str) -> String {
    format!("Key {key}, which it replaced, is revoked once the new one is in use by {accounts}.")
}
