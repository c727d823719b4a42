//! The sending side: outstanding data, ACKs, and what to send next.
//!
//! An ACK passes through the files in this order: [`sack`] reads its blocks, [`ack`] runs the pipeline, [`undo`]
//! decides whether the last reduction was spurious and responds, [`measure`] measures reordering and RTT, [`rate`]
//! measures the delivery rate, [`detect`] decides what is lost, [`transmit`] sends, and [`pacing`] spreads
//! transmissions over time. [`refill`] lets the application fill the send buffer. [`timeout`] handles the timers.
//! [`reaction`] has the phases of loss recovery, [`ledger`] the reductions that can still be undone. [`backlog`] divides
//! work that takes too long for one event, [`renege`] notices receivers that renege, [`withhold`] catches those that
//! lie, [`live`] changes a connection that is open, and [`size_probe`] tries larger segments.

mod ack;
mod backlog;
mod detect;
mod ledger;
mod live;
mod measure;
mod pacing;
mod rate;
mod reaction;
mod refill;
mod renege;
mod sack;
mod size_probe;
mod timeout;
mod transmit;
mod undo;
mod window_use;
mod withhold;

use std::ops::Range;
use std::sync::Arc;

use reknit_units::{Bytes, Duration, Instant, Segments};

pub(crate) use self::ack::AckInput;
use self::backlog::Backlog;
use self::ledger::Ledger;
use self::pacing::Pacer;
use self::rate::Sampler;
use self::reaction::Reaction;
use self::renege::Reneging;
pub(crate) use self::sack::SackReport;
use self::size_probe::SizeProbe;
pub(crate) use self::timeout::TimerVerdict;
use self::window_use::WindowUse;
use self::withhold::Withholder;
use crate::config::Config;
use crate::experiment::Features;
use crate::facts::{Context, Phase, SendState, Window};
use crate::scoreboard::{Cause, Scoreboard, SegId};
use crate::seams::{Pacing, SenderPlugins};
use crate::seq::Offset;
use crate::stats::SendStats;

/// Data to send. The connection adds the header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) start: Offset,
    /// Sequence space; a FIN counts as one.
    pub(crate) len: u32,
    /// These bytes were sent before.
    pub(crate) again: bool,
    /// When the timestamp option says they were sent.
    pub(crate) stamped: Instant,
    pub(crate) cause: Cause,
    /// The last segment of a batch has PSH.
    pub(crate) push: bool,
}

/// What the handshake has negotiated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    pub(crate) smss: Bytes,
    pub(crate) wnd: Bytes,
    pub(crate) wl: (Offset, Offset),
    pub(crate) rtt: Option<Duration>,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: bool,
    pub(crate) features: Features,
}

/// The segment whose round trip is being timed (RFC 6298 §3).
#[derive(Clone, Copy, Debug)]
struct Timed {
    end: Offset,
    sent: Instant,
}

/// The last expiry of the retransmission timer.
#[derive(Clone, Copy, Debug)]
struct Expiry {
    /// SND.UNA at that time. The timer may expire for it again.
    una: Offset,
    /// The window was reduced for this SND.UNA, and the reduction was neither suppressed nor found to be spurious.
    reduced: bool,
}

/// The progress of the segments that one ACK or timer may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Burst {
    /// Everything that could be sent was sent.
    Done,
    /// The detector's probe was sent as the first.
    Begun,
    /// The burst limit holds some segments back; they are sent with the next ACK or timer, or when the pacer
    /// says so.
    HeldBack,
}

/// The persist timer (RFC 9293 §3.8.6.1).
#[derive(Clone, Copy, Debug)]
struct Persist {
    expires: Instant,
    backoff: u32,
    /// A probe beyond the window is outstanding. Its loss is no sign of congestion.
    probing: bool,
}

#[derive(Debug)]
pub(crate) struct Sender {
    config: Arc<Config>,
    pub(crate) state: SendState,
    pub(crate) board: Scoreboard,
    pub(crate) plugins: SenderPlugins,
    without_sack: Option<fn(&mut SenderPlugins)>,
    /// One past the last byte that the application has written.
    written: Offset,
    /// One past the last of these bytes that is in the send buffer.
    queued: Offset,
    /// The application has closed: a FIN follows the last byte.
    closing: bool,

    reaction: Reaction,
    /// Filled only if the loss detector withdraws reductions.
    ledger: Ledger,
    /// The hole whose fast retransmit is postponed, and until when. It may also come during an episode, as a separate
    /// congestion event.
    postponed: Option<(SegId, Instant)>,
    /// The next retransmission is sent regardless of the window: the first one after a verdict or a timeout, or that of
    /// a partial ACK.
    forced: bool,
    /// New data goes before retransmissions in the answer to the current ACK.
    new_first: bool,
    burst: Burst,
    /// Nothing is sent before this time.
    gate: Instant,
    window_use: WindowUse,
    /// ECN: reductions have been made for data up to here; and whether the next segment must carry CWR (RFC 3168
    /// §6.1.2).
    ecn_recover: Offset,
    pub(crate) send_cwr: bool,

