//! The HTTP adapter against servers that say exactly what a test wants, byte for byte where it matters.
#![allow(clippy::unwrap_used, reason = "these are tests, and what helps them: what goes wrong fails the test")]

mod answers;
mod bounds;
mod faults;
mod lists;
mod once;
mod reach;
mod requests;
mod secrecy;
mod server;
mod unsent;
