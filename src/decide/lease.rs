//! The lease that decides which process leads.
//!
//! Wall clocks are not compared. The leader counts from when it sent the renewal that was accepted, every other process from
//! when it saw the lease change. All times here are those of one process's clock, which nobody sets.

use std::time::Duration;

/// How long a lease is valid. A successor makes no change before it has expired. The settle time has to be longer.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long the leader acts after it sent a renewal that was accepted.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// The pause between two requests.
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// The Lease, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// `None` where it was released.
    pub holder: Option<String>,
    pub duration: Duration,
    /// Its resourceVersion.
    pub version: String,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    Read,
    /// Take or renew it, if it is still as it was seen; `None` creates it.
    Write(Option<LeaseView>),
    Wait(Duration),
}

/// A process that wants to lead, or leads.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// No other process has this identity.
    identity: String,
    seen: Option<Seen>,
    not_before: Duration,
    leads_until: Option<Duration>,
}

/// What was seen of the lease.
#[derive(Clone, Debug)]
struct Seen {
    lease: Option<LeaseView>,
    /// When this version of it was seen first.
    since: Duration,
}

impl Candidate {
    pub fn new(identity: String) -> Self {
        Self { identity, seen: None, not_before: Duration::ZERO, leads_until: None }
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Until when this process leads, if nothing changes.
    pub fn leads_until(&self) -> Option<Duration> {
        self.leads_until
    }

    pub fn next(&self, now: Duration) -> LeaseStep {
        if now < self.not_before {
            return LeaseStep::Wait(self.not_before.saturating_sub(now));
        }
        match &self.seen {
            None => LeaseStep::Read,
            Some(seen) if self.may_write(seen, now) => LeaseStep::Write(seen.lease.clone()),
            Some(_) => LeaseStep::Read,
        }
    }

    fn may_write(&self, seen: &Seen, now: Duration) -> bool {
        let Some(lease) = &seen.lease else { return true };
        let expired = now >= seen.since.saturating_add(lease.duration.max(LEASE_DURATION));
        expired || lease.holder.as_ref().is_none_or(|holder| *holder == self.identity)
    }

    /// The lease was read; the answer came at `now`.
    pub fn read(&mut self, lease: Option<LeaseView>, now: Duration) {
        let version = |lease: &Option<LeaseView>| lease.as_ref().map(|lease| lease.version.clone());
        let before = self.seen.take().filter(|seen| version(&seen.lease) == version(&lease));
        let seen = Seen { since: before.map_or(now, |seen| seen.since), lease };
        let is_own = seen.lease.as_ref().is_some_and(|lease| lease.holder.as_ref() == Some(&self.identity));
        if !is_own {
            self.leads_until = None;
        }
        if !self.may_write(&seen, now) {
            self.not_before = now.saturating_add(RETRY_PERIOD);
        }
        self.seen = Some(seen);
    }

    /// The lease was written as this process's. The request was sent at `sent`, the answer came at `now`.
    pub fn written(&mut self, lease: LeaseView, sent: Duration, now: Duration) {
        self.seen = Some(Seen { lease: Some(lease), since: now });
        self.leads_until = Some(sent.saturating_add(RENEW_DEADLINE));
        self.not_before = now.saturating_add(RETRY_PERIOD);
    }

    /// The lease is not as it was seen.
    pub fn changed(&mut self) {
        self.seen = None;
    }

    /// A request failed, or was not answered: whether it was carried out is not known.
    pub fn failed(&mut self, now: Duration) {
        self.not_before = now.saturating_add(RETRY_PERIOD);
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
