//! What applications call.

use std::net::SocketAddr;
use std::sync::Arc;

use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_tcp::{Config, Info, State, Stream};
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::Composition;

use crate::busy::BusyTimes;
use crate::error::Error;
use crate::flow::Flow;
use crate::input::is_host;
use crate::options::{Linger, Prepared, SocketOptions};
use crate::socket::{Owner, Socket};
use crate::stack::Stack;
use crate::table::SocketId;

/// Which direction to shut down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// What arrives is thrown away from now on.
    Read,
    /// The peer gets a FIN after everything that was written.
    Write,
    /// Both.
    Both,
}

/// The variables and counters of a socket, similar to Linux's `tcp_info`.
#[derive(Clone, Debug)]
pub struct SocketInfo {
    /// This end.
    pub local: SocketAddr,
    /// The peer.
    pub remote: SocketAddr,
    /// The engine's variables.
    pub tcp: Info,
    /// Counters of the sending side.
    pub sent: SendStats,
    /// Counters of the receiving side.
    pub received: ReceiveStats,
    /// How long there was something to send, and what limited it.
    pub times: BusyTimes,
    /// Bytes that can be read.
    pub readable: Bytes,
    /// Bytes that were written and are not acknowledged.
    pub unacknowledged: Bytes,
    /// The receive window as it has grown so far.
    pub receive_window: Bytes,
    /// The largest segment that is sent, options included.
    pub segment_size: u16,
}

impl Stack {
    /// Opens a connection to `remote`; [`crate::Event::Connected`] or [`crate::Event::Closed`] follows. Without `local`, the
    /// stack chooses its first address of the same family and a port (RFC 6056); with port 0 only the port.
    ///
    /// # Errors
    /// If an address does not fit, or nothing is free.
    pub fn connect(
        &mut self,
        now: Instant,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
    ) -> Result<SocketId, Error> {
        options.config.check()?;
        if self.table.len() >= self.options.most_sockets {
            return Err(Error::Full(self.options.most_sockets));
        }
        let flow = self.choose_flow(local, remote)?;
        let prepared = self.prepare(options);
        let config = prepared.config(remote.is_ipv6());
        let identity = self.identity(now, &flow);
        let plugins = options.variant.build();
        let mut stream = Stream::connect(now, config, plugins, identity, options.send_buffer);
        self.start(now, &mut stream, &flow);
        let id = self.table.insert(Box::new(Socket::new(now, stream, flow, Owner::Application, prepared)));
        self.wake(id.index);
        Ok(id)
    }

    /// Options for this interface. Many sockets with the same options share them.
    pub(crate) fn prepare(&mut self, options: &SocketOptions) -> Arc<Prepared> {
        let is_same = |prepared: &&Arc<Prepared>| {
            Arc::ptr_eq(&prepared.options.variant, &options.variant) && prepared.options.is_same(options)
        };
        if let Some(prepared) = self.last_prepared.as_ref().filter(is_same) {
            return prepared.clone();
        }
        let prepared = Prepared::new(options, self.options.mtu);
        self.last_prepared = Some(prepared.clone());
        prepared
    }

    fn choose_flow(&mut self, local: Option<SocketAddr>, remote: SocketAddr) -> Result<Flow, Error> {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let same_family = self.options.addresses.iter().find(|address| address.is_ipv4() == remote.is_ipv4());
        let chosen = local.map(|local| local.ip()).or(same_family.copied());
        let Some(address) = chosen.filter(|address| address.is_ipv4() == remote.is_ipv4()) else {
            return Err(Error::NoFamily(remote));
        };
        let mut flow = Flow { local: SocketAddr::new(address, local.map_or(0, |local| local.port())), remote };
        if !self.is_local(address) {
            return Err(self.not_local(flow.local));
        }
        if self.is_local(remote.ip()) {
            return Err(Error::Own(remote));
        }
        if !is_host(&flow) {
            return Err(Error::NoDestination(remote));
        }
        if flow.local.port() != 0 {
            return if self.table.find(&flow).is_some() { Err(Error::InUse(flow.local)) } else { Ok(flow) };
        }
        let Stack { ports, table, secret, listening, .. } = self;
        let is_free = |flow: &Flow| table.find(flow).is_none() && !listening.contains_key(&flow.local);
        let port = ports.choose(secret, flow, is_free).ok_or(Error::NoPort(remote))?;
        flow.local.set_port(port);
        Ok(flow)
    }

