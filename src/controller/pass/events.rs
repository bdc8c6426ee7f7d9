//! The events for the new parts of a report.

use crate::api::Condition;
use crate::cluster::Event;
use crate::controller::object::{Managed, Status};
use crate::decide::{Health, Reason, Report, Sync};

pub fn of<K: Managed>(object: &K, report: &Report) -> Vec<Event> {
    let before = object.status().map(Status::conditions).unwrap_or_default();
    headline(before, report)
        .into_iter()
        .chain(finding(before, report))
        .chain(notices(before, report))
        .collect()
}

/// The event for a new headline. Progress has no event, nor has its success: the steps on the way
/// have their own.
fn headline(before: &[Condition], report: &Report) -> Option<Event> {
    let (reason, text) = report.headline();
    let known = if matches!(report.health, Health::Paused(_)) {
        "Paused"
    } else {
        "Ready"
    };
    if reason_of(before, known) == Some(reason.as_str()) {
        return None;
    }
    match report.health {
        Health::Ready(..)
            if reason_of(before, "Ready").is_none() || before.iter().any(is_in_progress) =>
        {
            None
        }
        Health::Ready(..) | Health::Paused(_) => Some(Event::normal(reason.as_str(), text)),
        Health::Unknown(..) | Health::Stalled(..) => Some(Event::warning(reason.as_str(), text)),
        Health::Progressing(..) => None,
    }
}

/// The event for something that a user has to decide, although the resource is ready.
fn finding(before: &[Condition], report: &Report) -> Option<Event> {
    let (Sync::OutOfSync(reason @ (Reason::StrayCompute | Reason::OperationFailed), text)
    | Sync::Refused(reason, text)) = &report.sync
    else {
        return None;
    };
    (reason_of(before, "Synced") != Some(reason.as_str()))
        .then(|| Event::warning(reason.as_str(), text))
}

/// The events for new notices: facts that users should know although nothing is wrong yet.
fn notices(before: &[Condition], report: &Report) -> impl Iterator<Item = Event> {
    let news = report
        .notices
        .iter()
        .filter(|(reason, _)| reason_of(before, reason.as_str()).is_none());
    news.map(|(reason, text)| Event::warning(reason.as_str(), text))
}

fn is_in_progress(condition: &Condition) -> bool {
    condition.type_ == "Reconciling" && condition.status == "True"
}

fn reason_of<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a str> {
    conditions
        .iter()
        .find(|condition| condition.type_ == type_)
        .map(|condition| condition.reason.as_str())
}
