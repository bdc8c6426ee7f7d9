//! Released resources: in deletion, and without the operator's finalizer. A finalizer of another
//! program may keep the object for any time. A released resource claims nothing, as if it were
//! gone.

use super::names;
use crate::api::ObjectMeta;
use crate::domain::ProjectId;

pub fn has_finalizer(meta: &ObjectMeta) -> bool {
    has_finalizer_named(meta, names::FINALIZER)
}

pub fn has_finalizer_named(meta: &ObjectMeta, name: &str) -> bool {
    meta.finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == name)
}

/// Returns true if it is being deleted without our finalizer, which can no longer be added.
pub fn is_released(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some() && !has_finalizer(meta)
}

/// The message for a resource that is released because its project no longer exists.
pub fn gone_with_its_project(project: &ProjectId, what: &str) -> String {
    format!(
        "Project {project} is not listed any more, and the platform does not know it, so {what} counts as gone with it. A project that was \
         transferred to another organization looks the same. If that is so, {what} still exists: remove it there if nobody needs it."
    )
}
