//! # TCP-PR
//!
//! Bohacek, Hespanha, Lee, Lim, Obraczka: A New TCP for Persistent Packet Reordering. IEEE/ACM Transactions on
//! Networking, 2006; as described in the survey of Leung, Li and Yang (IEEE TPDS 2007), §6.2.1.
//!
//! **What it changes.** All of loss detection: duplicate ACKs are not counted, and there is no retransmission timer. A
//! segment is lost when it has been outstanding for `mxrtt`, a multiple of an upper envelope of the round-trip times.
//!
//! **State.** `ewrtt`, the envelope (used as the SRTT of the connection). `memorize`: the segments outstanding when the
//! window was last halved; losses among them belong to the same congestion event. `cburst`: the number of those losses.
//! For each segment, the records hold when it was last sent and with which cwnd. The scoreboard knows which segments
//! are still in the network.
//!
//! **Rules.**
//! - On an ACK: the envelope (`rtt-envelope`) and `mxrtt = β ewrtt` are updated; the window grows for each segment
//!   acknowledged or SACKed.
//! - On the loss of a segment that is not memorized: the window becomes half of the window *with which the segment was
//!   sent*, and the outstanding segments are memorized.
//! - On the loss of a memorized segment: it is only retransmitted. If such losses exceed half a window ("extreme
//!   loss"), everything is marked lost, cwnd becomes one segment, slow start begins, and nothing is sent for `mxrtt`,
//!   which is then at least 1 s and doubles with each loss of a retransmission until there is an RTT sample.
//! - Data, including retransmissions, is sent while fewer segments are outstanding than cwnd allows.
//!
//! **Departures.** α, β, the second after an extreme loss and the back-off are not in the survey; they are those of TCP-PR's
//! authors as they are known from other descriptions. The loss that halves the window does not count towards the half of
//! the window that makes a loss extreme. Only whole segments are sent, so cwnd is rounded down. While data is SACKed, growth caused by one ACK
//! takes effect with the next one. The segments outstanding at an extreme loss stay
//! memorized, so that the rest of the same burst does not raise the window again. A retransmission doubles `mxrtt`
//! even without an extreme loss if it was sent with a window of one segment, or if there was no RTT sample since.
//! Without SACK only the first segment has a timer, which starts when it becomes the first. Each duplicate ACK
//! stands for a segment that is no longer outstanding, and lost segments are retransmitted at once. `mxrtt` is at
//! most the largest RTO of the connection; otherwise a peer that delays its ACKs could delay retransmissions
//! without limit.
//!
//! **Status.** Partial: the survey (§6.2.1) does not give α and β, which decide how late a loss is detected, what follows an
//! extreme loss except slow start, or the initial `mxrtt`, which matter after many losses.

use reknit_tcp::facts::{AckFacts, Context, Trigger, Window};
use reknit_tcp::scoreboard::{SegId, SegmentRecord, SendReason};
use reknit_tcp::seams::{
    CongestionControl, FastRecovery, FastRecoveryTraits, LimitedTransmit, LossDetector, LossReason, LossResponse,
    Plugin, Reduction, Seam, Verdicts,
};
use reknit_units::{Bytes, Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::requirement::Requirement;
use crate::time::pr_envelope::samples;

/// Parameters of the detector.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SegmentClocksConfig {
    /// β: a segment is lost when it has been outstanding for this many times the envelope.
    #[schemars(range(min = 1.0, max = 1000.0))]
    pub beta: f64,
    /// The smallest `mxrtt`: the clock granularity, as in RFC 6298 §2.3.
    pub granularity: Duration,
    /// The smallest `mxrtt` after an extreme loss.
    pub collapse: Duration,
    /// The largest factor of `mxrtt` after losses of retransmissions.
    #[schemars(range(min = 1, max = 65_536))]
    pub max_back_off: u64,
}

impl Default for SegmentClocksConfig {
    fn default() -> SegmentClocksConfig {
        SegmentClocksConfig {
            beta: 3.0,
            granularity: Duration::from_millis(1),
            collapse: Duration::from_secs(1),
            max_back_off: 64,
        }
    }
}

impl Algorithm<dyn LossDetector> for SegmentClocksConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[
            Requirement::Only(Seam::DupThresh, &["fixed"]),
            Requirement::Only(Seam::Postponement, &[]),
            Requirement::Only(Seam::LimitedTransmit, &["off", "outstanding"]),
            Requirement::Only(Seam::RtoEstimator, &["rtt-envelope"]),
            Requirement::Waits,
        ]
    }

    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(SegmentClocks {
            config: self.clone(),
            memorize: None,
            cburst: 0,
            collapsed: false,
            back_off: 1,
            back_off_changed: Instant::ZERO,
            first: (SegId::default(), Instant::ZERO),
            deadline: Instant::NEVER,
        })
    }
}

