//! New data on duplicate ACKs, before it is known whether anything was lost: RFC 3042 and its variants.
//!
//! Each rule sets how large FlightSize may become. cwnd does not change.
//!
//! | rule | new segments beyond cwnd | source |
//! |---|---|---|
//! | `off` | none | |
//! | `rfc3042` | one for each of the first two duplicate ACKs | RFC 3042 §2 |
//! | `repeated-acks` | as `rfc3042`, but only ACKs that do not advance SND.UNA count | ns-2's `Sack1` |
//! | `every-second` | as `rfc3042`, then one for every second duplicate ACK | Blanton and Allman, cited from the survey §5.2.2 |
//! | `per-sack` | one for each newly SACKed segment, fewer than dupthresh and at most k windows | RR-TCP §2.3 |
//! | `every-sack` | one for each newly SACKed segment; FlightSize at most two windows | TCP-DCR, cited from the survey §6.1.4 |
//! | `pipe` | as many as have left the network; `rfc3042` without SACK | the pipe of RFC 6675, used before recovery, as in Linux |
//! | `pairs` | as `pipe`, and in order two segments leave together | Linux |
//!
//! `spreads_bursts`: while no more is SACKed than is in the pipe, the segments that the burst limit holds back are
//! sent at the rate of one window per round trip, without waiting for ACKs. When a hole that has stopped the sender
//! is filled, so few segments are in flight that their ACKs alone would take several round trips to fill a large
//! window.

use reknit_tcp::facts::{AckFacts, Context, Phase, Window};
use reknit_tcp::seams::{Batch, DisorderEnd, LimitedTransmit, LimitedTransmitTraits, Plugin};
use reknit_units::{Bytes, Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::batches;

/// Parameters of `per-sack`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PerSackConfig {
    /// k, the number of windows; 0 to 2 in the paper.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub windows: f64,
}

impl Default for PerSackConfig {
    fn default() -> PerSackConfig {
        PerSackConfig { windows: 1.0 }
    }
}

impl Algorithm<dyn LimitedTransmit> for PerSackConfig {
    fn build(&self) -> Box<dyn LimitedTransmit> {
        Box::new(PerSack { windows: self.windows, sacked: Segments::ZERO })
    }
}

/// Parameters of `pipe`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PipeLimitConfig {
    /// Segments held back by the burst limit (`tcp.max_burst`) are paced over a round trip instead of waiting for the next ACK.
    pub spreads_bursts: bool,
}

impl Algorithm<dyn LimitedTransmit> for PipeLimitConfig {
    fn build(&self) -> Box<dyn LimitedTransmit> {
        Box::new(Pipe { spreads_bursts: self.spreads_bursts })
    }
}

/// Parameters of `pairs`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PairsConfig {
    /// Segments held back by the burst limit (`tcp.max_burst`) are paced over a round trip instead of waiting for the next ACK.
    pub spreads_bursts: bool,
}