    pub(crate) fn not_local(&self, address: SocketAddr) -> Error {
        let known: Vec<String> = self.options.addresses.iter().map(ToString::to_string).collect();
        Error::NotLocal(address, if known.is_empty() { "none".to_owned() } else { known.join(", ") })
    }

    /// Reads what has arrived in order. 0 is the end of the stream, or an empty buffer.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if there is nothing yet; otherwise why there will be nothing.
    pub fn read(&mut self, now: Instant, id: SocketId, into: &mut [u8]) -> Result<usize, Error> {
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        if into.is_empty() || socket.read_shut {
            return Ok(0);
        }
        socket.stream.lend(&mut self.buffers);
        let n = socket.stream.read(now, into);
        socket.stream.give_back(&mut self.buffers);
        if n == 0 {
            return socket.nothing_to_read();
        }
        let connection = socket.stream.connection_mut();
        let (rtt, most) =
            (connection.round_trip().unwrap_or(Duration::ZERO), connection.config().receive_buffer_size());
        if let Some(window) = socket.tuning.on_read(now, Bytes(n as u64), rtt, most) {
            connection.limit_receive_window(window);
        }
        // Only a window update needs to be sent.
        if connection.has_output() {
            self.wake(id.index);
        }
        Ok(n)
    }

    /// As [`Stack::read`], but what is read can be read again.
    ///
    /// # Errors
    /// As [`Stack::read`].
    pub fn peek(&mut self, id: SocketId, into: &mut [u8]) -> Result<usize, Error> {
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        if into.is_empty() || socket.read_shut {
            return Ok(0);
        }
        let n = socket.stream.peek(into);
        if n == 0 { socket.nothing_to_read() } else { Ok(n) }
    }

    /// Writes as much of `bytes` as fits the send buffer; returns how many. Data that is written before the connection is
    /// established waits.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the buffer is full; otherwise why nothing can be written any more.
    pub fn write(&mut self, id: SocketId, bytes: &[u8]) -> Result<usize, Error> {
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        if socket.state() == State::Closed {
            return Err(socket.failure().unwrap_or(Error::ShutDown));
        }
        if socket.stream.connection().is_write_closed() {
            return Err(Error::ShutDown);
        }
        socket.stream.lend(&mut self.buffers);
        let mut n = socket.stream.write(bytes);
        if n < bytes.len() {
            socket.tune_send_buffer();
            n += socket.stream.write(&bytes[n..]);
            socket.wants_write = n < bytes.len();
        }
        if n > 0 {
            self.was_written = true;
            self.wake(id.index);
        }
        if n == 0 && !bytes.is_empty() { Err(Error::WouldBlock) } else { Ok(n) }
    }

