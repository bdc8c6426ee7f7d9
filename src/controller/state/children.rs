//! The writes of this process to objects that our resources own, until its watch shows them.

use std::collections::BTreeMap;

use super::ProcessState;
use crate::api::Uid;

/// The last write to an owned object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was created with this name.
    Created(String),
    /// It was changed, with this resulting version.
    Changed(Option<u64>),
    Deleted,
}

/// By the UID of the owned object.
pub type Children = BTreeMap<Uid, Done>;

/// The version of an object in the watch, and whether it is being deleted.
pub type Seen = (Option<u64>, bool);

impl Done {
    /// True if the watch shows the write. An object that the watch showed before and lacks now is
    /// gone.
    fn is_shown(&self, seen: Option<Seen>) -> bool {
        match (self, seen) {
            (Self::Created(_), seen) => seen.is_some(),
            (Self::Changed(_) | Self::Deleted, None) => true,
            (Self::Changed(version), Some((now, _))) => now >= *version,
            (Self::Deleted, Some((_, deleting))) => deleting,
        }
    }
}

impl<P> ProcessState<P> {
    /// Notes a write to a child.
    pub fn child_written(&self, uid: &Uid, child: &Uid, done: Done) {
        self.update(uid, |resource| {
            resource.children.insert(child.clone(), done)
        });
    }

    /// Forgets the write to a child that was created and is gone again.
    pub fn child_gone(&self, uid: &Uid, child: &Uid) {
        self.update(uid, |resource| resource.children.remove(child));
    }

    /// Forgets the writes that the watch shows by now. Returns the others.
    pub fn children_seen(&self, uid: &Uid, seen: impl Fn(&Uid) -> Option<Seen>) -> Children {
        self.update(uid, |resource| {
            resource
                .children
                .retain(|child, done| !done.is_shown(seen(child)));
            resource.children.clone()
        })
    }
}
