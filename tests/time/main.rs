//! What takes hours or weeks, in seconds: the operator on a real control plane, with time that a test lets pass.
//!
//! The operator runs in the test's own process, as `dbplane run` runs it, and is told the time by tokio's clock. Each test has a
//! control plane, a platform and a time of its own. docs/decisions/0022 says why.

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
mod twins;
mod weeks;
