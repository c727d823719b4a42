//! One connection: the state machine of RFC 9293 around a [`Sender`] and a [`Receiver`].
//!
//! A [`Connection`] never blocks, reads no clock and holds no payload: its owner passes in segments and the time, and polls
//! until there are no more [`Output`]s. It consists of parts, each with private fields and a file:
//!
//! | part | what it knows |
//! |---|---|
//! | [`lifecycle`] | the state, and why the connection ended; [`state`] has the events between the states |
//! | [`opening`] | the timer of the SYN |
//! | [`negotiation`] | what the SYNs of both ends agree on |
//! | [`peer_timestamp`] | TS.Recent and Last.ACK.sent |
//! | [`receiver_rtt`] | the round-trip time that the receiver measures |
//! | [`ecn_echo`] | whether congestion is echoed |
//! | [`keep_alive`] | how long the peer has been silent |
//! | [`challenges`] | how many unacceptable segments were answered |
//!
//! The other files have the functions of the whole connection: [`handshake`] opens it, [`expected`] processes most
//! segments, [`input`] all others, [`output`] builds them, [`timers`] has the deadlines, [`live`] what the owner of many
//! connections needs, and [`info`] the variables that users see.

mod challenges;
mod ecn_echo;
mod expected;
mod handshake;
mod info;
mod input;
mod keep_alive;
mod lifecycle;
mod live;
mod negotiation;
mod opening;
mod output;
mod peer_timestamp;
mod receiver_rtt;
mod state;
mod timers;

use std::collections::VecDeque;
use std::sync::Arc;

use reknit_units::{Bytes, Instant};

use self::challenges::Challenges;
use self::ecn_echo::EcnEcho;
pub use self::info::{Info, SendLimit};
use self::keep_alive::Silence;
use self::lifecycle::Lifecycle;
pub(crate) use self::live::ConnectionBuffers;
pub use self::live::TimeWait;
use self::negotiation::Negotiation;
use self::opening::Opening;
pub use self::output::Output;
use self::peer_timestamp::PeerTimestamp;
use self::receiver_rtt::ReceiverRtt;
use self::state::Event;
pub use self::state::State;
use self::timers::Deadline;
pub use self::timers::reset_for;
use crate::config::Config;
use crate::experiment::Features;
use crate::receiver::Receiver;
use crate::scoreboard::{SegId, SegmentRecord};
use crate::seams::{HeaderSupport, Memory, PluginSet, Plugins, ShownName};
use crate::segment::{Flags, Options, Segment};
use crate::sender::Sender;
use crate::seq::{Offset, SeqNum};
use crate::stats::{ReceiveStats, SendStats};

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum CloseReason {
    /// Both directions were closed normally.
    #[error("closed")]
    Finished,
    /// The peer refused the connection.
    #[error("connection refused")]
    Refused,
    /// The peer reset the connection.
    #[error("connection reset by peer")]
    Reset,
    /// The peer did not answer within the user timeout.
    #[error("connection timed out")]
    TimedOut,
    /// The local application aborted it.
    #[error("connection aborted")]
    Aborted,
    /// The peer acknowledged data that was never sent (`withhold_every`).
    #[error("the peer acknowledged data that was never sent")]
    OptimisticAck,
}

/// The values that a connection takes from outside because they must be random or derived from a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// The initial sequence number; [`crate::IsnKey`] generates one.
    pub isn: SeqNum,
    /// Added to the millisecond clock of the timestamps option.
    pub timestamp_offset: u32,
}

/// A TCP connection without I/O. It can be cloned, with its plug-ins, to try what a segment would change.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    config: Arc<Config>,
    identity: Identity,
    lifecycle: Lifecycle,
    opening: Opening,
    negotiation: Negotiation,
    sender: Sender,
    receiver: Receiver,
    receiver_rtt: ReceiverRtt,
    peer_timestamp: PeerTimestamp,
    ecn_echo: EcnEcho,
    silence: Silence,
    challenges: Challenges,
    /// The application has written or closed since the last transmission.
    dirty: bool,
    deadline: Deadline,
    out: VecDeque<Segment>,
}

impl Connection {
    /// Opens actively: the SYN is in the first output.
    pub fn connect(now: Instant, config: Arc<Config>, plugins: Plugins, identity: Identity) -> Connection {
        let mut connection = Connection::new(now, config, plugins, identity, State::SynSent);
        connection.send_syn(now);
        connection
    }

