//! A connection as a byte stream.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use reknit_stack::{Error, Linger, Shutdown, SocketId, SocketInfo, SocketOptions, Stack};
use reknit_tcp::{Config, State};
use reknit_variants::{Composition, UnknownVariant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::errors::to_io;
use crate::network::{Handle, Network};
use crate::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};

/// A TCP connection of a [`Network`]. Dropping it closes it; written data is still sent, for as long as the network exists (see
/// there). [`TcpStream::closed`] waits until it has arrived.
pub struct TcpStream {
    shared: Arc<Handle>,
    id: SocketId,
}

impl TcpStream {
    pub(crate) fn new(shared: Arc<Handle>, id: SocketId) -> TcpStream {
        TcpStream { shared, id }
    }

    /// Opens a connection with the network's options.
    ///
    /// # Errors
    /// If it is refused or not answered, or the address is not possible.
    pub async fn connect(network: &Network, remote: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect_with(network, None, remote, network.socket_options()).await
    }

    /// Opens a connection from `local`, with these options.
    ///
    /// # Errors
    /// As [`TcpStream::connect`], and if an option is not valid.
    pub async fn connect_with(
        network: &Network,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
    ) -> io::Result<TcpStream> {
        let shared = network.shared.clone();
        let id = shared.with(|state, now| state.stack.connect(now, local, remote, options)).map_err(to_io)?;
        TcpStream::established(shared, id).await
    }

    /// Waits until the handshake is complete.
    pub(crate) async fn established(shared: Arc<Handle>, id: SocketId) -> io::Result<TcpStream> {
        let stream = TcpStream::new(shared, id);
        std::future::poll_fn(|cx| stream.poll_connected(cx)).await?;
        Ok(stream)
    }

    fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        state.check_device()?;
        match state.stack.state(self.id) {
            Some(State::SynSent | State::SynReceived) => {
                state.waiting(self.id).write = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(State::Closed) => {
                let failure = state.stack.failure(self.id).unwrap_or(Error::NoSocket);
                Poll::Ready(Err(not_connected(state.stack.addresses(self.id), failure)))
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// This end.
    ///
    /// # Errors
    /// Never: the socket exists as long as the stream.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addresses()?.0)
    }

    /// The peer.
    ///
    /// # Errors
    /// Never: the socket exists as long as the stream.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addresses()?.1)
    }

    fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        self.shared.lock().stack.addresses(self.id).ok_or_else(|| to_io(Error::NoSocket))
    }