    /// Shuts down one direction, or both.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn shutdown(&mut self, now: Instant, id: SocketId, how: Shutdown) -> Result<(), Error> {
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        if how != Shutdown::Write {
            socket.read_shut = true;
        }
        if how != Shutdown::Read {
            socket.stream.close();
        }
        if how != Shutdown::Write {
            self.discard(now, id.index);
        }
        self.wake(id.index);
        Ok(())
    }

    /// The application needs the socket no more. What was written is still sent, as [`Linger`] says. If data has arrived
    /// and was not read, or arrives later, the peer gets a RST (RFC 2525 §2.17): it must not believe that it was read.
    pub fn close(&mut self, now: Instant, id: SocketId) {
        let Some(socket) = self.table.get_mut(id) else { return };
        let until = match socket.linger {
            Linger::Send => Instant::NEVER,
            Linger::AtMost(time) => now + time,
        };
        let has_unread = socket.stream.connection().readable() > Bytes::ZERO;
        let is_open = socket.state() != State::Closed;
        if is_open && (has_unread || socket.linger == Linger::AtMost(Duration::ZERO)) {
            socket.stream.abort(now);
        } else if is_open {
            socket.stream.close();
        }
        socket.owner = Owner::Nobody { until };
        self.wake(id.index);
    }

    /// Ends the connection at once; the peer gets a RST. The socket must still be closed.
    pub fn abort(&mut self, now: Instant, id: SocketId) {
        if let Some(socket) = self.table.get_mut(id)
            && socket.state() != State::Closed
        {
            socket.stream.abort(now);
            self.wake(id.index);
        }
    }

    /// Changes options of the engine while the socket is open: Nagle's algorithm, keep-alive, user timeout, receive buffer
    /// and others. What the handshake has agreed on stays.
    ///
    /// # Errors
    /// Names the option with an invalid value.
    pub fn set_config(&mut self, now: Instant, id: SocketId, change: impl FnOnce(&mut Config)) -> Result<(), Error> {
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        let mut config = Config::clone(socket.stream.connection().config());
        change(&mut config);
        config.check()?;
        socket.stream.connection_mut().reconfigure(now, Arc::new(config));
        self.wake(id.index);
        Ok(())
    }

    /// Changes the algorithms of the sending side. They take effect as soon as nothing is outstanding; until then no new
    /// data is sent, which costs about one round trip. When this end acknowledges does not change.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn set_variant(&mut self, now: Instant, id: SocketId, variant: &Composition) -> Result<(), Error> {
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        socket.next_plugins = Some(Box::new(variant.build()));
        socket.stream.connection_mut().hold_new_data();
        socket.replace_plugins(now);
        self.wake(id.index);
        Ok(())
    }

    /// Changes the options of the socket that do not concern the engine.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn set_linger(&mut self, id: SocketId, linger: Linger) -> Result<(), Error> {
        self.table.get_mut(id).ok_or(Error::NoSocket)?.linger = linger;
        Ok(())
    }

    /// TTL or hop limit of packets that are sent, and the least of those that are accepted (RFC 5082; 0 accepts all).
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn set_hop_limits(&mut self, id: SocketId, sent: u8, least_accepted: u8) -> Result<(), Error> {
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        (socket.hop_limit, socket.least_hop_limit) = (sent.max(1), least_accepted);
        Ok(())
    }

    /// The most bytes that may be written ahead.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn set_send_buffer(&mut self, id: SocketId, most: Bytes) -> Result<(), Error> {
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        socket.largest_send_buffer = most;
        socket.tune_send_buffer();
        self.wake(id.index);
        Ok(())
    }

    /// The options of the engine as they are now.
    pub fn config(&self, id: SocketId) -> Option<&Config> {
        self.table.get(id).map(|socket| &**socket.stream.connection().config())
    }

    /// The addresses of a socket: local and remote.
    pub fn addresses(&self, id: SocketId) -> Option<(SocketAddr, SocketAddr)> {
        self.table.get(id).map(|socket| (socket.flow.local, socket.flow.remote))
    }

    /// Why the connection failed; none if it has not.
    pub fn failure(&self, id: SocketId) -> Option<Error> {
        self.table.get(id)?.failure()
    }

    /// The state of the connection.
    pub fn state(&self, id: SocketId) -> Option<State> {
        self.table.get(id).map(Socket::state)
    }

    /// All variables and counters.
    pub fn info(&self, now: Instant, id: SocketId) -> Option<SocketInfo> {
        let socket = self.table.get(id)?;
        let connection = socket.stream.connection();
        Some(SocketInfo {
            local: socket.flow.local,
            remote: socket.flow.remote,
            tcp: connection.info(now),
            sent: connection.send_stats().clone(),
            received: *connection.receive_stats(),
            times: socket.stopwatch.times(now),
            readable: connection.readable(),
            unacknowledged: connection.unacknowledged(),
            receive_window: socket.tuning.window,
            segment_size: connection.segment_size(),
        })
    }
}