    timed: Option<Timed>,
    /// With timestamps: one sample per round trip, the next when this byte is acknowledged.
    round_end: Offset,
    backoff: u32,
    last_expiry: Option<Expiry>,
    /// The newest timestamp of ours that the peer has echoed: it discards segments with older ones (RFC 7323 §5).
    echoed: Instant,
    persist: Persist,
    /// The current pacing rate and quantum.
    pacing: Option<Pacing>,
    pacer: Pacer,
    /// Only the congestion control sets the window (`CongestionControl::steers_by_model`).
    by_model: bool,
    /// Present only if the congestion control wants the delivery rate.
    sampler: Option<Box<Sampler>>,
    /// Present only if segments are withheld (`withhold_every`).
    withholder: Option<Box<Withholder>>,
    /// The receiver has acknowledged what was never sent.
    caught: bool,
    /// Present only while it is unknown whether the path carries larger segments.
    size_probe: Option<Box<SizeProbe>>,
    backlog: Backlog,
    reneging: Reneging,
    last_activity: Instant,
    /// One past the last new segment that was shorter than a full one.
    short_end: Offset,
    /// Segments of the current batch that are still to be sent.
    batch_left: u16,
    /// The next batch does not wait for more room.
    batch_at_once: bool,
    /// When the peer last made progress, or when data was first sent after an idle time.
    pub(crate) last_progress: Instant,
    /// What the application had written at some time, and when: it must be acknowledged within `drain_timeout`.
    drain: (Offset, Instant),
    /// The SACK blocks of the last ACK that had any.
    last_blocks: Vec<Range<Offset>>,
    /// (SEG.SEQ, SEG.ACK) of the last window update (RFC 9293 §3.3.1).
    wl: (Offset, Offset),

