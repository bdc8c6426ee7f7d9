//! State shared by the API and the console: the world with its clock and state file, faults, and
//! the request log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::clock::Clock;
use super::faults::FaultBoard;
use super::log::RequestLog;
use super::state::{StateError, Store};
use super::world::World;

#[derive(Debug)]
pub struct Shell {
    platform: Mutex<Platform>,
    faults: Mutex<FaultBoard>,
    log: Mutex<RequestLog>,
    durable: bool,
}

#[derive(Debug)]
struct Platform {
    world: World,
    clock: Clock,
    store: Option<Store>,
}

impl Platform {
    /// Runs `work` at the current time. It saves the changes before anyone sees the result.
    fn perform<T>(
        &mut self,
        work: impl FnOnce(&mut World, Timestamp) -> T,
    ) -> Result<T, StateError> {
        let outcome = work(&mut self.world, self.clock.now());
        match &self.store {
            Some(store) => store.save(self.world.take_changes(), None)?,
            None => self.world.forget_changes(),
        }
        Ok(outcome)
    }
}

impl Shell {
    /// Wraps a world; with a store, it first saves the whole world.
    pub fn new(mut world: World, clock: Clock, store: Option<Store>) -> Result<Self, StateError> {
        if let Some(store) = &store {
            store.save(world.take_changes(), Some(&clock))?;
        }
        Ok(Self {
            durable: store.is_some(),
            platform: Mutex::new(Platform {
                world,
                clock,
                store,
            }),
            faults: Mutex::default(),
            log: Mutex::default(),
        })
    }

    /// Runs `work` on the world. With a state file it waits for the disk, so it runs on a blocking
    /// thread.
    pub async fn perform<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut World, Timestamp) -> T + Send + 'static,
    ) -> Result<T, ShellError> {
        if !self.durable {
            return Ok(self.platform().perform(work)?);
        }
        let shell = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || shell.platform().perform(work)).await;
        done.map_err(|_| ShellError::Stopped)?
            .map_err(ShellError::from)
    }

    /// Like `perform`, for callers that may block.
    pub fn perform_now<T>(
        &self,
        work: impl FnOnce(&mut World, Timestamp) -> T,
    ) -> Result<T, StateError> {
        self.platform().perform(work)
    }

    /// Advances the clock and processes everything that becomes due.
    pub fn advance(&self, by: SignedDuration) -> Result<Timestamp, StateError> {
        self.set_clock(|clock| clock.advance(by))
    }

    /// Changes the clock and processes everything that becomes due. It may wait for the disk.
    pub async fn change_clock(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Clock) + Send + 'static,
    ) -> Result<Timestamp, ShellError> {
        let shell = Arc::clone(self);
        let changed = tokio::task::spawn_blocking(move || shell.set_clock(change)).await;
        changed
            .map_err(|_| ShellError::Stopped)?
            .map_err(ShellError::from)
    }

    fn set_clock(&self, change: impl FnOnce(&mut Clock)) -> Result<Timestamp, StateError> {
        let mut platform = self.platform();
        change(&mut platform.clock);
        let clock = platform.clock;
        if let Some(store) = &platform.store {
            store.save(Vec::new(), Some(&clock))?;
        }
        platform.perform(|world, now| {
            world.advance_to(now);
            now
        })
    }

    pub fn clock(&self) -> Clock {
        self.platform().clock
    }

    pub fn faults(&self) -> MutexGuard<'_, FaultBoard> {
        held(&self.faults)
    }

    pub fn log(&self) -> MutexGuard<'_, RequestLog> {
        held(&self.log)
    }

    /// Closes the state file; later changes are not saved.
    pub fn close(&self) {
        self.platform().store = None;
    }

    fn platform(&self) -> MutexGuard<'_, Platform> {
        held(&self.platform)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the simulator is stopping")]
    Stopped,
}

/// Takes the lock even if a thread panicked while holding it: each change of the world is complete
/// before anything can fail.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
