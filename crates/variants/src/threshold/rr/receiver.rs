//! # RR-TCP at the receiver
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §6 (a proposal
//! without an implementation).
//!
//! **What it changes.** Both ends. "The receiver measures reordering and keeps the relevant histogram, applies the
//! dupthresh adjustment algorithms, and dynamically informs the sender of the dupthresh value it should use." The sender
//! is `dsack-r` with limited transmit of one window, as for all variants of RR-TCP, and uses that value.
//!
//! **State.** Receiver: the histogram; the FA ratio, the segments that arrive per round trip, and the time of the last
//! arrival; the last advice, and how many ACKs ago it was sent. Sender: the last advice.
//!
//! **Rules.**
//! - 1: if a segment fills a gap and is not a retransmission, its lateness is the number of segments above it. So it is if
//!   the segment arrives after its retransmission has filled the gap.
//! - 2: dupthresh is one more than the length that the FA ratio of the events does not exceed, from 3 to
//!   `max_dup_thresh`: 64, the value of Table 2.
//! - 3: the advice is sent when it changes, and otherwise in every 32nd ACK.
//! - 4: the sender uses the advice, also after a timeout (§5.7: the histogram keeps what is known about the path).
//! - 5: W, the steady window, is an average of the segments that arrive in a round trip.
//! - 6: a segment that arrives again shows a false fast retransmit, and raises the ratio by `step`, at most once per
//!   round trip. Its cost is W / 2: the DSACK for it leaves at once, so the window was reduced for one round trip.
//! - 7: a pause between arrivals while there is a gap lowers the ratio by `step` times its cost, divided by that of a
//!   false fast retransmit. The pause was a timeout if a retransmission ends it after more than two round trips;
//!   otherwise limited transmit was exhausted, which counts only if it cost more than a false fast retransmit.
//!
//! **Departures.** The paper says little more about it: that the advice might be a TCP option, "at the cost of
//! requiring a modification to the over-the-wire protocol". Rules 3 to 7 are our reading. The costs are those of §4.3, computed from what a receiver can see: it knows neither cwnd nor the timer of the sender. The receiver tells
//! a retransmission by its timestamp, if there is one, and otherwise by the age of the gap.
//!
//! **Status.** Partial: the paper gives no rule, option or result for it. How often the advice is sent, what the sender
//! does without it, and how the receiver sees timeouts and idle periods are our choice.

use std::collections::VecDeque;

use reknit_tcp::experiment::{ExperimentalOption, Features};
use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seams::{Arrival, DupThresh, HeaderSupport, HeaderSupportTraits, Plugin, RxFacts};
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::arrivals::Arrivals;
use crate::requirement::{Need, Requirement};
use crate::threshold::rr::histogram::Histogram;
use crate::threshold::rr::observed_ratio::ObservedRatio;

/// The initial and smallest dupthresh (Table 2).
const MIN: Segments = Segments(3);
/// Retransmissions whose originals are expected.
const MAX_COPIES: usize = 64;

/// Parameters of the receiver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdviseDupThreshConfig {
    /// The FA ratio: the fraction of reordering events that stay below the threshold (§4.2). The initial value if
    /// `adaptive`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub fa: f64,
    /// Adapt the FA ratio to the cost of mistakes (§4.3).
    pub adaptive: bool,
    /// S, the increase of the FA ratio after a false fast retransmit (§4.3.4).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub step: f64,
    /// How long an event is kept (Table 2: 80 s).
    pub event_life: Duration,
    /// The largest dupthresh that is advised, in segments (Table 2). The option has a byte for it.
    #[schemars(range(min = 3, max = 255))]
    pub max_dup_thresh: Segments,
    /// The advice is repeated after this many ACKs.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repeat: u32,
}

impl Default for AdviseDupThreshConfig {
    fn default() -> AdviseDupThreshConfig {
        AdviseDupThreshConfig {
            fa: 0.9,
            adaptive: true,
            step: 0.01,
            event_life: Duration::from_secs(80),
            max_dup_thresh: Segments(64),
            repeat: 32,
        }
    }
}

impl Algorithm<dyn HeaderSupport> for AdviseDupThreshConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Needs(Need::Feature(Features::DUP_THRESH), "the threshold stays at 3")]
    }

    fn build(&self) -> Box<dyn HeaderSupport> {
        Box::new(Adviser {
            histogram: Histogram::new(self.event_life, self.max_dup_thresh),
            ratio: ObservedRatio::new(self.fa, if self.adaptive { self.step } else { 0.0 }),
            config: self.clone(),
            arrivals: Arrivals::default(),
            copies: VecDeque::new(),
            dup_thresh: MIN,
            advised: MIN,
            acks: 0,
        })
    }
}

