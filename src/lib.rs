//! dbplane: a Kubernetes operator for the computes and API keys of a hosted Postgres platform.

pub mod cli;
pub mod simulator;
