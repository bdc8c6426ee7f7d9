//! The right of this process to make changes, by its own clock.

pub mod lease;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use crate::clock;

/// How often a request that waits looks whether the lease is renewed.
const LOOK: Duration = Duration::from_millis(200);
/// The time in nanoseconds of a right that was lost, not only not extended.
const LOST: u64 = 1;

/// The right to make changes. Clones share it. It is checked right before each call, so a process
/// that was frozen or cannot read the Lease notices by itself that its time has run out.
#[derive(Clone, Debug, Default)]
pub struct Leadership(Option<Arc<AtomicU64>>);

impl Leadership {
    /// A right that leader election extends and ends. The default needs no election and always
    /// holds.
    pub fn elected() -> Self {
        Self(Some(Arc::default()))
    }

    /// Extends the right until this time since boot.
    pub fn extend(&self, until: Duration) {
        let Some(known) = &self.0 else { return };
        known.store(
            u64::try_from(until.as_nanos()).unwrap_or(u64::MAX),
            Ordering::SeqCst,
        );
    }

    pub fn end(&self) {
        self.extend(Duration::ZERO);
    }

    /// Ends the right of a process that has led: another one has the lease. Its passes may still be
    /// ending.
    pub fn lose(&self) {
        if let Some(until) = &self.0 {
            until.fetch_min(LOST, Ordering::SeqCst);
        }
    }

    /// Waits while the lease may still be renewed. Passes that end do not wait.
    pub async fn resumed(&self) {
        while self.is_suspended() && !self.is_lost() {
            sleep(LOOK).await;
        }
    }

    fn is_lost(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|until| until.load(Ordering::SeqCst) == LOST)
    }

    /// True for a process that has led and does not lead at present: it may still renew its lease, or
    /// its work ends.
    pub fn is_suspended(&self) -> bool {
        !self.holds()
            && self
                .0
                .as_ref()
                .is_some_and(|until| until.load(Ordering::SeqCst) > 0)
    }

    pub fn holds(&self) -> bool {
        self.0.as_ref().is_none_or(|until| {
            clock::since_boot() < Duration::from_nanos(until.load(Ordering::SeqCst))
        })
    }
}

#[cfg(test)]
mod tests;
