//! The lease that decides which process leads.
//!
//! Wall clocks are not compared. The leader counts from the moment it sent an accepted renewal; all
//! other processes count from the moment they saw the lease change. All times here are from one
//! process's monotonic clock.

use std::time::Duration;

/// The validity of a lease. A successor makes no change before it has expired. The settle time has
/// to be longer.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long the leader acts after it sent an accepted renewal.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// The pause between two requests.
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// The Lease in the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// `None` if it was released.
    pub holder: Option<String>,
    pub duration: Duration,
    /// Its resourceVersion.
    pub version: String,
}

/// The next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    Read,
    /// Acquire or renew the Lease if it is unchanged; `None` creates it.
    Write(Option<LeaseView>),
    Wait(Duration),
}

/// A process that leads, or wants to lead.
#[derive(Clone, Debug)]
pub struct LeaseCandidate {
    /// Unique for each process.
    identity: String,
    seen: Option<SeenLease>,
    not_before: Duration,
    leads_until: Option<Duration>,
}

/// The last observation of the lease.
#[derive(Clone, Debug)]
struct SeenLease {
    lease: Option<LeaseView>,
    /// When this version of it was first seen.
    since: Duration,
}

impl SeenLease {
    fn is_version_of(&self, lease: Option<&LeaseView>) -> bool {
        self.lease.as_ref().map(|seen| &seen.version) == lease.map(|lease| &lease.version)
    }
}

impl LeaseCandidate {
    pub fn new(identity: String) -> Self {
        Self {
            identity,
            seen: None,
            not_before: Duration::ZERO,
            leads_until: None,
        }
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Until when this process leads if nothing changes.
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

    fn may_write(&self, seen: &SeenLease, now: Duration) -> bool {
        let Some(lease) = &seen.lease else {
            return true;
        };
        let expired = now
            >= seen
                .since
                .saturating_add(lease.duration.max(LEASE_DURATION));
        expired
            || lease
                .holder
                .as_ref()
                .is_none_or(|holder| *holder == self.identity)
    }

    /// Applies a read of the lease whose answer arrived at `now`.
    pub fn read(&mut self, lease: Option<LeaseView>, now: Duration) {
        let since = match self.seen.take() {
            Some(seen) if seen.is_version_of(lease.as_ref()) => seen.since,
            _ => now,
        };
        let seen = SeenLease { since, lease };
        let is_own = seen
            .lease
            .as_ref()
            .is_some_and(|lease| lease.holder.as_ref() == Some(&self.identity));
        if !is_own {
            self.leads_until = None;
        }
        if !self.may_write(&seen, now) {
            self.not_before = now.saturating_add(RETRY_PERIOD);
        }
        self.seen = Some(seen);
    }

    /// Applies a write of the lease by this process, sent at `sent` and answered at `now`.
    pub fn written(&mut self, lease: LeaseView, sent: Duration, now: Duration) {
        self.seen = Some(SeenLease {
            lease: Some(lease),
            since: now,
        });
        self.leads_until = Some(sent.saturating_add(RENEW_DEADLINE));
        self.not_before = now.saturating_add(RETRY_PERIOD);
    }

    /// The lease differs from the last observation.
    pub fn changed(&mut self) {
        self.seen = None;
    }

    /// A request failed or was not answered. Its outcome is unknown.
    pub fn failed(&mut self, now: Duration) {
        self.not_before = now.saturating_add(RETRY_PERIOD);
    }
}

#[cfg(test)]
mod tests;