    /// Turns Nagle's algorithm off, or on.
    ///
    /// # Errors
    /// Never: the socket exists as long as the stream.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set_config(|config| config.nagle = !nodelay)
    }

    /// True if Nagle's algorithm is off.
    ///
    /// # Errors
    /// Never: the socket exists as long as the stream.
    pub fn nodelay(&self) -> io::Result<bool> {
        let state = self.shared.lock();
        state.stack.config(self.id).map(|config| !config.nagle).ok_or_else(|| to_io(Error::NoSocket))
    }

    /// Changes options of the engine: keep-alive, the user timeout and others.
    ///
    /// ```no_run
    /// # fn example(stream: &reknit_net::TcpStream) -> std::io::Result<()> {
    /// use reknit_net::{Duration, KeepAlive};
    ///
    /// let (idle, interval) = (Duration::from_secs(60), Duration::from_secs(10));
    /// stream.set_config(|config| {
    ///     config.keep_alive = Some(KeepAlive { idle, interval, probes: 5 });
    ///     config.user_timeout = Duration::from_secs(120);
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Names the option with an invalid value.
    pub fn set_config(&self, change: impl FnOnce(&mut Config)) -> io::Result<()> {
        self.shared.with(|state, now| state.stack.set_config(now, self.id, change)).map_err(to_io)
    }

    /// Uses the sending algorithms of the variant with this name from now on.
    ///
    /// # Errors
    /// If there is no such variant; the message names similar ones.
    pub fn set_variant(&self, name: &str) -> Result<(), UnknownVariant> {
        let composition = (reknit_variants::find(name)?.compose)();
        self.set_composition(&composition);
        Ok(())
    }

    /// Uses these sending algorithms from now on, for example those of a variant from a file.
    pub fn set_composition(&self, composition: &Composition) {
        // The socket exists as long as the stream.
        let _ = self.shared.with(|state, now| state.stack.set_variant(now, self.id, composition));
    }

    /// What happens to data that is not acknowledged when the stream is dropped.
    pub fn set_linger(&self, linger: Linger) {
        let _ = self.shared.lock().stack.set_linger(self.id, linger);
    }

    /// TTL or hop limit of packets that are sent, and the least of those that are accepted (0: all).
    pub fn set_hop_limits(&self, sent: u8, least_accepted: u8) {
        let _ = self.shared.lock().stack.set_hop_limits(self.id, sent, least_accepted);
    }

    /// All variables and counters.
    ///
    /// # Errors
    /// Never: the socket exists as long as the stream.
    pub fn info(&self) -> io::Result<SocketInfo> {
        self.shared.lock().stack.info(self.shared.now(), self.id).ok_or_else(|| to_io(Error::NoSocket))
    }

    /// Reads without removing the data: the next `peek` or read returns it again. 0 is the end of the stream, or an empty buffer.
    ///
    /// # Errors
    /// As reading.
    pub async fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_with(cx, |stack, _, id| stack.peek(id, into), |w| &mut w.read)).await
    }

    /// Sends the end of the stream after everything that was written, and returns when the peer has acknowledged all of it.
    /// `flush` and `shutdown` return at once, as those of kernel sockets.
    ///
    /// # Errors
    /// If the connection or the device has failed before; says how many bytes were not acknowledged.
    pub async fn closed(&self) -> io::Result<()> {
        self.shut_down(Shutdown::Write);
        let delivered = |stack: &mut Stack, _, id| stack.delivered(id).map(|()| 0);
        let result = std::future::poll_fn(|cx| self.poll_with(cx, delivered, |waiting| &mut waiting.delivered)).await;
        result.map(drop).map_err(|error| {
            let bytes = self.info().map_or(0, |info| info.unacknowledged.0);
            io::Error::new(error.kind(), format!("{error}; {bytes} bytes were not acknowledged"))
        })
    }

    /// Reads what has arrived, without waiting. 0 is the end of the stream, or an empty buffer.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing yet: wait with [`TcpStream::readable`]. Otherwise as reading.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.try_with(|stack, now, id| stack.read(now, id, into))
    }

    /// Writes as much as the send buffer takes, without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if it takes nothing: wait with [`TcpStream::writable`]. Otherwise as writing.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_with(|stack, _, id| stack.write(id, bytes))
    }

    /// Returns when [`TcpStream::try_read`] would find data, the end of the stream, or an error. As with reading, one task can
    /// wait at a time.
    ///
    /// # Errors
    /// If the device has failed.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(|stack, _, id| stack.peek(id, &mut [0]), |waiting| &mut waiting.read).await
    }

    /// Returns when [`TcpStream::try_write`] would accept data or find an error. As with writing, one task can wait at a time.
    ///
    /// # Errors
    /// If the device has failed.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(|stack, _, id| stack.writable(id), |waiting| &mut waiting.write).await
    }

    /// Borrows both directions, for use by the same task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(self), WriteHalf(self))
    }

    /// Splits the stream into both directions, for use by different tasks. Dropping the writing half sends the end of the stream.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let both = Arc::new(self);
        (OwnedReadHalf(both.clone()), OwnedWriteHalf::new(both))
    }

    pub(crate) fn poll_read_shared(&self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let unfilled = into.initialize_unfilled();
        let n = ready!(self.poll_with(cx, |stack, now, id| stack.read(now, id, unfilled), |w| &mut w.read))?;
        into.advance(n);
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_write_shared(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |stack, _, id| stack.write(id, bytes), |waiting| &mut waiting.write)
    }

    pub(crate) fn poll_write_all_shared(&self, cx: &mut Context<'_>, all: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |stack, _, id| write_all(stack, id, all), |waiting| &mut waiting.write)
    }

    /// Tries `act`; if it would block, the task is woken when that changes.
    fn poll_with(
        &self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Stack, reknit_units::Instant, SocketId) -> Result<usize, Error>,
        waker: impl FnOnce(&mut crate::state::Waiting) -> &mut Option<Waker>,
    ) -> Poll<io::Result<usize>> {
        self.shared.with(|state, now| match act(&mut state.stack, now, self.id) {
            Ok(n) => Poll::Ready(Ok(n)),
            Err(Error::WouldBlock) => {
                state.check_device()?;
                waker(state.waiting(self.id)).replace(cx.waker().clone());
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(to_io(error))),
        })
    }

    /// Tries `act`; an error also if it would block.
    fn try_with(
        &self,
        act: impl FnOnce(&mut Stack, reknit_units::Instant, SocketId) -> Result<usize, Error>,
    ) -> io::Result<usize> {
        self.shared.with(|state, now| match act(&mut state.stack, now, self.id) {
            Err(Error::WouldBlock) => state.check_device().and(Err(to_io(Error::WouldBlock))),
            result => result.map_err(to_io),
        })
    }

    /// Returns when `act` would not block.
    async fn ready(
        &self,
        act: impl Fn(&mut Stack, reknit_units::Instant, SocketId) -> Result<usize, Error>,
        waker: impl Fn(&mut crate::state::Waiting) -> &mut Option<Waker>,
    ) -> io::Result<()> {
        let without_error = |stack: &mut Stack, now, id| match act(stack, now, id) {
            Err(Error::WouldBlock) => Err(Error::WouldBlock),
            _ => Ok(0), // the next call finds the error
        };
        std::future::poll_fn(|cx| self.poll_with(cx, without_error, &waker)).await.map(drop)
    }

    /// Sends the end of the stream after everything that was written, and does not wait. Reading goes on.
    pub fn finish(&self) {
        self.shut_down(Shutdown::Write);
    }

    pub(crate) fn shut_down(&self, how: Shutdown) {
        let _ = self.shared.with(|state, now| state.stack.shutdown(now, self.id, how));
    }
}