    /// Opens passively: waits for a SYN.
    pub fn listen(now: Instant, config: Arc<Config>, plugins: Plugins, identity: Identity) -> Connection {
        Connection::new(now, config, plugins, identity, State::Listen)
    }

    fn new(now: Instant, config: Arc<Config>, plugins: Plugins, identity: Identity, state: State) -> Connection {
        Connection {
            identity,
            lifecycle: Lifecycle::new(state),
            opening: Opening::new(),
            negotiation: Negotiation::new(&config, offered(&plugins.receiver.header_support)),
            sender: Sender::new(config.clone(), plugins.sender, plugins.without_sack, now),
            receiver: Receiver::new(config.clone(), plugins.receiver),
            receiver_rtt: ReceiverRtt::default(),
            peer_timestamp: PeerTimestamp::new(now),
            ecn_echo: EcnEcho::default(),
            silence: Silence::new(now),
            challenges: Challenges::new(now),
            dirty: false,
            deadline: Deadline::default(),
            out: VecDeque::new(),
            config,
        }
    }

    /// The application has `n` more bytes to send. Ignored after [`Connection::close`].
    pub fn write(&mut self, n: Bytes) {
        if self.sender.fin().is_none() {
            self.sender.write(n);
            self.dirty = true;
            self.deadline.forget();
        }
    }

    /// The application has read `n` bytes of [`Connection::readable`].
    pub fn read(&mut self, now: Instant, n: Bytes) {
        self.deadline.forget();
        if self.receiver.on_read(now, n, self.receiver_rtt.get()) && self.is_synchronised() {
            self.receiver.ack_now();
            self.flush(now);
        }
    }

    /// From now on, data counts as read when it arrives, so that the window never shrinks because of a slow
    /// application.
    pub fn read_at_once(&mut self) {
        self.receiver.read_at_once();
    }

    /// The application has no more data: a FIN follows the last byte. If the connection is not established yet, the FIN
    /// waits, and data written before is still sent; RFC 9293 §3.10.4 would delete the connection.
    pub fn close(&mut self) {
        if self.sender.fin().is_some() {
            return;
        }
        self.sender.close();
        self.dirty = true;
        self.deadline.forget();
        match self.state() {
            State::Listen => self.lifecycle.finish(CloseReason::Finished),
            State::Established | State::CloseWait => self.lifecycle.transition(Event::Close),
            _ => {}
        }
    }

    /// Aborts the connection: sends a RST to the peer, with timestamps if they were agreed on (RFC 7323 §3.2).
    pub fn abort(&mut self, now: Instant) {
        self.end_with_reset(now, CloseReason::Aborted);
    }

    /// Ends the connection for this reason and resets the peer.
    fn end_with_reset(&mut self, now: Instant, reason: CloseReason) {
        let both_have_closed = matches!(self.state(), State::Closing | State::LastAck | State::TimeWait);
        self.out.clear();
        self.deadline.forget();
        if (self.is_synchronised() && !both_have_closed) || self.state() == State::SynReceived {
            let seq = self.next_seq().to_wire(self.identity.isn);
            self.out.push_back(Segment {
                seq,
                ack: self.receiver.rcv_nxt().to_wire(self.receiver.irs()),
                flags: Flags::RST | Flags::ACK,
                options: Options { timestamps: self.timestamps(now), ..Options::default() },
                ..Segment::default()
            });
        }
        self.lifecycle.finish(reason);
    }

    /// True if the application has closed its direction, or the connection has ended.
    pub fn is_write_closed(&self) -> bool {
        self.sender.fin().is_some() || self.state() == State::Closed
    }

    /// Sets random bits that the peer does not know. They decide which segments are withheld (`withhold_every`); without
    /// them none are. Call it before the first segment.
    pub fn set_secret(&mut self, secret: u64) {
        self.sender.set_secret(secret);
    }

    /// Starts with what the plug-ins of earlier connections to the same peer have kept. Call it before the first segment.
    pub fn recall(&mut self, now: Instant, memory: &Memory) {
        self.deadline.forget();
        self.sender.plugins.recall(now, memory);
        self.receiver.plugins.recall(now, memory);
    }

    /// Keeps what this connection's plug-ins have for the next connection to the same peer.
    pub fn remember(&self, memory: &mut Memory) {
        self.sender.plugins.remember(memory);
        self.receiver.plugins.remember(memory);
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.lifecycle.state()
    }