impl Algorithm<dyn LimitedTransmit> for PairsConfig {
    fn build(&self) -> Box<dyn LimitedTransmit> {
        Box::new(Pairs { late: None, pipe: Pipe { spreads_bursts: self.spreads_bursts } })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Off;

impl Plugin for Off {}

impl LimitedTransmit for Off {
    fn flight_limit(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> Bytes {
        Bytes::ZERO
    }
}

/// RFC 3042 §2: FlightSize stays within cwnd plus two segments.
#[derive(Clone, Debug)]
pub(crate) struct Rfc3042;

impl Plugin for Rfc3042 {}

impl LimitedTransmit for Rfc3042 {
    fn flight_limit(&mut self, cx: &Context<'_>, _ack: &AckFacts<'_>) -> Bytes {
        cx.snd.cwnd + cx.snd.dup_acks.min(Segments(2)).of(cx.snd.smss)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RepeatedAcks {
    /// Duplicate ACKs since SND.UNA last advanced.
    repeated: Segments,
}

impl Plugin for RepeatedAcks {}

impl LimitedTransmit for RepeatedAcks {
    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        if ack.advances() {
            self.repeated = Segments::ZERO;
        } else if ack.duplicate {
            self.repeated += Segments(1);
        }
        cx.snd.cwnd + self.repeated.min(Segments(2)).of(cx.snd.smss)
    }

    fn on_disorder_end(&mut self, _cx: &Context<'_>, _end: DisorderEnd) -> Option<Window> {
        self.repeated = Segments::ZERO;
        None
    }
}

#[derive(Clone, Debug)]
pub(crate) struct EverySecond;

impl Plugin for EverySecond {}

impl LimitedTransmit for EverySecond {
    fn flight_limit(&mut self, cx: &Context<'_>, _ack: &AckFacts<'_>) -> Bytes {
        let dups = cx.snd.dup_acks;
        let further = dups - Segments(2);
        cx.snd.cwnd + (dups.min(Segments(2)) + Segments(further.0 / 2)).of(cx.snd.smss)
    }
}

#[derive(Clone, Debug)]
struct PerSack {
    windows: f64,
    /// Segments SACKed in this episode.
    sacked: Segments,
}

/// How many segments a duplicate ACK reports: one without SACK.
fn newly_sacked(ack: &AckFacts<'_>) -> Segments {
    if ack.duplicate { ack.newly_sacked.max(Segments(1)) } else { Segments::ZERO }
}

impl Plugin for PerSack {}

impl LimitedTransmit for PerSack {
    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        self.sacked += newly_sacked(ack);
        let smss = cx.snd.smss;
        #[expect(clippy::cast_sign_loss, reason = "a multiple of a window is not negative")]
        let bound = Segments((self.windows * cx.snd.cwnd.0 as f64 / smss.0 as f64) as u32);
        cx.snd.cwnd + self.sacked.min(cx.snd.dup_thresh - Segments(1)).min(bound).of(smss)
    }

    fn on_disorder_end(&mut self, _cx: &Context<'_>, _end: DisorderEnd) -> Option<Window> {
        self.sacked = Segments::ZERO;
        None
    }
}

/// Our choice is to allow one more window: RFC 4653 requires a receive buffer of that size.
#[derive(Clone, Debug, Default)]
pub(crate) struct EverySack {
    /// Segments SACKed in this episode.
    sacked: Segments,
}

impl Plugin for EverySack {}

impl LimitedTransmit for EverySack {
    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        self.sacked += newly_sacked(ack);
        (cx.snd.cwnd + self.sacked.of(cx.snd.smss)).min(cx.snd.cwnd * 2)
    }

    fn on_disorder_end(&mut self, _cx: &Context<'_>, _end: DisorderEnd) -> Option<Window> {
        self.sacked = Segments::ZERO;
        None
    }
}

/// Without SACK the pipe is unknown, and RFC 3042 applies.
#[derive(Clone, Debug)]
struct Pipe {
    spreads_bursts: bool,
}

impl Plugin for Pipe {}

impl LimitedTransmit for Pipe {
    fn traits(&self) -> LimitedTransmitTraits {
        LimitedTransmitTraits { spreads_bursts: self.spreads_bursts, ..LimitedTransmitTraits::default() }
    }

    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        let board = cx.board;
        if !cx.snd.sack {
            return Rfc3042.flight_limit(cx, ack);
        }
        cx.snd.cwnd + board.sacked().bytes + board.lost().bytes - board.retransmitted().bytes
    }
}

/// Pairs are sent again after this many round trips without a late segment.
const CALM: u64 = 10;

/// A queue that is nearly full drops more of the segments that arrive in pairs. Where it is short, a sender of single
/// segments takes more than its share from one of pairs. Without PSH, the receiver might acknowledge the last segment of
/// a small window only after its delay.
#[derive(Clone, Debug)]
struct Pairs {
    /// When the last missing segment arrived before it was marked lost.
    late: Option<Instant>,
    pipe: Pipe,
}

impl Plugin for Pairs {}

impl LimitedTransmit for Pairs {
    fn traits(&self) -> LimitedTransmitTraits {
        self.pipe.traits()
    }

    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        self.pipe.flight_limit(cx, ack)
    }

    fn on_disorder_end(&mut self, cx: &Context<'_>, end: DisorderEnd) -> Option<Window> {
        if end == DisorderEnd::Advance {
            self.late = Some(cx.now);
        }
        None
    }

    fn batch(&self, cx: &Context<'_>, since: Duration) -> Option<Batch> {
        let calm = cx.snd.srtt? * CALM;
        let in_order = self.late.is_none_or(|late| cx.now.since(late) > calm);
        (in_order && cx.snd.phase != Phase::Disorder).then(|| batches::of_linux(cx, since)).flatten()
    }
}
