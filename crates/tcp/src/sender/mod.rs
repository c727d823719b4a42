//! The sending side: outstanding data, ACKs, and what to send next. [`crate::Connection`] owns a [`Sender`], which it makes as it
//! opens, and calls it for each event: an ACK (`on_ack`, after the segment was checked), a deadline (`on_timer`), data to send
//! (`transmit_written`), and changes while it is open ([`live`]).
//!
//! A [`Sender`] consists of parts. Each part is a struct with private fields, in its own file; its functions take
//! what they need from other parts as arguments:
//!
//! | part | state |
//! |---|---|
//! | [`write_queue`] | what the application has written |
//! | [`peer`] | what the peer's last segments contained |
//! | [`state`] | the variables that plug-ins read |
//! | [`recovery`] | the stage of loss recovery, and a postponed fast retransmit |
//! | [`undoable`] | the reductions that can still be undone |
//! | [`ecn`] | for which data the window was reduced, and whether CWR is due |
//! | [`timers`] | the sender's own timers |
//! | [`constraints`] | what may be sent next, apart from how much |
//! | [`pacing`] | when the next burst may be sent |
//! | [`rtt`], [`rate`], [`window_use`] | measurements: round trips, the delivery rate, whether the window is used |
//! | [`withhold`], [`renege`], [`dsack_limit`], [`size_probe`] | optimistic ACKs, receivers that renege, false DSACKs, probes of larger segments |
//! | [`backlog`] | work left for another event |
//!
//! The other files have the functions of the whole sender, in the order in which an ACK passes through them: [`sack`] reads
//! its blocks, [`ack`] runs the pipeline and [`expected`] a part of it, [`undo`] decides whether the last reduction was spurious and responds, [`measure`]
//! measures, [`detect`] decides what is lost, [`room`] whether more may be sent, and [`transmit`] sends. [`timeout`] has the
//! deadlines, and [`live`] changes an open connection.

mod ack;
mod backlog;
mod constraints;
mod detect;
mod dsack_limit;
mod ecn;
mod expected;
mod live;
mod measure;
mod pacing;
mod peer;
mod rate;
mod recovery;
mod renege;
mod room;
mod rtt;
mod sack;
mod size_probe;
mod state;
mod timeout;
mod timers;
mod transmit;
mod undo;
mod undoable;
mod window_use;
mod withhold;
mod write_queue;

use std::sync::Arc;

use reknit_units::{Bytes, Duration, Instant, Rate, Segments};

pub(crate) use self::ack::{AckInput, WindowUpdate};
use self::backlog::Backlog;
use self::constraints::Constraints;
use self::dsack_limit::DsackLimit;
use self::ecn::Ecn;
pub(crate) use self::live::SenderBuffers;
use self::pacing::Pacer;
use self::peer::Peer;
use self::rate::Sampler;
use self::recovery::LossRecovery;
use self::renege::Reneging;
use self::rtt::{RoundTrips, update_rto};
pub(crate) use self::sack::SackReport;
use self::size_probe::SizeProbe;
use self::state::{SendVariables, WindowControl};
pub(crate) use self::timeout::TimerVerdict;
use self::timers::Timers;
use self::undoable::UndoableReductions;
use self::window_use::WindowUse;
use self::withhold::SkipTest;
use self::write_queue::WriteQueue;
use crate::config::Config;
use crate::experiment::Features;
use crate::facts::{Context, Phase};
use crate::scoreboard::{Scoreboard, SegId, SendReason};
use crate::seams::{CongestionControlTraits, SenderPlugins, SenderTraits};
use crate::seq::Offset;
use crate::stats::SendStats;

/// Data to send. The connection adds the header.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Outgoing {
    pub(crate) start: Offset,
    /// Sequence space; a FIN counts as one.
    pub(crate) len: u32,
    /// These bytes were sent before.
    pub(crate) again: bool,
    /// When the timestamp option says they were sent.
    pub(crate) stamped: Instant,
    pub(crate) cause: SendReason,
    /// The last segment of a batch has PSH.
    pub(crate) push: bool,
}

