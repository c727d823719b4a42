//! A listener.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::{Context, Poll};

use reknit_stack::{Error, ListenOptions, ListenerId};

use crate::errors::to_io;
use crate::network::{Handle, Network};
use crate::stream::TcpStream;

/// Accepts connections to an address of a [`Network`].
pub struct TcpListener {
    shared: Arc<Handle>,
    id: ListenerId,
}

impl TcpListener {
    /// Listens on `local`, with the network's options for sockets. Port 0 is any free port; the unspecified address stands
    /// for all addresses.
    ///
    /// # Errors
    /// If the address is in use, or not one of the network.
    pub fn bind(network: &Network, local: SocketAddr) -> io::Result<TcpListener> {
        let options = ListenOptions { socket: network.socket_options().clone(), ..ListenOptions::default() };
        TcpListener::bind_with(network, local, &options)
    }

    /// Listens with these options.
    ///
    /// # Errors
    /// As [`TcpListener::bind`], and if an option is not valid.
    pub fn bind_with(network: &Network, local: SocketAddr, options: &ListenOptions) -> io::Result<TcpListener> {
        let shared = network.shared.clone();
        let id = shared.with(|state, _| state.stack.listen(local, options)).map_err(to_io)?;
        Ok(TcpListener { shared, id })
    }

    /// Listens on several ports: on `1..=65535` for all. [`TcpStream::local_addr`] is the one that a client has connected to.
    /// Listeners on single ports must be on other addresses.
    ///
    /// # Errors
    /// As [`TcpListener::bind_with`], and if there is no port.
    pub fn bind_ports(
        network: &Network,
        ip: IpAddr,
        ports: RangeInclusive<u16>,
        options: &ListenOptions,
    ) -> io::Result<TcpListener> {
        let shared = network.shared.clone();
        let id = shared.with(|state, _| state.stack.listen_ports(ip, ports, options)).map_err(to_io)?;
        Ok(TcpListener { shared, id })
    }

    /// The address on which it listens, with the first of its ports.
    ///
    /// # Errors
    /// Never: the listener exists in the stack as long as this value.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.lock().stack.listening_on(self.id).ok_or_else(|| to_io(Error::NoSocket))
    }

    /// The next connection, and its peer. Several tasks may wait at the same time.
    ///
    /// # Errors
    /// If the device failed.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// As [`TcpListener::accept`].
    ///
    /// # Errors
    /// If the device failed.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        self.shared.with(|state, _| {
            if let Some(id) = state.stack.accept(self.id)
                && let Some((_, peer)) = state.stack.addresses(id)
            {
                *state.waiting(id) = crate::state::Waiting::default();
                return Poll::Ready(Ok((TcpStream::new(self.shared.clone(), id), peer)));
            }
            state.check_device()?;
            state.wait_to_accept(self.id, cx.waker());
            Poll::Pending
        })
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.shared.with(|state, now| {
            state.accepting.remove(&self.id);
            state.stack.unlisten(now, self.id);
        });
    }
}