#[derive(Clone, Debug)]
struct Adviser {
    config: AdviseDupThreshConfig,
    histogram: Histogram,
    /// Rules 5 to 7.
    ratio: ObservedRatio,
    arrivals: Arrivals,
    /// Where retransmissions end that filled a gap: their originals may still come.
    copies: VecDeque<Offset>,
    dup_thresh: Segments,
    /// The last advice; a sender without advice uses 3.
    advised: Segments,
    /// ACKs since then.
    acks: u32,
}

impl Adviser {
    /// Rule 1.
    fn lateness(&mut self, rx: &RxFacts<'_>, is_retransmission: bool) -> Option<Segments> {
        if rx.end >= rx.highest {
            return None;
        }
        if rx.arrival == Arrival::Duplicate {
            let copy = self.copies.iter().position(|end| *end == rx.end)?;
            self.copies.remove(copy);
        } else if is_retransmission {
            if self.copies.len() == MAX_COPIES {
                self.copies.pop_front();
            }
            self.copies.push_back(rx.end);
            return None;
        }
        let above = rx.highest.since(rx.end).0.div_ceil(rx.rmss.0.max(1));
        Some(Segments(above as u32))
    }

    /// Rule 2.
    fn update_threshold(&mut self) {
        let longest = self.histogram.percentile(self.ratio.fa());
        self.dup_thresh = longest.map_or(MIN, |l| (l + Segments(1)).min(self.config.max_dup_thresh).max(MIN));
    }
}

impl HeaderSupport for Adviser {
    fn traits(&self) -> HeaderSupportTraits {
        HeaderSupportTraits::new(Features::DUP_THRESH)
    }

    fn on_data(&mut self, rx: &RxFacts<'_>) {
        let is_retransmission = rx.arrival != Arrival::InOrder && self.arrivals.is_retransmission(rx);
        let moved = self.ratio.on_data(rx, is_retransmission);
        let lateness = self.lateness(rx, is_retransmission);
        if let Some(length) = lateness {
            self.histogram.expire(rx.now);
            self.histogram.insert(rx.now, length);
        }
        if moved || lateness.is_some() {
            self.update_threshold();
        }
        if rx.arrival != Arrival::InOrder {
            self.arrivals.note(rx);
            self.arrivals.forget_below(rx.rcv_nxt);
        }
    }

    /// Rule 3.
    fn annotate_ack(&mut self, _ack: Offset, experiment: &mut ExperimentalOption) {
        self.acks += 1;
        if self.dup_thresh != self.advised || self.acks >= self.config.repeat {
            self.advised = self.dup_thresh;
            self.acks = 0;
            experiment.dup_thresh = Some(self.dup_thresh.0.min(u32::from(u8::MAX)) as u8);
        }
    }
}

impl Plugin for Adviser {
    fn heap_size(&self) -> usize {
        self.histogram.heap_size() + self.arrivals.heap_size() + self.copies.capacity() * size_of::<Offset>()
    }
}

/// Parameters of the sender.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdvisedConfig {
    /// The largest advice that is followed, in segments (Table 2).
    #[schemars(range(min = 3, max = 255))]
    pub max_dup_thresh: Segments,
}

impl Default for AdvisedConfig {
    fn default() -> AdvisedConfig {
        AdvisedConfig { max_dup_thresh: Segments(64) }
    }
}

impl Algorithm<dyn DupThresh> for AdvisedConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::MayExceedWindow]
    }

    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(FromPeer { dup_thresh: MIN, max_dup_thresh: self.max_dup_thresh })
    }
}

/// Rule 4.
#[derive(Clone, Debug)]
struct FromPeer {
    dup_thresh: Segments,
    max_dup_thresh: Segments,
}

impl DupThresh for FromPeer {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        if cx.snd.features.has(Features::DUP_THRESH)
            && let Some(advice) = ack.experiment.dup_thresh
        {
            self.dup_thresh = Segments(u32::from(advice)).min(self.max_dup_thresh).max(MIN);
        }
    }

    fn dup_thresh(&self, _cx: &Context<'_>) -> Segments {
        self.dup_thresh
    }
}

impl Plugin for FromPeer {}
