//! The two directions of a stream, for use at the same time.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use reknit_stack::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::TcpStream;

/// The borrowed reading half.
#[derive(Debug)]
pub struct ReadHalf<'a>(pub(crate) &'a TcpStream);

/// The borrowed writing half.
#[derive(Debug)]
pub struct WriteHalf<'a>(pub(crate) &'a TcpStream);

/// The reading half of a stream.
#[derive(Debug)]
pub struct OwnedReadHalf(pub(crate) Arc<TcpStream>);

/// The writing half of a stream. Dropping it sends the end of the stream.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    shuts_down: bool,
}

/// Two halves do not belong to the same stream.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl std::fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the halves are not of the same stream")
    }
}

impl std::error::Error for ReuniteError {}

impl OwnedWriteHalf {
    pub(crate) fn new(stream: Arc<TcpStream>) -> OwnedWriteHalf {
        OwnedWriteHalf { stream, shuts_down: true }
    }

    /// As [`OwnedReadHalf::reunite`].
    ///
    /// # Errors
    /// Returns the halves if they are not of the same stream.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        other.reunite(self)
    }

    /// Drops it without sending the end of the stream.
    pub fn forget(mut self) {
        self.shuts_down = false;
    }
}

impl OwnedReadHalf {
    /// Reunites both halves.
    ///
    /// # Errors
    /// Returns the halves if they are not of the same stream.
    pub fn reunite(self, mut other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if !Arc::ptr_eq(&self.0, &other.stream) {
            return Err(ReuniteError(self, other));
        }
        other.shuts_down = false;
        drop(other);
        Arc::try_unwrap(self.0).map_err(|stream| {
            // There are only two halves.
            ReuniteError(OwnedReadHalf(stream.clone()), OwnedWriteHalf::new(stream))
        })
    }
}

impl AsRef<TcpStream> for ReadHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for WriteHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for OwnedReadHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.0
    }
}

impl AsRef<TcpStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.shuts_down {
            self.stream.shut_down(Shutdown::Write);
        }
    }
}

impl AsyncRead for ReadHalf<'_> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read_shared(cx, into)
    }
}

impl AsyncRead for OwnedReadHalf {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read_shared(cx, into)
    }
}

impl AsyncWrite for WriteHalf<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write_shared(cx, bytes)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, all: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.0.poll_write_all_shared(cx, all)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.shut_down(Shutdown::Write);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.poll_write_shared(cx, bytes)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, all: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.stream.poll_write_all_shared(cx, all)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.shut_down(Shutdown::Write);
        Poll::Ready(Ok(()))
    }
}
