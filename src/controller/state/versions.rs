//! Tracks which version of an object shows what was written to it.

use super::{ProcessState, ResourceState};
use crate::api::Uid;
use crate::decide::put_back::Doubt;

/// The newest record of a resource, after a list has shown an older version, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRecord {
    text: String,
    /// The version with this record. `None` once no stored version has it.
    version: Option<u64>,
}

impl<P> ProcessState<P> {
    /// Our own write produced this version of the object.
    pub fn wrote_version(&self, uid: &Uid, version: Option<u64>) {
        self.update(uid, |resource| {
            resource.version = resource.version.max(version);
            resource
                .lost
                .take_if(|lost| lost.version.is_some() && version > lost.version);
        });
        self.patch_answered(uid, version);
    }

    /// A patch of the finalizers, based on this version, was not answered.
    pub fn patch_unanswered(&self, uid: &Uid, version: Option<u64>) {
        self.update(uid, |resource| resource.unanswered = version);
    }

    /// This version of the object was seen, with this record in its status.
    pub fn version_seen(&self, uid: &Uid, version: Option<u64>, record: Option<&str>) {
        self.patch_answered(uid, version);
        self.with(|contents| {
            contents.resources.change_known(uid, |resource| {
                // Only a newer version counts: passes see the version itself until the list is
                // complete.
                let Some(lost) = resource.lost.as_mut().filter(|lost| version > lost.version)
                else {
                    return;
                };
                if record == Some(lost.text.as_str()) {
                    resource.lost = None
                } else {
                    // An edit after the restore made it newer.
                    lost.version = None
                }
            })
        });
    }

    /// A patch of an earlier version is in this one, or was not made.
    fn patch_answered(&self, uid: &Uid, version: Option<u64>) {
        self.with(|contents| {
            contents.resources.change_known(uid, |resource| {
                resource
                    .unanswered
                    .take_if(|patched| version > Some(*patched));
            })
        });
    }

    /// True if our own writes produced a newer version than this one.
    pub fn is_outdated(&self, uid: &Uid, version: Option<u64>) -> bool {
        self.with(|contents| {
            contents
                .resources
                .get(uid)
                .is_some_and(|resource| resource.version > version)
        })
    }

    /// True if this version may lack the effects of a step in progress or of a recent write.
    pub fn is_busy(&self, uid: &Uid, version: Option<u64>) -> bool {
        let is_busy = |resource: &ResourceState| {
            let unanswered = resource.unanswered.is_some() && version <= resource.unanswered;
            resource.in_step
                || resource.version > version
                || unanswered
                || resource.reserved.is_some()
        };
        self.with(|contents| contents.resources.get(uid).is_some_and(is_busy))
    }

    /// Notes if the record of a resource has something on the platform. Returns if it had before.
    pub fn hold(&self, uid: &Uid, held: bool) -> bool {
        self.update(uid, |resource| std::mem::replace(&mut resource.held, held))
    }

    /// A list is about to show a version that is older than this one, or without its record. Nothing
    /// is decided on an older version.
    pub fn went_back(&self, uid: &Uid, version: Option<u64>, record: Option<String>) {
        self.update(uid, |resource| {
            resource.version = resource.version.max(version);
            if let Some(text) = record {
                resource.lost = Some(Box::new(LostRecord { text, version }));
            }
        });
    }

    /// A write on this version of the object failed with a conflict.
    pub fn write_conflicted(&self, uid: &Uid, version: Option<u64>) {
        self.update(uid, |resource| resource.conflict = version);
    }

    /// Why this version in the cache may not be the stored one.
    pub fn doubt(&self, uid: &Uid, shown: Option<u64>) -> Option<Doubt> {
        self.with(|contents| {
            let resource = contents.resources.get(uid)?;
            let behind = resource
                .version
                .filter(|known| Some(*known) > shown)
                .map(Doubt::Behind);
            behind.or_else(|| {
                resource
                    .conflict
                    .filter(|conflict| Some(*conflict) == shown)
                    .map(Doubt::Conflict)
            })
        })
    }

    /// Storage was rolled back to an earlier state: known versions mean nothing, and neither does
    /// anything that waits for one. What is known of the platform stays: a rolled back status is
    /// like one from a backup.
    pub fn storage_put_back(&self) {
        self.with(|contents| {
            contents
                .resources
                .change_all(ResourceState::forget_versions)
        });
    }

    /// The newest record of a resource, if storage was rolled back to a status that may lack it.
    pub fn lost_record(&self, uid: &Uid) -> Option<String> {
        self.with(|contents| {
            let lost = contents.resources.get(uid)?.lost.as_deref()?;
            lost.version.is_none().then(|| lost.text.clone())
        })
    }

    pub fn record_restored(&self, uid: &Uid) {
        self.update(uid, |resource| resource.lost = None);
    }
}

impl ResourceState {
    fn forget_versions(&mut self) {
        (self.version, self.unanswered, self.conflict) = (None, None, None);
        self.children.clear();
        // The object may no longer contain the report.
        self.reported = None;
        if let Some(reserved) = &mut self.reserved {
            reserved.recording = None;
        }
        if let Some(lost) = &mut self.lost {
            lost.version = None;
        }
    }
}
