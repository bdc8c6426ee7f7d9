//! dbplane: a Kubernetes operator for the computes and API keys of a hosted Postgres platform.

pub mod account_check;
pub mod api;
pub mod bug_report;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod controller;
pub mod decide;
pub mod domain;
pub mod import;
pub mod in_memory;
pub mod leadership;
pub mod plan;
pub mod platform;
pub mod spans;
pub mod telemetry;
pub mod text;
pub mod validate;