/// What the handshake has negotiated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Negotiated {
    pub(crate) smss: Bytes,
    pub(crate) wnd: Bytes,
    pub(crate) wl: (Offset, Offset),
    pub(crate) rtt: Option<Duration>,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: bool,
    pub(crate) features: Features,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Sender {
    config: Arc<Config>,
    pub(crate) state: SendVariables,
    pub(crate) board: Scoreboard,
    pub(crate) plugins: SenderPlugins,
    /// What never changes about them.
    pub(crate) traits: SenderTraits,
    without_sack: WithoutSack,

    queue: WriteQueue,
    peer: Peer,
    recovery: LossRecovery,
    /// Filled only if a plug-in can find an earlier reduction spurious: the loss detector, or a spurious-retransmission detector.
    undoable: UndoableReductions,
    ecn: Ecn,
    timers: Timers,
    constraints: Constraints,
    pacer: Pacer,
    round_trips: RoundTrips,
    /// Present only if the congestion control wants the delivery rate.
    sampler: Option<Box<Sampler>>,
    window_use: WindowUse,
    /// Present only if segments are withheld (`withhold_every`).
    withholder: Option<Box<SkipTest>>,
    dsack_limit: DsackLimit,
    reneging: Reneging,
    size_probe: SizeProbe,
    backlog: Backlog,

    /// A buffer for what an ACK newly acknowledges.
    newly: Vec<SegId>,
    pub(crate) outbox: Vec<Outgoing>,
    pub(crate) stats: SendStats,
}

/// Replaces the plug-ins that need SACK; none if no plug-in needs it. Two are equal if both or neither do.
#[derive(Clone, Copy, Debug)]
struct WithoutSack(Option<fn(&mut SenderPlugins)>);

impl PartialEq for WithoutSack {
    fn eq(&self, other: &WithoutSack) -> bool {
        self.0.is_some() == other.0.is_some()
    }
}

/// The context for a hook. A macro, so that it borrows only the fields that it contains.
macro_rules! context {
    ($sender:expr, $now:expr) => {
        $crate::facts::Context { now: $now, config: &$sender.config, snd: &$sender.state, board: &$sender.board }
    };
}
pub(crate) use context;

impl Sender {
    pub(crate) fn new(
        config: Arc<Config>,
        plugins: SenderPlugins,
        without_sack: Option<fn(&mut SenderPlugins)>,
        now: Instant,
    ) -> Sender {
        let traits = plugins.traits();
        Sender {
            state: SendVariables::new(&config, window_control(traits.congestion_control)),
            board: Scoreboard::default(),
            sampler: sampler(now, traits.congestion_control),
            plugins,
            traits,
            without_sack: WithoutSack(without_sack),
            queue: WriteQueue::new(),
            peer: Peer::new(),
            recovery: LossRecovery::new(),
            undoable: UndoableReductions::default(),
            ecn: Ecn::new(),
            timers: Timers::new(now),
            constraints: Constraints::new(now),
            pacer: Pacer::default(),
            round_trips: RoundTrips::new(),
            window_use: WindowUse::new(),
            withholder: None,
            dsack_limit: DsackLimit::default(),
            reneging: Reneging::new(),
            size_probe: SizeProbe::default(),
            backlog: Backlog::new(),
            newly: Vec::new(),
            outbox: Vec::new(),
            stats: SendStats::default(),
            config,
        }
    }

    /// The handshake is complete: the SYN is acknowledged and the options are negotiated. Called once, before any data is sent.
    pub(crate) fn establish(&mut self, now: Instant, agreed: Negotiated) {
        if let Some(without_sack) = self.without_sack.0.filter(|_| !agreed.sack) {
            without_sack(&mut self.plugins);
            self.traits = self.plugins.traits();
        }
        self.state.establish(&self.config, &agreed);
        self.peer.establish(agreed.wl);
        self.round_trips.establish(agreed.rtt);
        self.timers.note_progress(now);
        if let Some(rtt) = agreed.rtt {
            self.plugins.rto_estimator.on_sample(&self.config, rtt);
        }
        update_rto(&mut self.state, &*self.plugins.rto_estimator, &self.config);
        self.state.set_dup_thresh(self.plugins.dup_thresh.dup_thresh(&self.context(now)));
    }

    /// RFC 6298 §5.7: the SYN timed out, so the RTO starts from 3 s unless it is longer.
    pub(crate) fn syn_timed_out(&mut self) {
        self.state.set_rto(self.state.rto.max(Duration::from_secs(3)));
    }

