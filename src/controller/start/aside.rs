//! A thread with its own runtime for the lease and the probes, which must continue while passes
//! compute.

use std::io;
use std::thread;

use kube::{Client, Config};
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cluster::client_without_retries;

/// Dropping this ends the thread, with every task on it.
#[derive(Debug)]
pub struct Aside {
    runtime: Handle,
    _end: DropGuard,
}

impl Aside {
    /// # Errors
    /// If the system provides no thread.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let ended = end.clone();
        thread::Builder::new()
            .name("lease-and-probes".to_owned())
            .spawn(move || runtime.block_on(ended.cancelled()))?;
        Ok(Self {
            runtime: handle,
            _end: end.drop_guard(),
        })
    }

    /// The runtime that spawns tasks onto the thread.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// A client whose own tasks run on the thread.
    ///
    /// # Errors
    /// Errors of `Client::try_from`.
    pub fn client(&self, config: Config) -> kube::Result<Client> {
        let _entered = self.runtime.enter();
        client_without_retries(config)
    }
}
