//! The calls of the application on its socket. `stack/using.rs` and [`crate::sockets`] call these and then wake the socket if
//! it has something to send.

use std::net::SocketAddr;
use std::sync::Arc;

use reknit_tcp::config::ConfigError;
use reknit_tcp::seams::Plugins;
use reknit_tcp::{Buffers, CloseReason, Config, State};
use reknit_units::{Bytes, Duration, Instant};

use super::Socket;
use crate::error::Error;
use crate::info::SocketInfo;
use crate::memory::LEAST;
use crate::options::Linger;
use crate::owner::Owner;

impl Socket {
    /// See [`crate::Stack::read`].
    #[inline]
    pub(crate) fn read(&mut self, now: Instant, into: &mut [u8], buffers: &mut Buffers) -> Result<usize, Error> {
        if into.is_empty() || self.read_shut {
            return Ok(0);
        }
        self.stream.lend(buffers);
        let n = self.stream.read(now, into);
        self.stream.give_back(buffers);
        if n == 0 {
            return self.nothing_to_read();
        }
        let connection = self.stream.connection_mut();
        let (rtt, most) =
            (connection.round_trip().unwrap_or(Duration::ZERO), connection.config().receive_buffer_size());
        if let Some(window) = self.tuning.on_read(now, Bytes(n as u64), rtt, most) {
            connection.limit_receive_window(window);
        }
        Ok(n)
    }

    /// See [`crate::Stack::peek`].
    pub(crate) fn peek(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        if into.is_empty() || self.read_shut {
            return Ok(0);
        }
        let n = self.stream.peek(into);
        if n == 0 { self.nothing_to_read() } else { Ok(n) }
    }

    /// The result of a read without data: the end of the stream, why there will be no data, or that there is none yet.
    fn nothing_to_read(&mut self) -> Result<usize, Error> {
        let connection = self.stream.connection();
        if connection.is_read_closed() {
            return Ok(0);
        }
        if connection.state() == State::Closed {
            return self.failure().map_or(Ok(0), Err);
        }
        self.interest.want_read();
        Err(Error::WouldBlock)
    }

