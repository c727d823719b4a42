//! The receiving side: what has arrived, what to acknowledge and when, and the window.

mod memory;
mod pending_ack;
mod reassembly;
mod sack;
mod window;

use std::sync::Arc;

use reknit_units::{Bytes, Duration, Instant};

use self::pending_ack::PendingAck;
use self::reassembly::Reassembly;
use self::sack::SackMemory;
use self::window::{ReceiveWindow, WindowFacts};
use crate::config::Config;
use crate::experiment::ExperimentalOption;
use crate::seams::{AckAction, Arrival, PiggybackLimit, Reading, ReceiverPlugins, RxFacts, TimedAck};
use crate::segment::SackBlocks;
use crate::seq::{Offset, SeqNum};
use crate::stats::ReceiveStats;

/// The part of a segment's payload that the receiver accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The position of its first byte: the number of stream bytes before it.
    pub position: u64,
    /// Bytes of the payload to skip.
    pub skip: usize,
    /// Bytes to keep.
    pub len: usize,
}

/// A segment with data, as parsed by the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) now: Instant,
    pub(crate) start: Offset,
    pub(crate) end: Offset,
    /// The last byte of the sequence range is a FIN.
    pub(crate) fin: bool,
    pub(crate) push: bool,
    pub(crate) timestamp: Option<u32>,
    pub(crate) experiment: &'a ExperimentalOption,
    /// The smoothed round-trip time so far.
    pub(crate) rtt: Option<Duration>,
}

