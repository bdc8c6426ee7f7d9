//! What a set reports: how its replicas stand, taken together.

use super::super::compute::{reported, unfollowed};
use super::super::conditions::Health;
use super::super::{Reason, Report, Sync};
use super::Case;
use super::member::Replica;

impl Case<'_> {
    pub(super) fn report(&self) -> Report {
        let replicas = &self.replicas;
        let find = |wanted: fn(&Replica) -> bool| replicas.iter().find(|replica| wanted(replica));
        let there = replicas.len() + self.observed.unreadable;
        let complete = there == self.desired();
        let summary = self.summary();
        let (reason, health): (Reason, fn(Reason, String) -> Health) = match () {
            () if find(Replica::is_stalled).is_some() => (Reason::ReplicaNotReady, Health::Stalled),
            () if self.observed.unreadable > 0 => (Reason::ReplicaNotReady, Health::Unknown),
            () if complete && replicas.iter().all(|replica| replica.is_settled()) => (Reason::Available, Health::Ready),
            () if find(Replica::is_unknown).is_some() => (Reason::ReplicaNotReady, Health::Unknown),
            () if complete && self.is_held_back() => (Reason::Available, Health::Ready),
            () if there < self.desired() => (Reason::Creating, Health::Progressing),
            () => (Reason::Updating, Health::Progressing),
        };
        let why =
            find(Replica::is_stalled).or_else(|| find(Replica::is_unknown)).and_then(|replica| told(replica, "Ready"));
        let message = why.map_or_else(|| summary.clone(), |why| format!("{summary} {why}"));
        let report = Report::of(health(reason, message));
        let report = match &report.health {
            Health::Ready(..) => self.sync().map_or(report.clone(), |sync| report.with_sync(sync)),
            _ => report,
        };
        // Whether or not there is a replica that says so.
        reported(&unfollowed(self.spec.template.spec.compute(), "spec.template.spec"), report)
    }

    fn summary(&self) -> String {
        let count = |wanted: fn(&Replica) -> bool| self.replicas.iter().filter(|replica| wanted(replica)).count();
        let (ready, settled, desired) = (count(Replica::is_ready), count(Replica::is_settled), self.desired());
        let summary = format!("Replicas: {desired} declared, {ready} ready, {settled} up to date.");
        match self.observed.unreadable {
            0 => summary,
            hidden => format!("{summary} {hidden} cannot be read, see their conditions."),
        }
    }

    /// Every replica can be used, and one of them waits, or waits for a person, with a change.
    fn is_held_back(&self) -> bool {
        let ready = self.replicas.iter().all(|replica| replica.is_ready() && replica.current);
        ready && self.replicas.iter().any(|replica| replica.is_held_back())
    }

    /// What is not as declared although all replicas can be used.
    fn sync(&self) -> Option<Sync> {
        let held_back = self.replicas.iter().find(|replica| replica.is_held_back()).and_then(|replica| {
            let condition = replica.condition("Synced")?;
            let reason = Reason::ALL.iter().find(|reason| reason.as_str() == condition.reason)?;
            Some(Sync::OutOfSync(*reason, told(replica, "Synced")?))
        });
        held_back.or_else(|| self.incomplete())
    }
}

/// What a replica itself says.
fn told(replica: &Replica, kind: &str) -> Option<String> {
    Some(format!("Compute {}: {}", replica.name(), replica.condition(kind)?.message))
}
