//! # TCP-aNCR
//!
//! Zimmermann, Schulte, Wolff, Hannemann: Making TCP Adaptively Robust to Non-Congestion Events.
//! draft-zimmermann-tcpm-reordering-reaction-02, 2014. With the detection of
//! draft-zimmermann-tcpm-reordering-detection-02, 2014.
//!
//! **What it changes.** The threshold of TCP-NCR (`ncr-careful`, `ncr-aggressive`) becomes an upper bound. Below it, the
//! threshold is the largest reordering seen since the last timeout, relative to what was outstanding. While nothing has
//! arrived late it is three, so a loss is repaired as fast as without the algorithm. Extended Limited Transmit sends
//! within cwnd, at most an initial window per ACK, and goes on as long as anything is SACKed.
//!
//! **State.** `ReorExtR`, the largest relative extent, and what the detection keeps for DSACKs. For Extended Limited
//! Transmit: `recover`, `skipped`, `pipe_max`. `FlightSizePrev`, which the engine keeps.
//!
//! **Rules.** Sections of the first draft.
//! - 5.2 (I), 5.3 (E.8), (E.9): `DupThresh = max(min(LT_F * FlightSize, ReorExtR * FlightSizePrev), 3)` in segments.
//!   `LT_F` is 2/3 (careful) or 1/2 (aggressive) (C.1). With `adaptive = false` (`ReorExtR = -1`, C.2) it is
//!   `max(LT_F * FlightSize, 3)`.
//! - 5.3 (E.2) to (E.6): an ACK that SACKs something lets new data be sent while `cwnd - pipe - skipped >= SMSS`, at most
//!   IW. Careful: each segment sent also adds SMSS to `skipped`.
//! - 5.4 (T.1), (T.2): an ACK that advances while something remains SACKed restarts this without changing cwnd, which
//!   may grow. Once a whole flight has been acknowledged (`SEG.ACK > recover`), `FlightSizePrev` becomes `pipe_max`, the
//!   most that was in the pipe since (E.7).
//! - 5.4 (T.3), (T.4): if nothing remains SACKed, `ssthresh = max(cwnd, ssthresh)` and `cwnd = FlightSize + SMSS`.
//! - 5.5 (Ret): a loss reduces the window to `FlightSizePrev / 2`.
//! - 5.6 (Ext): a new extent raises `ReorExtR`, to at most 1. 5.7 (RTO): a timeout resets it to 0.
//!
//! **Detection.** By the second draft, an ACK that closes a hole and delivers one segment measures
//! `(SND.FACK - SEG.SEQ) / FlightSizePrev`. It counts if the segment was sent once, or if a timestamp or a DSACK shows that
//! its original has arrived.
//!
//! **Departures.** Thresholds are rounded up to whole segments. As in `ncr-careful`, (T.4) keeps the fraction of a segment
//! by which cwnd has grown, a timeout also reduces the window from `FlightSizePrev`, disorder that remains after a recovery
//! starts Extended Limited Transmit at once, and Nagle's algorithm need not be on. (T.1) restarts only on an ACK with *new*
//! SACK information, while §6, and the authors' module for Linux, restart if there is any: so does this. (A.3) of the
//! detection excludes the case for which (D.3) was written; here both apply. Without SACK the base is used.
//!
//! **Limits.** The draft has no undo: what the first late segments cost remains lost, and `ReorExtR` falls only at a
//! timeout.
//!
//! **Status.** Faithful.

use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent, Window};
use reknit_tcp::seams::{DisorderEnd, DupThresh, LimitedTransmit, LimitedTransmitTraits, Plugin, Seam};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ncr::{Mode, share};
use super::reordering_extent::{Detection, RelativeExtent};
use crate::algorithm::Algorithm;
use crate::requirement::{Need, Requirement};

/// Parameters of the threshold.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AncrConfig {
    /// Careful (`LT_F` = 2/3) or aggressive (`LT_F` = 1/2) (§5.1, C.1).
    pub mode: Mode,
    /// Adapt the threshold to the reordering that is seen (§5.1, C.2). If not, it is that of TCP-NCR.
    pub adaptive: bool,
}

impl Default for AncrConfig {
    fn default() -> AncrConfig {
        AncrConfig { mode: Mode::Careful, adaptive: true }
    }
}

impl Algorithm<dyn DupThresh> for AncrConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[
            Requirement::Only(Seam::LimitedTransmit, &["ancr"]),
            Requirement::Needs(Need::Sack, "the threshold stays at 3"),
        ]
    }

    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(Adaptive { config: self.clone(), extent: RelativeExtent::default(), detection: Detection::default() })
    }
}

#[derive(Clone, Debug)]
struct Adaptive {
    config: AncrConfig,
    /// `ReorExtR`.
    extent: RelativeExtent,
    detection: Detection,
}

impl DupThresh for Adaptive {
    /// (Ext).
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        if let Some(extent) = self.detection.on_ack(cx, ack) {
            self.extent = self.extent.max(extent);
        }
    }

    /// (I.4), (I.5), (E.8), (E.9).
    fn dup_thresh(&self, cx: &Context<'_>) -> Segments {
        let bound = share(self.config.mode, cx.snd.flight_size(), cx.snd.smss);
        if !self.config.adaptive {
            return bound;
        }
        let seen = self.extent.of(cx.snd.flight_before_disorder, cx.snd.smss);
        bound.min(seen).max(Segments(3))
    }
}

