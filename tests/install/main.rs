//! What deploy/ installs, on a real control plane: that it is enough for the operator, and no more than it uses.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod people;
mod rights;
#[path = "../support/mod.rs"]
mod support;
mod withdrawn;
