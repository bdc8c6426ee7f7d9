//! Free ports on the loopback address.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};

use super::{Error, Result};

// Below the range that systems take the ports of outgoing connections from (32768 and up on Linux): nobody's client
// connection can take such a port between its choice and its use, nor while a server that will return is stopped.
const RANGE: std::ops::Range<u16> = 15_000..32_000;
const ATTEMPTS: usize = 200;
/// How many of the ports that were given last are not given again.
const REMEMBERED: usize = 4000;

/// A port that nothing listens on and that no other caller in this process has been given lately. Another process can still
/// take it before it is used: whoever starts a server on it tries again with another one then.
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
    static GIVEN: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..ATTEMPTS {
        let port = rand::random_range(RANGE);
        if given.contains(&port) {
            continue;
        }
        given.push_back(port);
        // Thousands of operators in one process would use all of them up.
        if given.len() > REMEMBERED {
            given.pop_front();
        }
        if let Some(taken) = take(port) {
            return Ok(taken);
        }
    }
    Err(Error::new(format!("no free port on 127.0.0.1 in {RANGE:?} after {ATTEMPTS} attempts")))
}
