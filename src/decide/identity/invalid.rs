//! What is wrong with a record that dbplane did not write, in words.

use super::super::names::RECORD;
use super::super::seal::{InvalidAnnotation, ObjectKey};

impl InvalidAnnotation {
    /// Whether the record was copied from another resource, to which it belongs.
    pub fn is_copy(&self) -> bool {
        matches!(self, Self::CopiedFrom(_))
    }

    /// Whether another version of dbplane wrote the record. It may say what no other record of the resource says, so none counts instead.
    pub(super) fn is_of_another_version(&self) -> bool {
        matches!(self, Self::Newer | Self::HandOver)
    }

    /// What is wrong, and what to do about it. `kind` as kubectl takes it.
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
