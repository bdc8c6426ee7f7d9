//! Supervised processes and real Kubernetes control planes, for the tests and the demo.
//!
//! Use it with `mod support;` from a test, or with `#[path = "../tests/support/mod.rs"] mod
//! support;` from an example.

#![allow(
    dead_code,
    unused_imports,
    reason = "every test target compiles all of this and uses a part of it"
)]

pub mod control_plane;
mod forwarder;
mod kinds;
mod kubeconfig;
mod ports;
pub mod process;
mod records;
mod sandbox;
pub mod tokens;

use std::fmt;

pub use control_plane::{ControlPlane, Options};
pub use forwarder::Forwarder;
pub use kinds::{definition_files, objects};
pub use ports::{free_listener, free_port};
pub use process::{PATIENCE, Running, wait_for, wait_until};
pub use records::aged;
pub use sandbox::Sandbox;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A message for the reader of the test's output.
pub struct Error(String);

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// For `map_err`: adds the action that failed with `cause`.
    pub fn while_doing<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |cause| Self(format!("{what}: {cause}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Same as `Display`: `unwrap` prints this, and escaped log lines would be unreadable.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self(format!("Kubernetes client: {error}"))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}
