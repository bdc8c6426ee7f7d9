//! Shared by the model check and the property tests: a cluster in memory, the port to it, and the
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
pub mod objects;
pub mod port;
pub mod print;
pub mod promises;
pub mod request;
pub mod stored;

pub use cluster::{Cluster, Request, Resource, Response, refused};
pub use port::{Carrier, Port};
pub use print::{Print, hash};
