//! The HTTP adapter against scripted servers, with exact bytes where necessary.
#![allow(
    clippy::unwrap_used,
    reason = "these are tests, and what helps them: what goes wrong fails the test"
)]

mod answers;
mod bounds;
mod faults;
mod lists;
mod once;
mod operations;
mod reach;
mod requests;
mod secrecy;
mod server;
mod unsent;
