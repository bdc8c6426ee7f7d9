//! The report of a set, derived from all its replicas.

use super::SetCase;
use super::member::Replica;
use crate::decide::compute::{reported, unfollowed};
use crate::decide::conditions::Health;
use crate::decide::{Reason, Report, Sync};

impl SetCase<'_> {
    pub(super) fn report(&self) -> Report {
        let replicas = &self.replicas;
        let find = |wanted: fn(&Replica) -> bool| replicas.iter().find(|replica| wanted(replica));
        let summary = self.summary();
        let why = find(Replica::is_stalled)
            .or_else(|| find(Replica::is_unknown))
            .and_then(|replica| message_of(replica, "Ready"));
        let message = why.map_or_else(|| summary.clone(), |why| format!("{summary} {why}"));
        let report = self.of_replicas(message);
        let sync = match &report.health {
            Health::Ready(..) => self
                .refused()
                .or_else(|| self.held_back())
                .or_else(|| self.incomplete()),
            Health::Unknown(..) => self.refused(),
            Health::Progressing(..) | Health::Stalled(..) | Health::Paused(_) => None,
        };
        let report = sync.map_or(report.clone(), |sync| report.with_sync(sync));
        // Even if no replica reports it.
        reported(
            &unfollowed(self.spec.template.spec.compute(), "spec.template.spec"),
            report,
        )
    }

    /// The report about the replicas alone.
    fn of_replicas(&self, message: String) -> Report {
        let replicas = &self.replicas;
        let there = replicas.len() + self.observed.unreadable;
        let complete = there == self.desired();
        if replicas.iter().any(Replica::is_stalled) {
            Report::stalled(Reason::ReplicaNotReady, message)
        } else if self.observed.unreadable > 0 {
            Report::unknown(Reason::ReplicaNotReady, message)
        } else if complete && replicas.iter().all(Replica::is_settled) {
            Report::ready(message)
        } else if replicas.iter().any(Replica::is_unknown) {
            Report::unknown(Reason::ReplicaNotReady, message)
        } else if complete && self.is_held_back() {
            Report::ready(message)
        } else if there < self.desired() {
            Report::progressing(Reason::Creating, message)
        } else {
            Report::progressing(Reason::Updating, message)
        }
    }

    fn summary(&self) -> String {
        let count = |wanted: fn(&Replica) -> bool| {
            self.replicas
                .iter()
                .filter(|replica| wanted(replica))
                .count()
        };
        let (ready, settled, desired) = (
            count(Replica::is_ready),
            count(Replica::is_settled),
            self.desired(),
        );
        let summary = format!("Replicas: {desired} declared, {ready} ready, {settled} up to date.");
        match self.observed.unreadable {
            0 => summary,
            hidden => format!("{summary} {hidden} cannot be read, see their conditions."),
        }
    }

    /// The report, or Ready if the set serves although work is in progress.
    pub(super) fn serving(&self, report: &Report) -> Report {
        let serves = self.replicas.len() >= self.desired() && self.are_ready();
        match report.health {
            Health::Progressing(..) if serves => Report::ready(self.summary()),
            _ => report.clone(),
        }
    }

    fn are_ready(&self) -> bool {
        self.replicas
            .iter()
            .all(|replica| replica.is_ready() && replica.current)
    }

    /// All replicas are usable, and one of them has a change that waits for a time or for a user.
    fn is_held_back(&self) -> bool {
        self.are_ready() && self.replicas.iter().any(Replica::is_held_back)
    }

    /// Obstacles that need attention before the set is as declared. They concern a serving replica,
    /// one in deletion, or one that cannot be read.
    fn refused(&self) -> Option<Sync> {
        let all = || self.replicas.iter().chain(&self.leaving);
        let refused = all()
            .find(|replica| replica.is_refused())
            .and_then(|replica| said(replica, "Stalled"));
        let unreadable =
            || (self.observed.unreadable > 0).then(|| (Reason::ReplicaNotReady, self.summary()));
        refused
            .or_else(unreadable)
            .map(|(reason, message)| Sync::Refused(reason, message))
    }

    /// Waiting changes while all replicas are usable.
    fn held_back(&self) -> Option<Sync> {
        let held_back = self.replicas.iter().find(|replica| replica.is_held_back());
        let paused = || self.leaving.iter().find(|replica| replica.is_paused());
        let (reason, message) = said(held_back.or_else(paused)?, "Synced")?;
        Some(Sync::OutOfSync(reason, message))
    }
}

/// The reason and message of a replica's condition, if this version knows the reason.
fn said(replica: &Replica, kind: &str) -> Option<(Reason, String)> {
    Some((
        Reason::of(&replica.condition(kind)?.reason)?,
        message_of(replica, kind)?,
    ))
}

/// The message of a replica's condition. The set overwrites the fields of a replica.
fn message_of(replica: &Replica, kind: &str) -> Option<String> {
    let (name, message) = (replica.name(), &replica.condition(kind)?.message);
    let place = if message.contains("spec.") {
        " Change fields in spec.template.spec of the set."
    } else {
        ""
    };
    Some(format!("Compute {name}: {message}{place}"))
}
