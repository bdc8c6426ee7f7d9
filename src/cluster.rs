//! The port to the API server: metadata, status, events, and the Secrets that dbplane writes.

mod client;
mod configuration;
mod digest;
mod events;
mod explained;
mod metadata;
mod port;
pub mod secrets;

pub use client::{client, client_without_retries, is_unavailable};
pub use configuration::{Access, ConfigurationError, configuration};
pub use digest::digest;
pub use events::Event;
pub use explained::explained;
pub use metadata::{MetadataPatch, merge, merge_patch, resource_version};
pub use port::{ApiServer, AppliedSecret, Cluster, Object};
pub use secrets::{Owner, SecretContent, SecretState, WriteError, owned_by};
