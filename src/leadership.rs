//! The right of this process to make changes, by its own clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock;

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
        known.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    pub fn end(&self) {
        self.extend(Duration::ZERO);
    }

    /// True while a leader that could not renew its lease in time waits to renew it.
    pub fn is_suspended(&self) -> bool {
        !self.holds() && self.0.as_ref().is_some_and(|until| until.load(Ordering::SeqCst) > 0)
    }

    pub fn holds(&self) -> bool {
        self.0.as_ref().is_none_or(|until| clock::since_boot() < Duration::from_nanos(until.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_until_it_runs_out_or_is_ended() {
        assert!(Leadership::default().holds(), "no election");
        let elected = Leadership::elected();
        assert!(!elected.holds(), "not elected yet");
        let shared = elected.clone();
        assert!(!elected.is_suspended(), "it has led never");
        elected.extend(clock::since_boot() + Duration::from_secs(60));
        assert!(shared.holds() && !shared.is_suspended());
        elected.extend(clock::since_boot());
        assert!(!shared.holds() && shared.is_suspended(), "it has run out");
        elected.extend(clock::since_boot() + Duration::from_secs(60));
        elected.end();
        assert!(!shared.holds() && !shared.is_suspended());
    }
}
