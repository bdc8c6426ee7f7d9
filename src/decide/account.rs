//! Accounts: whether their credentials can be used, and whether they may go.

use jiff::Timestamp;

use super::memory::of_fault;
use super::{Decision, Health, Meta, Reason, Report, Sync, Wake, later};
use crate::api::{AccountCapabilities, AccountStatus};
use crate::domain::Fault;

/// How many projects the status names.
const MOST_PROJECTS: usize = 100;
/// How long the first answer about credentials is relied upon.
const CHECK_EVERY: std::time::Duration = std::time::Duration::from_secs(3600);
/// How often refused credentials are tried again.
const PROBE_EVERY: std::time::Duration = std::time::Duration::from_secs(300);
/// How often an unreachable platform is tried again.
const RETRY_EVERY: std::time::Duration = std::time::Duration::from_secs(15);

/// Everything that a decision about an Account rests on, besides the time.
#[derive(Clone, Debug)]
pub struct AccountObserved {
    pub meta: Meta,
    pub credential: Credential,
    /// The last check of these very credentials.
    pub check: Option<Check>,
    /// What the calls of the account's resources met since, where that is worse: a 401.
    pub suspended: Option<Fault>,
    /// Resources that refer to the account, as kind namespace/name.
    pub users: Vec<String>,
    /// Those of them that have something on the platform, which only the account's credentials can deal with.
    pub in_need: Vec<String>,
    /// Whether one of these is being deleted.
    pub leaving: bool,
    /// The Secret with the credentials; `None` where there is none.
    pub secret: Option<SecretProtection>,
}

/// How the Secret with the credentials stands. A finalizer holds it while the account is in use, because without it nothing
/// could be deleted on the platform any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecretProtection {
    /// Our finalizer is on it.
    pub protected: bool,
    /// It is being deleted, since then.
    pub deleting: Option<Timestamp>,
    /// Its namespace is being deleted, and with it probably everything that the account is used for.
    pub namespace_deleting: bool,
}

/// The Secret that an account refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    Usable,
    /// The Secret or its entry is missing; a text says which.
    Missing(String),
    /// The base URL cannot be used; a text says why.
    InvalidBaseUrl(String),
}

/// What a check of the credentials found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub at: Timestamp,
    pub verdict: Verdict,
    pub capabilities: AccountCapabilities,
}

/// What the platform said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It lists these projects.
    Projects(Vec<String>),
    /// It accepts the credential, which may not list projects.
    Restricted(String),
    Failed(Fault),
}

/// One side effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStep {
    /// Add the finalizers to the account and its Secret while resources use it.
    Protect,
    /// Let it go, or stop holding it.
    Unprotect,
    /// Let the Secret go, which a person deletes while the account stays.
    UnprotectSecret,
    /// Ask the platform whether it accepts the credentials.
    Check,
}

/// What to do about an Account or ClusterAccount.
pub fn decide(observed: &AccountObserved, now: Timestamp) -> Decision<AccountStep> {
    if observed.meta.deleting && observed.in_need.is_empty() {
        let report = Report::progressing(Reason::Deleting, "Nothing uses the account any more.");
        return if observed.meta.has_finalizer {
            Decision::act(AccountStep::Unprotect, report)
        } else {
            Decision::rest(report)
        };
    }
    if let Some(step) = protect(observed, now) {
        return Decision::act(step, health(observed));
    }
    check(observed, now).no_later(patience(observed).map_or(Wake::OnChange, Wake::At))
}

fn check(observed: &AccountObserved, now: Timestamp) -> Decision<AccountStep> {
    let due = match (&observed.credential, &observed.check) {
        (Credential::Usable, None) => return Decision::act(AccountStep::Check, health(observed)),
        (Credential::Usable, Some(check)) => later(check.at, period(observed, check)),
        (Credential::Missing(_) | Credential::InvalidBaseUrl(_), _) => return Decision::rest(health(observed)),
    };
    if due <= now {
        return Decision::act(AccountStep::Check, health(observed));
    }
    Decision::wait(health(observed), due)
}

/// The status that goes with a decision.
pub fn status(report: &Report, observed: &AccountObserved, old: &AccountStatus, now: Timestamp) -> AccountStatus {
    let mut status = AccountStatus {
        conditions: report.conditions(&old.conditions, observed.meta.generation, now),
        observed_generation: Some(observed.meta.generation),
        ..AccountStatus::default()
    };
    match observed.check.as_ref().map(|check| (&check.verdict, check.capabilities)) {
        Some((Verdict::Projects(projects), capabilities)) => {
            status.project_count = u32::try_from(projects.len()).ok();
            status.projects = projects.iter().take(MOST_PROJECTS).cloned().collect();
            status.projects.sort();
            status.capabilities = Some(with_earlier(capabilities, observed, old));
        }
        Some((Verdict::Restricted(_), capabilities)) => {
            status.capabilities = Some(with_earlier(capabilities, observed, old));
        }
        Some((Verdict::Failed(_), _)) => {
            status.project_count = old.project_count;
            status.projects = old.projects.clone();
            status.capabilities = old.capabilities;
        }
        None => {}
    }
    status
}

