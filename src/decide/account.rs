//! Accounts: the state of their credentials, and when an account may be deleted.

mod check;
mod findings;
mod key_form;
mod projects;

use std::time::Duration;

use jiff::Timestamp;

pub use self::check::{Absence, AccountCheck, Answers, Verdict};
pub use self::findings::{Dated, KeyCount, are_many, has_many_keys};
use self::findings::{many_keys, organization_keys, reach, too_large, unreadable};
pub use self::key_form::mistake_in_key;
pub use self::projects::{ProjectsObserved, gone, seen, to_ask};
pub use super::advice::AccountSubject;
use super::advice::{self, Call};
use super::memory::of_fault;
use super::{Decision, Health, Observed, Reason, Report, Sync, Wake, later};
use crate::api::AccountStatus;
use crate::domain::Fault;
use crate::text::sentence;

/// How often accepted credentials are checked.
const CHECK_EVERY: Duration = Duration::from_secs(3600);
/// The pauses in seconds between checks after the first 401, until the credentials are accepted or
/// count as refused.
const DOUBTED: [u64; 4] = [1, 2, 5, 15];
/// How often refused credentials are checked.
const PROBE_EVERY: Duration = Duration::from_secs(300);
/// How often the check is repeated while the platform cannot be reached.
const RETRY_EVERY: Duration = Duration::from_secs(15);

/// The input of a decision about an Account, besides the time.
pub type AccountObserved = Observed<AccountFacts>;

#[derive(Clone, Debug)]
pub struct AccountFacts {
    pub subject: AccountSubject,
    pub credential: Credential,
    /// The last check of these very credentials.
    pub check: Option<AccountCheck>,
    /// A 401 answer to a call of one of the account's resources, since that check.
    pub suspended: Option<Fault>,
    /// Resources that refer to the account, as kind namespace/name.
    pub users: Vec<String>,
    /// The users with objects on the platform. They block the account's deletion, because only its
    /// credentials reach these objects.
    pub blocking: Vec<String>,
    /// Resources have, or may have, something on the platform through the account.
    pub in_use: bool,
    /// True if a blocking resource is being deleted.
    pub blocking_deleted: bool,
    /// Other operators use the account as well, and only they know their resources.
    pub shared: bool,
    pub projects: ProjectsObserved,
    /// The last number of keys of the organization that the resources of the account have seen.
    pub keys: Option<KeyCount>,
    /// Why a list that is read through the account is dropped, if one is too large.
    pub too_large: Option<String>,
    /// The unreadable entries in lists that are read through the account, each with the subject of
    /// its list.
    pub unreadable: Vec<String>,
    /// The status, if it is about the present spec. Another process may have written it.
    pub reported: Option<AccountStatus>,
    /// The Secret with the credentials, if it exists.
    pub secret: Option<SecretProtection>,
}

/// The protection of the Secret with the credentials. A finalizer holds it while the account is in
/// use: without the credentials nothing could be deleted on the platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecretProtection {
    /// It has dbplane's finalizer.
    pub protected: bool,
    /// Since when it is being deleted.
    pub deleting: Option<Timestamp>,
    /// Its namespace is being deleted, and with it probably every user of the account.
    pub namespace_deleting: bool,
}