    /// See [`crate::Stack::write`].
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8], share: Option<usize>, buffers: &mut Buffers) -> Result<usize, Error> {
        if self.state() == State::Closed {
            return Err(self.failure().unwrap_or(Error::ShutDown));
        }
        if self.stream.connection().is_write_closed() {
            return Err(Error::ShutDown);
        }
        self.stream.lend(buffers);
        let n = match share {
            None => self.write_some(bytes),
            Some(share) => {
                let connection = self.stream.connection();
                let most = share.min((connection.acknowledged() as usize).max(LEAST));
                let room = most.saturating_sub(connection.unacknowledged().0 as usize);
                self.write_some(&bytes[..bytes.len().min(room)])
            }
        };
        if n < bytes.len() {
            self.interest.want_write(true);
        }
        if n == 0 && !bytes.is_empty() { Err(Error::WouldBlock) } else { Ok(n) }
    }

    fn write_some(&mut self, bytes: &[u8]) -> usize {
        let mut n = self.stream.write(bytes);
        if n < bytes.len() {
            self.tune_send_buffer();
            n += self.stream.write(&bytes[n..]);
            self.interest.want_write(n < bytes.len());
        }
        n
    }

    /// See [`crate::Stack::delivered`].
    pub(crate) fn delivered(&mut self) -> Result<(), Error> {
        if self.is_delivered() {
            return Ok(());
        }
        if self.state() == State::Closed {
            return Err(self.failure().unwrap_or(Error::ShutDown));
        }
        self.interest.want_delivered();
        Err(Error::WouldBlock)
    }

    /// See [`crate::Stack::writable`].
    pub(crate) fn writable(&mut self) -> Result<usize, Error> {
        if self.state() == State::Closed {
            return Err(self.failure().unwrap_or(Error::ShutDown));
        }
        if self.stream.connection().is_write_closed() {
            return Err(Error::ShutDown);
        }
        self.tune_send_buffer();
        match self.stream.writable() {
            0 => {
                self.interest.want_write(true);
                Err(Error::WouldBlock)
            }
            room => Ok(room),
        }
    }

    /// No more data is written: the peer gets a FIN after everything else.
    pub(crate) fn shut_write(&mut self) {
        self.stream.close();
    }

    /// Arriving data is discarded from now on.
    pub(crate) fn shut_read(&mut self, now: Instant) {
        self.read_shut = true;
        self.discard(now);
    }

    /// See [`crate::Stack::close`].
    pub(crate) fn close(&mut self, now: Instant) {
        let until = match self.linger {
            Linger::Send => Instant::NEVER,
            Linger::AtMost(time) => now + time,
        };
        let has_unread = self.stream.connection().readable() > Bytes::ZERO;
        let is_open = self.state() != State::Closed;
        if is_open && (has_unread || self.linger == Linger::AtMost(Duration::ZERO)) {
            self.stream.abort(now);
        } else if is_open {
            self.stream.close();
        }
        self.progress.restart(now);
        self.owner = Owner::Nobody { until };
    }

    /// Ends the connection at once. False if it has ended before.
    pub(crate) fn abort(&mut self, now: Instant) -> bool {
        let is_open = self.state() != State::Closed;
        if is_open {
            self.stream.abort(now);
        }
        is_open
    }

    /// The handshake is complete, but its listener was closed in the meantime: resets it. Called by `stack/settle.rs`.
    pub(crate) fn disown(&mut self, now: Instant) {
        self.stream.abort(now);
        self.owner = Owner::Nobody { until: Instant::NEVER };
    }

    /// See [`crate::Stack::set_config`].
    pub(crate) fn set_config(&mut self, now: Instant, change: impl FnOnce(&mut Config)) -> Result<(), ConfigError> {
        let mut config = Config::clone(self.stream.connection().config());
        change(&mut config);
        config.check()?;
        self.stream.connection_mut().reconfigure(now, Arc::new(config));
        Ok(())
    }

    /// See [`crate::Stack::set_variant`].
    pub(crate) fn set_plugins(&mut self, now: Instant, plugins: Plugins) {
        self.next_plugins = Some(Box::new(plugins));
        self.stream.connection_mut().hold_new_data();
        self.replace_plugins(now);
    }

    pub(crate) fn set_linger(&mut self, linger: Linger) {
        self.linger = linger;
    }

    /// See [`crate::Stack::set_hop_limits`].
    pub(crate) fn set_hop_limits(&mut self, sent: u8, least_accepted: u8) {
        (self.hop_limit, self.min_hop_limit) = (sent.max(1), least_accepted);
    }

    /// See [`crate::Stack::set_send_buffer`].
    pub(crate) fn set_send_buffer(&mut self, most: Bytes) {
        self.largest_send_buffer = most;
        self.tune_send_buffer();
    }

    /// Local and remote address.
    pub(crate) fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.flow.local, self.flow.remote)
    }

    /// Why the connection failed; none while it is open, and none if it was closed by both ends.
    pub(crate) fn failure(&self) -> Option<Error> {
        let reason = self.stream.connection().close_reason()?;
        if self.is_refused || (reason == CloseReason::TimedOut && self.unreachable.is_some()) {
            return Some(Error::Unreachable);
        }
        (reason != CloseReason::Finished).then_some(Error::Ended(reason))
    }

    /// See [`crate::Stack::info`].
    pub(crate) fn info(&self, now: Instant) -> SocketInfo {
        let connection = self.stream.connection();
        SocketInfo {
            local: self.flow.local,
            remote: self.flow.remote,
            tcp: connection.info(now),
            sent: connection.send_stats().clone(),
            received: *connection.receive_stats(),
            times: self.stopwatch.times(now),
            readable: connection.readable(),
            unacknowledged: connection.unacknowledged(),
            receive_window: self.tuning.window(),
            segment_size: connection.segment_size(),
        }
    }
}
