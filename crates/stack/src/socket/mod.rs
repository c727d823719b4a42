//! One socket: a connection with its buffers, its owner, and the events that the owner waits for. This file has the events of
//! the network and of time, which [`crate::sockets`] passes on, and what `stack/settle` asks once the socket has sent all it can;
//! `calls` has the calls of the application, `turns` those of the send queue.

mod calls;
mod turns;

use std::hint::black_box;
use std::sync::Arc;

use reknit_tcp::seams::Plugins;
use reknit_tcp::{Buffers, Connection, Output, Segment, SeqNum, State, Stream, TimeWait};
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::Decoded;

use crate::answers::Transmit;
use crate::busy::Stopwatch;
use crate::deficit::{self, Deficit};
use crate::events::{Event, Events};
use crate::flow::FourTuple;
use crate::ingress::Ingress;
use crate::listeners::ListenerId;
use crate::memory::{LEAST, LEAST_PATIENCE, Progress, STALLED};
use crate::options::{Linger, Prepared};
use crate::owner::{Interest, Owner};
use crate::segment_size::{PathMtu, Report, SegmentSize};
use crate::socket_id::SocketId;
use crate::window::WindowTuning;

/// A connection on which nothing has happened for this long releases memory that it has not returned,
const IDLE: Duration = Duration::from_secs(2);
/// and the rest, which late DSACKs may need, after this.
const FORGET_RETIRED_AFTER: Duration = Duration::from_secs(70);

/// A connection that holds no more never has to give way: the least in each direction, in whole pages.
const GUARANTEED_MEMORY: usize = LEAST * 2 + 2 * 4096;

/// A connection with everything that belongs to it alone.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    flow: FourTuple,
    owner: Owner,
    prepared: Arc<Prepared>,
    hop_limit: u8,
    min_hop_limit: u8,
    linger: Linger,
    largest_send_buffer: Bytes,
    tuning: WindowTuning,
    interest: Interest,
    /// It is in the send queue.
    is_queued: bool,
    deficit: Deficit,
    ingress: Ingress,
    /// An ICMP error aborted the connection attempt.
    is_refused: bool,
    /// An ICMP message has reported that the peer cannot be reached: the number of the segment that it quotes. It explains a
    /// timeout, unless that segment is acknowledged after all.
    unreachable: Option<SeqNum>,
    /// Arriving data is discarded.
    read_shut: bool,
    segment_size: SegmentSize,
    /// Plug-ins to use when nothing is outstanding.
    next_plugins: Option<Box<Plugins>>,
    stopwatch: Stopwatch,
    /// When memory that is no longer needed is released, unless something happens before; set while there is such memory.
    shrink_at: Instant,
    /// Bytes that it was last seen to hold.
    charged: usize,
    progress: Progress,
    /// The receive window is limited because there is little memory.
    is_short: bool,
    /// It is in the list of those that hold memory.
    is_noted_holder: bool,
}

impl Socket {
    pub(crate) fn new(now: Instant, stream: Stream, flow: FourTuple, owner: Owner, prepared: Arc<Prepared>) -> Socket {
        let options = prepared.options();
        let mut socket = Socket {
            owner,
            hop_limit: options.hop_limit,
            min_hop_limit: options.min_hop_limit,
            linger: options.linger,
            largest_send_buffer: options.largest_send_buffer,
            tuning: WindowTuning::new(now, options.receive_window),
            interest: Interest::new(),
            is_queued: false,
            deficit: Deficit::new(),
            ingress: Ingress::default(),
            is_refused: false,
            unreachable: None,
            read_shut: false,
            is_noted_holder: false,
            segment_size: SegmentSize::new(now, flow.remote.is_ipv6(), stream.connection()),
            next_plugins: None,
            stopwatch: Stopwatch::new(now),
            shrink_at: Instant::NEVER,
            charged: 0,
            progress: Progress::new(now),
            is_short: false,
            stream,
            flow,
            prepared,
        };
        let window = socket.tuning.window();
        let connection = socket.stream.connection_mut();
        connection.limit_receive_window(window);
        connection.limit_event(deficit::MOST_PER_EVENT);
        socket
    }