/// The Secret that an account refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    Usable,
    /// The Secret or its entry is missing, with a message that names it.
    Missing(String),
    /// The base URL cannot be used, with the reason.
    InvalidBaseUrl(String),
    /// The operator sends nothing to this base URL, with the reason.
    PlatformNotAllowed(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStep {
    /// Add the finalizer to the account, to its Secret, or to both.
    Protect { account: bool, secret: bool },
    /// Remove the finalizer from the account, from its Secret, or from both.
    Unprotect { account: bool, secret: bool },
    /// Remove the finalizer from a Secret that a user deletes while the account stays.
    UnprotectSecret,
    /// Ask the platform whether it accepts the credentials.
    Check,
}

/// Decides about an Account or ClusterAccount. It passes none of the `gates`: an account has no
/// record and no pause, and it is checked even while its deletion waits for its users.
pub fn decide(observed: &AccountObserved, now: Timestamp) -> Decision<AccountStep> {
    if observed.meta.deleting && observed.blocking.is_empty() {
        let report = Report::progressing(Reason::Deleting, "Nothing uses the account any more.");
        return match (observed.meta.has_finalizer, observed.shared) {
            (true, _) => Decision::act(unprotection(observed), report),
            (false, true) => Decision::silent(),
            (false, false) => Decision::rest(report),
        };
    }
    if let Some(step) = protect(observed, now) {
        return Decision::act(step, health(observed));
    }
    // No event reports that the last unusable list fits again or is readable, so poll.
    let is_reported = observed.too_large.is_some() || unreadable(observed).is_some();
    let again = if is_reported {
        Wake::At(later(now, PROBE_EVERY))
    } else {
        Wake::OnChange
    };
    check(observed, now).no_later(patience(observed).map_or(again, Wake::At))
}

fn check(observed: &AccountObserved, now: Timestamp) -> Decision<AccountStep> {
    let due = match (&observed.credential, &observed.check) {
        (Credential::Usable, None) => return Decision::act(AccountStep::Check, health(observed)),
        (Credential::Usable, Some(check)) => {
            let due = due(observed, check);
            projects::due(observed, check).map_or(due, |projects| projects.min(due))
        }
        (
            Credential::Missing(_)
            | Credential::InvalidBaseUrl(_)
            | Credential::PlatformNotAllowed(_),
            _,
        ) => {
            return Decision::rest(health(observed));
        }
    };
    if due <= now {
        return Decision::act(AccountStep::Check, health(observed));
    }
    Decision::wait(health(observed), due)
}

pub fn status(
    report: &Report,
    observed: &AccountObserved,
    old: &AccountStatus,
    now: Timestamp,
) -> AccountStatus {
    let looked = observed
        .check
        .as_ref()
        .is_some_and(|check| check.at != AccountCheck::WANTED);
    let counted = organization_keys(observed);
    let status = AccountStatus {
        conditions: report.conditions(&old.conditions, observed.meta.generation, now),
        observed_generation: Some(observed.meta.generation),
        last_handled_reconcile_at: observed
            .meta
            .handled_reconcile(looked, old.last_handled_reconcile_at.as_ref()),
        organization_keys: counted.and_then(|counted| u32::try_from(counted.what).ok()),
        organization_keys_at: counted.and_then(|counted| known_time(counted.at)),
        seen_projects: projects::reported(observed),
        // Another operator knows of its own resources only.
        in_use: observed.in_use || observed.shared && old.in_use,
        ..AccountStatus::default()
    };
    match (&observed.check, reach(observed)) {
        (
            Some(AccountCheck {
                verdict: Verdict::Failed(_),
                ..
            }),
            _,
        ) if old.observed_generation == Some(observed.meta.generation) => AccountStatus {
            project_count: old.project_count,
            projects: old.projects.clone(),
            capabilities: old.capabilities,
            checked_at: old.checked_at,
            ..status
        },
        (_, Some(Dated { what: reach, at })) => AccountStatus {
            project_count: reach.project_count,
            projects: reach.projects,
            capabilities: Some(reach.capabilities),
            checked_at: known_time(at),
            ..status
        },
        (_, None) => status,
    }
}

fn known_time(at: Timestamp) -> Option<Timestamp> {
    (at != AccountCheck::WANTED).then_some(at)
}

/// The step that makes protection match use: the account and its Secret are protected while the
/// account is used. While the account is being deleted, only a Secret that was created again is
/// protected.
fn protect(observed: &AccountObserved, now: Timestamp) -> Option<AccountStep> {
    if observed.meta.deleting {
        let recreated = matches!(
            observed.secret,
            Some(SecretProtection {
                protected: false,
                deleting: None,
                ..
            })
        );
        return (recreated && observed.meta.has_finalizer).then(|| protection(observed));
    }
    let used = !observed.users.is_empty();
    match observed.secret {
        Some(SecretProtection {
            protected: false,
            deleting: None,
            ..
        }) if used => Some(protection(observed)),
        _ if patience(observed).is_some_and(|until| until <= now) => {
            Some(AccountStep::UnprotectSecret)
        }
        _ if used != observed.meta.has_finalizer => Some(if used {
            protection(observed)
        } else {
            unprotection(observed)
        }),
        _ => None,
    }
}

/// The API server rejects new finalizers on an object in deletion.
fn protection(observed: &AccountObserved) -> AccountStep {
    let secret = matches!(
        observed.secret,
        Some(SecretProtection {
            protected: false,
            deleting: None,
            ..
        })
    );
    AccountStep::Protect {
        account: !observed.meta.has_finalizer,
        secret,
    }
}

fn unprotection(observed: &AccountObserved) -> AccountStep {
    let secret = observed.secret.is_some_and(|secret| secret.protected);
    AccountStep::Unprotect {
        account: observed.meta.has_finalizer,
        secret,
    }
}

/// Until when a Secret in deletion stays protected while the account stays: `kubectl delete secret`
/// must not hang. Resources deleted together with it, by namespace or by one command, need it to
/// the end. The order of their deletion does not matter.
fn patience(observed: &AccountObserved) -> Option<Timestamp> {
    match observed.secret {
        Some(SecretProtection {
            protected: true,
            deleting: Some(since),
            namespace_deleting: false,
        }) if !observed.meta.deleting && !observed.blocking_deleted => {
            Some(later(since, DELETED_TOGETHER))
        }
        _ => None,
    }
}

/// How long after the deletion of a Secret related deletions may follow.
const DELETED_TOGETHER: Duration = Duration::from_secs(10);

/// The availability of an account to resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    Usable,
    /// Unknown until the first check.
    Pending,
    /// It cannot be used, with the reason.
    Unusable(String),
}

