//! Free ports on the loopback address, which no other program of these tests is given meanwhile.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::{Error, Result};

// Below the range that systems take the ports of outgoing connections from (32768 and up on Linux): nobody's client
// connection can take such a port between its choice and its use, nor while a server that will return is stopped.
const RANGE: std::ops::Range<u16> = 15_000..32_000;
/// The ports that one lock stands for.
const BLOCK: u16 = 50;
/// How many blocks a process keeps. Thousands of operators in one process would use all of them up: the ones it had
/// longest are given again.
const KEPT: usize = 60;

static POOL: Mutex<Pool> = Mutex::new(Pool { blocks: VecDeque::new(), next: 0, end: 0 });

/// The ports of this process: those of blocks whose files it has locked. The system takes the locks off when it ends.
struct Pool {
    blocks: VecDeque<File>,
    next: u16,
    end: u16,
}

/// A port that nothing listens on, and that nobody else is given for as long as this process lives. One with thousands of
/// them gives the oldest again.
///
/// It is found by connecting: a listener of our own would live on, for as long as it takes, in a child that is being started.
pub fn free_port() -> Result<u16> {
    find(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err().then_some(port))
}

/// The same, listened on. A port that the system chooses can have been a former listener's: whatever still calls that
/// one's URL would find this one.
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
    Err(Error::new(format!("something listens on every port of 127.0.0.1 in {RANGE:?}")))
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

    /// By another block, which no process has.
    fn extend(&mut self) -> Result<()> {
        if self.blocks.len() == KEPT {
            self.blocks.pop_front();
        }
        let folder = folder();
        fs::create_dir_all(&folder).map_err(Error::while_doing("making the folder of the ports' locks"))?;
        let count = (RANGE.end - RANGE.start) / BLOCK;
        let first = rand::random_range(0..count);
        for block in (first..count).chain(0..first) {
            let start = RANGE.start + block * BLOCK;
            // Another user's file cannot be opened: that user's tests have the block, or have had it.
            let Ok(file) = File::create(folder.join(start.to_string())) else { continue };
            if file.try_lock().is_ok() {
                self.blocks.push_back(file);
                (self.next, self.end) = (start, start + BLOCK);
                return Ok(());
            }
        }
        Err(Error::new(format!("other programs have locked all ports of {RANGE:?}, see {}", folder.display())))
    }
}

/// Of all programs that run tests on this machine.
fn folder() -> PathBuf {
    std::env::temp_dir().join("dbplane-ports")
}
