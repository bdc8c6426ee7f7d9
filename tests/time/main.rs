//! Processes of hours or weeks in seconds: the operator on a real control plane, with a time that
//! the test controls.
//!
//! The operator runs in the test's process as under `dbplane run`, and gets its time from tokio's
//! clock. Each test has its own control plane, platform and time. docs/decisions/0022 has the
//! reasons.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod chain;
mod consumer;
mod keys;
mod lab;
mod pressure;
mod rotation;
#[path = "../support/mod.rs"]
mod support;
mod weeks;