/// The availability of the account to resources. A platform that is unreachable at the moment does
/// not block them: their own calls show that.
pub fn availability(observed: &AccountObserved) -> Availability {
    match verdict(observed).health {
        Health::Ready(..) | Health::Stalled(Reason::PlatformUnreachable, _) => Availability::Usable,
        Health::Progressing(Reason::Pending, _) => Availability::Pending,
        // Its status names a Secret and the platform, which are not for every namespace.
        Health::Stalled(reason, _) if observed.shared => Availability::Unusable(format!(
            "its status has the reason {}. Who manages the account can read there what to do.",
            reason.as_str()
        )),
        Health::Stalled(_, message) => Availability::Unusable(message),
        Health::Progressing(..) | Health::Unknown(..) | Health::Paused(_) => Availability::Usable,
    }
}

/// Returns true if the account and its Secret are protected. Nothing is created before they are.
pub fn is_protected(observed: &AccountObserved) -> bool {
    observed.meta.has_finalizer
        && observed
            .secret
            .is_none_or(|secret| secret.protected || secret.deleting.is_some())
}

fn due(observed: &AccountObserved, check: &AccountCheck) -> Timestamp {
    let refusals = check.answers.refusals;
    let period = match (&observed.suspended, &check.verdict) {
        // The platform refused a call of a resource after the last check.
        (Some(Fault::KeyInDoubt { .. }), Verdict::Projects(_) | Verdict::Restricted(_)) => {
            return check.at;
        }
        (Some(Fault::KeyInDoubt { .. }), Verdict::Failed(_)) if refusals == 0 => RETRY_EVERY,
        _ if refusals > 0 && !check.is_refused() => {
            Duration::from_secs(DOUBTED[(refusals - 1).min(DOUBTED.len() - 1)])
        }
        (Some(_), _)
        | (None, Verdict::Failed(Fault::Unauthorized { .. } | Fault::Forbidden { .. })) => {
            PROBE_EVERY
        }
        (None, Verdict::Failed(_)) => RETRY_EVERY,
        (None, Verdict::Projects(_) | Verdict::Restricted(_)) => CHECK_EVERY,
    };
    later(check.at, period)
}

