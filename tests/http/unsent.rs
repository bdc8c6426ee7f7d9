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

/// Bytes that the kernel holds for whoever connected to `port`, acknowledged by nobody; `None` where there is no such connection.
fn unacknowledged(port: u16) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!("0100007F:{port:04X}");
    table.lines().find_map(|line| {
        let mut columns = line.split_whitespace().skip(2);
        (columns.next()? == remote).then_some(())?;
        let (sent, _received) = columns.nth(1)?.split_once(':')?;
        u64::from_str_radix(sent, 16).ok()
    })
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
        while unacknowledged(port).is_none_or(|bytes| bytes == 0) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    if timeout(REQUEST_TIMEOUT, held).await.is_err() {
        return false;
    }
    let fault = create.await.unwrap();
    assert!(matches!(fault, Fault::Unknown { .. }), "{fault}");
    let over = Instant::now();
    while let Some(bytes) = unacknowledged(port) {
        assert!(over.elapsed() < GRACE, "{bytes} bytes may still be sent {GRACE:?} after the request is over");
        sleep(Duration::from_millis(20)).await;
    }
    true
}
