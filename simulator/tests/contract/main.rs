//! The served simulator against the platform's specification.
//!
//! `statements` tries each statement of the specification in every profile. The other modules say more about some of them, and
//! about what the simulator offers beyond the specification (`beyond_…`): in the default and in the public profile, or in
//! public alone where the public API contradicts the specification.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is how a test fails, in its helpers too")]

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
