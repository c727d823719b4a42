//! The sending side: what is outstanding, what the ACKs mean for it, what to send next.
//!
//! Each file has one job, and an ACK passes through them in this order: [`sack`] reads its blocks, [`ack`] runs the
//! pipeline, [`undo`] asks whether the last reduction was spurious and responds, [`measure`] takes reordering and RTT,
//! [`rate`] takes the delivery rate, [`detect`] asks what is lost, [`transmit`] sends, [`pacing`] spreads that over time.
//! [`timeout`] does the same for timers. [`reaction`] has the states between which they move.

mod ack;
mod detect;
mod measure;
mod pacing;
mod rate;
mod reaction;
mod sack;
mod timeout;
mod transmit;
mod undo;

use std::sync::Arc;

use reknit_units::{Bytes, Duration, Instant, Segments};

pub(crate) use self::ack::AckInput;
use self::pacing::Pacer;
use self::rate::Sampler;
use self::reaction::Reaction;
pub(crate) use self::sack::SackReport;
pub(crate) use self::timeout::TimerVerdict;
use crate::config::Config;
use crate::experiment::Features;
use crate::facts::{Context, Phase, SendState, Window};
use crate::scoreboard::{Cause, Duplicate, Scoreboard, SegId};
use crate::seams::{Pacing, ReorderingHistory, SenderPlugins, Verdicts};
use crate::seq::Offset;
use crate::stats::SendStats;

/// Bytes to put on the wire: header fields are the connection's business.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) start: Offset,
    /// Sequence space, a FIN counting as one.
    pub(crate) len: u32,
    /// These bytes were sent before.
    pub(crate) again: bool,
    pub(crate) cause: Cause,
}

/// What the handshake told the sender.
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
    /// SND.UNA then: the timer may expire for it again.
    una: Offset,
    /// The window was reduced for this SND.UNA; not where the reduction was frozen or has turned out to be spurious.
    reduced: bool,
}

/// What has become of the segments that one ACK or timer may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Burst {
    /// All that could be sent was.
    Done,
    /// The detector's probe has sent the first.
    Begun,
    /// The limit holds something back, which leaves with the next ACK or timer.
    HeldBack,
}

/// The persist timer (RFC 9293 §3.8.6.1).
#[derive(Clone, Copy, Debug)]
struct Persist {
    expires: Instant,
    backoff: u32,
    /// A probe beyond the window is outstanding; it is no evidence of loss.
    probing: bool,
}

#[derive(Debug)]
pub(crate) struct Sender {
    config: Arc<Config>,
    pub(crate) state: SendState,
    pub(crate) board: Scoreboard,
    plugins: SenderPlugins,
    without_sack: Option<fn(&mut SenderPlugins)>,
    /// One past the last byte that the application has written.
    written: Offset,
    /// The application has closed: a FIN follows the last byte.
    closing: bool,

    reaction: Reaction,
    /// The hole whose fast retransmit was put off, and until when. It may come in the middle of an episode, as a
    /// congestion event of its own.
    postponed: Option<(SegId, Instant)>,
    /// The next retransmission goes out whatever the window says: the first after a verdict or a timeout, or the one that
    /// a partial ACK asks for.
    forced: bool,
    /// What is sent in answer to the ACK at hand begins with new data, whatever waits to be retransmitted.
    new_first: bool,
    burst: Burst,
    /// Nothing is sent before this moment.
    gate: Instant,
    /// SND.NXT when the window was last full.
    full_until: Offset,
    /// ECN: reductions answered up to here, and whether the next segment must carry CWR (RFC 3168 §6.1.2).
    ecn_recover: Offset,
    pub(crate) send_cwr: bool,

    timed: Option<Timed>,
    /// With timestamps: one sample per round trip, the next when this byte is acknowledged.
    round_end: Offset,
    backoff: u32,
    last_expiry: Option<Expiry>,
    persist: Persist,
    /// How what is sent now is spread over time.
    pacing: Option<Pacing>,
    pacer: Pacer,
    /// Only the congestion control sets the window (`CongestionControl::steers_by_model`).
    by_model: bool,
    /// Only if the congestion control wants the delivery rate.
    sampler: Option<Box<Sampler>>,
    last_activity: Instant,
    /// When the peer last showed progress (or data was first sent after quiet).
    pub(crate) last_progress: Instant,
    /// The blocks of the last ACK that had any.
    last_sack: SackReport,
    /// (SEG.SEQ, SEG.ACK) of the last window update (RFC 9293 §3.3.1).
    wl: (Offset, Offset),

