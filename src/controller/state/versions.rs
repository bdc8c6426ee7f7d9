//! Which version of an object shows what was written to it.

use super::{ProcessState, ResourceState};

impl<P> ProcessState<P> {
    /// Our own write left this version of the object behind.
    pub fn wrote_version(&self, uid: &str, version: Option<u64>) {
        self.update(uid, |resource| resource.version = resource.version.max(version));
        self.version_seen(uid, version);
    }

    /// A patch of this version's finalizers was not answered.
    pub fn patch_unanswered(&self, uid: &str, version: Option<u64>) {
        self.update(uid, |resource| resource.unanswered = version);
    }

    /// This version of the object is seen: an earlier patch is in it, or was not made.
    pub fn version_seen(&self, uid: &str, version: Option<u64>) {
        self.with(|contents| {
            contents
                .resources
                .change_known(uid, |resource| resource.unanswered.take_if(|patched| version > Some(*patched)))
        });
    }

    /// Whether an object of this version is older than what our own writes left behind.
    pub fn is_outdated(&self, uid: &str, version: Option<u64>) -> bool {
        self.with(|contents| contents.resources.get(uid).is_some_and(|resource| resource.version > version))
    }

    /// Whether an object of this version may not show what is being done, or was done just now.
    pub fn is_busy(&self, uid: &str, version: Option<u64>) -> bool {
        let is_busy = |resource: &ResourceState| {
            let unanswered = resource.unanswered.is_some() && version <= resource.unanswered;
            resource.in_step || resource.version > version || unanswered || resource.reserved.is_some()
        };
        self.with(|contents| contents.resources.get(uid).is_some_and(is_busy))
    }
}
