//! Tracks which version of an object shows what was written to it.

use super::{ProcessState, ResourceState};

impl<P> ProcessState<P> {
    /// Our own write produced this version of the object.
    pub fn wrote_version(&self, uid: &str, version: Option<u64>) {
        self.update(uid, |resource| resource.version = resource.version.max(version));
        self.version_seen(uid, version);
    }

    /// A patch of the finalizers, based on this version, was not answered.
    pub fn patch_unanswered(&self, uid: &str, version: Option<u64>) {
        self.update(uid, |resource| resource.unanswered = version);
    }

    /// This version of the object was seen: an earlier patch is in it, or was not made.
    pub fn version_seen(&self, uid: &str, version: Option<u64>) {
        self.with(|contents| {
            contents
                .resources
                .change_known(uid, |resource| resource.unanswered.take_if(|patched| version > Some(*patched)))
        });
    }

    /// True if our own writes produced a newer version than this one.
    pub fn is_outdated(&self, uid: &str, version: Option<u64>) -> bool {
        self.with(|contents| contents.resources.get(uid).is_some_and(|resource| resource.version > version))
    }

    /// True if this version may lack the effects of a step in progress or of a recent write.
    pub fn is_busy(&self, uid: &str, version: Option<u64>) -> bool {
        let is_busy = |resource: &ResourceState| {
            let unanswered = resource.unanswered.is_some() && version <= resource.unanswered;
            resource.in_step || resource.version > version || unanswered || resource.reserved.is_some()
        };
        self.with(|contents| contents.resources.get(uid).is_some_and(is_busy))
    }
}
