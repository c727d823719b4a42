//! UDP sockets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::{Context, Poll};

use reknit_stack::{Error, Received, Stack, UdpId, UdpOptions};

use crate::errors::to_io;
use crate::network::{Handle, Network};

/// A UDP socket of a [`Network`]. Several tasks may use it at the same time.
///
/// A datagram that does not fit in the network's MTU is an error: datagrams are not fragmented. Arriving fragments are
/// reassembled. If the receive buffer is full, further datagrams are dropped and counted
/// ([`Counters::datagrams_dropped`](crate::Counters)). Only a connected socket
/// ([`UdpSocket::connect`]) reports ICMP messages about its datagrams.
pub struct UdpSocket {
    shared: Arc<Handle>,
    id: UdpId,
}

impl UdpSocket {
    /// Binds a socket to an address of the network. Port 0 is any free port; the unspecified address stands for all addresses, `[::]`
    /// for both families.
    ///
    /// # Errors
    /// If the address is in use, or not one of the network.
    pub fn bind(network: &Network, local: SocketAddr) -> io::Result<UdpSocket> {
        UdpSocket::new(network, |stack| stack.bind_udp(local, &UdpOptions::default()))
    }

    /// Binds a socket to several ports of an address: to `1..=65535` for all. Sockets on single ports must be bound to other
    /// addresses.
    ///
    /// # Errors
    /// As [`UdpSocket::bind`], and if there is no port.
    pub fn bind_ports(
        network: &Network,
        ip: IpAddr,
        ports: RangeInclusive<u16>,
        options: &UdpOptions,
    ) -> io::Result<UdpSocket> {
        UdpSocket::new(network, |stack| stack.bind_udp_ports(ip, ports, options))
    }

    /// A socket that gets all datagrams, to any address and port, for which no other is bound, of a network that forwards
    /// ([`Builder::forward`](crate::Builder::forward)). There can be one. It answers from any address.
    ///
    /// # Errors
    /// If there is one, or the network does not forward.
    pub fn forward(network: &Network, options: &UdpOptions) -> io::Result<UdpSocket> {
        UdpSocket::new(network, |stack| stack.forward_udp(options))
    }

    fn new(network: &Network, bind: impl FnOnce(&mut Stack) -> Result<UdpId, Error>) -> io::Result<UdpSocket> {
        let shared = network.shared.clone();
        let id = shared.with(|state, _| bind(&mut state.stack)).map_err(to_io)?;
        Ok(UdpSocket { shared, id })
    }

    /// The address to which it is bound, with the first of its ports.
    ///
    /// # Errors
    /// If it is for all addresses ([`UdpSocket::forward`]).
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.lock().stack.udp_address(self.id).ok_or_else(|| to_io(Error::NoSource))
    }

    /// Connects a socket that is bound to a single port: from now on it gets only datagrams from `remote`, and [`UdpSocket::send`]
    /// sends to it. If nobody listens there, the next call fails with [`io::ErrorKind::ConnectionRefused`], once for each ICMP
    /// message that says so.
    ///
    /// # Errors
    /// If the address is not possible, or the socket is bound to several ports.
    pub fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        self.shared.lock().stack.connect_udp(self.id, remote).map_err(to_io)
    }

    /// The address to which it is connected.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if it is not.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.shared.lock().stack.udp_peer(self.id).ok_or_else(|| to_io(Error::NotConnected))
    }

    /// Sends a datagram to the address to which the socket is connected. Waits while the send buffer is full.
    ///
    /// # Errors
    /// As [`UdpSocket::send_to`]; if it is not connected; what an ICMP message has reported.
    pub async fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_with(cx, bytes.len(), |stack| stack.send_udp_to_peer(self.id, bytes))).await
    }

    /// Receives a datagram: its length and its sender. If it is longer than `into`, the rest is lost.
    ///
    /// # Errors
    /// If the device failed.
    pub async fn recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let received = self.recv(into).await?;
        Ok((received.len.min(into.len()), received.remote))
    }

    /// Receives a datagram, with both of its addresses. [`Received::len`] is its whole length.
    ///
    /// # Errors
    /// If the device failed; if the socket is connected, what an ICMP message has reported.
    pub async fn recv(&self, into: &mut [u8]) -> io::Result<Received> {
        std::future::poll_fn(|cx| self.poll_recv(cx, into)).await
    }

    /// As [`UdpSocket::recv`].
    ///
    /// # Errors
    /// If the device failed.
    pub fn poll_recv(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<Received>> {
        let mut state = self.shared.lock();
        match state.stack.receive_udp(self.id, into) {
            Err(Error::WouldBlock) => {
                state.check_device()?;
                state.wait_for_datagram(self.id, cx.waker());
                Poll::Pending
            }
            result => Poll::Ready(result.map_err(to_io)),
        }
    }

    /// Receives a datagram without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none; if the device failed.
    pub fn try_recv(&self, into: &mut [u8]) -> io::Result<Received> {
        let mut state = self.shared.lock();
        match state.stack.receive_udp(self.id, into) {
            Err(Error::WouldBlock) => state.check_device().and(Err(to_io(Error::WouldBlock))),
            result => result.map_err(to_io),
        }
    }

    /// Sends a datagram. Waits while the send buffer is full.
    ///
    /// # Errors
    /// If the address is not possible, the datagram is too long, or the device failed.
    pub async fn send_to(&self, bytes: &[u8], remote: SocketAddr) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_send(cx, bytes, None, remote)).await
    }

    /// Sends a datagram from `local`: an address and port to which the socket is bound, or any one if it forwards.
    ///
    /// # Errors
    /// As [`UdpSocket::send_to`], and if the socket is not bound to `local`.
    pub async fn send_from(&self, bytes: &[u8], local: SocketAddr, remote: SocketAddr) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_send(cx, bytes, Some(local), remote)).await
    }

    /// As [`UdpSocket::send_from`], or [`UdpSocket::send_to`] without `local`.
    ///
    /// # Errors
    /// As these.
    pub fn poll_send(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, bytes.len(), |stack| stack.send_udp(self.id, local, remote, bytes))
    }

    fn poll_with(
        &self,
        cx: &mut Context<'_>,
        len: usize,
        send: impl FnOnce(&mut Stack) -> Result<(), Error>,
    ) -> Poll<io::Result<usize>> {
        self.shared.with(|state, _| {
            state.check_device()?;
            match send(&mut state.stack) {
                Ok(()) => Poll::Ready(Ok(len)),
                Err(Error::WouldBlock) => {
                    state.wait_to_send_datagram(self.id, cx.waker());
                    Poll::Pending
                }
                Err(error) => Poll::Ready(Err(to_io(error))),
            }
        })
    }
}

impl Drop for UdpSocket {
    fn drop(&mut self) {
        self.shared.with(|state, _| {
            state.udp.remove(&self.id);
            state.stack.close_udp(self.id);
        });
    }
}
