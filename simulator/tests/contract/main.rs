//! Walks the platform's specification row by row against the served simulator.
//!
//! Tests are named after the rows. Where the profiles agree, a test runs under both.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is how a test fails, in its helpers too")]

mod computes;
mod console;
mod errors;
mod faults;
mod full_computes;
mod full_keys;
mod full_lists;
mod full_projects;
mod full_sizes;
mod keys;
mod lifecycle;
mod limits;
mod operations;
mod persistence;
mod program;
mod projects;
mod rows;
mod support;
