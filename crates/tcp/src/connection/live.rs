//! Functions for the owner of many connections: options and sizes that change while a connection is open, a passive open
//! from a SYN cookie, shared buffers, and the state that TIME-WAIT keeps.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

use reknit_units::{Bytes, Duration, Instant, Segments};

use super::{CloseReason, Connection, Identity, State};
use crate::config::Config;
use crate::pool::Pool;
use crate::scoreboard::SegmentRecord;
use crate::seams::Plugins;
use crate::segment::{Segment, TIMESTAMPS_LEN};
use crate::sender::SenderBuffers;
use crate::seq::{Offset, SeqNum};

/// Buffers that only a busy connection needs.
#[derive(Debug, Default)]
pub(crate) struct ConnectionBuffers {
    segments: Pool<VecDeque<Segment>>,
    sender: SenderBuffers,
}

/// What a host must remember of a connection in TIME-WAIT, or of one in FIN-WAIT-2 that no application uses any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeWait {
    /// SND.NXT: the sequence number of every answer.
    pub snd_nxt: SeqNum,
    /// RCV.NXT.
    pub rcv_nxt: SeqNum,
    /// The window field of the last segment.
    pub window: u16,
    /// TS.Recent, if timestamps were agreed on.
    pub ts_recent: Option<u32>,
    /// The offset of the timestamp clock.
    pub timestamp_offset: u32,
    /// When it ends.
    pub expires: Instant,
    /// How long it lasts after the peer's last FIN.
    pub duration: Duration,
}

impl Connection {
    /// A passive open whose SYN-ACK was sent before the connection existed, from what a SYN cookie has kept of the SYN.
    /// The segment that acknowledges the SYN-ACK comes next. The round trip of the handshake is not measured.
    pub fn resume(
        now: Instant,
        config: Arc<Config>,
        plugins: Plugins,
        identity: Identity,
        syn: &Segment,
    ) -> Connection {
        let mut connection = Connection::listen(now, config, plugins, identity);
        connection.take_answered_syn(now, syn);
        connection
    }

    /// The options of the connection.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Changes the options of an open connection. Those that the handshake negotiates keep their agreed values.
    pub fn reconfigure(&mut self, now: Instant, config: Arc<Config>) {
        self.sender.reconfigure(config.clone());
        self.receiver.reconfigure(config.clone());
        if config.keep_alive != self.config.keep_alive {
            self.silence.end(now); // the idle time begins now
        }
        self.config = config;
        self.deadline.forget();
        self.dirty = true; // Nagle's algorithm may have held something back
        self.send_written(now);
    }

    /// Limits the window that is announced to `limit`, below the receive buffer of the options. What was announced before
    /// is still accepted.
    pub fn limit_receive_window(&mut self, limit: Bytes) {
        self.receiver.limit_window(limit);
    }

    /// One event sends at most `most` segments. The rest follows in further events at the same time: see
    /// [`Connection::has_backlog`]. Without this limit, it is 2048.
    pub fn limit_event(&mut self, most: Segments) {
        self.sender.limit_event(most.0);
    }

    /// True if the last event has left work for another one. [`Connection::deadline`] is then over, and
    /// [`Connection::on_timer`] does the next part. A connection that has ended has none.
    pub fn has_backlog(&self, now: Instant) -> bool {
        self.sender.has_backlog() && self.deadline() <= now
    }

    /// The path does not carry larger segments than `mss`, options included. Outstanding segments that are larger did
    /// not arrive; they are sent again at once in smaller pieces, and this is no sign of congestion (RFC 1191 §6.4).
    /// False if this was known.
    pub fn limit_segment_size(&mut self, now: Instant, mss: u16) -> bool {
        if mss >= self.config.mss.min(self.negotiation.path_mss()) {
            return false;
        }
        let before = self.agreed_mss();
        self.negotiation.set_path_mss(mss);
        if self.is_synchronised() && mss < before {
            self.sender.limit_segment_size(now, self.smss());
            self.flush(now);
        }
        true
    }

