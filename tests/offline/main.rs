//! Tests of the custom resource definitions without a cluster. tests/cluster runs similar tests
//! with one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod account_check;
mod agreement;
mod command_line;
mod compatible;
mod crds;
mod deployed;
mod editor;
mod import;
mod manifests;
mod monitoring;
mod needs;
mod pages;
mod pictures;
mod reference;
mod rules;
#[path = "../manifests/table.rs"]
mod table;
mod traces;
mod validate;
mod words;
mod workflows;