impl Plugin for Adaptive {
    /// (RTO).
    fn on_recovery_event(&mut self, _cx: &Context<'_>, event: RecoveryEvent) {
        if let RecoveryEvent::Timeout { .. } = event {
            self.extent = RelativeExtent::default();
            self.detection.on_timeout();
        }
    }

    fn heap_size(&self) -> usize {
        self.detection.heap_size()
    }
}

/// Parameters of Extended Limited Transmit.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AncrTransmitConfig {
    /// Careful: one new segment for every second SACKed segment. Aggressive: one for each (§5.1, C.1).
    pub mode: Mode,
}

impl Algorithm<dyn LimitedTransmit> for AncrTransmitConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::DupThresh, &["ancr"]), Requirement::Needs(Need::Sack, "RFC 3042 applies")]
    }

    fn build(&self) -> Box<dyn LimitedTransmit> {
        Box::new(Extended { mode: self.mode, phase: None, newer_flight: None })
    }
}

/// The state of Extended Limited Transmit while it is executed.
#[derive(Clone, Debug)]
struct Execution {
    /// SND.NXT when it was started, or when `FlightSizePrev` was last renewed: `recover + 1`.
    recover: Offset,
    skipped: Bytes,
    pipe_max: Bytes,
    /// The last (E) steps, with this pipe, allowed this many segments, beginning at `from`.
    pipe: Bytes,
    steps: Segments,
    from: Offset,
}

impl Execution {
    /// (I.2), (I.3).
    fn start(cx: &Context<'_>) -> Execution {
        let (recover, from) = (cx.snd.snd_nxt, cx.snd.snd_nxt);
        let (skipped, pipe_max, pipe) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        Execution { recover, skipped, pipe_max, pipe, steps: Segments::ZERO, from }
    }

    /// (E.4), (E.5) and (E.7), for what the last (E) steps really sent.
    fn count_sent(&mut self, cx: &Context<'_>, mode: Mode) {
        let sent = cx.snd.snd_nxt.since(self.from).min(self.steps.of(cx.snd.smss));
        if mode == Mode::Careful {
            self.skipped += sent;
        }
        self.pipe_max = self.pipe_max.max(self.pipe + sent);
        self.steps = Segments::ZERO;
    }

    /// (E.2) to (E.6): how many segments may be sent.
    fn execute(&mut self, cx: &Context<'_>, mode: Mode) {
        self.pipe = cx.board.pipe().bytes;
        self.from = cx.snd.snd_nxt;
        let room = (cx.snd.cwnd - (self.pipe + self.skipped)).whole_segments(cx.snd.smss);
        let steps = match mode {
            Mode::Aggressive => room,
            Mode::Careful => Segments(room.0.div_ceil(2)),
        };
        self.steps = steps.min(cx.config.initial_window);
    }
}

#[derive(Clone, Debug)]
struct Extended {
    mode: Mode,
    phase: Option<Execution>,
    /// `FlightSizePrev`, since it was renewed.
    newer_flight: Option<Bytes>,
}

impl Plugin for Extended {}

impl LimitedTransmit for Extended {
    fn traits(&self) -> LimitedTransmitTraits {
        LimitedTransmitTraits { caps_window: true, ..LimitedTransmitTraits::default() }
    }

    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        let execution = self.phase.get_or_insert_with(|| Execution::start(cx));
        execution.count_sent(cx, self.mode);
        if ack.duplicate || ack.advances() {
            execution.execute(cx, self.mode);
        }
        cx.snd.flight_size() + execution.steps.of(cx.snd.smss)
    }

    fn on_disorder_end(&mut self, cx: &Context<'_>, end: DisorderEnd) -> Option<Window> {
        let restarts = end == DisorderEnd::Advance && cx.board.sacked().segments > Segments::ZERO; // (T.1)
        let Some(execution) = self.phase.as_mut().filter(|_| restarts) else {
            self.phase = None;
            self.newer_flight = None;
            return (end == DisorderEnd::Advance).then(|| after_reordering(cx));
        };
        execution.count_sent(cx, self.mode);
        execution.skipped = Bytes::ZERO;
        if cx.snd.snd_una >= execution.recover {
            self.newer_flight = Some(execution.pipe_max); // (T.2)
            execution.pipe_max = Bytes::ZERO;
            execution.recover = cx.snd.snd_nxt;
        }
        None
    }

    fn newer_flight(&self) -> Option<Bytes> {
        self.newer_flight
    }
}

/// (T.3), (T.4).
fn after_reordering(cx: &Context<'_>) -> Window {
    let cwnd = cx.snd.flight_size() + cx.snd.smss;
    let only_growth = cx.snd.cwnd > cwnd && cx.snd.cwnd < cwnd + cx.snd.smss;
    let ssthresh = cx.snd.ssthresh.max(cx.snd.cwnd);
    Window { cwnd: if only_growth { cx.snd.cwnd } else { cwnd }, ssthresh }
}
