//! A Secret that accounts have their credentials from: no key of it is revoked while they work with it.

use std::time::Duration;

use super::super::account::shortened;
use super::super::{Decision, Reason, Report, later};
use super::{Case, Choice};

/// An account whose credentials are in the Secret of a ProjectKey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAccount {
    /// Kind and name, for people.
    pub label: String,
    /// The resources, other than ProjectKeys, that have something on the platform which only these credentials reach. (A
    /// project-scoped key creates no keys. Were ProjectKeys to count, two that wait for each other would wait for ever.)
    pub users: Vec<String>,
    /// It calls the platform with what the Secret holds now, or not at all, and no call with an earlier key is on its way.
    pub follows: bool,
}

/// How soon to look again whether an account works with the new key: that takes it seconds.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How often to look whether anything still works with the key of a resource that is being deleted. Its Secret changes when
/// nothing does any more, which brings the resource back at once.
const RARELY: Duration = Duration::from_secs(30);

/// What is done about the deletion of a resource while others work with its key; `None` where none does.
pub(super) fn waits(case: &Case) -> Option<Choice> {
    let used: Vec<String> =
        case.observed.accounts.iter().filter(|account| !account.users.is_empty()).map(described).collect();
    if used.is_empty() {
        return None;
    }
    let secret = &case.spec.secret.name;
    let message = format!("The key in Secret {secret} is needed for: {}.", used.join("; "));
    let report = Report::progressing(Reason::InUse, message);
    Some(Decision::wait(report, later(case.now, RARELY)))
}

fn described(account: &KeyAccount) -> String {
    format!("{}, which {} work through", account.label, shortened(&account.users))
}

/// The accounts that may still work with a key which was replaced, for people; `None` where there are none.
pub(super) fn behind(case: &Case) -> Option<String> {
    let behind: Vec<&str> = case
        .observed
        .accounts
        .iter()
        .filter(|account| !account.follows)
        .map(|account| account.label.as_str())
        .collect();
    (!behind.is_empty()).then(|| shortened(&behind))
}

/// Whether a replaced key is kept although its overlap is over. No other key is created meanwhile: they would pile up.
pub(super) fn keeps_replaced(case: &Case) -> bool {
    case.identity.records.previous.iter().any(|key| key.retire_at <= case.now) && behind(case).is_some()
}

/// Why a replaced key is not revoked although its overlap is over.
pub(super) fn kept(key: &str, accounts: &str) -> String {
    format!("Key {key}, which it replaced, is revoked once the new one is in use by {accounts}.")
}
