//! Tests of the served simulator against the platform's specification.
//!
//! `statements` tests each statement of the specification in every profile. The other modules test
//! details, and the additions to the specification (`beyond_…`). They use the default and the
//! public profile, or only the public one where it contradicts the specification.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is how a test fails, in its helpers too"
)]

mod beyond_branches;
mod beyond_computes;
mod beyond_keys;
mod beyond_lists;
mod beyond_projects;
mod beyond_recovery;
mod beyond_sizes;
mod computes;
mod console;
mod errors;
mod faults;
mod faults_in_front;
mod faults_otherwise;
mod keys;
mod lifecycle;
mod limits;
mod operations;
mod pages;
mod persistence;
mod program;
mod projects;
mod statements;
mod support;
