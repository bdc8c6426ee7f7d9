//! How tools judge the status of resources: kstatus (Flux, Helm, kpt) by its own library, and Argo
//! CD by the health checks of deploy/argocd in its own interpreter.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod checks;
mod course;
#[path = "../crash/harness/mod.rs"]
mod harness;
mod judge;
mod scenarios;
mod stages;
mod states;
#[path = "../support/mod.rs"]
mod support;