    pub(crate) fn flow(&self) -> &FourTuple {
        &self.flow
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// The handshake is complete: the socket waits for `accept`.
    pub(crate) fn enqueue(&mut self, listener: ListenerId) {
        self.owner = Owner::Queued(listener);
    }

    /// The application has accepted it.
    pub(crate) fn accept(&mut self) {
        self.owner = Owner::Application;
    }

    /// True if its application has closed it, or there never was one.
    pub(crate) fn is_orphan(&self) -> bool {
        matches!(self.owner, Owner::Nobody { .. })
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.stream.connection()
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        self.stream.connection().state()
    }

    /// The state that TIME-WAIT keeps, if the connection is in it.
    pub(crate) fn time_wait(&self) -> Option<TimeWait> {
        self.stream.connection().time_wait()
    }

    /// The same for FIN-WAIT-2.
    pub(crate) fn fin_wait_2(&self) -> Option<TimeWait> {
        self.stream.connection().fin_wait_2()
    }

    /// Ends TIME-WAIT for a new connection.
    pub(crate) fn end_time_wait(&mut self) {
        self.stream.connection_mut().end_time_wait();
    }

    /// TTL or hop limit of packets that are sent.
    pub(crate) fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Notes that it is put into the send queue. False if it is already there.
    pub(crate) fn join_queue(&mut self) -> bool {
        !std::mem::replace(&mut self.is_queued, true)
    }

    /// True if it is in the send queue.
    pub(crate) fn is_queued(&self) -> bool {
        self.is_queued
    }

    /// Prefetches the state that almost every call needs.
    pub(crate) fn prefetch(&self) {
        self.stream.prefetch();
        black_box(&(self.owner, self.flow.remote.port(), self.stopwatch, self.tuning.window(), self.shrink_at));
    }

    /// The same for the algorithms. Called after [`Socket::prefetch`].
    pub(crate) fn prefetch_plugins(&self) {
        self.stream.prefetch_plugins();
    }
}

/// Events of the network and of time.
impl Socket {
    /// A segment has arrived, or several that were coalesced, with their payloads. Returns what it shows about the path.
    #[inline]
    pub(crate) fn on_segment<'a>(
        &mut self,
        now: Instant,
        arrived: &Decoded<'_>,
        payloads: impl Iterator<Item = &'a [u8]> + Clone,
        buffers: &mut Buffers,
    ) -> Option<PathMtu> {
        let received = self.stream.connection().received();
        self.stream.lend(buffers);
        self.stream.on_joined(now, &arrived.segment, payloads);
        self.stream.give_back_pages(buffers);
        let is_new = self.stream.connection().received() > received;
        if is_new && matches!(self.owner, Owner::Nobody { .. }) {
            // The data will never be read (RFC 9293 §3.6.1, RFC 2525 §2.17).
            self.stream.abort(now);
        }
        if self.unreachable.is_some_and(|quoted| !self.stream.connection().is_outstanding(quoted)) {
            self.unreachable = None;
        }
        self.segment_size.on_segment(now, self.stream.connection_mut())
    }

    /// True if the TTL or hop limit of an arriving segment is large enough (RFC 5082).
    pub(crate) fn accepts_hop_limit(&self, hop_limit: u8) -> bool {
        hop_limit >= self.min_hop_limit
    }

    /// A router has dropped a packet of `quoted_len` bytes, which begins with `quoted`, because it carries only `mtu`.
    pub(crate) fn on_too_big(&mut self, now: Instant, mtu: u16, quoted: SeqNum, quoted_len: usize) -> Report {
        self.segment_size.on_too_big(now, self.stream.connection_mut(), mtu, quoted, quoted_len)
    }

    /// A router or the peer's host reports that the segment `quoted` cannot reach the peer. `refuses`: it also ends an opening.
    pub(crate) fn on_unreachable(&mut self, now: Instant, quoted: SeqNum, refuses: bool) {
        // Before the connection is established there is nothing to lose; later it may be a passing failure, or forged (RFC
        // 1122 §4.2.3.9, RFC 5461 §4.1, RFC 5927 §6).
        if refuses && self.state() == State::SynSent {
            self.is_refused = true;
            self.stream.abort(now);
        } else {
            self.unreachable = Some(quoted);
        }
    }

    /// Its timer fires. Returns what it shows about the path.
    pub(crate) fn on_timer(
        &mut self,
        now: Instant,
        detects_black_holes: bool,
        buffers: &mut Buffers,
    ) -> Option<PathMtu> {
        if let Owner::Nobody { until } = self.owner
            && until <= now
        {
            self.stream.abort(now);
        }
        if self.stream.connection().deadline() <= now {
            self.stream.lend(buffers);
            self.stream.on_timer(now);
            return self.segment_size.on_timeout(now, self.stream.connection_mut(), detects_black_holes);
        }
        if self.shrink_at <= now {
            self.stream.shrink(now);
            self.shrink_at = now + FORGET_RETIRED_AFTER;
        }
        None
    }