/// The most blocks above a gap: one for every 536 bytes of the buffer, the smallest segments that must be expected, but
/// enough for a small buffer of tiny segments.
fn most_blocks(config: &Config) -> usize {
    (config.receive_buffer_size().0 / 536).max(64) as usize
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Receiver {
    config: Arc<Config>,
    pub(crate) plugins: ReceiverPlugins,
    reassembly: Reassembly,
    sack: SackMemory,
    sack_permitted: bool,
    irs: SeqNum,
    /// The position of the peer's FIN, once a segment with it has arrived.
    fin: Option<Offset>,
    /// The application has read up to this position.
    read: Offset,
    /// The application reads all data as it arrives, before it is acknowledged.
    reads_at_once: bool,
    window: ReceiveWindow,
    pending_ack: PendingAck,
    /// The longest segment so far, in bytes: the estimate of the peer's segment size (RFC 5681 §4.2).
    largest: u32,
    pub(crate) stats: ReceiveStats,
}

/// What the window depends on. A macro, so that it borrows only the fields that it contains.
macro_rules! window_facts {
    ($receiver:expr) => {
        WindowFacts {
            rcv_nxt: $receiver.reassembly.rcv_nxt(),
            read: $receiver.read,
            config: &$receiver.config,
            buffers: &$receiver.plugins.receive_buffers,
        }
    };
}

impl Receiver {
    pub(crate) fn new(config: Arc<Config>, plugins: ReceiverPlugins) -> Receiver {
        Receiver {
            window: ReceiveWindow::new(&config),
            plugins,
            reassembly: Reassembly::new(Offset::SYN, most_blocks(&config)),
            sack: SackMemory::default(),
            sack_permitted: false,
            irs: SeqNum(0),
            fin: None,
            read: Offset::DATA,
            reads_at_once: false,
            pending_ack: PendingAck::NONE,
            largest: 0,
            stats: ReceiveStats::default(),
            config,
        }
    }

    /// The peer's SYN arrived.
    pub(crate) fn synchronise(&mut self, irs: SeqNum) {
        self.irs = irs;
        self.reassembly = Reassembly::new(Offset::DATA, most_blocks(&self.config));
        self.window.synchronise();
    }

    /// The options are negotiated.
    pub(crate) fn establish(&mut self, shift: u8, sack_permitted: bool, duplicate_reports: u32) {
        self.window.establish(shift);
        self.sack_permitted = sack_permitted;
        self.sack.report_duplicates_in(duplicate_reports);
    }

    pub(crate) fn irs(&self) -> SeqNum {
        self.irs
    }

    pub(crate) fn rcv_nxt(&self) -> Offset {
        self.reassembly.rcv_nxt()
    }

    /// True if RCV.NXT has passed the peer's FIN.
    pub(crate) fn fin_received(&self) -> bool {
        self.fin.is_some_and(|fin| self.rcv_nxt() > fin)
    }

    /// Bytes that the application can read.
    pub(crate) fn readable(&self) -> Bytes {
        let end = if self.fin_received() { self.rcv_nxt() - Bytes(1) } else { self.rcv_nxt() };
        end.since(self.read)
    }

    /// True if there are gaps before data that has arrived.
    pub(crate) fn has_gaps(&self) -> bool {
        self.reassembly.has_gaps()
    }

    /// The stream offset of the peer's sequence number `seq`.
    pub(crate) fn offset(&self, seq: SeqNum) -> Option<Offset> {
        self.rcv_nxt().nearest(seq, self.irs)
    }

    /// The acceptability test (RFC 9293 §3.4): is any part of `start..end` in the window?
    pub(crate) fn accepts(&self, start: Offset, end: Offset) -> bool {
        let nxt = self.rcv_nxt();
        if start == end {
            // Also at the right edge: a peer that has filled the window sends its ACKs with that number.
            nxt <= start && start <= self.window.edge().max(nxt)
        } else {
            start < self.window.edge() && end > nxt
        }
    }

    /// True if all bytes below `end` are within the window, and no FIN is known.
    pub(crate) fn has_room_until(&self, end: Offset) -> bool {
        self.fin.is_none() && end <= self.window.edge()
    }

    /// Processes a segment's bytes. Returns the part of the payload to keep.
    pub(crate) fn on_data(&mut self, arrived: &Arrived<'_>) -> Option<Delivery> {
        let Arrived { now, start, end, fin, push, timestamp, experiment, rtt } = *arrived;
        self.stats.segments += 1;
        let before = self.rcv_nxt();
        let (within, arrival, newer_blocks) = self.place(start, end, fin);
        self.largest = self.largest.max(end.since(start).0 as u32);
        let mut rx = RxFacts {
            now,
            config: &self.config,
            arrival,
            start,
            end,
            rcv_nxt: self.rcv_nxt(),
            highest: self.reassembly.highest(),
            read: self.read,
            held: self.reassembly.held(),
            gaps: self.reassembly.has_gaps(),
            newer_blocks,
            rmss: self.rmss(),
            fin,
            push,
            window: self.window.edge().since(self.rcv_nxt()),
            buffer_grew: false,
            timestamp,
            experiment,
            dropped: self.dropped(experiment),
            rtt,
        };
        let spaces = self.plugins.receive_buffers.iter_mut().map(|buffer| buffer.on_data(&rx));
        if let Some(space) = spaces.min_by_key(|space| space.size) {
            self.window.use_buffer(space.size, &self.config);
            rx.buffer_grew = space.grew;
        }
        for support in &mut self.plugins.header_support {
            support.on_data(&rx);
        }
        let action = self.plugins.ack_policy.on_data(&rx);
        self.pending_ack.schedule(action, arrival == Arrival::InOrder);
        if self.reads_at_once && self.take(now, self.readable(), rtt) {
            self.pending_ack.schedule(AckAction::Now, true);
        }
        let first = start.max(before);
        let last = self.fin.map_or(within, |fin| within.min(fin));
        (last > first).then(|| Delivery {
            position: first.0 - Offset::DATA.0,
            skip: first.since(start).0 as usize,
            len: last.since(first).0 as usize,
        })
    }

    /// Keeps the bytes up to an end, which it returns with where the segment belongs and how many SACK blocks have changed more
    /// recently.
    fn place(&mut self, start: Offset, end: Offset, fin: bool) -> (Offset, Arrival, usize) {
        let (before, had_gaps) = (self.rcv_nxt(), self.reassembly.has_gaps());
        if start == before && !had_gaps && !fin && self.has_room_until(end) {
            self.reassembly.advance(end);
            return (end, Arrival::InOrder, 0);
        }
        let within = self.admit(start, end, fin);
        if within <= start.max(before) {
            self.on_old_bytes(start, end.min(before));
            return (within, Arrival::Duplicate, 0);
        }
        match self.insert(start, within, before, had_gaps) {
            Some((arrival, newer_blocks)) => (within, arrival, newer_blocks),
            None => (start, Arrival::OutOfOrder, 0),
        }
    }

    /// What routers have dropped, as stream offsets.
    fn dropped(&self, experiment: &ExperimentalOption) -> Option<(Offset, Offset)> {
        let dropped = experiment.dropped.filter(|dropped| !dropped.is_empty())?;
        Some((self.offset(dropped.lowest)?, self.offset(dropped.highest)?))
    }

    /// The end of the acceptable part of a segment: within the window, and not beyond a FIN. A FIN that contradicts
    /// earlier segments is ignored.
    fn admit(&mut self, start: Offset, end: Offset, fin: bool) -> Offset {
        let mut within = end.min(self.window.edge().max(self.rcv_nxt()));
        if fin && self.fin.is_none() && within == end && end > self.reassembly.highest() {
            self.fin = Some(end - Bytes(1));
        }
        match self.fin {
            Some(known) => within = within.min(known + Bytes(1)),
            None if fin => within = within.min(end - Bytes(1)),
            None => {}
        }
        if fin && self.fin.is_some_and(|known| known + Bytes(1) != end) {
            within = within.min(end - Bytes(1));
        }
        within.max(start)
    }

    /// None if the segment is refused, because it would make too many blocks.
    fn insert(&mut self, start: Offset, end: Offset, before: Offset, had_gaps: bool) -> Option<(Arrival, usize)> {
        let inserted = self.reassembly.insert(start..end)?;
        if let Some(duplicate) = inserted.duplicate {
            self.report_duplicate(duplicate, inserted.block.clone());
        }
        let newer_blocks = inserted.block.map_or(0, |block| self.sack.on_block(block));
        if !inserted.new {
            self.stats.duplicates += 1;
            return Some((Arrival::Duplicate, newer_blocks));
        }
        let arrival = match (self.rcv_nxt() > before, had_gaps) {
            (true, true) => {
                self.sack.on_advance(self.rcv_nxt());
                Arrival::FillsGap
            }
            (true, false) => Arrival::InOrder,
            (false, _) => {
                self.stats.out_of_order += 1;
                Arrival::OutOfOrder
            }
        };
        Some((arrival, newer_blocks))
    }

    /// No part of a segment is acceptable. What lies below RCV.NXT is a duplicate.
    fn on_old_bytes(&mut self, start: Offset, end: Offset) {
        self.stats.duplicates += 1;
        if start < end {
            self.report_duplicate(start..end, None);
        }
    }

    /// A segment was discarded by PAWS. RFC 7323 §5.3 asks for an ACK. If the data had already arrived, the ACK reports
    /// the duplicate (RFC 2883), as Linux does: the late original of a retransmitted segment shows the sender that the
    /// retransmission was spurious.
    pub(crate) fn on_discarded(&mut self, start: Offset, end: Offset) {
        let end = end.min(self.rcv_nxt());
        if start < end {
            self.report_duplicate(start..end, None);
        }
        self.ack_now();
    }

    fn report_duplicate(&mut self, duplicate: std::ops::Range<Offset>, block: Option<std::ops::Range<Offset>>) {
        if self.config.dsack {
            self.sack.on_duplicate(duplicate, block);
        }
    }

    /// An acknowledgment must be sent now, whatever the policy decides (RFC 9293 §3.10.7.4, RFC 5961).
    pub(crate) fn ack_now(&mut self) {
        self.pending_ack.schedule_now();
    }

    /// When an acknowledgment must go out.
    pub(crate) fn deadline(&self) -> Instant {
        self.pending_ack.deadline().min(self.plugins.ack_policy.deadline())
    }

    /// True if a pure acknowledgment must be sent.
    pub(crate) fn needs_pure_ack(&self, now: Instant) -> bool {
        self.pending_ack.deadline() <= now
    }

    /// The next acknowledgment that the policy itself has scheduled, if it is due.
    pub(crate) fn take_timed_ack(&mut self, now: Instant) -> Option<TimedAck> {
        if self.plugins.ack_policy.deadline() > now {
            return None;
        }
        let timed = self.plugins.ack_policy.on_timer(now)?;
        self.stats.acks_sent += 1;
        if timed.ack >= self.rcv_nxt() {
            self.pending_ack.cancel_delayed();
        }
        Some(TimedAck { ack: timed.ack.min(self.rcv_nxt()), ..timed })
    }

    /// What a segment that is sent for another reason may acknowledge.
    pub(crate) fn disclosure(&self) -> PiggybackLimit {
        let policy = self.plugins.ack_policy.disclosure();
        PiggybackLimit { ack: policy.ack.min(self.rcv_nxt()), ..policy }
    }

    /// A segment that acknowledges RCV.NXT is about to be sent; `pure` if it has no data.
    pub(crate) fn on_ack_sent(&mut self, pure: bool) {
        self.stats.acks_sent += u64::from(pure);
        if self.pending_ack.on_ack_sent(pure) {
            self.plugins.ack_policy.on_ack_sent();
        }
    }

    /// True if the next segment has something to report in a SACK option.
    pub(crate) fn has_sack_news(&self) -> bool {
        self.sack_permitted && self.sack.has_news()
    }

    /// The SACK option for the next segment, with room for `room` blocks.
    pub(crate) fn take_sack(&mut self, room: usize) -> SackBlocks {
        if room > 0 && self.has_sack_news() { self.sack.take(room, self.irs) } else { SackBlocks::EMPTY }
    }

    /// The window field for a segment that acknowledges `ack`, scaled.
    pub(crate) fn advertise_window(&mut self, ack: Offset) -> u16 {
        let facts = window_facts!(self);
        self.window.advertise_window(ack, &facts)
    }

    /// The window field that announces nothing new.
    pub(crate) fn window_field(&self, ack: Offset) -> u16 {
        self.window.field(ack)
    }

    /// The owner limits the window to this, below the receive buffer.
    pub(crate) fn limit_window(&mut self, limit: Bytes) {
        self.window.limit(limit);
    }

    /// The options have changed.
    pub(crate) fn reconfigure(&mut self, config: Arc<Config>) {
        self.config = config;
        if self.plugins.receive_buffers.is_empty() {
            self.window.use_buffer(Bytes::MAX, &self.config);
        }
    }

    /// The window of a SYN, which is never scaled (RFC 7323 §2.2). The peer's segments will have up to `mss` bytes of data.
    pub(crate) fn advertise_on_syn(&mut self, mss: Bytes) -> u16 {
        let windows = self.plugins.receive_buffers.iter_mut().map(|buffer| buffer.initial(mss));
        self.window.use_buffer(windows.fold(Bytes::MAX, Bytes::min), &self.config);
        self.window.advertise_unscaled(self.reassembly.rcv_nxt(), &self.config)
    }

    /// From now on the application reads all data as it arrives, before it is acknowledged.
    pub(crate) fn read_at_once(&mut self) {
        self.reads_at_once = true;
    }

    /// The application has read `n` bytes. True if an ACK must be sent, or the peer should get a window update.
    pub(crate) fn on_read(&mut self, now: Instant, n: Bytes, rtt: Option<Duration>) -> bool {
        let is_due = self.take(now, n, rtt);
        is_due || self.window.is_update_due(&window_facts!(self))
    }

    /// True if the ACK policy wants an ACK.
    fn take(&mut self, now: Instant, n: Bytes, rtt: Option<Duration>) -> bool {
        let n = n.min(self.readable());
        if n == Bytes::ZERO {
            return false;
        }
        self.read += n;
        let reading = Reading {
            now,
            read: self.read,
            left: self.readable(),
            held: self.reassembly.held(),
            above_gap: self.reassembly.highest().since(self.rcv_nxt()),
            rmss: self.rmss(),
            rtt,
        };
        let sizes = self.plugins.receive_buffers.iter_mut().filter_map(|buffer| buffer.on_read(&reading));
        if let Some(size) = sizes.min() {
            self.window.use_buffer(size, &self.config);
        }
        self.plugins.ack_policy.on_read(&reading)
    }

    /// A longer segment was coalesced from several by the device (GRO).
    fn rmss(&self) -> Bytes {
        Bytes(u64::from(self.largest.min(u32::from(self.config.mss))))
    }
}
