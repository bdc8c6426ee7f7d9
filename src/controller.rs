//! The controller: for each kind observe, decide, perform and report. Also starts and stops the
//! operator.
//!
//! Imports run downwards: `start`, `held`, `live`, `registry`, the kinds (`replica_set`, `compute`,
//! `key`, `account`), `connection`, `pass`, `access`, `environment`, `index`, `state`, `object` and
//! `labels`.

mod access;
pub mod account;
mod compute;
mod connection;
pub mod environment;
pub mod finalizers;
pub mod index;
mod key;
mod labels;
mod live;
pub mod object;
pub mod pass;
pub mod registry;
mod replica_set;
pub mod rights;
mod start;
pub mod state;

pub use compute::Computes;
pub use key::ProjectKeys;
pub use registry::definitions;
pub use replica_set::ReadReplicaSets;
pub use start::{Aside, Election, Operator, led_by, run};
