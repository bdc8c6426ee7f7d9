//! Writes to Kubernetes objects: metadata, status, Secrets, events.

mod events;
mod metadata;
mod secrets;
mod status;

pub use events::{Events, Note};
pub use metadata::{MetadataPatch, resource_version};
pub use secrets::{Owner, SecretContent, SecretState, Secrets, WriteError, digest, empty as empty_secret, owned_by};
pub use status::apply_status;
