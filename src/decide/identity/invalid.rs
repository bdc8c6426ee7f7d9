//! Messages about invalid records.

use crate::decide::names::RECORD;
use crate::decide::seal::{InvalidAnnotation, ObjectKey};

impl InvalidAnnotation {
    /// Returns true if the record belongs to another resource and was copied from there.
    pub fn is_copy(&self) -> bool {
        matches!(self, Self::CopiedFrom(_))
    }

    /// Returns true for a record of another version of dbplane. It may hold facts that no other
    /// record holds, so no other record replaces it.
    pub(super) fn is_of_another_version(&self) -> bool {
        matches!(self, Self::Newer | Self::HandOver)
    }

    /// The problem and its remedy. `kind` is in the form of kubectl.
    pub fn explain(&self, kind: &str, object_key: ObjectKey) -> String {
        let ObjectKey { namespace, name } = object_key;
        let forget = format!("kubectl -n {namespace} annotate {kind} {name} {RECORD}-");
        let restored = "dbplane does nothing until the value that it wrote is restored. To remove the link instead";
        match self {
            Self::Unreadable(error) => {
                format!("The annotation {RECORD} cannot be read ({error}). {restored}: {forget}")
            }
            Self::Newer => "What is recorded was written by a newer version of dbplane, in a form that this one does not understand. dbplane does \
                            nothing for this resource until that version runs again."
                .to_owned(),
            Self::HandOver => {
                let instead = match kind {
                    "compute" => "Set spec.deletion to Orphan and delete this resource. Then create another Compute, and set its \
                                  spec.computeID to the compute (status.computeID), unless another resource has that compute.",
                    _ => "Create another ProjectKey, which gets a key of its own, and switch the workloads to its Secret. Then set \
                          spec.deletion of this resource to Orphan, delete it, and revoke its keys in the platform's console.",
                };
                format!(
                    "The record of this resource says that it has handed over to another resource, or taken over from it. dbplane does not \
                     offer that any more, and does nothing for this resource. {instead}"
                )
            }
            Self::Edited => format!("The annotation {RECORD} is not as dbplane wrote it. {restored}: {forget}"),
            Self::CopiedFrom(other) => format!(
                "The annotation {RECORD} was copied from {other} and belongs to that resource. dbplane does nothing until it is \
                 removed here: {forget}"
            ),
        }
    }
}
