//! Free loopback ports, each reserved against all other test programs.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::{Error, Result};

// Below the ephemeral range (32768 and up on Linux). So no client connection can take a port
// between its choice and its use, or while its server is restarted.
const RANGE: std::ops::Range<u16> = 15_000..32_000;
/// Number of ports that one lock covers.
const BLOCK: u16 = 50;
/// Maximum number of blocks per process. Thousands of operators in one process would exhaust all
/// blocks, so the oldest blocks are reused.
const KEPT: usize = 60;

static POOL: Mutex<Pool> = Mutex::new(Pool {
    blocks: VecDeque::new(),
    next: 0,
    end: 0,
});

/// The ports of this process, in blocks whose files it has locked. The system releases the locks
/// when the process ends.
struct Pool {
    blocks: VecDeque<File>,
    next: u16,
    end: u16,
}

/// A port without a listener, reserved for the life of this process. A process with thousands of
/// ports reuses the oldest.
///
/// The check connects instead of listening: a child process in the middle of its start could
/// inherit a listener of ours.
pub fn free_port() -> Result<u16> {
    find(|port| {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .is_err()
            .then_some(port)
    })
}

/// Like `free_port`, with a listener. A port chosen by the system could have belonged to an earlier
/// listener, whose clients would then call this one.
pub fn free_listener() -> Result<TcpListener> {
    find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
}

fn find<T>(take: impl Fn(u16) -> Option<T>) -> Result<T> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in RANGE {
        if let Some(taken) = take(pool.next()?) {
            return Ok(taken);
        }
    }
    Err(Error::new(format!(
        "something listens on every port of 127.0.0.1 in {RANGE:?}"
    )))
}

impl Pool {
    fn next(&mut self) -> Result<u16> {
        if self.next == self.end {
            self.extend()?;
        }
        let port = self.next;
        self.next += 1;
        Ok(port)
    }

    /// Locks one more block.
    fn extend(&mut self) -> Result<()> {
        if self.blocks.len() == KEPT {
            self.blocks.pop_front();
        }
        let folder = folder();
        fs::create_dir_all(&folder)
            .map_err(Error::while_doing("making the folder of the ports' locks"))?;
        let count = (RANGE.end - RANGE.start) / BLOCK;
        let first = rand::random_range(0..count);
        for block in (first..count).chain(0..first) {
            let start = RANGE.start + block * BLOCK;
            // The file belongs to another user, whose tests have or had this block.
            let Ok(file) = File::create(folder.join(start.to_string())) else {
                continue;
            };
            if file.try_lock().is_ok() {
                self.blocks.push_back(file);
                (self.next, self.end) = (start, start + BLOCK);
                return Ok(());
            }
        }
        Err(Error::new(format!(
            "other programs have locked all ports of {RANGE:?}, see {}",
            folder.display()
        )))
    }
}

/// Shared by all test programs on this machine.
fn folder() -> PathBuf {
    std::env::temp_dir().join("dbplane-ports")
}
