//! What is released: a resource that is being deleted and that the operator does nothing for any more. Somebody else's finalizer may keep the
//! object for as long as that likes. It claims nothing, as if it were gone.

use super::names;
use crate::api::ObjectMeta;

/// Whether an object has our finalizer.
pub fn has_finalizer(meta: &ObjectMeta) -> bool {
    has_finalizer_named(meta, names::FINALIZER)
}

/// Whether an object has a finalizer of this name.
pub fn has_finalizer_named(meta: &ObjectMeta, name: &str) -> bool {
    meta.finalizers.iter().flatten().any(|finalizer| finalizer == name)
}

/// Whether it is being deleted without our finalizer, which nobody can add any more.
pub fn is_released(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some() && !has_finalizer(meta)
}

/// What people are told when a resource is released because its project does not exist any more.
pub fn gone_with_its_project(project: &str, what: &str) -> String {
    format!(
        "Project {project} is not listed any more, and the platform does not know it, so {what} counts as gone with it. A project that was \
         transferred to another organization looks the same. If that is so, {what} still exists: remove it there if nobody needs it."
    )
}
