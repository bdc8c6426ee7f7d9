//! What the kernel still holds of a request is gone once the request is over.

use std::collections::BTreeMap;
use std::time::Duration;

use dbplane::domain::{Fault, NewCompute, PostgresSettings, Role, Settings};
use dbplane::platform::{HttpOptions, HttpPlatform, Platform};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};

use crate::server::{Server, TOKEN, options};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
/// Far less than the 30 s that the client's library would set by itself, and enough for a busy machine.
const GRACE: Duration = Duration::from_secs(10);

/// A connection to a port of this machine, and what of it the kernel holds, acknowledged by nobody.
struct Outgoing {
    /// The address of the client, as the kernel writes it.
    client: String,
    unacknowledged: u64,
}

fn outgoing(port: u16) -> Vec<Outgoing> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!("0100007F:{port:04X}");
    let connection = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let client = columns.next()?.to_owned();
        (columns.next()? == remote).then_some(())?;
        let (sent, _received) = columns.nth(1)?.split_once(':')?;
        Some(Outgoing { client, unacknowledged: u64::from_str_radix(sent, 16).ok()? })
    };
    table.lines().filter_map(connection).collect()
}

#[tokio::test]
async fn a_create_that_was_given_up_does_not_leave_later() {
    for _ in 0..ATTEMPTS {
        if is_given_up().await {
            return;
        }
    }
    panic!("the kernel was never seen to hold a part of the request");
}

/// A machine that is busy for longer than the request may take shows nothing of what the kernel held meanwhile.
const ATTEMPTS: usize = 5;

/// Whether the kernel was seen to hold a part of a request, and to give it up with the request. The platform takes a connection and
/// nothing that comes over it, as one that hangs does.
async fn is_given_up() -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = tokio::spawn(async move { listener.accept().await.unwrap() });
    let endpoint = dbplane::platform::Endpoint {
        base_url: format!("http://127.0.0.1:{port}/v2"),
        ..Server::acting([]).await.endpoint()
    };
    let options = HttpOptions { request_timeout: REQUEST_TIMEOUT, ..options() };
    let platform = HttpPlatform::new(endpoint, SecretString::from(TOKEN), &options).unwrap();
    // More than the other side's buffer holds.
    let postgres = PostgresSettings(BTreeMap::from([("a".to_owned(), "x".repeat(1 << 20))]));
    let settings = Settings { postgres, ..Settings::default() };
    let new = NewCompute { branch_id: "b".to_owned(), role: Role::Replica, name: None, settings };

    let create = tokio::spawn(async move { platform.create_compute("p", &new).await.unwrap_err() });
    let _stream = taken.await.unwrap();
    let held = async {
        loop {
            if let Some(found) = outgoing(port).into_iter().find(|found| found.unacknowledged > 0) {
                return found.client;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    let Ok(client) = timeout(REQUEST_TIMEOUT, held).await else {
        return false;
    };
    let fault = create.await.unwrap();
    assert!(matches!(fault, Fault::Unknown { .. }), "{fault}");
    let over = Instant::now();
    // The port is free by then, and can be that of somebody else's client: the other end of its connection is no concern of ours.
    while let Some(left) = outgoing(port).into_iter().find(|found| found.client == client) {
        let bytes = left.unacknowledged;
        assert!(over.elapsed() < GRACE, "{bytes} bytes may still be sent {GRACE:?} after the request is over");
        sleep(Duration::from_millis(20)).await;
    }
    true
}
