//! The organization's keys as one operator process last observed them.

use std::sync::Arc;

use dbplane::controller::environment::Environment;
use dbplane::controller::state::AccountConnection;
use dbplane::domain::Listed;
use dbplane::platform::{Keys, Latest, LatestKeys, Listing, Platform, RateLimited, Reading, Tick};
use jiff::Timestamp;

use super::process::{Process, poll};

#[derive(Debug, Default)]
pub struct SeenKeys {
    latest: LatestKeys,
    /// End of the last attempt.
    at: Timestamp,
}

/// A successful reading with these start and end times.
pub fn read_well<L: Listing>(
    began: Tick,
    at: Timestamp,
    ended: Timestamp,
    listed: Listed<L::Item>,
) -> Latest<L> {
    let snapshot = Some(Arc::new(Reading::new(began, at, ended, listed)));
    Latest {
        snapshot,
        fault: None,
        attempted: Some(began),
    }
}

impl SeenKeys {
    /// The latest known list. The fault "no such list" expires after a while.
    pub fn known(&self, now: Timestamp) -> LatestKeys {
        let believed = self.latest.fault.as_ref().and_then(Keys::not_offered);
        if believed.is_none_or(|believed| now < self.at + believed) {
            self.latest.clone()
        } else {
            LatestKeys::default()
        }
    }
}

impl Process {
    /// The keys last observed through this connection.
    pub fn known_keys(&self, connection: u64) -> LatestKeys {
        let now = self.now();
        self.keys
            .lock()
            .unwrap()
            .get(&connection)
            .map(|seen| seen.known(now))
            .unwrap_or_default()
    }

    /// The keys last observed through the current connection.
    pub fn listed_keys(&self) -> LatestKeys {
        self.connection()
            .map(|connection| self.known_keys(connection.number))
            .unwrap_or_default()
    }

    /// Polls the organization's keys like the observer, if some account can be used.
    pub fn poll_keys(&self) {
        let Some(connection) = self.connection() else {
            return;
        };
        self.simulation.lock().acting = None;
        assert!(poll(self.list_keys(&connection)).is_ready());
    }

    pub async fn list_keys(&self, connection: &AccountConnection<RateLimited>) {
        let Some(organization) = &connection.access.organization_id else {
            return;
        };
        let (began, at) = (self.tick(), self.now());
        let read = connection.platform.list_keys(organization).await;
        let (mut seen, now) = (self.keys.lock().unwrap(), self.now());
        let seen = seen.entry(connection.number).or_default();
        seen.at = now;
        match read {
            Ok(keys) => seen.latest = read_well(began, at, now, keys),
            Err(fault) => (seen.latest.fault, seen.latest.attempted) = (Some(fault), Some(began)),
        }
    }
}
