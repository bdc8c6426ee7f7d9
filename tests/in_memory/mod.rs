//! Shared by the model check and the property tests: a cluster in memory, and the
//! promises. The crash points use the promises too.
//!
//! Use it with `#[path = "../in_memory/mod.rs"] mod in_memory;`.

#![allow(
    dead_code,
    unused_imports,
    reason = "the model and the properties each use a part"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

pub mod cluster;
pub mod forged;
pub mod promises;

pub use cluster::Cluster;
pub use dbplane::in_memory::{Carrier, Port, Print, Request, Resource, Response, hash, refused};