/// Writes as much of `all` as fits in the send buffer; returns how many bytes.
fn write_all(stack: &mut Stack, id: SocketId, all: &[IoSlice<'_>]) -> Result<usize, Error> {
    let mut total = 0;
    for bytes in all {
        match stack.write(id, bytes) {
            Ok(n) => total += n,
            Err(_) if total > 0 => return Ok(total),
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

/// Why a connection could not be opened, and what to do.
fn not_connected(addresses: Option<(SocketAddr, SocketAddr)>, failure: Error) -> io::Error {
    let error = to_io(failure);
    let Some((_, remote)) = addresses else { return error };
    let advice = match error.kind() {
        io::ErrorKind::ConnectionRefused => "; start a server that listens there",
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable => "; check the address and the route to it",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{remote}: {error}{advice}"))
}

impl Drop for TcpStream {
    fn drop(&mut self) {
        self.shared.with(|state, now| {
            *state.waiting(self.id) = crate::state::Waiting::default();
            state.stack.close(now, self.id);
        });
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_read_shared(cx, into)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_shared(cx, bytes)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, all: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.poll_write_all_shared(cx, all)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(())) // as with kernel sockets, data is sent without it
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut_down(Shutdown::Write);
        Poll::Ready(Ok(()))
    }
}

impl std::fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (local, remote) = self.addresses().map_err(|_| std::fmt::Error)?;
        f.debug_struct("TcpStream").field("local", &local).field("remote", &remote).finish()
    }
}
