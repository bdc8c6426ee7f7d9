//! What a process has done to objects that others of ours own, until its watch shows it.

use std::collections::BTreeMap;

use super::ProcessState;

/// What was done last to one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was created under this name.
    Created(String),
    /// It was changed, which left this version behind.
    Changed(Option<u64>),
    Deleted,
}

/// By the UID of the object.
pub type Children = BTreeMap<String, Done>;

/// An object as the watch shows it: its version, and whether it is being deleted.
pub type Seen = (Option<u64>, bool);

impl Done {
    /// Whether the watch shows it. What it showed before and does not show any more is gone.
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
    /// This was done to a child.
    pub fn child_written(&self, uid: &str, child: &str, done: Done) {
        self.update(uid, |resource| resource.children.insert(child.to_owned(), done));
    }

    /// A child that was created is gone again.
    pub fn child_gone(&self, uid: &str, child: &str) {
        self.update(uid, |resource| resource.children.remove(child));
    }

    /// Forgets what the watch shows by now. Returns what it does not show, and which of that was created.
    pub fn children_seen(&self, uid: &str, seen: impl Fn(&str) -> Option<Seen>) -> Children {
        self.update(uid, |resource| {
            resource.children.retain(|child, done| !done.is_shown(seen(child)));
            resource.children.clone()
        })
    }
}
