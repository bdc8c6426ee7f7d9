//! The installation by deploy/ on a real control plane: its rights suffice for the operator, and
//! all of them are used.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod audit;
mod people;
mod repeated;
mod rights;
#[path = "../support/mod.rs"]
mod support;
mod withdrawn;