    /// Tries one segment of `mss` bytes, options included, after segments were limited to less (RFC 4821 §7). It has new
    /// data, and is sent when there is enough. [`Connection::probed_segment_size`] returns the result. False if neither
    /// end allows segments larger than the present ones.
    pub fn probe_segment_size(&mut self, mss: u16) -> bool {
        let mss = mss.min(self.config.mss).min(self.negotiation.peer_mss());
        let is_larger = mss > self.agreed_mss();
        if is_larger && self.is_synchronised() {
            self.sender.probe_size(mss, self.payload_of(mss));
        }
        is_larger
    }

    /// The size of the segment that was tried and whether it has arrived; if so, full segments have this size from now on.
    /// None while this is not known.
    pub fn probed_segment_size(&mut self) -> Option<(u16, bool)> {
        let (mss, has_arrived) = self.sender.take_probe_result()?;
        self.deadline.forget();
        if has_arrived {
            self.negotiation.set_path_mss(mss);
        }
        Some((mss, has_arrived))
    }

    /// The largest segment, options included, that this end sends.
    pub fn segment_size(&self) -> u16 {
        self.agreed_mss()
    }

    /// What [`Connection::limit_segment_size`] has limited segments to, if it has.
    pub fn path_segment_size(&self) -> Option<u16> {
        Some(self.negotiation.path_mss()).filter(|mss| *mss < u16::MAX)
    }

    /// Payload of a full segment.
    pub(super) fn smss(&self) -> Bytes {
        self.payload_of(self.agreed_mss())
    }

    fn payload_of(&self, mss: u16) -> Bytes {
        let timestamps = if self.negotiation.timestamps() { TIMESTAMPS_LEN } else { 0 };
        let others = timestamps + self.negotiation.features().data_len();
        Bytes(u64::from(mss).saturating_sub(others as u64).max(1))
    }

    /// True if this end may have sent `seq` and the peer has not acknowledged it: the check of RFC 5927 §4.1 for what an
    /// ICMP message quotes.
    pub fn is_outstanding(&self, seq: SeqNum) -> bool {
        match self.state() {
            State::Closed | State::Listen | State::TimeWait => false,
            State::SynSent | State::SynReceived => seq == self.identity.isn,
            _ => {
                let snd = &self.sender.state;
                let offset = snd.snd_una.nearest(seq, self.identity.isn);
                offset.is_some_and(|offset| snd.snd_una <= offset && offset < snd.snd_nxt)
            }
        }
    }

    /// The first segment that the peer has not acknowledged.
    pub fn oldest_outstanding(&self) -> Option<&SegmentRecord> {
        self.sender.board.get(self.sender.board.first())
    }

    /// True if [`Connection::poll`] has a segment ready.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// The congestion window.
    pub fn cwnd(&self) -> Bytes {
        self.sender.state.cwnd
    }

    /// The smoothed round-trip time, measured by this end as the receiver, or else as the sender.
    pub fn round_trip(&self) -> Option<Duration> {
        self.receiver_rtt.get().or(self.sender.state.srtt)
    }

    /// The longest segment whose acknowledgment was seen: the path carries this size.
    pub fn largest_acknowledged(&self) -> Bytes {
        self.sender.largest_acked()
    }

    /// Replaces the sender's plug-ins; those of the receiver are not used. They know nothing of earlier segments, so
    /// nothing may be outstanding: otherwise they are returned. The window stays as it is.
    ///
    /// # Errors
    /// Returns the plug-ins if data is outstanding.
    pub fn replace_sender_plugins(&mut self, now: Instant, plugins: Box<Plugins>) -> Result<(), Box<Plugins>> {
        let fits = self.state() >= State::Established && self.sender.board.is_empty();
        if !fits {
            return Err(plugins);
        }
        self.sender.replace_plugins(now, *plugins);
        self.deadline.forget();
        self.dirty = true;
        Ok(())
    }