    /// Why it ended; none while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.lifecycle.close_reason()
    }

    /// Bytes that arrived in order and have not been read.
    pub fn readable(&self) -> Bytes {
        self.receiver.readable()
    }

    /// True if the peer has closed and everything before its FIN was read.
    pub fn is_read_closed(&self) -> bool {
        self.receiver.fin_received() && self.receiver.readable() == Bytes::ZERO
    }

    /// Bytes written and not yet acknowledged: what a send buffer must keep.
    pub fn unacknowledged(&self) -> Bytes {
        self.sender.written().since(self.sender.state.snd_una.max(Offset::DATA))
    }

    /// Bytes of the stream that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.state.snd_una.min(self.sender.written()).since(Offset::DATA).0
    }

    /// Bytes of the stream that have arrived in order.
    pub fn received(&self) -> u64 {
        let fin = u64::from(self.receiver.fin_received());
        self.receiver.rcv_nxt().since(Offset::DATA).0.saturating_sub(fin)
    }

    /// True if there are gaps before data that has arrived.
    pub fn has_gaps(&self) -> bool {
        self.receiver.has_gaps()
    }

    /// Counters of the sending side.
    pub fn send_stats(&self) -> &SendStats {
        &self.sender.stats
    }

    /// Counters of the receiving side.
    pub fn receive_stats(&self) -> &ReceiveStats {
        &self.receiver.stats
    }

    /// Resets all counters.
    pub fn restart_counts(&mut self) {
        self.sender.stats = SendStats::default();
        self.receiver.stats = ReceiveStats::default();
    }

    /// The outstanding segment that contains `seq`, a sequence number that this end has sent.
    pub fn outstanding(&self, seq: SeqNum) -> Option<(SegId, &SegmentRecord)> {
        self.sender.board.containing(self.sender.state.snd_una.nearest(seq, self.identity.isn)?)
    }

    /// True if losses of the network must be reported to this end's loss detector ([`Connection::report_loss`]).
    pub fn needs_loss_reports(&self) -> bool {
        self.sender.needs_loss_reports()
    }

    /// The network has lost transmission `number` (from 1) of the outstanding segment `id`, and its acknowledgment
    /// would have arrived by now. Only a simulator knows this, and only the oracle detectors use it.
    pub fn report_loss(&mut self, now: Instant, id: SegId, number: u16) {
        if self.sender.board.get(id).is_some_and(|record| record.is_open() && record.transmissions == number) {
            self.sender.report_loss(now, id);
            self.flush(now);
        }
    }

    /// True if the peer has acknowledged the FIN.
    pub fn is_fin_acknowledged(&self) -> bool {
        self.sender.fin_is_acked()
    }

    /// Calls `show` for each number that the plug-ins of the sender's seams show. They have a meaning only at an end that
    /// sends data.
    pub fn show_sender(&self, show: &mut dyn FnMut(ShownName, f64)) {
        self.sender.plugins.show(show);
    }

    /// The same for the receiver's seams, at an end that receives data.
    pub fn show_receiver(&self, show: &mut dyn FnMut(ShownName, f64)) {
        self.receiver.plugins.show(show);
    }

    /// Bytes of state of this end's plug-ins.
    pub fn plugin_state_size(&self) -> Bytes {
        Bytes((self.sender.plugins.state_size() + self.receiver.plugins.state_size()) as u64)
    }

    /// SND.NXT: the sequence number of the next byte to be sent for the first time.
    pub fn snd_nxt(&self) -> SeqNum {
        self.sender.state.snd_nxt.to_wire(self.identity.isn)
    }

    /// Stream position of `seq`, a sequence number that this end has sent: the number of data bytes before it.
    pub fn position_sent(&self, seq: SeqNum) -> Option<u64> {
        let offset = self.sender.state.snd_una.nearest(seq, self.identity.isn)?;
        offset.0.checked_sub(Offset::DATA.0)
    }

    fn is_synchronised(&self) -> bool {
        self.lifecycle.is_synchronised()
    }

    /// The sequence number for a segment without data: SND.NXT, but at most the right edge of the peer's window. Beyond
    /// that edge (during a window probe, or if the window has shrunk) the peer would drop the segment and its
    /// acknowledgment.
    fn next_seq(&self) -> Offset {
        let snd = &self.sender.state;
        snd.snd_nxt.min(snd.snd_una + snd.snd_wnd).max(snd.snd_una).max(Offset::DATA)
    }
}

/// The experimental features that the plug-ins request.
fn offered(header_support: &[Box<dyn HeaderSupport>]) -> Features {
    header_support.iter().fold(Features::NONE, |all, support| all | support.traits().features)
}
