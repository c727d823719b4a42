//! All sockets, with their timers, the buffers that they share, and the queue of those that have something to send. The
//! files of `stack/` call it for each packet, timer and call of an application. Owned by [`crate::Stack`].
//!
//! Prefetches the state of several connections before their segments are processed. With many connections, the state of most
//! of them is not in the cache. If segments are processed one by one, the processor waits for memory several times for each:
//! for the bucket of the flow, the entry of the socket, the socket, its algorithms, and its timer. If the state of many
//! connections is read in one loop, it waits for all of them at the same time.
//!
//! `black_box` gets references. A value would be copied on the stack, and a load of another size than the store waits for the
//! line to arrive from memory, which keeps the processor from requesting the next ones.

mod room;

use std::hint::black_box;

use reknit_tcp::segment::Flags;
use reknit_tcp::{Buffers, Segment};
use reknit_units::{Duration, Instant};
use reknit_wire::Decoded;

use crate::answers::Transmit;
use crate::counters::Counters;
use crate::error::Error;
use crate::events::Events;
use crate::flow::{FourTuple, Secret};
use crate::ingress::Arrival;
use crate::memory::Memory;
use crate::options::Options;
use crate::segment_size::PathMtu;
use crate::send_queue::SendQueue;
use crate::socket::Socket;
use crate::socket_id::SocketId;
use crate::spare::Evictable;
use crate::table::{Slot, Table};
use crate::waiters::Waiters;
use crate::wheel::Wheel;

/// The most connections that are prefetched at once. Their state fits in the cache of one core.
pub(crate) const AHEAD: usize = 32;
/// The state of fewer sockets than this fits in a cache and is not prefetched.
const FEW: usize = 1024;

/// The sockets of a stack.
#[derive(Debug)]
pub(crate) struct Sockets {
    table: Table,
    wheel: Wheel,
    queue: SendQueue,
    /// Lent to the socket that is busy now.
    buffers: Buffers,
    spare: Evictable,
    /// The number of sockets without an owner, except for those in FIN-WAIT-2 and TIME-WAIT.
    orphans: usize,
    orphan_timeout: Duration,
    waiting_orphans: Waiters,
    memory: Memory,
    /// Those that hold some of it.
    holders: Waiters,
    /// The device cuts packets into segments (TSO): see [`crate::Options::offload`].
    offload: bool,
    /// Segments that arrive wait for the turn of their socket: see [`crate::Stack::delay_arrivals`].
    delays_arrivals: bool,
}

/// The result of a turn of the send queue.
#[derive(Debug)]
pub(crate) enum Dequeued {
    /// A segment to send.
    Segment(Transmit),
    /// The socket with this index may process the next segment that has arrived for it (`Sockets::on_waiting_segment`).
    Arrival(u32),
    /// The socket with this index may do the next part of what its last event has left (`Sockets::on_timer`).
    Backlog(u32),
    /// The socket with this index has nothing more to send, and must be settled (`Stack::settle`).
    Over(u32),
    /// No socket has anything to send.
    Nobody,
}

impl Sockets {
    pub(crate) fn new(now: Instant, hash: Secret, options: &Options) -> Sockets {
        Sockets {
            table: Table::new(hash),
            wheel: Wheel::new(now),
            queue: SendQueue::default(),
            buffers: Buffers::default(),
            spare: Evictable::default(),
            orphans: 0,
            orphan_timeout: options.orphan_timeout,
            waiting_orphans: Waiters::default(),
            memory: Memory::new(options.max_memory),
            holders: Waiters::default(),
            offload: options.offload,
            delays_arrivals: false,
        }
    }

