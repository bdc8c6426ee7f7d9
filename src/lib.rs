//! dbplane: a Kubernetes operator for the computes and API keys of a hosted Postgres platform.
pub mod api;
pub mod cli;
pub mod platform;
pub mod validate;
