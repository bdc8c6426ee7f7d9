//! A TCP forwarder that simulates network faults. It can silently drop everything, like a pulled
//! cable. It can also close all connections, like a stopped server, or add latency.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    Slow(Duration),
    Cut,
    Closed,
}

/// Stops with its last handle.
#[derive(Debug)]
pub struct Forwarder {
    address: SocketAddr,
    way: watch::Sender<Way>,
    _connections: JoinSet<()>,
}

impl Forwarder {
    /// Forwards from a free loopback port to `target`.
    pub async fn start(target: String) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(Error::while_doing("listening"))?;
        let address = listener
            .local_addr()
            .map_err(Error::while_doing("listening"))?;
        let way = watch::Sender::new(Way::Open);
        let state = Arc::new(way.subscribe());
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut pairs = JoinSet::new();
            while let Ok((here, _)) = listener.accept().await {
                if *state.borrow() == Way::Closed {
                    continue;
                }
                let Ok(there) = TcpStream::connect(&target).await else {
                    continue;
                };
                let (from_here, to_here) = here.into_split();
                let (from_there, to_there) = there.into_split();
                pairs.spawn(forward(from_here, to_there, state.as_ref().clone()));
                pairs.spawn(forward(from_there, to_here, state.as_ref().clone()));
            }
        });
        Ok(Self {
            address,
            way,
            _connections: connections,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Silently stops all traffic.
    pub fn cut(&self) {
        self.way.send_replace(Way::Cut);
    }

    /// Adds this latency in each direction.
    pub fn slow(&self, by: Duration) {
        self.way.send_replace(Way::Slow(by));
    }

    /// Closes all current and future connections.
    pub fn close(&self) {
        self.way.send_replace(Way::Closed);
    }

    /// Resumes traffic, including held back data, and accepts connections.
    pub fn mend(&self) {
        self.way.send_replace(Way::Open);
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut way: watch::Receiver<Way>) {
    let mut closed = way.clone();
    let pass = async {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let Ok(way) = way
                .wait_for(|way| matches!(way, Way::Open | Way::Slow(_)))
                .await
                .map(|way| *way)
            else {
                return;
            };
            if let Way::Slow(by) = way {
                tokio::time::sleep(by).await;
            }
            if to.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = pass => {}
        _ = closed.wait_for(|way| *way == Way::Closed) => {}
    }
}