fn health(observed: &AccountObserved) -> Report {
    let notices = [
        too_large(observed),
        unreadable(observed),
        many_keys(observed),
    ];
    Report {
        notices: notices.into_iter().flatten().collect(),
        ..condition(observed)
    }
}

fn condition(observed: &AccountObserved) -> Report {
    if observed.meta.deleting && !observed.blocking.is_empty() {
        return Report::progressing(
            Reason::InUse,
            format!(
                "Waiting for the resources that use the account: {}.",
                shortened(&observed.blocking)
            ),
        )
        .with_sync(Sync::NotApplicable);
    }
    verdict(observed).with_sync(Sync::NotApplicable)
}

/// The state of the credentials, also while the account is being deleted.
fn verdict(observed: &AccountObserved) -> Report {
    match (&observed.credential, &observed.suspended, &observed.check) {
        (Credential::Missing(what), _, _) => {
            Report::stalled(Reason::CredentialsMissing, what.clone())
        }
        (Credential::InvalidBaseUrl(why), _, _) => {
            Report::stalled(Reason::InvalidBaseUrl, why.clone())
        }
        (Credential::PlatformNotAllowed(why), _, _) => {
            Report::stalled(Reason::PlatformNotAllowed, why.clone())
        }
        (_, Some(fault @ Fault::KeyInDoubt { .. }), _) => Report::of(of_fault(fault)),
        (_, Some(fault), _) => refused(observed, fault),
        (_, None, None) => {
            Report::progressing(Reason::Pending, "The credentials are being checked.")
        }
        (
            _,
            None,
            Some(
                check @ AccountCheck {
                    verdict: Verdict::Failed(fault),
                    ..
                },
            ),
        ) => match fault {
            Fault::Unauthorized { .. } if check.is_refused() => refused(observed, fault),
            fault => Report::of(failed(observed, check, fault)),
        },
        (_, None, Some(_)) => Report::ready(
            reach(observed)
                .map(|found| found.what.message)
                .unwrap_or_default(),
        ),
    }
}

/// A platform that never answered is not expected to begin. One that has worked before is.
fn failed(observed: &AccountObserved, check: &AccountCheck, fault: &Fault) -> Health {
    let reported = observed.reported.as_ref();
    let worked = check.answers.accepted
        || observed.in_use
        || reported.is_some_and(|status| status.checked_at.is_some());
    let call = Call::ListProjects {
        subject: &observed.subject,
        worked,
    };
    // An earlier process may have waited for it already.
    let is_reported = reported.is_some_and(|status| {
        status.conditions.iter().any(|condition| {
            condition.type_ == "Stalled" && condition.reason == Reason::PlatformUnreachable.as_str()
        })
    });
    match advice::health(&call, fault) {
        Health::Unknown(reason @ Reason::PlatformUnreachable, message)
            if !worked && (is_reported || check.is_long_unreached()) =>
        {
            Health::Stalled(reason, message)
        }
        health => health,
    }
}

fn refused(observed: &AccountObserved, fault: &Fault) -> Report {
    let mistake = observed
        .subject
        .key_mistake
        .map(|mistake| format!(" {mistake}"))
        .unwrap_or_default();
    let entry = &observed.subject.entry;
    Report::stalled(
        Reason::Unauthorized,
        format!(
            "Put a valid API key into {entry}.{mistake} Until then dbplane makes only one call every five minutes. {}",
            sentence(&fault.to_string())
        ),
    )
}

/// The first five names, and the number of the others.
pub(super) fn shortened(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 5;
    let shown = names
        .iter()
        .take(SHOWN)
        .map(AsRef::as_ref)
        .collect::<Vec<&str>>()
        .join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
