//! Findings about accepted credentials: the projects they reach, and the number of keys in their
//! organization. They are from this process, or from another one that looked later.

use jiff::Timestamp;

use super::{AccountObserved, AccountSubject, Verdict};
use crate::api::{AccountCapabilities, AccountStatus, Condition};
use crate::decide::Reason;
use crate::domain::ProjectId;

/// The status names at most this many projects.
const MOST_PROJECTS: usize = 100;
/// The platform recommends fewer API keys than this.
const MOST_KEYS: usize = 10_000;
/// From this number of keys on, the account reports a notice.
const MANY_KEYS: usize = 9_000;

/// The message names at most this many lists with unreadable entries.
const MOST_LISTS: usize = 3;

/// A finding and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated<T> {
    pub what: T,
    pub at: Timestamp,
}

/// The number of keys in an organization.
pub type KeyCount = Dated<usize>;

impl<T: PartialEq> Dated<T> {
    /// Selects the finding to report. A later finding of another process wins, so that two
    /// overlapping processes do not overwrite each other. An unchanged finding keeps its old time.
    fn newest(own: Option<Self>, reported: Option<Self>) -> Option<Self> {
        let is_news = |own: &Self| {
            reported
                .as_ref()
                .is_none_or(|known| known.what != own.what && known.at < own.at)
        };
        own.filter(is_news).or(reported)
    }
}

/// The projects and capabilities that accepted credentials reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AccountReach {
    pub message: String,
    pub project_count: Option<u32>,
    pub projects: Vec<ProjectId>,
    pub capabilities: AccountCapabilities,
}

/// The reach of the credentials, found by this process or later by another one. `None` if they were
/// not accepted.
pub(super) fn reach(observed: &AccountObserved) -> Option<Dated<AccountReach>> {
    let check = observed.check.as_ref()?;
    let capabilities = with_earlier(check.capabilities, observed.reported.as_ref());
    let found = match &check.verdict {
        Verdict::Projects(projects) => {
            let listed = match projects.len() {
                0 => none_listed(&observed.subject),
                1 => "It can list 1 project.".to_owned(),
                count => format!("It can list {count} projects."),
            };
            let mut named: Vec<_> = projects.iter().take(MOST_PROJECTS).cloned().collect();
            named.sort();
            AccountReach {
                message: format!("The platform accepts the API key. {listed}"),
                project_count: u32::try_from(projects.len()).ok(),
                projects: named,
                capabilities,
            }
        }
        Verdict::Restricted(why) => AccountReach {
            message: format!("The platform accepts the API key. {why}"),
            project_count: None,
            projects: Vec::new(),
            capabilities,
        },
        Verdict::Failed(_) => return None,
    };
    let reported = observed
        .reported
        .as_ref()
        .and_then(|status| reported(status, &found));
    Dated::newest(
        Some(Dated {
            what: found,
            at: check.at,
        }),
        reported,
    )
}

/// A platform may show an empty list for an organization that the key does not reach.
fn none_listed(subject: &AccountSubject) -> String {
    match &subject.organization {
        Some(organization) => format!(
            "It lists no project of organization {organization}. If there are projects, correct spec.organizationID, or put the API key of a \
             member into {}.",
            subject.entry
        ),
        None => {
            "It lists no project. An organization's projects need spec.organizationID.".to_owned()
        }
    }
}

/// The reach according to a status. The message of a Ready condition that is not True is about
/// something else, such as a deletion, and is ignored.
fn reported(status: &AccountStatus, found: &AccountReach) -> Option<Dated<AccountReach>> {
    let accepted =
        |condition: &&Condition| condition.type_ == "Ready" && condition.status == "True";
    let message = status
        .conditions
        .iter()
        .find(accepted)
        .map(|condition| &condition.message);
    let reach = AccountReach {
        message: message.unwrap_or(&found.message).clone(),
        project_count: status.project_count,
        projects: status.projects.clone(),
        capabilities: status.capabilities?,
    };
    Some(Dated {
        what: reach,
        at: status.checked_at?,
    })
}

/// A capability that a compute has shown once stays: a check while there are no computes does not
/// disprove it.
fn with_earlier(
    found: AccountCapabilities,
    reported: Option<&AccountStatus>,
) -> AccountCapabilities {
    let earlier = reported
        .and_then(|status| status.capabilities)
        .unwrap_or_default();
    AccountCapabilities {
        compute_names: found.compute_names || earlier.compute_names,
        scale_to_zero: found.scale_to_zero || earlier.scale_to_zero,
        ..found
    }
}

/// The number of keys in the organization, if known.
pub(super) fn organization_keys(observed: &AccountObserved) -> Option<KeyCount> {
    let checked = observed.check.as_ref().and_then(|check| {
        Some(Dated {
            what: check.keys?,
            at: check.at,
        })
    });
    let own = observed
        .keys
        .into_iter()
        .chain(checked)
        .max_by_key(|counted| counted.at);
    let reported = observed.reported.as_ref().and_then(|status| {
        let what = usize::try_from(status.organization_keys?).ok()?;
        Some(Dated {
            what,
            at: status.organization_keys_at?,
        })
    });
    Dated::newest(own, reported)
}

/// Returns true if an organization approaches the number of keys that the platform recommends at
/// most.
pub fn are_many(keys: usize) -> bool {
    keys >= MANY_KEYS
}

/// Returns true if the account reports `ManyKeys`.
pub fn has_many_keys(observed: &AccountObserved) -> bool {
    organization_keys(observed).is_some_and(|counted| are_many(counted.what))
}

pub(super) fn many_keys(observed: &AccountObserved) -> Option<(Reason, String)> {
    let Dated { what: keys, .. } =
        organization_keys(observed).filter(|counted| are_many(counted.what))?;
    let message = format!(
        "The organization has {keys} API keys, and the platform recommends fewer than {MOST_KEYS}. Revoke those that nobody needs, in the \
         platform's console or by deleting their ProjectKeys."
    );
    Some((Reason::ManyKeys, message))
}

/// The notice about lists that are too large.
pub(super) fn too_large(observed: &AccountObserved) -> Option<(Reason, String)> {
    let why = observed.too_large.as_ref()?;
    Some((
        Reason::ListsTooLarge,
        format!("A list cannot be used: {why}. What needs it reports AnswerTooLarge."),
    ))
}

/// The notice about list entries that cannot be read.
pub(super) fn unreadable(observed: &AccountObserved) -> Option<(Reason, String)> {
    let projects = observed
        .check
        .as_ref()
        .map(|check| &check.unreadable)
        .filter(|projects| !projects.is_empty());
    let lists = projects
        .map(|projects| format!("of the projects: {projects}"))
        .into_iter();
    let lists: Vec<String> = lists.chain(observed.unreadable.iter().cloned()).collect();
    let more = match lists.len().saturating_sub(MOST_LISTS) {
        0 => String::new(),
        more => format!(" {more} more lists have such entries."),
    };
    let named = lists
        .iter()
        .take(MOST_LISTS)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join("; ");
    let message = format!(
        "The platform lists entries that dbplane cannot read, each with the field in question: {named}.{more} What they may be is not taken \
         for absent. Ask the platform about them."
    );
    (!lists.is_empty()).then_some((Reason::UnreadableEntries, message))
}
