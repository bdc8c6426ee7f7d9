//! Supervised processes, and helpers that wait for conditions.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Error, Result};

const POLL: Duration = Duration::from_millis(20);

/// Timeout for actions that usually take seconds. It is generous for busy machines, as no test
/// relies on it to pass.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A process started by [`Sandbox::start`](super::Sandbox::start). Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    log_path: PathBuf,
    log_on_panic: bool,
}

impl Running {
    pub(super) fn new(name: &str, child: Child, log_path: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            child,
            log_path,
            log_on_panic: false,
        }
    }

    /// Prints the end of the log if a test panics while this process runs.
    pub fn log_on_panic(mut self) -> Self {
        self.log_on_panic = true;
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The output of all processes with this name in this sandbox.
    pub fn log(&self) -> String {
        fs::read(&self.log_path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    pub fn last_lines(&self, count: usize) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    /// The exit status, or `None` while it runs.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// An error if the process has ended, because its id may have been reused.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if let Some(status) = self.ended()? {
            return Err(Error::new(format!(
                "no {signal} for {}: it has ended ({status})",
                self.name
            )));
        }
        kill(Pid::from_raw(self.id().cast_signed()), signal).map_err(Error::while_doing(format!(
            "sending {signal} to {}",
            self.name
        )))
    }

    /// Sends SIGTERM and waits; an error after `limit`.
    pub async fn terminate(&mut self, limit: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        self.signal(Signal::SIGTERM)?;
        self.wait(limit).await
    }

    /// Waits until the process ends by itself.
    pub async fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let what = format!("{} to end", self.name);
        wait_for(&what, limit, async || self.child.try_wait().ok().flatten()).await
    }

    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill()?;
        Ok(self.child.wait()?)
    }

    /// Resident memory on Linux in KiB.
    pub fn resident_kib(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    /// Peak resident memory in KiB.
    pub fn most_resident_kib(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, entry: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        status
            .lines()
            .find_map(|line| {
                line.strip_prefix(entry)?
                    .split_whitespace()
                    .next()?
                    .parse()
                    .ok()
            })
            .ok_or_else(|| {
                Error::new(format!(
                    "{} has no resident memory: it has ended",
                    self.name
                ))
            })
    }
}

impl Drop for Running {
    #[allow(
        clippy::print_stderr,
        reason = "a failing test's output is standard error"
    )]
    fn drop(&mut self) {
        let _ = self.kill();
        if self.log_on_panic && std::thread::panicking() {
            eprintln!(
                "--- the last lines of {}:\n{}\n---",
                self.name,
                self.last_lines(60)
            );
        }
    }
}

/// Polls `probe` until it returns a value; an error after `limit`.
pub async fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(answer) = probe().await {
            return Ok(answer);
        }
        if begun.elapsed() >= limit {
            return Err(Error::new(format!(
                "waited {} s in vain for {what}",
                limit.as_secs()
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Polls `condition` until it holds; an error after `limit`.
pub async fn wait_until(
    what: &str,
    limit: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> Result<()> {
    wait_for(what, limit, async || condition().await.then_some(())).await
}