/// The segments that were outstanding at one moment and have not been retransmitted since.
#[derive(Clone, Copy, Debug)]
struct Memorize {
    at: Instant,
    end: SegId,
}

impl Memorize {
    fn now(cx: &Context<'_>) -> Memorize {
        Memorize { at: cx.now, end: cx.board.next_id() }
    }

    fn has(&self, id: SegId, record: &SegmentRecord) -> bool {
        id < self.end && (record.last_sent < self.at || record.transmissions == 1)
    }
}

#[derive(Clone, Debug)]
struct SegmentClocks {
    config: SegmentClocksConfig,
    memorize: Option<Memorize>,
    /// Losses among the memorized.
    cburst: u64,
    /// An extreme loss has occurred, and there has been no RTT sample since.
    collapsed: bool,
    back_off: u64,
    /// When there was last an RTT sample, or a back-off.
    back_off_changed: Instant,
    /// The first outstanding segment, and since when it has been the first.
    first: (SegId, Instant),
    deadline: Instant,
}

impl SegmentClocks {
    /// `mxrtt`, with its back-off.
    fn mxrtt(&self, cx: &Context<'_>) -> Duration {
        let mxrtt = cx.snd.srtt.unwrap_or(cx.config.initial_rto).mul_f64(self.config.beta);
        let mxrtt = mxrtt.max(if self.collapsed { self.config.collapse } else { self.config.granularity });
        (mxrtt * self.back_off).min(cx.config.max_rto)
    }

    /// The segments with a running timer, and when each timer started, oldest first.
    fn clocks<'a>(&self, cx: &Context<'a>) -> impl Iterator<Item = (SegId, &'a SegmentRecord, Instant)> + use<'a> {
        let (first, since) = self.first;
        let (sack, window_end) = (cx.snd.sack, cx.snd.snd_una + cx.snd.snd_wnd);
        let all = sack.then(|| cx.board.in_send_order()).into_iter().flatten().map(|(id, r)| (id, r, r.last_sent));
        let only = cx.board.get(first).filter(move |r| !sack && r.is_open());
        let only = only.map(|r| (first, r, r.last_sent.max(since)));
        // Probes of a closed window may be dropped by the receiver; the persist timer handles them.
        all.chain(only).filter(move |(_, r, _)| r.cause != SendReason::WindowProbe || r.start < window_end)
    }

    fn watch_first(&mut self, cx: &Context<'_>) {
        if self.first.0 != cx.board.first() {
            self.first = (cx.board.first(), cx.now);
        }
    }

    /// Marks segments lost whose timer has expired.
    fn judge(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.deadline = Instant::NEVER;
        for (id, record, since) in self.clocks(cx) {
            let expires = since + self.mxrtt(cx);
            if expires > cx.now {
                self.deadline = self.deadline.min(expires);
                break;
            }
            if verdicts.is_full() {
                self.deadline = cx.now;
                break;
            }
            self.lose(cx, id, record, verdicts);
        }
    }

    fn lose(&mut self, cx: &Context<'_>, id: SegId, record: &SegmentRecord, verdicts: &mut Verdicts) {
        let smallest = u64::from(record.cwnd_at_sent) <= cx.snd.smss.0;
        // Segments that were retransmitted together double it once.
        let silence = record.last_sent >= self.back_off_changed;
        if record.transmissions > 1 && (self.collapsed || smallest || silence) {
            self.back_off = (self.back_off * 2).min(self.config.max_back_off);
            self.back_off_changed = cx.now;
        }
        if self.memorize.is_some_and(|memorize| memorize.has(id, record)) {
            verdicts.repair(id);
            self.cburst += 1;
            let extreme = self.cburst * cx.snd.smss.0 > u64::from(record.cwnd_at_sent) / 2;
            if extreme && !self.collapsed {
                self.collapse(cx, verdicts);
            }
        } else {
            verdicts.event(id);
            verdicts.lost(id, LossReason::Deadline);
            self.memorize = Some(Memorize::now(cx));
            self.cburst = 0;
        }
    }

    /// Extreme loss: more than half a window was lost.
    fn collapse(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.collapsed = true;
        self.memorize = Some(Memorize::now(cx));
        self.cburst = 0;
        verdicts.collapse(cx.now + self.mxrtt(cx));
    }
}

impl Plugin for SegmentClocks {}

impl LossDetector for SegmentClocks {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        if samples(cx, ack).next().is_some() {
            self.collapsed = false;
            self.back_off = 1;
            self.back_off_changed = cx.now;
        }
        self.watch_first(cx);
        self.judge(cx, verdicts);
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.judge(cx, verdicts);
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn on_sent(&mut self, cx: &Context<'_>, _id: SegId, _cause: SendReason) {
        self.watch_first(cx);
        let first = self.clocks(cx).next();
        self.deadline = first.map_or(Instant::NEVER, |(_, _, since)| since + self.mxrtt(cx));
    }
}

