//! Free ports on the loopback address.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use super::{Error, Result};

// Below the range that systems take the ports of outgoing connections from (32768 and up on Linux): nobody's client
// connection can take such a port between its choice and its use, nor while a server that will return is stopped.
const RANGE: std::ops::Range<u16> = 15_000..32_000;
const ATTEMPTS: usize = 200;

/// A port that nothing listens on and that no other caller in this process has been given. Another process can still
/// take it before it is used: whoever starts a server on it tries again with another one then.
pub fn free_port() -> Result<u16> {
    Ok(free_listener()?.local_addr()?.port())
}

/// The same, listened on. A port that the system chooses can have been a former listener's: whatever still calls that
/// one's URL would find this one.
pub fn free_listener() -> Result<TcpListener> {
    static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.get_or_insert_default();
    (0..ATTEMPTS)
        .find_map(|_| {
            let port = rand::random_range(RANGE);
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
            given.insert(port).then_some(listener)
        })
        .ok_or_else(|| Error::new(format!("no free port on 127.0.0.1 in {RANGE:?} after {ATTEMPTS} attempts")))
}
