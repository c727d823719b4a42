//! The calls of applications to connect, and to use a socket.

use std::net::SocketAddr;

use reknit_tcp::{Config, State, Stream};
use reknit_units::{Bytes, Instant};
use reknit_variants::Composition;

use super::Stack;
use crate::error::Error;
use crate::flow::FourTuple;
use crate::info::SocketInfo;
use crate::options::{Linger, SocketOptions};
use crate::owner::Owner;
use crate::socket::Socket;
use crate::socket_id::SocketId;

/// Which direction to shut down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// Arriving data is discarded from now on.
    Read,
    /// The peer gets a FIN after everything that was written.
    Write,
    /// Both.
    Both,
}

impl Stack {
    /// Opens a connection to `remote`; [`crate::Event::Connected`] or [`crate::Event::Closed`] follows. Without `local`, the
    /// stack chooses its first address of the same family and a port (RFC 6056); with port 0 only the port.
    ///
    /// # Errors
    /// If an address is not possible, or no port or socket is free.
    pub fn connect(
        &mut self,
        now: Instant,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
    ) -> Result<SocketId, Error> {
        options.config.check()?;
        if !self.make_room() {
            return Err(Error::Full(self.options.max_sockets));
        }
        let flow = self.choose_flow(local, remote)?;
        let prepared = self.prepare(options);
        let config = prepared.config(remote.is_ipv6());
        let identity = self.secrets.identity(now, &flow);
        let plugins = options.variant.build();
        let mut stream = Stream::connect(now, config, plugins, identity, options.send_buffer);
        self.start(now, &mut stream, &flow);
        Ok(self.sockets.insert(Socket::new(now, stream, flow, Owner::Application, prepared)))
    }

    fn choose_flow(&mut self, local: Option<SocketAddr>, remote: SocketAddr) -> Result<FourTuple, Error> {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let same_family = self.options.addresses.iter().find(|address| address.is_ipv4() == remote.is_ipv4());
        let chosen = local.map(|local| local.ip()).or(same_family.copied());
        let Some(address) = chosen.filter(|address| address.is_ipv4() == remote.is_ipv4()) else {
            return Err(Error::NoFamily(remote));
        };
        let mut flow = FourTuple { local: SocketAddr::new(address, local.map_or(0, |local| local.port())), remote };
        if !self.takes(address) {
            return Err(self.not_local(flow.local));
        }
        if self.is_local(remote.ip()) {
            return Err(Error::Own(remote));
        }
        if !flow.is_between_hosts() {
            return Err(Error::NoDestination(remote));
        }
        if flow.local.port() != 0 {
            return if self.sockets.find(&flow).is_some() { Err(Error::InUse(flow.local)) } else { Ok(flow) };
        }
        let Stack { ports, sockets, secrets, listeners, .. } = self;
        let is_free = |flow: &FourTuple| sockets.find(flow).is_none() && !listeners.is_bound(&flow.local);
        let port = ports.choose(&secrets.hash(), flow, is_free).ok_or(Error::NoPort(remote))?;
        flow.local.set_port(port);
        Ok(flow)
    }

    /// Reads what has arrived in order. 0 is the end of the stream, or an empty buffer.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if there is nothing yet; otherwise why there will be nothing.
    pub fn read(&mut self, now: Instant, id: SocketId, into: &mut [u8]) -> Result<usize, Error> {
        self.sockets.read(now, id, into)
    }

    /// As [`Stack::read`], but what is read can be read again.
    ///
    /// # Errors
    /// As [`Stack::read`].
    pub fn peek(&mut self, id: SocketId, into: &mut [u8]) -> Result<usize, Error> {
        self.sockets.get_mut(id)?.peek(into)
    }

    /// Writes as much of `bytes` as fits in the send buffer; returns how many. Data that is written before the connection is
    /// established waits.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the buffer is full; otherwise why nothing can be written any more.
    pub fn write(&mut self, id: SocketId, bytes: &[u8]) -> Result<usize, Error> {
        self.sockets.write(id, bytes)
    }

