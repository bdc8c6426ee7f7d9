//! Counts passes that end with an error, and remembers when that was last reported.

use std::time::Duration;

use jiff::Timestamp;

use super::ProcessState;
use crate::api::Uid;
use crate::decide::later;

/// So many errors in a row are reported. The third error comes 6 s after the first.
const HINDERED: u32 = 3;
const TOLD_EVERY: Duration = Duration::from_secs(60);

impl<P> ProcessState<P> {
    pub fn pass_succeeded(&self, uid: &Uid) {
        self.with(|contents| {
            contents.resources.change_known(uid, |resource| {
                (resource.errors, resource.conflict) = (0, None)
            })
        });
    }

    /// Counts a pass that ended with an error. Returns how many did in a row.
    pub fn pass_failed(&self, uid: &Uid) -> u32 {
        self.update(uid, |resource| {
            resource.errors = resource.errors.saturating_add(1);
            resource.errors
        })
    }

    /// True if enough passes in a row have failed to report that. The current failure is not
    /// counted yet.
    pub fn is_hindered(&self, uid: &Uid) -> bool {
        self.with(|contents| {
            contents
                .resources
                .get(uid)
                .is_some_and(|resource| resource.errors + 1 >= HINDERED)
        })
    }

    /// When a refusal by the API server may be reported again, if one was reported within the last
    /// minute.
    pub fn tells_again(&self, uid: &Uid, now: Timestamp) -> Option<Timestamp> {
        let told = self.with(|contents| contents.resources.get(uid)?.told)?;
        Some(later(told, TOLD_EVERY)).filter(|until| now < *until)
    }

    pub fn told_of_refusal(&self, uid: &Uid, now: Timestamp) {
        self.update(uid, |resource| resource.told = Some(now));
    }
}