/// What computes were once seen to report is offered: a check while there were none shows nothing to the contrary. So two
/// processes whose leads overlap say the same, and do not correct each other without end.
fn with_earlier(found: AccountCapabilities, observed: &AccountObserved, old: &AccountStatus) -> AccountCapabilities {
    let same_spec = old.observed_generation == Some(observed.meta.generation);
    let earlier = old.capabilities.filter(|_| same_spec).unwrap_or_default();
    AccountCapabilities {
        compute_names: found.compute_names || earlier.compute_names,
        scale_to_zero: found.scale_to_zero || earlier.scale_to_zero,
        ..found
    }
}

/// What the account and its Secret lack of being protected exactly while it is used. One that is being deleted stays as it is, but
/// for a Secret that was put back.
fn protect(observed: &AccountObserved, now: Timestamp) -> Option<AccountStep> {
    if observed.meta.deleting {
        let put_back = matches!(observed.secret, Some(SecretProtection { protected: false, deleting: None, .. }));
        return (put_back && observed.meta.has_finalizer).then_some(AccountStep::Protect);
    }
    let used = !observed.users.is_empty();
    match observed.secret {
        Some(SecretProtection { protected: false, deleting: None, .. }) if used => Some(AccountStep::Protect),
        _ if patience(observed).is_some_and(|until| until <= now) => Some(AccountStep::UnprotectSecret),
        _ if used != observed.meta.has_finalizer => {
            Some(if used { AccountStep::Protect } else { AccountStep::Unprotect })
        }
        _ => None,
    }
}

/// Until when a Secret is protected that a person deletes while the account stays: `kubectl delete secret` must not hang. What is
/// deleted together with it, in whatever order, needs it to the end: in its namespace, or by one command.
fn patience(observed: &AccountObserved) -> Option<Timestamp> {
    match observed.secret {
        Some(SecretProtection { protected: true, deleting: Some(since), namespace_deleting: false })
            if !observed.meta.deleting && !observed.leaving =>
        {
            Some(later(since, DELETED_TOGETHER))
        }
        _ => None,
    }
}

/// How long the deletion of a Secret is taken for the beginning of a larger one.
const DELETED_TOGETHER: std::time::Duration = std::time::Duration::from_secs(10);

/// What the account is to the resources that refer to it, whatever else is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Usable,
    /// That is not known yet.
    Pending,
    /// A text says why it cannot be used.
    Unusable(String),
}

/// Whether resources may use the account. That the platform could not be asked just now is no reason against it: resources
/// find that out by their own calls.
pub fn standing(observed: &AccountObserved) -> Standing {
    match verdict(observed).health {
        Health::Ready(..) => Standing::Usable,
        Health::Progressing(Reason::Pending, _) => Standing::Pending,
        Health::Stalled(_, message) => Standing::Unusable(message),
        Health::Progressing(..) | Health::Unknown(..) => Standing::Usable,
    }
}

/// Whether the account and its Secret are protected for those who use it; nothing is created before.
pub fn is_protected(observed: &AccountObserved) -> bool {
    observed.meta.has_finalizer && observed.secret.is_none_or(|secret| secret.protected || secret.deleting.is_some())
}

fn period(observed: &AccountObserved, check: &Check) -> std::time::Duration {
    match (&observed.suspended, &check.verdict) {
        (Some(_), _) | (None, Verdict::Failed(Fault::Unauthorized { .. } | Fault::Forbidden { .. })) => PROBE_EVERY,
        (None, Verdict::Failed(_)) => RETRY_EVERY,
        (None, Verdict::Projects(_) | Verdict::Restricted(_)) => CHECK_EVERY,
    }
}

fn health(observed: &AccountObserved) -> Report {
    if observed.meta.deleting && !observed.in_need.is_empty() {
        return Report::progressing(
            Reason::InUse,
            format!("Waiting for those who use the account: {}.", shortened(&observed.in_need)),
        )
        .with_sync(Sync::NotApplicable);
    }
    verdict(observed).with_sync(Sync::NotApplicable)
}

/// How the credentials stand, whether or not the account is being deleted.
fn verdict(observed: &AccountObserved) -> Report {
    match (&observed.credential, &observed.suspended, &observed.check) {
        (Credential::Missing(what), _, _) => Report::stalled(Reason::CredentialsMissing, what.clone()),
        (Credential::InvalidBaseUrl(why), _, _) => Report::stalled(Reason::InvalidBaseUrl, why.clone()),
        (_, Some(fault), _) => refused(fault),
        (_, None, None) => Report::progressing(Reason::Pending, "The credentials are being checked."),
        (_, None, Some(check)) => match &check.verdict {
            Verdict::Projects(projects) => {
                let projects = match projects.len() {
                    1 => "1 project".to_owned(),
                    count => format!("{count} projects"),
                };
                Report::ready(format!("The platform accepts the API key, which sees {projects}."))
            }
            Verdict::Restricted(why) => {
                Report::ready(format!("The platform accepts the API key, which may not list projects ({why})."))
            }
            Verdict::Failed(fault @ Fault::Unauthorized { .. }) => refused(fault),
            Verdict::Failed(fault) => Report::of(of_fault(fault)),
        },
    }
}

fn refused(fault: &Fault) -> Report {
    Report::stalled(
        Reason::Unauthorized,
        format!(
            "{fault}. Put a valid API key into the Secret; until then no calls are made but one every five minutes."
        ),
    )
}

fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