    newly: Vec<SegId>,
    pub(crate) outbox: Vec<Outgoing>,
    /// The longest segment that was acknowledged, as far as the last one of each ACK shows.
    pub(crate) largest_acked: Bytes,
    /// The shortest round-trip time so far.
    pub(crate) min_rtt: Option<Duration>,
    /// No new data until the plug-ins are replaced.
    pub(crate) holds_new_data: bool,
    pub(crate) stats: SendStats,
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
        let congestion = &plugins.congestion_control;
        let sampler =
            congestion.wants_rate_samples().then(|| Box::new(Sampler::new(now, congestion.counts_duplicates())));
        let by_model = plugins.congestion_control.steers_by_model();
        Sender {
            state: SendState::new(&config),
            board: Scoreboard::default(),
            plugins,
            without_sack,
            written: Offset::DATA,
            queued: Offset::DATA,
            closing: false,
            reaction: Reaction::Open,
            ledger: Ledger::default(),
            postponed: None,
            forced: false,
            new_first: false,
            burst: Burst::Done,
            gate: Instant::ZERO,
            window_use: WindowUse::new(),
            ecn_recover: Offset::SYN,
            send_cwr: false,
            timed: None,
            round_end: Offset::SYN,
            backoff: 0,
            last_expiry: None,
            echoed: Instant::ZERO,
            persist: Persist { expires: Instant::NEVER, backoff: 0, probing: false },
            pacing: None,
            pacer: Pacer::default(),
            by_model,
            sampler,
            withholder: None,
            caught: false,
            size_probe: None,
            backlog: Backlog::default(),
            reneging: Reneging::NEVER,
            last_activity: now,
            short_end: Offset::SYN,
            batch_left: 0,
            batch_at_once: false,
            last_progress: now,
            drain: (Offset::SYN, Instant::NEVER),
            last_blocks: Vec::new(),
            wl: (Offset::SYN, Offset::SYN),
            newly: Vec::new(),
            outbox: Vec::new(),
            largest_acked: Bytes::ZERO,
            min_rtt: None,
            holds_new_data: false,
            stats: SendStats::default(),
            config,
        }
    }

    /// The handshake is complete: the SYN is acknowledged and the options are negotiated.
    pub(crate) fn establish(&mut self, now: Instant, agreed: Agreed) {
        if let Some(without_sack) = self.without_sack.filter(|_| !agreed.sack) {
            without_sack(&mut self.plugins);
        }
        self.state.snd_una = Offset::DATA;
        self.state.snd_nxt = Offset::DATA;
        self.state.smss = agreed.smss;
        self.state.sack = agreed.sack;
        self.state.timestamps = agreed.timestamps;
        self.state.ecn = agreed.ecn;
        self.state.features = agreed.features;
        self.state.cwnd = self.cap(self.config.initial_window.of(agreed.smss));
        self.state.snd_wnd = agreed.wnd;
        self.state.max_snd_wnd = agreed.wnd;
        self.state.recover = Offset::SYN;
        self.state.handshake_rtt = agreed.rtt.unwrap_or(Duration::MAX);
        self.min_rtt = agreed.rtt;
        self.round_end = Offset::DATA;
        self.wl = agreed.wl;
        if let Some(rtt) = agreed.rtt {
            self.plugins.rto_estimator.on_sample(&self.config, rtt);
        }
        self.update_rto();
        self.state.dup_thresh = self.plugins.dup_thresh.dup_thresh(&self.context(now));
    }

    /// RFC 6298 §5.7: the SYN timed out, so the RTO starts from 3 s unless it is longer.
    pub(crate) fn syn_timed_out(&mut self) {
        self.state.rto = self.state.rto.max(Duration::from_secs(3));
    }

    /// A passive open waits for another SYN, whose answer has not timed out yet.
    pub(crate) fn forget_syn_timeouts(&mut self) {
        self.state.rto = self.config.initial_rto;
    }

    /// The SYN was retransmitted this often, so the initial window may have to be one segment (RFC 5681 §3.1).
    pub(crate) fn note_lost_syns(&mut self, retries: u32) {
        if retries > self.plugins.congestion_control.tolerated_syn_losses() {
            self.state.cwnd = self.state.smss;
        }
    }

    /// Segments are withheld, if the options ask for it; `secret` decides which.
    pub(crate) fn set_secret(&mut self, secret: u64) {
        self.withholder = self.config.withhold_every.map(|_| Box::new(Withholder::new(secret)));
    }

    /// True if the receiver has acknowledged what was never sent.
    pub(crate) fn has_caught_a_lie(&self) -> bool {
        self.caught
    }

    /// The application wrote `n` bytes.
    pub(crate) fn write(&mut self, n: Bytes) {
        self.written += n;
        if self.plugins.send_buffers.is_empty() {
            self.queued = self.written;
        }
    }

    /// The application has no more data.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// One past the last byte that the application has written.
    pub(crate) fn written(&self) -> Offset {
        self.written
    }

    /// One past the last byte that is in the send buffer.
    pub(crate) fn queued(&self) -> Offset {
        self.queued
    }

    /// The position of the FIN, once the application has closed.
    pub(crate) fn fin(&self) -> Option<Offset> {
        self.closing.then_some(self.written)
    }

    /// True if nothing is outstanding and nothing waits to be sent.
    pub(crate) fn is_quiet(&self) -> bool {
        self.board.is_empty() && self.end() == self.state.snd_nxt
    }

    /// True if the FIN was sent and acknowledged.
    pub(crate) fn fin_is_acked(&self) -> bool {
        self.fin().is_some_and(|fin| self.state.snd_una > fin)
    }

    /// How often the retransmission timeout is doubled.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// The peer has echoed a timestamp of `stamped`.
    pub(crate) fn note_echo(&mut self, stamped: Instant) {
        self.echoed = self.echoed.max(stamped);
    }

    /// True if retransmissions carry the oldest timestamp that the peer takes.
    pub(crate) fn repeats_timestamps(&self) -> bool {
        self.plugins.loss_detector.repeats_timestamps()
    }

    /// The time of the timestamp on data that is sent again, or that was withheld, `at` first.
    fn stamp_again(&self, now: Instant, at: Instant) -> Instant {
        if self.repeats_timestamps() { at.max(self.echoed) } else { now }
    }

    /// The window and the timeout must not change now.
    fn is_frozen(&self, now: Instant) -> bool {
        now < self.state.frozen_until
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

    /// True if all that the application has written is in the send buffer.
    fn has_queued_all(&self) -> bool {
        self.queued == self.written
    }

    /// One past the last byte of the send buffer, including a FIN after it.
    fn end(&self) -> Offset {
        if self.closing && self.has_queued_all() { self.queued + Bytes(1) } else { self.queued }
    }

    /// Applies the upper limit to the window.
    fn cap(&self, window: Bytes) -> Bytes {
        match self.config.max_window {
            Some(max) => window.min(max.of(self.state.smss)),
            None => window,
        }
    }

    /// Sets cwnd, to at least one segment and at most the limit. Has no effect if a model of the path sets the window.
    fn set_cwnd(&mut self, cwnd: Bytes) {
        if !self.by_model {
            self.bound_and_set_cwnd(cwnd);
        }
    }

    fn bound_and_set_cwnd(&mut self, cwnd: Bytes) {
        self.state.cwnd = self.cap(cwnd.max(self.state.smss));
    }

    fn set_window(&mut self, window: Window) {
        if !self.by_model {
            self.set_cwnd(window.cwnd);
            self.state.ssthresh = window.ssthresh.max(self.state.smss * 2);
        }
    }
}