    /// The next segment to send; its payload is appended to `payload`. Without one, the socket leaves the send queue.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
        let Output::Send(segment) = self.stream.poll(now, payload) else {
            self.is_queued = false;
            return None;
        };
        Some(Transmit { endpoints: self.flow.endpoints(), hop_limit: self.hop_limit, segment })
    }

    /// Installs new plug-ins once nothing is outstanding. True if it does. The first step of `Stack::settle`.
    #[inline]
    pub(crate) fn replace_plugins(&mut self, now: Instant) -> bool {
        let Some(plugins) = self.next_plugins.take() else { return false };
        self.next_plugins = self.stream.connection_mut().replace_sender_plugins(now, plugins).err();
        self.next_plugins.is_none()
    }

    /// Notes what limits the socket from now on. Called after it has sent all it can.
    #[inline]
    pub(crate) fn note_limit(&mut self, now: Instant) {
        self.stopwatch.set(now, self.stream.connection().send_limit(), self.interest.wants_write());
    }

    /// True once: when the connection is first seen established.
    pub(crate) fn becomes_connected(&mut self) -> bool {
        self.interest.take_connected()
    }

    /// Notifies the application of the events that it waits for. True if the socket must be polled for segments again.
    #[inline]
    pub(crate) fn notify(&mut self, now: Instant, id: SocketId, events: &mut Events) -> bool {
        if self.owner != Owner::Application {
            return false;
        }
        if self.read_shut && self.stream.connection().readable() > Bytes::ZERO {
            self.discard(now);
            return true; // the window has opened
        }
        if self.interest.wants_read() && self.is_readable() {
            self.interest.take_read();
            events.push(Event::Readable(id));
        }
        if self.interest.wants_write() {
            self.tune_send_buffer();
            if self.is_writable() {
                self.interest.take_write();
                events.push(Event::Writable(id));
            }
        }
        if self.interest.wants_delivered() && self.is_delivered() {
            self.interest.take_delivered();
            events.push(Event::Delivered(id));
        }
        false
    }

    /// Notifies the application, once, that the connection has ended; it may still read. Called by `stack/settle`.
    pub(crate) fn notify_closed(&mut self, id: SocketId, events: &mut Events) {
        if self.owner != Owner::Application || !self.interest.take_closed() {
            return;
        }
        if self.interest.take_read() {
            events.push(Event::Readable(id));
        }
        if self.interest.take_write() {
            events.push(Event::Writable(id));
        }
        if self.interest.take_delivered() {
            events.push(Event::Delivered(id));
        }
        events.push(Event::Closed(id));
    }

    /// True if the peer has acknowledged everything that was written, and the end of the stream if it was to be sent.
    pub(crate) fn is_delivered(&self) -> bool {
        let connection = self.stream.connection();
        let end_is_acknowledged = match connection.state() {
            State::FinWait2 | State::TimeWait => true,
            State::Closed => self.failure().is_none(),
            _ => !connection.is_write_closed(),
        };
        connection.unacknowledged() == Bytes::ZERO && end_is_acknowledged
    }

    /// Bytes that are not acknowledged, if there are any, or if the end of the stream still has to arrive.
    pub(crate) fn undelivered(&self) -> Option<u64> {
        let bytes = self.stream.connection().unacknowledged().0;
        let is_open = self.state() != State::Closed;
        (bytes > 0 || is_open && !self.is_delivered()).then_some(bytes)
    }

    /// Returns empty buffers, and the time at which its timer must fire. A closed socket ends after `orphan_timeout` without
    /// progress. Called after [`Socket::notify`].
    #[inline]
    pub(crate) fn rest(&mut self, now: Instant, orphan_timeout: Duration, buffers: &mut Buffers) -> Instant {
        let connection = self.stream.connection();
        let mut deadline = connection.deadline();
        let is_busy = !self.is_delivered() || connection.has_gaps();
        self.progress.note(now, connection.acknowledged() + connection.received(), is_busy);
        if let Owner::Nobody { until } = self.owner {
            deadline = deadline.min(until);
            if self.undelivered().is_some() {
                deadline = deadline.min(self.progress.since() + orphan_timeout);
            }
        }
        self.stream.give_back(buffers);
        if !self.stream.holds_memory() {
            self.shrink_at = Instant::NEVER;
        } else if !self.shrink_at.is_set() || self.shrink_at < now + IDLE {
            self.shrink_at = now + IDLE;
        }
        deadline.min(self.shrink_at)
    }

    /// True if it was closed, and its peer has acknowledged nothing for `orphan_timeout`.
    pub(crate) fn is_abandoned(&self, now: Instant, orphan_timeout: Duration) -> bool {
        self.is_orphan() && self.progress.since() + orphan_timeout <= now && self.undelivered().is_some()
    }

    /// True if it holds more than every connection may have.
    pub(crate) fn holds_much(&self) -> bool {
        self.charged > GUARANTEED_MEMORY
    }

    /// True if it may end when there is no memory: it holds more than the least, and has waited for its peer for too long, although
    /// its application, if it has one, has read everything.
    pub(crate) fn may_give_way(&self, now: Instant) -> bool {
        let is_orphan = self.is_orphan();
        let patience = if is_orphan { LEAST_PATIENCE } else { STALLED };
        let has_read = is_orphan || self.stream.connection().readable() == Bytes::ZERO;
        self.holds_much() && has_read && self.waits_since().is_some_and(|since| since + patience <= now)
    }

    /// Since when it waits for its peer: to acknowledge something, or to send what is missing. None if it does not.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        let is_open = self.state() != State::Closed;
        is_open.then(|| self.progress.busy_since()).flatten()
    }

    /// True once: when it is seen to hold memory while it is not in the list of those that do.
    #[inline]
    pub(crate) fn becomes_holder(&mut self) -> bool {
        self.charged > 0 && !std::mem::replace(&mut self.is_noted_holder, true)
    }

    /// It was removed from the list of those that hold memory.
    pub(crate) fn leave_holders(&mut self) {
        self.is_noted_holder = false;
    }

    /// Bytes that it was last seen to hold, and those that it holds now.
    #[inline]
    pub(crate) fn charge(&mut self) -> (usize, usize) {
        let before = std::mem::replace(&mut self.charged, self.stream.memory() + self.ingress.memory());
        (before, self.charged)
    }

    /// Announces a window of at most `share` while there is little memory.
    #[inline]
    pub(crate) fn limit_window(&mut self, share: Option<usize>) {
        if share.is_none() && !self.is_short {
            return;
        }
        self.is_short = share.is_some();
        let window = self.tuning.window().min(share.map_or(Bytes::MAX, |share| Bytes(share as u64)));
        self.stream.connection_mut().limit_receive_window(window);
    }

    /// How much of the data in `segment` may be kept if there is no memory: what fills the first gap, if little is unread.
    pub(crate) fn least_room(&self, segment: &Segment) -> u16 {
        let connection = self.stream.connection();
        let next = connection.next_expected();
        let room = (LEAST as u64).saturating_sub(connection.readable().0) as u32;
        if next.before(segment.seq) {
            return 0;
        }
        let old = next.0.wrapping_sub(segment.seq.0);
        old.saturating_add(room).min(u32::from(segment.len)) as u16
    }

    /// True if there is data to read, or the end of the stream, or an error.
    fn is_readable(&self) -> bool {
        let connection = self.stream.connection();
        connection.readable() > Bytes::ZERO || connection.is_read_closed() || connection.state() == State::Closed
    }

    /// True if a good part of the send buffer is free, or writing would report an error.
    fn is_writable(&self) -> bool {
        let free = self.stream.writable();
        free > 0 && free as u64 >= self.stream.connection().unacknowledged().0 / 2 || self.state() == State::Closed
    }

    /// Lets the send buffer hold twice the congestion window.
    fn tune_send_buffer(&mut self) {
        let wanted = Bytes(self.stream.connection().cwnd().0 * 2);
        let limit = wanted.max(self.prepared.options().send_buffer).min(self.largest_send_buffer);
        self.stream.set_send_buffer(limit);
    }

    /// Discards data that has arrived for an application that no longer reads.
    fn discard(&mut self, now: Instant) {
        let mut rest = [0; 2048];
        while self.stream.connection().readable() > Bytes::ZERO && self.state() != State::Closed {
            self.stream.read(now, &mut rest);
        }
    }
}
