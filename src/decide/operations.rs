//! Operations of the platform: which ones failed, and when to list them. They cause no change: a
//! difference from the spec shows in the list of computes.

use std::time::Duration;

use jiff::Timestamp;

use super::{doubled, later};
use crate::api::LastOperation;

/// How long a change may take before its operations are listed. Also the first pause between two
/// lists, which doubles each time.
const ASK_AFTER: Duration = Duration::from_secs(30);
const ASK_MOST: Duration = Duration::from_secs(300);
/// The maximum age of a list that counts as evidence that a change takes long.
const RECENT: Duration = Duration::from_secs(10);
/// How many operations of a compute are kept and shown.
const SHOWN: usize = 3;

/// The known operations of a compute in one process. While no operation fails, nothing is requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operations {
    /// The newest operations, newest first; `None` until one was seen.
    newest: Option<Vec<LastOperation>>,
    /// When they were last requested, and how many times in a row.
    asked: Option<(Timestamp, u32)>,
    /// The platform does not list operations; only its answers to changes show some.
    not_listed: bool,
    /// Since when snapshots show the compute unsettled.
    unsettled_since: Option<Timestamp>,
}

impl Operations {
    /// The newest known operations, newest first.
    pub fn newest(&self) -> &[LastOperation] {
        self.newest.as_deref().unwrap_or_default()
    }

    pub fn are_listed(&self) -> bool {
        !self.not_listed
    }

    /// The failed operation that blocks the requested state.
    pub fn failed(&self) -> Option<&LastOperation> {
        failed(self.newest())
    }

    /// When to request the list: after a failure, or once a change takes long according to a
    /// snapshot at `seen`. `late`: it has taken too long already.
    pub fn ask_at(&self, late: bool, seen: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let has_failed = self.failed().is_some();
        let suspected = self.unsettled_since.is_some() || has_failed;
        if !suspected || self.not_listed {
            return None;
        }
        let due = match (self.asked, self.unsettled_since) {
            (Some((at, times)), _) => {
                later(at, doubled(ASK_AFTER, times.saturating_sub(1), ASK_MOST))
            }
            (None, Some(since)) if !has_failed && !late => later(since, ASK_AFTER),
            (None, _) => now,
        };
        // Under a rate limit, the list may show late that a compute has started.
        let is_known = now < due || late || has_failed || later(seen, RECENT) >= due;
        Some(if is_known { due } else { later(now, ASK_AFTER) })
    }

    /// The answer to a change. `started` are its operations, in the order of execution.
    pub(super) fn started(&mut self, started: &[LastOperation]) {
        self.newest = Some(started.iter().rev().take(SHOWN).cloned().collect());
        self.asked = None;
    }

    /// The answer to a request for the list, newest first.
    pub(super) fn listed(&mut self, listed: &[LastOperation], now: Timestamp) {
        self.newest = Some(listed.iter().take(SHOWN).cloned().collect());
        self.asked = Some((
            now,
            self.asked.map_or(0, |(_, times)| times).saturating_add(1),
        ));
    }

    pub(super) fn not_listed(&mut self) {
        self.not_listed = true;
    }

    /// The account has other credentials, and perhaps another platform.
    pub(super) fn ask_anew(&mut self) {
        (self.not_listed, self.asked) = (false, None);
    }

    /// An operation that an earlier process saw, from the status.
    pub(super) fn shown(&mut self, operation: &LastOperation) {
        self.newest.get_or_insert_with(|| vec![operation.clone()]);
    }

    /// Applies a snapshot: the compute is settled or not, and as declared or not. A failure ends
    /// when a later operation finishes. If the platform lists no operations, a settled compute that
    /// is as declared ends it.
    pub(super) fn observed(&mut self, settled: bool, as_declared: bool, now: Timestamp) {
        if !settled {
            self.unsettled_since.get_or_insert(now);
            return;
        }
        self.unsettled_since = None;
        let over = self.failed().is_none() || self.not_listed && as_declared;
        if over && self.newest.is_some() {
            (self.newest, self.asked) = (Some(Vec::new()), None);
        }
    }
}

/// The newest failed operation, if no later one has finished. The list is newest first.
pub(super) fn failed(newest: &[LastOperation]) -> Option<&LastOperation> {
    let unfinished = || {
        newest
            .iter()
            .take_while(|operation| !is_finished(operation))
    };
    // Cancelling an operation because a later one replaced it is no failure.
    unfinished()
        .find(|operation| has_failed(operation))
        .or_else(|| newest.first().filter(|it| it.status == "cancelled"))
}

/// Returns true if the operation had not failed and was not over when the platform showed it.
pub(super) fn is_in_progress(operation: &LastOperation) -> bool {
    let is_open = matches!(
        operation.status.as_str(),
        "scheduling" | "running" | "cancelling"
    );
    is_open && operation.failures.is_none()
}

fn is_finished(operation: &LastOperation) -> bool {
    matches!(operation.status.as_str(), "finished" | "skipped")
}

fn has_failed(operation: &LastOperation) -> bool {
    operation.failures.is_some() && operation.status != "cancelled"
        || matches!(operation.status.as_str(), "failed" | "error")
}

/// Returns true if the platform has given up the operation.
pub(super) fn is_given_up(operation: &LastOperation) -> bool {
    matches!(operation.status.as_str(), "error" | "cancelled")
}

pub(super) fn text(operation: &LastOperation) -> String {
    let LastOperation {
        id,
        action,
        status,
        failures,
        error,
    } = operation;
    let failures = match failures {
        None => String::new(),
        Some(1) => ", 1 failure".to_owned(),
        Some(count) => format!(", {count} failures"),
    };
    let error = error
        .as_ref()
        .map(|error| format!(": {error}"))
        .unwrap_or_default();
    format!("{action} {id} ({status}{failures}{error})")
}

#[cfg(test)]
mod tests;
