//! The real binary on a real control plane against simulated platforms, with the ServiceAccount
//! from deploy/.
//!
//! All tests share one control plane and one operator. Each has its own namespace and platform.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod accounts;
mod advice;
mod alone;
mod bindings;
mod chain;
mod claims;
#[path = "../support/collector.rs"]
mod collector;
mod command_line;
mod computes;
mod creates;
mod deletes;
mod fixture;
mod key_faults;
mod key_recovery;
mod key_rotation;
mod keys;
mod long_names;
mod moving;
mod organization;
mod overwritten;
mod reconcile;
mod refused;
mod repeated;
mod replica_sets;
mod rewritten;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/terminal.rs"]
mod terminal;
