//! TCP connections that a fault can close in the middle of an answer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug)]
pub struct Lines(pub TcpListener);

/// A connection; after a cut, nothing more is written to it.
#[derive(Debug)]
pub struct Line {
    stream: TcpStream,
    cut: Arc<AtomicBool>,
}

/// The connection that a request arrived on.
#[derive(Debug, Clone)]
pub struct Peer {
    pub address: SocketAddr,
    cut: Arc<AtomicBool>,
}

impl Peer {
    /// Closes the connection before anything more is written.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

impl Listener for Lines {
    type Io = Line;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Line, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // Answers are small, so Nagle's algorithm would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        (
            Line {
                stream,
                cut: Arc::default(),
            },
            address,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, Lines>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Lines>) -> Self {
        Self {
            address: *stream.remote_addr(),
            cut: stream.io().cut.clone(),
        }
    }
}

impl Line {
    fn alive(&self) -> io::Result<()> {
        if self.cut.load(Ordering::Relaxed) {
            Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "cut by an ordered fault",
            ))
        } else {
            Ok(())
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.alive()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
