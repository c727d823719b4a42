//! The stack itself: its parts, time, and events.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reknit_tcp::{Buffers, IsnKey, Segment};
use reknit_units::Instant;
use reknit_wire::Endpoints;

use crate::ahead::AHEAD;
use crate::flow::Secret;
use crate::limit::RateLimit;
use crate::listener::{Listener, ListenerId};
use crate::options::{Options, Prepared};
use crate::paths::Paths;
use crate::ports::Ports;
use crate::table::{Slot, SocketId, Table};
use crate::wheel::Wheel;

/// The most answers that belong to no socket and wait to be sent; further ones are dropped.
pub(crate) const MOST_ANSWERS: usize = 4096;

/// What has happened to a socket or a listener.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// A connection waits to be accepted. Comes again only after [`Stack::accept`] has found none.
    Acceptable(ListenerId),
    /// The connection that [`Stack::connect`] opened is established. Data may be written.
    Connected(SocketId),
    /// There is something to read: data, the end of the stream, or an error. Comes again only after [`Stack::read`] has
    /// found nothing.
    Readable(SocketId),
    /// There is room to write. Comes only after [`Stack::write`] has not taken everything.
    Writable(SocketId),
    /// The connection has ended, in whatever way. It can still be read, and must be closed.
    Closed(SocketId),
}

/// A segment to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// From where to where.
    pub endpoints: Endpoints,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// The header.
    pub segment: Segment,
}

/// What the stack has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments that arrived.
    pub segments_in: u64,
    /// Segments that were sent.
    pub segments_out: u64,
    /// RSTs in answer to segments that belonged to nothing.
    pub resets_sent: u64,
    /// Such segments that were not answered, because of the limit.
    pub resets_withheld: u64,
    /// SYNs that were answered with a cookie.
    pub cookies_sent: u64,
    /// Connections that were opened by a cookie.
    pub cookies_accepted: u64,
    /// SYNs and last segments of handshakes that were ignored because a queue was full.
    pub queue_overflows: u64,
    /// SYNs that have replaced a connection in TIME-WAIT (RFC 6191).
    pub time_wait_reused: u64,
    /// ICMP messages that changed something.
    pub icmp_accepted: u64,
    /// ICMP messages that fit no connection, or claimed what cannot be.
    pub icmp_ignored: u64,
    /// Times that the segment size was reduced because full-sized segments did not get through.
    pub black_holes: u64,
}

/// Many TCP connections, without I/O, clock or randomness.
///
/// Segments go in with [`Stack::on_segment`], or packets with [`Stack::on_packet`]. After every call that changes something,
/// ask [`Stack::poll`] for segments until there are none, then [`Stack::next_event`] for events until there are none, and
/// call [`Stack::on_timer`] at [`Stack::deadline`].
#[derive(Debug)]
pub struct Stack {
    pub(crate) options: Options,
    pub(crate) secret: Secret,
    pub(crate) isn_key: IsnKey,
    pub(crate) table: Table,
    pub(crate) wheel: Wheel,
    pub(crate) listeners: BTreeMap<ListenerId, Listener>,
    pub(crate) listening: BTreeMap<SocketAddr, ListenerId>,
    pub(crate) last_listener: u64,
    pub(crate) ports: Ports,
    pub(crate) paths: Paths,
    /// Sockets that may have segments to send, or news for their owner.
    pub(crate) sending: VecDeque<u32>,
    /// Segments that the first of them has sent in this turn.
    pub(crate) burst: u32,
    /// How many of them have been read ahead.
    pub(crate) read_ahead: usize,
    /// The application has written to some of them, whose state may be in no cache.
    pub(crate) was_written: bool,
    pub(crate) answers: VecDeque<Transmit>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) resets: RateLimit,
    pub(crate) counters: Counters,
    pub(crate) last_prepared: Option<Arc<Prepared>>,
    due: Vec<u32>,
    /// Buffers for the socket that is busy now.
    pub(crate) buffers: Buffers,
    /// The buffer of [`Stack::poll_packet`].
    pub(crate) payload: Vec<u8>,
}

impl Stack {
    /// A stack without sockets. `secret` must be random and kept secret; it protects sequence numbers, ports, cookies
    /// and the table of flows.
    pub fn new(now: Instant, options: Options, secret: [u8; 32]) -> Stack {
        let (mut isn_key, mut hash_key) = ([0; 16], [0; 16]);
        isn_key.copy_from_slice(&secret[..16]);
        hash_key.copy_from_slice(&secret[16..]);
        let secret = Secret::new(hash_key);
        Stack {
            secret,
            isn_key: IsnKey::new(isn_key),
            table: Table::new(secret),
            wheel: Wheel::new(now),
            listeners: BTreeMap::new(),
            listening: BTreeMap::new(),
            last_listener: 0,
            ports: Ports::new(),
            paths: Paths::default(),
            sending: VecDeque::new(),
            burst: 0,
            read_ahead: 0,
            was_written: false,
            answers: VecDeque::new(),
            events: VecDeque::new(),
            resets: RateLimit::new(options.resets_per_second),
            counters: Counters::default(),
            last_prepared: None,
            due: Vec::new(),
            buffers: Buffers::default(),
            payload: Vec::new(),
            options,
        }
    }

    /// When [`Stack::on_timer`] must be called. The time is in the past if there are segments to send.
    pub fn deadline(&self) -> Instant {
        if self.sending.is_empty() && self.answers.is_empty() { self.wheel.next() } else { Instant::ZERO }
    }

    /// Fires the timers that are due.
    pub fn on_timer(&mut self, now: Instant) {
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(now, &mut due);
        for sockets in due.chunks(AHEAD) {
            self.read_sockets(sockets);
            for index in sockets {
                self.on_due(now, *index);
            }
        }
        due.clear();
        self.due = due;
    }

    fn on_due(&mut self, now: Instant, index: u32) {
        match self.table.slot(index) {
            Slot::Vacant => {}
            Slot::Live(_) => self.fire(now, index),
            Slot::TimeWait(waiting) if waiting.state.expires <= now => self.table.remove(index),
            Slot::TimeWait(waiting) => {
                let expires = waiting.state.expires;
                self.wheel.set(index, expires);
            }
        }
    }

    /// The next event; none if there is none now.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            let event = self.events.pop_front()?;
            let is_current = match event {
                Event::Acceptable(id) => self.listeners.contains_key(&id),
                Event::Connected(id) | Event::Readable(id) | Event::Writable(id) | Event::Closed(id) => {
                    self.table.get(id).is_some()
                }
            };
            if is_current {
                return Some(event);
            }
        }
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number of sockets of all kinds: open, half-open, closing, and in TIME-WAIT.
    pub fn sockets(&self) -> usize {
        self.table.len()
    }

    /// True if nothing has to be sent or waited for but the ends of TIME-WAIT.
    pub fn is_finished(&self) -> bool {
        self.sending.is_empty() && self.answers.is_empty() && self.table.is_idle()
    }

    /// True if `address` is one of this host.
    pub(crate) fn is_local(&self, address: IpAddr) -> bool {
        self.options.addresses.contains(&address)
    }

    /// The socket may have something to send, or news for its owner.
    pub(crate) fn wake(&mut self, index: u32) {
        if let Some(socket) = self.table.live(index)
            && !socket.is_sending
        {
            socket.is_sending = true;
            self.sending.push_back(index);
        }
    }

    /// Sends a segment that belongs to no socket.
    pub(crate) fn answer(&mut self, transmit: Transmit) {
        if self.answers.len() < MOST_ANSWERS {
            self.answers.push_back(transmit);
        }
    }
}
