//! A TCP forwarder that can be cut: nothing goes through, and nobody is told, as when a cable is pulled.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Error, Result};

/// Ends with the last handle.
#[derive(Debug)]
pub struct Forwarder {
    address: SocketAddr,
    cut: watch::Sender<bool>,
    _connections: JoinSet<()>,
}

impl Forwarder {
    /// Forwards from a free port of the loopback address to `target`.
    pub async fn start(target: String) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Error::while_doing("listening"))?;
        let address = listener.local_addr().map_err(Error::while_doing("listening"))?;
        let cut = watch::Sender::new(false);
        let open = Arc::new(cut.subscribe());
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut pairs = JoinSet::new();
            while let Ok((here, _)) = listener.accept().await {
                let Ok(there) = TcpStream::connect(&target).await else { continue };
                let (from_here, to_here) = here.into_split();
                let (from_there, to_there) = there.into_split();
                pairs.spawn(forward(from_here, to_there, open.as_ref().clone()));
                pairs.spawn(forward(from_there, to_here, open.as_ref().clone()));
            }
        });
        Ok(Self { address, cut, _connections: connections })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on nothing goes through.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// What was held back goes on.
    pub fn mend(&self) {
        self.cut.send_replace(false);
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut cut: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if cut.wait_for(|cut| !cut).await.is_err() || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