    newly: Vec<SegId>,
    duplicates: Vec<Duplicate>,
    verdicts: Verdicts,
    pub(crate) outbox: Vec<Outgoing>,
    pub(crate) stats: SendStats,
}

/// The context for a hook; a macro so that it borrows only the fields that it shows.
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
        let sampler = plugins.congestion_control.wants_rate_samples().then(|| Box::new(Sampler::new(now)));
        let by_model = plugins.congestion_control.steers_by_model();
        Sender {
            state: SendState::new(&config),
            board: Scoreboard::default(),
            plugins,
            without_sack,
            written: Offset::DATA,
            closing: false,
            reaction: Reaction::Open,
            postponed: None,
            forced: false,
            new_first: false,
            burst: Burst::Done,
            gate: Instant::ZERO,
            full_until: Offset::SYN,
            ecn_recover: Offset::SYN,
            send_cwr: false,
            timed: None,
            round_end: Offset::SYN,
            backoff: 0,
            last_expiry: None,
            persist: Persist { expires: Instant::NEVER, backoff: 0, probing: false },
            pacing: None,
            pacer: Pacer::default(),
            by_model,
            sampler,
            last_activity: now,
            last_progress: now,
            last_sack: SackReport::default(),
            wl: (Offset::SYN, Offset::SYN),
            newly: Vec::new(),
            duplicates: Vec::new(),
            verdicts: Verdicts::default(),
            outbox: Vec::new(),
            stats: SendStats::default(),
            config,
        }
    }

    /// The handshake is done: the SYN is acknowledged, both ends know what the other can do.
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

    /// The SYN was sent again so often: perhaps start with one segment (RFC 5681 §3.1).
    pub(crate) fn note_lost_syns(&mut self, retries: u32) {
        if retries > self.plugins.congestion_control.tolerated_syn_losses() {
            self.state.cwnd = self.state.smss;
        }
    }

    /// The application wrote `n` bytes.
    pub(crate) fn write(&mut self, n: Bytes) {
        self.written += n;
    }

    /// The application has no more to write.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// One past the last byte that the application has written.
    pub(crate) fn written(&self) -> Offset {
        self.written
    }

    /// Where the FIN is, once the application has closed.
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

    /// What this connection has learned about reordering.
    pub(crate) fn reordering_history(&self) -> Option<ReorderingHistory> {
        self.plugins.dup_thresh.history()
    }

    /// The share of measured reordering that the threshold is to cover.
    pub(crate) fn reordering_coverage(&self) -> Option<f64> {
        self.plugins.dup_thresh.coverage()
    }

    /// Bytes that the plug-ins keep.
    pub(crate) fn plugin_state_size(&self) -> usize {
        self.plugins.state_size()
    }

    /// Begins with what an earlier connection has learned.
    pub(crate) fn begin_with(&mut self, history: &ReorderingHistory) {
        self.plugins.dup_thresh.begin_with(history);
    }

    /// Window and timeout keep still.
    fn is_frozen(&self, now: Instant) -> bool {
        now < self.state.frozen_until
    }

    /// The plug-ins' names for their state are theirs; only the threshold is shown to the world.
    pub(crate) fn dup_thresh(&self, now: Instant) -> Segments {
        match self.state.phase {
            Phase::Recovery | Phase::Loss => self.state.dup_thresh,
            Phase::Open | Phase::Disorder => self.plugins.dup_thresh.dup_thresh(&self.context(now)),
        }
    }

    fn context(&self, now: Instant) -> Context<'_> {
        context!(self, now)
    }

    /// One past the last byte of the stream so far, a queued FIN included.
    fn end(&self) -> Offset {
        if self.closing { self.written + Bytes(1) } else { self.written }
    }

    /// The hard cap on the window.
    fn cap(&self, window: Bytes) -> Bytes {
        match self.config.max_window {
            Some(max) => window.min(max.of(self.state.smss)),
            None => window,
        }
    }

    /// cwnd is never less than a segment, nor more than the cap. Where a model of the path steers, others are not heard.
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