/// Parameters of the response: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowAtSendingConfig {}

impl Algorithm<dyn LossResponse> for WindowAtSendingConfig {
    fn build(&self) -> Box<dyn LossResponse> {
        Box::new(HalveAtSending)
    }
}

/// Sets the window to half of the window with which the lost segment was sent.
#[derive(Clone, Debug)]
struct HalveAtSending;

impl Plugin for HalveAtSending {}

impl LossResponse for HalveAtSending {
    fn respond(
        &mut self,
        cx: &Context<'_>,
        reduction: &Reduction,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window> {
        let lost = cx.board.get(reduction.hole).filter(|_| reduction.trigger == Trigger::FastRetransmit);
        let half = match lost {
            Some(record) => Bytes(u64::from(record.cwnd_at_sent) / 2),
            None => congestion.ssthresh(cx, reduction),
        };
        let cwnd = half.max(cx.snd.smss);
        Some(Window { cwnd, ssthresh: cwnd })
    }
}

/// Parameters of sending after a loss: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutstandingConfig {}

impl Algorithm<dyn FastRecovery> for OutstandingConfig {
    /// Other detectors would mistake one loss for many, because its episodes are short.
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::LossDetector, &["segment-clocks"])]
    }

    fn build(&self) -> Box<dyn FastRecovery> {
        Box::new(Flush)
    }
}

/// Parameters of sending in disorder: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutstandingTransmitConfig {}

impl Algorithm<dyn LimitedTransmit> for OutstandingTransmitConfig {
    fn build(&self) -> Box<dyn LimitedTransmit> {
        Box::new(Flush)
    }
}

/// Sends while less is outstanding than cwnd allows, in every state. There is no recovery phase: the next ACK ends the
/// episode that a loss began.
#[derive(Clone, Debug)]
struct Flush;

/// `|to_be_ack|`.
fn to_be_ack(cx: &Context<'_>) -> Bytes {
    let departed = if cx.snd.sack { Bytes::ZERO } else { cx.snd.dup_acks.of(cx.snd.smss) };
    cx.board.pipe().bytes - departed
}

impl Plugin for Flush {}

impl FastRecovery for Flush {
    /// Without SACK only the first segment has a timer, so its retransmission does not wait.
    fn traits(&self) -> FastRecoveryTraits {
        FastRecoveryTraits { grows_on_exit: true, first_retransmission_waits: true, ..FastRecoveryTraits::default() }
    }

    fn enter(&mut self, cx: &Context<'_>, _ack: Option<&AckFacts<'_>>) -> Bytes {
        cx.snd.cwnd
    }

    fn on_ack(&mut self, cx: &Context<'_>, _ack: &AckFacts<'_>) -> Bytes {
        cx.snd.cwnd
    }

    fn allowance(&self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd - to_be_ack(cx)
    }

    fn is_over(&self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> bool {
        true
    }

    fn exit(&mut self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd
    }
}

impl LimitedTransmit for Flush {
    fn flight_limit(&mut self, cx: &Context<'_>, _ack: &AckFacts<'_>) -> Bytes {
        cx.snd.flight_size() + cx.snd.cwnd - to_be_ack(cx)
    }
}

/// Parameters of the growth: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerSegmentConfig {}

impl Algorithm<dyn CongestionControl> for PerSegmentConfig {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Growth { rest: 0 })
    }
}

#[derive(Clone, Debug)]
struct Growth {
    /// The remainder of the division, in bytes times cwnd: in the paper the window is a real number.
    rest: u64,
}

impl Growth {
    /// One segment was acknowledged or SACKed: cwnd + 1 as long as that is within ssthresh, otherwise cwnd + 1/cwnd.
    fn grow(&mut self, window: Window, smss: Bytes) -> Bytes {
        let Window { cwnd, ssthresh } = window;
        if cwnd + smss <= ssthresh {
            return cwnd + smss;
        }
        self.rest += smss.0 * smss.0;
        let growth = self.rest / cwnd.0;
        self.rest %= cwnd.0;
        cwnd + Bytes(growth)
    }
}

impl Plugin for Growth {}

impl CongestionControl for Growth {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        let window = cx.snd.window_with(cx.snd.cwnd);
        ack.newly.iter().fold(window, |window, _| Window { cwnd: self.grow(window, cx.snd.smss), ..window })
    }

    /// For an ECN echo.
    fn ssthresh(&mut self, cx: &Context<'_>, _reduction: &Reduction) -> Bytes {
        Bytes(cx.snd.cwnd.0 / 2)
    }

    fn save(&mut self) {}

    fn restore(&mut self, _cx: &Context<'_>) {}
}
