//! One socket: a connection with its buffers, who owns it, and what its owner waits for.

use std::sync::Arc;

use reknit_tcp::seams::Plugins;
use reknit_tcp::{CloseReason, State, Stream};
use reknit_units::{Bytes, Duration, Instant};

use crate::busy::Stopwatch;
use crate::error::Error;
use crate::flow::Flow;
use crate::listener::ListenerId;
use crate::options::{Linger, Prepared};
use crate::paths::LIFETIME;
use crate::size_search::SizeSearch;

/// Who uses a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A listener, until the handshake is complete.
    HalfOpen(ListenerId),
    /// A listener, until the application accepts it.
    Queued(ListenerId),
    /// The application.
    Application,
    /// Nobody: it was closed, and the rest is sent until this time.
    Nobody {
        /// When it is aborted.
        until: Instant,
    },
}

/// How the receive window grows with the application (dynamic right-sizing): it is one and a half times what
/// was read in two round trips.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowTuning {
    pub(crate) window: Bytes,
    round_began: Instant,
    read: Bytes,
}

impl WindowTuning {
    pub(crate) fn new(now: Instant, window: Bytes) -> WindowTuning {
        WindowTuning { window, round_began: now, read: Bytes::ZERO }
    }

    /// The application has read `n` bytes. The new window, if it grows.
    pub(crate) fn on_read(&mut self, now: Instant, n: Bytes, rtt: Duration, most: Bytes) -> Option<Bytes> {
        self.read += n;
        // A reader that comes once per round trip makes the sender wait for up to another one.
        if now.since(self.round_began) < rtt * 2 {
            return None;
        }
        let wanted = Bytes(self.read.0 * 3 / 2).min(most);
        (self.round_began, self.read) = (now, Bytes::ZERO);
        if wanted <= self.window {
            return None;
        }
        self.window = wanted;
        Some(wanted)
    }
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent notes of what the owner knows and wants")]
pub(crate) struct Socket {
    pub(crate) stream: Stream,
    pub(crate) flow: Flow,
    pub(crate) owner: Owner,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) hop_limit: u8,
    pub(crate) least_hop_limit: u8,
    pub(crate) linger: Linger,
    pub(crate) largest_send_buffer: Bytes,
    pub(crate) tuning: WindowTuning,
    /// An ICMP message has ended the opening.
    pub(crate) is_refused: bool,
    /// It waits to be asked for segments.
    pub(crate) is_sending: bool,
    /// Its owner was told that the connection is established.
    pub(crate) told_connected: bool,
    pub(crate) told_closed: bool,
    /// Its owner has found nothing to read, and must be told when there is something.
    pub(crate) wants_read: bool,
    pub(crate) wants_write: bool,
    /// Arriving data is thrown away.
    pub(crate) read_shut: bool,
    /// An MTU that a router has reported but that may be forged; believed if segments are lost (RFC 5927 §7.2).
    pub(crate) claimed_mtu: Option<u16>,
    /// Present if segments are smaller than both ends allow.
    pub(crate) size_search: Option<Box<SizeSearch>>,
    /// An ICMP message has reported that the peer cannot be reached; it explains a timeout.
    pub(crate) is_unreachable: bool,
    /// Plug-ins to use when nothing is outstanding.
    pub(crate) next_plugins: Option<Box<Plugins>>,
    pub(crate) stopwatch: Stopwatch,
    /// When memory that is not needed any more is released, unless something happens before; set while there is some.
    pub(crate) shrink_at: Instant,
}

impl Socket {
    pub(crate) fn new(now: Instant, stream: Stream, flow: Flow, owner: Owner, prepared: Arc<Prepared>) -> Socket {
        let options = &prepared.options;
        let is_limited = stream.connection().path_segment_size().is_some();
        let mut socket = Socket {
            stream,
            flow,
            owner,
            hop_limit: options.hop_limit,
            least_hop_limit: options.least_hop_limit,
            linger: options.linger,
            largest_send_buffer: options.largest_send_buffer,
            tuning: WindowTuning::new(now, options.receive_window),
            is_refused: false,
            is_sending: false,
            told_connected: false,
            told_closed: false,
            wants_read: true,
            wants_write: false,
            read_shut: false,
            claimed_mtu: None,
            size_search: is_limited.then(|| Box::new(SizeSearch::at(now + LIFETIME))),
            is_unreachable: false,
            next_plugins: None,
            stopwatch: Stopwatch::new(now),
            shrink_at: Instant::NEVER,
            prepared,
        };
        let window = socket.tuning.window;
        socket.stream.connection_mut().limit_receive_window(window);
        socket
    }

    pub(crate) fn state(&self) -> State {
        self.stream.connection().state()
    }

    /// Why the connection failed; none while it is open, and none if it was closed by both ends.
    pub(crate) fn failure(&self) -> Option<Error> {
        let reason = self.stream.connection().close_reason()?;
        if self.is_refused || (reason == CloseReason::TimedOut && self.is_unreachable) {
            return Some(Error::Unreachable);
        }
        (reason != CloseReason::Finished).then_some(Error::Ended(reason))
    }

    /// What reading returns if there is no data: the end of the stream, why there will be none, or that there is none yet.
    pub(crate) fn nothing_to_read(&mut self) -> Result<usize, Error> {
        let connection = self.stream.connection();
        if connection.is_read_closed() {
            return Ok(0);
        }
        if connection.state() == State::Closed {
            return self.failure().map_or(Ok(0), Err);
        }
        self.wants_read = true;
        Err(Error::WouldBlock)
    }

    /// True if there is data to read, or the end of the stream, or an error.
    pub(crate) fn is_readable(&self) -> bool {
        let connection = self.stream.connection();
        connection.readable() > Bytes::ZERO || connection.is_read_closed() || connection.state() == State::Closed
    }

    /// True if a good part of the send buffer is free, or writing would report an error.
    pub(crate) fn is_writable(&self) -> bool {
        let free = self.stream.writable();
        free > 0 && free as u64 >= self.stream.connection().unacknowledged().0 / 2 || self.state() == State::Closed
    }

    /// Uses the plug-ins that wait for that, once nothing is outstanding. True if it does.
    pub(crate) fn replace_plugins(&mut self, now: Instant) -> bool {
        let Some(plugins) = self.next_plugins.take() else { return false };
        self.next_plugins = self.stream.connection_mut().replace_sender_plugins(now, plugins).err();
        self.next_plugins.is_none()
    }

    /// Notes what keeps the socket from sending more from now on.
    pub(crate) fn note_limit(&mut self, now: Instant) {
        self.stopwatch.set(now, self.stream.connection().send_limit(), self.wants_write);
    }

    /// Lets the send buffer hold twice the congestion window.
    pub(crate) fn tune_send_buffer(&mut self) {
        let wanted = Bytes(self.stream.connection().cwnd().0 * 2);
        let limit = wanted.max(self.prepared.options.send_buffer).min(self.largest_send_buffer);
        self.stream.set_send_buffer(limit);
    }
}
