//! Data of a request in the kernel's send buffer is discarded when the request ends.

use std::collections::BTreeMap;
use std::time::Duration;

use dbplane::domain::{Fault, NewCompute, PostgresSettings, Role, Settings};
use dbplane::platform::{HttpOptions, HttpPlatform, Platform};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};

use crate::server::{P, Server, TOKEN, options};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
/// Much less than the 30 s that the HTTP library would use, and enough for a busy machine.
const GRACE: Duration = Duration::from_secs(10);

/// A connection to a local port, with the unacknowledged bytes in the kernel.
struct Outgoing {
    /// The client's address in the kernel's notation.
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
        Some(Outgoing {
            client,
            unacknowledged: u64::from_str_radix(sent, 16).ok()?,
        })
    };
    table.lines().filter_map(connection).collect()
}

#[tokio::test]
async fn an_abandoned_create_is_not_sent_later() {
    for _ in 0..ATTEMPTS {
        if is_given_up().await {
            return;
        }
    }
    panic!("the kernel was never seen to hold a part of the request");
}

/// Number of attempts. A machine that is busy for longer than the request timeout shows nothing.
const ATTEMPTS: usize = 5;

/// True if the kernel held a part of a request and discarded it at the end of the request. The
/// platform accepts a connection but never reads, as a hanging server would.
async fn is_given_up() -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = tokio::spawn(async move { listener.accept().await.unwrap() });
    let endpoint = dbplane::platform::Endpoint {
        base_url: format!("http://127.0.0.1:{port}/v2"),
        ..Server::acting([]).await.endpoint()
    };
    let options = HttpOptions {
        request_timeout: REQUEST_TIMEOUT,
        ..options()
    };
    let platform = HttpPlatform::new(endpoint, SecretString::from(TOKEN), &options).unwrap();
    // More than the peer's receive buffer.
    let postgres = PostgresSettings(BTreeMap::from([("a".to_owned(), "x".repeat(1 << 20))]));
    let settings = Settings {
        postgres,
        ..Settings::default()
    };
    let new = NewCompute {
        branch_id: "b".into(),
        role: Role::Replica,
        name: None,
        settings,
    };

    let create = tokio::spawn(async move { platform.create_compute(&P, &new).await.unwrap_err() });
    let _stream = taken.await.unwrap();
    let held = async {
        loop {
            if let Some(found) = outgoing(port)
                .into_iter()
                .find(|found| found.unacknowledged > 0)
            {
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
    // The port is free at this point, so another test's client may use it; its connection is
    // ignored.
    while let Some(left) = outgoing(port)
        .into_iter()
        .find(|found| found.client == client)
    {
        let bytes = left.unacknowledged;
        assert!(
            over.elapsed() < GRACE,
            "{bytes} bytes may still be sent {GRACE:?} after the request is over"
        );
        sleep(Duration::from_millis(20)).await;
    }
    true
}
