//! A folder and its processes, which are always removed together.

use std::env;
use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::{Error, Result, Running};

const WATCHDOG: &str = include_str!("watchdog.sh");

/// Dropping it, or any end of this process, kills all its processes and removes its folder.
#[derive(Debug)]
pub struct Sandbox {
    folder: PathBuf,
    watchdog: Child,
    cleaned: ChildStdout,
}

impl Sandbox {
    pub fn new(name: &str) -> Result<Self> {
        let folder = env::temp_dir().join(format!("dbplane-{name}-{:016x}", rand::random::<u64>()));
        let mut watchdog = Command::new("bash")
            .args(["-c", WATCHDOG])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(Error::while_doing(
                "starting bash, which watches over test processes",
            ))?;
        let cleaned = watchdog
            .stdout
            .take()
            .ok_or_else(|| Error::new("the watchdog has no standard output"))?;
        let sandbox = Self {
            folder,
            watchdog,
            cleaned,
        };
        // The folder is created last, so that it never exists without the watchdog.
        DirBuilder::new().mode(0o700).create(&sandbox.folder)?;
        Ok(sandbox)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process group of all processes in the sandbox.
    pub fn group(&self) -> i32 {
        self.watchdog.id().cast_signed()
    }

    /// Starts `command` and appends its output to `<name>.log` in the folder.
    pub fn start(&self, name: &str, mut command: Command) -> Result<Running> {
        let log_path = self.folder.join(format!("{name}.log"));
        let log = File::options().create(true).append(true).open(&log_path)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(self.group())
            .spawn()
            .map_err(Error::while_doing(format!(
                "starting {name} ({})",
                command.get_program().display()
            )))?;
        Ok(Running::new(name, child, log_path))
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
        // EOF means that the subshell has finished the cleanup; nothing is ever written.
        let _ = self.cleaned.read_to_end(&mut Vec::new());
    }
}
