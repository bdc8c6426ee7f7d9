//! Objects in every state that a version of dbplane can leave, the changes that the next version
//! may make, and their check.
//!
//! `tests/ecosystem` creates the states with the program of the previous version.
//! `tests/properties` continues from a recording of them.

#![allow(
    dead_code,
    unused_imports,
    reason = "the tests that record and those that go on each use a part"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod calls;
mod computes;
mod expected;
mod keys;
mod recording;
mod states;

pub use calls::{Call, Platform, Seen, by_object};
pub use expected::{Before, changed, differences, says};
pub use recording::{KINDS, Recording, folder};
pub use states::{Deed, Moment, Object, Says, State, objects, states};

/// The commit of the previous version.
pub const BEFORE: &str = include_str!("before").split_at(7).0;

/// The project and the organization of all objects. The platform keys work only on a simulator.
pub const PROJECT: &str = "p";
pub const ORGANIZATION: &str = "org";
pub const NAMESPACE: &str = "shop";
pub const CLUSTER_ID: &str = "c1u57e";
pub const TOKEN: &str = "simulated-key-of-an-administrator";
pub const CREDENTIALS: &str = "platform-api-key";