    /// Until [`Connection::replace_sender_plugins`] has succeeded, no new data is sent.
    pub fn hold_new_data(&mut self) {
        self.sender.hold_new_data();
        self.deadline.forget();
    }

    /// What must be remembered, if the connection is in TIME-WAIT.
    pub fn time_wait(&self) -> Option<TimeWait> {
        (self.state() == State::TimeWait).then(|| self.remembered(self.lifecycle.time_wait_expires()))
    }

    /// What must be remembered, if the connection is in FIN-WAIT-2: TIME-WAIT begins when the peer's FIN arrives, which may take
    /// until `expires`.
    pub fn fin_wait_2(&self) -> Option<TimeWait> {
        (self.state() == State::FinWait2).then(|| self.remembered(self.fin_wait_2_expires()))
    }

    fn remembered(&self, expires: Instant) -> TimeWait {
        TimeWait {
            snd_nxt: self.sender.state.snd_nxt.to_wire(self.identity.isn),
            rcv_nxt: self.receiver.rcv_nxt().to_wire(self.receiver.irs()),
            window: self.receiver.window_field(self.receiver.rcv_nxt()),
            ts_recent: self.negotiation.timestamps().then_some(self.peer_timestamp.recent()),
            timestamp_offset: self.identity.timestamp_offset,
            expires,
            duration: self.config.time_wait,
        }
    }

    /// Ends TIME-WAIT early, for a new connection between the same ends (RFC 6191). Does nothing in other states.
    pub fn end_time_wait(&mut self) {
        if self.state() == State::TimeWait {
            self.lifecycle.finish(CloseReason::Finished);
            self.deadline.forget();
        }
    }

    /// Prefetches the state that almost every call needs.
    pub(crate) fn prefetch(&self) {
        self.sender.prefetch();
        self.receiver.prefetch();
        black_box(&(
            self.receiver_rtt.get(),
            self.out.len(),
            self.negotiation.timestamps(),
            self.peer_timestamp.last_ack_sent(),
            self.silence.reaches(Duration::ZERO),
            self.lifecycle.state(),
        ));
    }

    pub(crate) fn prefetch_plugins(&self) {
        self.sender.prefetch_plugins();
        self.receiver.prefetch_plugins();
    }

    pub(crate) fn borrow_buffers(&mut self, buffers: &mut ConnectionBuffers) {
        buffers.segments.lend(&mut self.out);
        self.sender.borrow_buffers(&mut buffers.sender);
    }

    pub(crate) fn return_buffers(&mut self, buffers: &mut ConnectionBuffers) {
        if self.out.is_empty() {
            buffers.segments.reclaim(&mut self.out);
        }
        self.sender.return_buffers(&mut buffers.sender);
    }

    /// Bytes that grow with what is in flight: the records of segments, and segments that wait to be sent. Takes constant time.
    pub fn memory(&self) -> usize {
        self.sender.memory() + self.out.capacity() * size_of::<Segment>()
    }

    /// The next sequence number that the peer has not used yet, as far as its segments have arrived in order.
    pub fn next_expected(&self) -> SeqNum {
        self.receiver.rcv_nxt().to_wire(self.receiver.irs())
    }

    /// True if [`Connection::shrink`] may release memory, at once or later.
    pub fn holds_memory(&self) -> bool {
        self.out.capacity() > 0 || self.sender.holds_memory() || self.receiver.holds_memory()
    }

    /// Releases memory that only a busy connection needs. Does nothing while data is outstanding. Retransmissions that are
    /// remembered for late DSACKs are released once no DSACK can arrive any more.
    pub fn shrink(&mut self, now: Instant) {
        if self.out.is_empty() {
            self.out = VecDeque::new();
        }
        self.sender.shrink(now);
        self.receiver.shrink();
    }

    /// The positions of the first byte that is not acknowledged, and of the next one to send.
    pub(super) fn send_positions(&self) -> (u64, u64) {
        let position = |offset: Offset| offset.0.saturating_sub(Offset::DATA.0);
        (position(self.sender.state.snd_una), position(self.sender.state.snd_nxt))
    }
}
