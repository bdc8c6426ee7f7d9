//! What was found out of accepted credentials, by this process or by another one later: what they reach, and how many keys their
//! organization has.

use jiff::Timestamp;

use super::super::Reason;
use super::{AccountObserved, Verdict};
use crate::api::{AccountCapabilities, AccountStatus, Condition};

/// How many projects the status names.
const MOST_PROJECTS: usize = 100;
/// How many API keys the platform recommends at most.
const MOST_KEYS: usize = 10_000;
/// So many are reported.
const MANY_KEYS: usize = 9_000;

/// How many lists with entries that cannot be read are named.
const MOST_LISTS: usize = 3;

/// What was found out, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated<T> {
    pub what: T,
    pub at: Timestamp,
}

/// How many keys an organization has.
pub type KeyCount = Dated<usize>;

impl<T: PartialEq> Dated<T> {
    /// What is to be reported. What another process has found out later stands, so that two that overlap do not write over each
    /// other; and what is the same as before is no news.
    fn newest(own: Option<Self>, reported: Option<Self>) -> Option<Self> {
        let is_news = |own: &Self| reported.as_ref().is_none_or(|known| known.what != own.what && known.at < own.at);
        own.filter(is_news).or(reported)
    }
}

/// What accepted credentials reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    pub message: String,
    pub project_count: Option<u32>,
    pub projects: Vec<String>,
    pub capabilities: AccountCapabilities,
}

/// What the credentials reach, as this process has found it, or another one later; `None` where they were not accepted.
pub(super) fn reach(observed: &AccountObserved) -> Option<Dated<Reach>> {
    let check = observed.check.as_ref()?;
    let capabilities = with_earlier(check.capabilities, observed.reported.as_ref());
    let found = match &check.verdict {
        Verdict::Projects(projects) => {
            let listed = match projects.len() {
                1 => "1 project".to_owned(),
                count => format!("{count} projects"),
            };
            let mut named: Vec<_> = projects.iter().take(MOST_PROJECTS).cloned().collect();
            named.sort();
            Reach {
                message: format!("The platform accepts the API key. It can list {listed}."),
                project_count: u32::try_from(projects.len()).ok(),
                projects: named,
                capabilities,
            }
        }
        Verdict::Restricted(why) => Reach {
            message: format!("The platform accepts the API key. {why}"),
            project_count: None,
            projects: Vec::new(),
            capabilities,
        },
        Verdict::Failed(_) => return None,
    };
    let reported = observed.reported.as_ref().and_then(|status| reported(status, &found));
    Dated::newest(Some(Dated { what: found, at: check.at }), reported)
}

/// The same as a status says it. Where its message is about something else, such as a deletion, that says nothing against what was `found`.
fn reported(status: &AccountStatus, found: &Reach) -> Option<Dated<Reach>> {
    let accepted = |condition: &&Condition| condition.type_ == "Ready" && condition.status == "True";
    let message = status.conditions.iter().find(accepted).map(|condition| &condition.message);
    let reach = Reach {
        message: message.unwrap_or(&found.message).clone(),
        project_count: status.project_count,
        projects: status.projects.clone(),
        capabilities: status.capabilities?,
    };
    Some(Dated { what: reach, at: status.checked_at? })
}

/// A capability that a compute once showed stays: a check while there are no computes does not disprove it.
fn with_earlier(found: AccountCapabilities, reported: Option<&AccountStatus>) -> AccountCapabilities {
    let earlier = reported.and_then(|status| status.capabilities).unwrap_or_default();
    AccountCapabilities {
        compute_names: found.compute_names || earlier.compute_names,
        scale_to_zero: found.scale_to_zero || earlier.scale_to_zero,
        ..found
    }
}

/// How many keys the organization has, as far as it is known.
pub(super) fn organization_keys(observed: &AccountObserved) -> Option<KeyCount> {
    let checked = observed.check.as_ref().and_then(|check| Some(Dated { what: check.keys?, at: check.at }));
    let own = observed.keys.into_iter().chain(checked).max_by_key(|counted| counted.at);
    let reported = observed.reported.as_ref().and_then(|status| {
        let what = usize::try_from(status.organization_keys?).ok()?;
        Some(Dated { what, at: status.organization_keys_at? })
    });
    Dated::newest(own, reported)
}

/// Whether an organization has nearly as many keys as the platform recommends at most.
pub fn are_many(keys: usize) -> bool {
    keys >= MANY_KEYS
}

/// Whether that is so of the account's organization, and reported.
pub fn has_many_keys(observed: &AccountObserved) -> bool {
    organization_keys(observed).is_some_and(|counted| are_many(counted.what))
}

pub(super) fn many_keys(observed: &AccountObserved) -> Option<(Reason, String)> {
    let Dated { what: keys, .. } = organization_keys(observed).filter(|counted| are_many(counted.what))?;
    let message = format!(
        "The organization has {keys} API keys, and the platform recommends fewer than {MOST_KEYS}. Revoke those that nobody needs, in the \
         platform's console or by deleting their ProjectKeys."
    );
    Some((Reason::ManyKeys, message))
}

/// What is said of lists that are too large.
pub(super) fn too_large(observed: &AccountObserved) -> Option<(Reason, String)> {
    let why = observed.too_large.as_ref()?;
    Some((Reason::ListsTooLarge, format!("A list cannot be used: {why}. What needs it reports AnswerTooLarge.")))
}

/// What is said of entries of lists that cannot be read.
pub(super) fn unreadable(observed: &AccountObserved) -> Option<(Reason, String)> {
    let projects = observed.check.as_ref().map(|check| &check.unreadable).filter(|projects| !projects.is_empty());
    let lists = projects.map(|projects| format!("of the projects: {projects}")).into_iter();
    let lists: Vec<String> = lists.chain(observed.unreadable.iter().cloned()).collect();
    let more = match lists.len().saturating_sub(MOST_LISTS) {
        0 => String::new(),
        more => format!(" {more} more lists have such entries."),
    };
    let named = lists.iter().take(MOST_LISTS).map(String::as_str).collect::<Vec<_>>().join("; ");
    let message = format!(
        "The platform lists entries that dbplane cannot read, each with the field in question: {named}.{more} What they may be is not taken \
         for absent. Ask the platform about them."
    );
    (!lists.is_empty()).then_some((Reason::UnreadableEntries, message))
}