    /// How many bytes [`Stack::write`] would take.
    ///
    /// # Errors
    /// As [`Stack::write`].
    pub fn writable(&mut self, id: SocketId) -> Result<usize, Error> {
        self.sockets.get_mut(id)?.writable()
    }

    /// Shuts down one direction, or both.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn shutdown(&mut self, now: Instant, id: SocketId, how: Shutdown) -> Result<(), Error> {
        let socket = self.sockets.get_mut(id)?;
        if how != Shutdown::Read {
            socket.shut_write();
        }
        if how != Shutdown::Write {
            socket.shut_read(now);
        }
        self.sockets.wake(id.place());
        Ok(())
    }

    /// The application no longer needs the socket. Written data is still sent, as [`Linger`] says. If data has arrived and was
    /// not read, or arrives later, the peer gets a RST (RFC 2525 §2.17): it must not believe that the data was read.
    pub fn close(&mut self, now: Instant, id: SocketId) {
        self.sockets.close(now, id, self.options.max_orphans, &mut self.counters);
    }

    /// Ends the connection at once; the peer gets a RST. The socket must still be closed.
    pub fn abort(&mut self, now: Instant, id: SocketId) {
        if let Ok(socket) = self.sockets.get_mut(id)
            && socket.abort(now)
        {
            self.sockets.wake(id.place());
        }
    }

    /// Changes options of the engine while the socket is open: Nagle's algorithm, keep-alive, user timeout, receive buffer
    /// and others. Options that the handshake negotiated do not change.
    ///
    /// # Errors
    /// Names the option with an invalid value.
    pub fn set_config(&mut self, now: Instant, id: SocketId, change: impl FnOnce(&mut Config)) -> Result<(), Error> {
        self.sockets.get_mut(id)?.set_config(now, change)?;
        self.sockets.wake(id.place());
        Ok(())
    }

    /// Changes the algorithms of the sending side. They take effect as soon as nothing is outstanding; until then no new
    /// data is sent, which costs about one round trip. When this end acknowledges does not change.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn set_variant(&mut self, now: Instant, id: SocketId, variant: &Composition) -> Result<(), Error> {
        self.sockets.get_mut(id)?.set_plugins(now, variant.build());
        self.sockets.wake(id.place());
        Ok(())
    }

    /// Changes what happens to unacknowledged data when the socket is closed.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn set_linger(&mut self, id: SocketId, linger: Linger) -> Result<(), Error> {
        self.sockets.get_mut(id)?.set_linger(linger);
        Ok(())
    }

    /// TTL or hop limit of packets that are sent, and the least of those that are accepted (RFC 5082; 0 accepts all).
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn set_hop_limits(&mut self, id: SocketId, sent: u8, least_accepted: u8) -> Result<(), Error> {
        self.sockets.get_mut(id)?.set_hop_limits(sent, least_accepted);
        Ok(())
    }

    /// The most bytes that may be written ahead.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn set_send_buffer(&mut self, id: SocketId, most: Bytes) -> Result<(), Error> {
        self.sockets.get_mut(id)?.set_send_buffer(most);
        self.sockets.wake(id.place());
        Ok(())
    }

    /// The options of the engine as they are now.
    pub fn config(&self, id: SocketId) -> Option<&Config> {
        self.sockets.get(id).map(|socket| &**socket.connection().config())
    }

    /// The addresses of a socket: local and remote.
    pub fn addresses(&self, id: SocketId) -> Option<(SocketAddr, SocketAddr)> {
        self.sockets.get(id).map(Socket::addresses)
    }

    /// Why the connection failed; none if it has not.
    pub fn failure(&self, id: SocketId) -> Option<Error> {
        self.sockets.get(id)?.failure()
    }

    /// The state of the connection.
    pub fn state(&self, id: SocketId) -> Option<State> {
        self.sockets.get(id).map(Socket::state)
    }

    /// All variables and counters.
    pub fn info(&self, now: Instant, id: SocketId) -> Option<SocketInfo> {
        self.sockets.get(id).map(|socket| socket.info(now))
    }
}