    /// Sockets of all kinds.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// True if nothing has to be sent, and only the ends of TIME-WAIT are waited for. Visits all sockets.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.table.is_idle()
    }

    /// When the next timer fires; in the past if there are segments to send.
    pub(crate) fn deadline(&self) -> Instant {
        if self.queue.is_empty() { self.wheel.next() } else { Instant::ZERO }
    }

    /// The index of the socket with this flow.
    #[inline]
    pub(crate) fn find(&self, flow: &FourTuple) -> Option<u32> {
        self.table.find(flow)
    }

    pub(crate) fn get(&self, id: SocketId) -> Option<&Socket> {
        self.table.get(id)
    }

    /// The socket of an application's call.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: SocketId) -> Result<&mut Socket, Error> {
        self.table.get_mut(id).ok_or(Error::NoSocket)
    }

    #[inline]
    pub(crate) fn live(&mut self, index: u32) -> Option<&mut Socket> {
        self.table.live(index)
    }

    #[inline]
    pub(crate) fn slot(&mut self, index: u32) -> &mut Slot {
        self.table.slot(index)
    }

    /// The name of the socket at `index`.
    pub(crate) fn id(&self, index: u32) -> SocketId {
        self.table.id(index)
    }

    /// All sockets except for those in TIME-WAIT without an owner.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Socket> {
        self.table.iter().map(|(_, socket)| socket)
    }

    /// The indices of these sockets.
    pub(crate) fn live_indices(&self) -> Vec<u32> {
        self.table.iter().map(|(index, _)| index).collect()
    }

    /// Adds a socket, whose flow must be free. It may have something to send.
    pub(crate) fn insert(&mut self, socket: Socket) -> SocketId {
        let id = self.table.insert(Box::new(socket));
        self.wake(id.place());
        id
    }

    /// The socket may have something to send or an event for its owner: puts it into the send queue.
    pub(crate) fn wake(&mut self, index: u32) {
        if let Some(socket) = self.table.live(index)
            && socket.join_queue()
        {
            self.queue.push(index);
        }
    }

    /// Segments have arrived for a live socket. If it has used its share of time and others wait, they wait for its turn. Returns
    /// what it has learned about the path.
    #[inline]
    pub(crate) fn on_segment<'a>(
        &mut self,
        now: Instant,
        index: u32,
        arrived: &Decoded<'_>,
        payloads: impl Iterator<Item = &'a [u8]> + Clone,
        counters: &mut Counters,
    ) -> Option<PathMtu> {
        let share = self.memory.share(self.table.len());
        let Sockets { table, queue, .. } = self;
        let socket = table.live(index)?;
        if !socket.accepts_hop_limit(arrived.hop_limit) {
            return None;
        }
        let others_wait = queue.has_others(socket.is_queued());
        if !self.delays_arrivals && socket.may_process(others_wait, usize::from(arrived.segment.len)) {
            return self.process(now, index, arrived, payloads, counters);
        }
        counters.segments_delayed += 1;
        counters.segments_dropped += u64::from(!socket.delay(arrived, payloads, share.is_some()));
        let (before, after) = socket.charge();
        self.memory.update(before, after);
        self.wake(index);
        None
    }

    /// It is the turn of a socket: it processes the next segment that has waited.
    pub(crate) fn on_waiting_segment(&mut self, now: Instant, index: u32, counters: &mut Counters) -> Option<PathMtu> {
        let socket = self.table.live(index)?;
        let endpoints = socket.flow().endpoints().reversed();
        let Arrival { segment, hop_limit, payload } = socket.next_arrival()?;
        let arrived = Decoded { endpoints, hop_limit, segment, payload: &payload };
        self.process(now, index, &arrived, std::iter::once(&payload[..]), counters)
    }

    #[inline]
    fn process<'a>(
        &mut self,
        now: Instant,
        index: u32,
        arrived: &Decoded<'_>,
        payloads: impl Iterator<Item = &'a [u8]> + Clone,
        counters: &mut Counters,
    ) -> Option<PathMtu> {
        let share = self.memory.share(self.table.len());
        let socket = self.table.live(index)?;
        socket.limit_window(share);
        let learned = if share.is_some() && self.memory.is_full() && arrived.segment.len > 0 {
            let len = socket.least_room(&arrived.segment);
            counters.memory_drops += u64::from(len < arrived.segment.len);
            let segment = shortened(&arrived.segment, len);
            socket.on_segment(now, &Decoded { segment, ..*arrived }, payloads, &mut self.buffers)
        } else {
            socket.on_segment(now, arrived, payloads, &mut self.buffers)
        };
        let (before, after) = socket.charge();
        self.memory.update(before, after);
        self.wake(index);
        learned
    }

    /// As [`crate::Stack::delay_arrivals`].
    pub(crate) fn delay_arrivals(&mut self, delays: bool) {
        self.delays_arrivals = delays;
    }

    /// Bytes that all connections hold.
    pub(crate) fn memory(&self) -> usize {
        self.memory.used()
    }

    /// As [`Socket::read`].
    #[inline]
    pub(crate) fn read(&mut self, now: Instant, id: SocketId, into: &mut [u8]) -> Result<usize, Error> {
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        let result = socket.read(now, into, &mut self.buffers);
        let (before, after) = socket.charge();
        self.memory.update(before, after);
        let n = result?;
        // Only a window update needs to be sent.
        if n > 0 && socket.connection().has_output() {
            self.wake(id.place());
        }
        Ok(n)
    }

    /// As [`Socket::write`].
    #[inline]
    pub(crate) fn write(&mut self, id: SocketId, bytes: &[u8]) -> Result<usize, Error> {
        let share = self.memory.share(self.table.len());
        let socket = self.table.get_mut(id).ok_or(Error::NoSocket)?;
        let n = socket.write(bytes, share, &mut self.buffers)?;
        let (before, after) = socket.charge();
        self.memory.update(before, after);
        if n > 0 {
            self.queue.on_written();
            self.wake(id.place());
        }
        Ok(n)
    }

    /// How often all sockets that waited to send have had a turn; none if no socket waits.
    pub(crate) fn round(&self) -> Option<u32> {
        (!self.queue.is_empty()).then(|| self.queue.round())
    }

    /// The next segment to send, from the socket whose turn it is; its payload is appended to `payload`. `answers_wait`: so do
    /// segments that belong to no socket.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant, payload: &mut Vec<u8>, answers_wait: bool) -> Dequeued {
        while let Some(index) = self.queue.first() {
            if self.queue.has_used_read_ahead() {
                self.read_senders();
            }
            let Sockets { table, queue, .. } = self;
            let Some(socket) = table.live(index) else {
                queue.end_turn();
                continue;
            };
            if !socket.has_turn(queue.begins_turn(), answers_wait || queue.has_others(true)) {
                queue.put_last();
                continue;
            }
            if socket.has_arrivals() && queue.takes_arrival() {
                return Dequeued::Arrival(index);
            }
            if let Some(transmit) = socket.poll(now, payload) {
                let len = usize::from(transmit.segment.len);
                socket.charge_sent(len, queue.joins(len, self.offload));
                return Dequeued::Segment(transmit);
            }
            if socket.takes_backlog(now) {
                socket.join_queue(); // it has stayed there
                return Dequeued::Backlog(index);
            }
            if socket.has_arrivals() {
                socket.join_queue(); // it has stayed there
                queue.on_all_sent();
                continue;
            }
            queue.end_turn();
            return Dequeued::Over(index);
        }
        Dequeued::Nobody
    }

    /// Appends the indices of the sockets whose timers are due to `due`.
    pub(crate) fn advance(&mut self, now: Instant, due: &mut Vec<u32>) {
        self.wheel.advance(now, due);
    }

    /// The timer of a live socket is due. Returns what it has learned about the path.
    pub(crate) fn on_timer(
        &mut self,
        now: Instant,
        index: u32,
        detects_black_holes: bool,
        counters: &mut Counters,
    ) -> Option<PathMtu> {
        let socket = self.table.live(index)?;
        if self.memory.is_full() && socket.may_give_way(now) {
            counters.memory_resets += u64::from(socket.abort(now));
        } else if socket.is_abandoned(now, self.orphan_timeout) {
            counters.orphan_timeouts += u64::from(socket.abort(now));
        }
        let learned = socket.on_timer(now, detects_black_holes, &mut self.buffers);
        self.wake(index);
        learned
    }

    /// The socket has nothing more to do now: notifies its application, returns buffers, and sets its timer. The last step of
    /// `Stack::settle`.
    #[inline]
    pub(crate) fn rest(&mut self, now: Instant, index: u32, events: &mut Events, counters: &mut Counters) {
        let id = self.table.id(index);
        let Some(socket) = self.table.live(index) else { return };
        if socket.notify(now, id, events) && socket.join_queue() {
            self.queue.push(index);
        }
        let deadline = socket.rest(now, self.orphan_timeout, &mut self.buffers);
        let (before, after) = socket.charge();
        let is_new = socket.becomes_holder();
        self.memory.update(before, after);
        self.wheel.set(index, deadline);
        if is_new {
            self.note_holder(now, id, counters);
        }
    }

    /// The listener of an established connection is gone: it is reset.
    pub(crate) fn disown(&mut self, now: Instant, index: u32) {
        let Some(socket) = self.table.live(index) else { return };
        socket.disown(now);
        self.orphans += 1;
        self.wake(index);
    }

    /// Segments of its flow belong to no socket from now on, and it has no timer.
    pub(crate) fn forget_flow(&mut self, index: u32) {
        self.table.forget_flow(index);
        self.wheel.clear(index);
    }

    pub(crate) fn remove(&mut self, index: u32) {
        if let Some(socket) = self.table.live(index) {
            self.orphans -= usize::from(socket.is_orphan());
            self.memory.update(socket.charge().0, 0);
        }
        self.wheel.clear(index);
        self.table.remove(index);
    }

    /// The timer of a connection in FIN-WAIT-2 or TIME-WAIT is due: it ends, unless its time was extended.
    pub(crate) fn on_time_wait_timer(&mut self, now: Instant, index: u32) {
        let Slot::TimeWait(waiting) = self.table.slot(index) else { return };
        let expires = waiting.state().expires;
        if expires <= now {
            self.table.remove(index);
        } else {
            self.wheel.set(index, expires);
        }
    }

    /// As [`crate::Stack::prefetch`].
    #[inline]
    pub(crate) fn prefetch<'a>(&self, segments: impl IntoIterator<Item = &'a Decoded<'a>>) {
        if self.table.len() < FEW {
            return;
        }
        let mut segments = segments.into_iter();
        let (Some(first), Some(second)) = (segments.next(), segments.next()) else {
            return; // Waiting for one connection at a time is not faster.
        };
        let mut hashes = [0; AHEAD];
        let flows = [first, second].into_iter().chain(segments).map(|segment| FourTuple::of_arrival(segment.endpoints));
        let count = hashes.iter_mut().zip(flows).map(|(hash, flow)| *hash = self.table.hash(&flow)).count();
        let mut sockets = [0; AHEAD];
        let found = hashes[..count].iter().filter_map(|hash| self.table.guess(*hash));
        let count = sockets.iter_mut().zip(found).map(|(socket, index)| *socket = index).count();
        self.read_sockets(&sockets[..count]);
    }

    /// Prefetches the state of the sockets that send next. Called each time that the prefetched ones have had their turn.
    fn read_senders(&mut self) {
        let mut sockets = [0; AHEAD];
        let count = self.queue.next_to_read_ahead(&mut sockets);
        if count > 0 {
            self.read_sockets(&sockets[..count]);
        }
    }

    /// Prefetches the state of `sockets`. Each loop needs what the one before has loaded.
    pub(crate) fn read_sockets(&self, sockets: &[u32]) {
        if self.table.len() < FEW {
            return;
        }
        for index in sockets {
            black_box(&(self.table.peek(*index).is_some(), self.wheel.due(*index)));
        }
        let live = || sockets.iter().filter_map(|index| self.table.peek(*index));
        for socket in live() {
            socket.prefetch();
        }
        for socket in live() {
            socket.prefetch_plugins();
        }
    }
}

/// The segment with only the first `len` bytes of its data.
fn shortened(segment: &Segment, len: u16) -> Segment {
    if len >= segment.len {
        return *segment;
    }
    let flags = Flags::from_bits(segment.flags.bits() & !(Flags::FIN | Flags::PSH).bits());
    Segment { len, flags, ..*segment }
}