    /// A passive open waits for another SYN: the answer to that one has not timed out yet.
    pub(crate) fn forget_syn_timeouts(&mut self) {
        self.state.set_rto(self.config.initial_rto);
    }

    /// The SYN was retransmitted this often, so the initial window may have to be one segment (RFC 5681 §3.1). Called after
    /// `establish`.
    pub(crate) fn note_lost_syns(&mut self, retries: u32) {
        if retries > self.traits.congestion_control.tolerated_syn_losses {
            self.state.start_from_one_segment();
        }
    }

    /// Segments are withheld, if the options ask for it; `secret` decides which.
    pub(crate) fn set_secret(&mut self, secret: u64) {
        self.withholder = self.config.withhold_every.map(|_| Box::new(SkipTest::new(secret)));
    }

    /// True if the receiver has acknowledged what was never sent.
    pub(crate) fn has_detected_optimistic_ack(&self) -> bool {
        self.withholder.as_ref().is_some_and(|withholder| withholder.has_detected_optimistic_ack())
    }

    /// The application wrote `n` bytes. `transmit_written` sends them.
    pub(crate) fn write(&mut self, n: Bytes) {
        self.queue.write(n, &self.plugins.send_buffers);
    }

    /// The application has no more data.
    pub(crate) fn close(&mut self) {
        self.queue.close();
    }

    /// One past the last byte that the application has written.
    pub(crate) fn written(&self) -> Offset {
        self.queue.written()
    }

    /// One past the last byte that is in the send buffer.
    pub(crate) fn queued(&self) -> Offset {
        self.queue.queued()
    }

    /// The position of the FIN, once the application has closed.
    pub(crate) fn fin(&self) -> Option<Offset> {
        self.queue.fin()
    }

    /// True if nothing is outstanding and nothing waits to be sent.
    pub(crate) fn is_quiet(&self) -> bool {
        self.board.is_empty() && self.queue.end() == self.state.snd_nxt
    }

    /// True if the FIN was sent and acknowledged.
    pub(crate) fn fin_is_acked(&self) -> bool {
        self.fin().is_some_and(|fin| self.state.snd_una > fin)
    }

    /// How often the retransmission timeout is doubled.
    pub(crate) fn backoff(&self) -> u32 {
        self.timers.backoff()
    }

    /// The shortest round-trip time so far.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.round_trips.min()
    }

    /// The current pacing rate.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.pacing().map(|pacing| pacing.rate)
    }

    /// The longest segment whose acknowledgment was seen.
    pub(crate) fn largest_acked(&self) -> Bytes {
        self.peer.largest_acked()
    }

    /// True if the new segment that is sent now must carry CWR (RFC 3168 §6.1.2).
    pub(crate) fn take_cwr(&mut self) -> bool {
        self.ecn.take_cwr()
    }

    /// The peer has echoed a timestamp of `stamped`.
    pub(crate) fn note_echo(&mut self, stamped: Instant) {
        self.peer.note_echo(stamped);
    }

    /// True if retransmissions carry the oldest timestamp that the peer accepts.
    pub(crate) fn repeats_timestamps(&self) -> bool {
        self.traits.loss_detector.repeats_timestamps
    }

    /// The time of the timestamp on data that is retransmitted, or that was withheld; it was first sent at `at`.
    fn retransmission_timestamp(&self, now: Instant, at: Instant) -> Instant {
        if self.repeats_timestamps() { at.max(self.peer.echoed()) } else { now }
    }

    /// The threshold, for display. Other state of the plug-ins is not shown.
    pub(crate) fn dup_thresh(&self, now: Instant) -> Segments {
        match self.state.phase {
            Phase::Recovery | Phase::Loss => self.state.dup_thresh,
            Phase::Open | Phase::Disorder => self.plugins.dup_thresh.dup_thresh(&self.context(now)),
        }
    }

    fn context(&self, now: Instant) -> Context<'_> {
        context!(self, now)
    }
}

/// What sets the window.
fn window_control(congestion: CongestionControlTraits) -> WindowControl {
    if congestion.steers_by_model { WindowControl::ModelBased } else { WindowControl::LossBased }
}

/// Measures the delivery rate, if the congestion control wants it.
fn sampler(now: Instant, congestion: CongestionControlTraits) -> Option<Box<Sampler>> {
    congestion.wants_rate_samples.then(|| Box::new(Sampler::new(now, congestion.counts_duplicates)))
}
