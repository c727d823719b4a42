//! # RR-TCP's histogram at the receiver
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §6 (a proposal
//! without an implementation).
//!
//! **What it changes.** Both ends. The receiver sees every arrival, so it measures how late segments are, keeps the
//! histogram of RR-TCP, and advises the sender of a dupthresh that covers the fraction `fa` of the events.
//!
//! **State.** Receiver: the histogram; the last advice, and how many ACKs ago it was sent. Sender: the last advice.
//!
//! **Rules.**
//! - 1: if a segment fills a gap and is not a retransmission, its lateness is the number of segments above it.
//! - 2: dupthresh is one more than the length that the fraction `fa` of the events does not exceed, from 3 to
//!   `max_dup_thresh`: 64, the value of Table 2.
//! - 3: the advice is sent when it changes, and otherwise in every 32nd ACK.
//! - 4: the sender uses the advice; after a timeout it uses 3 until the next advice.
//!
//! **Departures.** All of this is our reading of one sentence of the paper. The receiver tells a
//! retransmission by its timestamp, if there is one, and otherwise by the age of the gap.
//!
//! **Status.** Partial: the paper has one sentence about it ("a receiver-side implementation"), and no rule, option or
//! result. How often the advice is sent, and what the sender does without it, are our choice.

use reknit_tcp::experiment::{ExperimentalOption, Features};
use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent};
use reknit_tcp::seams::{Arrival, DupThresh, HeaderSupport, HeaderSupportTraits, Plugin, RxFacts};
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::arrivals::Arrivals;
use crate::requirement::{Need, Requirement};
use crate::threshold::rr::histogram::Histogram;

/// The initial and smallest dupthresh (Table 2).
const MIN: Segments = Segments(3);

/// Parameters of the receiver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdviseDupThreshConfig {
    /// fa, the fraction of events that dupthresh covers (§4.1.3: 0.9).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub fa: f64,
    /// How long an event is kept (§4.1.3: 80 s).
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
        AdviseDupThreshConfig { fa: 0.9, event_life: Duration::from_secs(80), max_dup_thresh: Segments(64), repeat: 32 }
    }
}

impl Algorithm<dyn HeaderSupport> for AdviseDupThreshConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Needs(Need::Feature(Features::DUP_THRESH), "the threshold stays at 3")]
    }

    fn build(&self) -> Box<dyn HeaderSupport> {
        Box::new(Adviser {
            histogram: Histogram::new(self.event_life, self.max_dup_thresh),
            config: self.clone(),
            arrivals: Arrivals::default(),
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
    arrivals: Arrivals,
    dup_thresh: Segments,
    /// The last advice; a sender without advice uses 3.
    advised: Segments,
    /// ACKs since then.
    acks: u32,
}

impl Adviser {
    /// Rule 1.
    fn lateness(&self, rx: &RxFacts<'_>) -> Option<Segments> {
        let fills = rx.arrival != Arrival::Duplicate && rx.end < rx.highest;
        let above = rx.highest.since(rx.end).0.div_ceil(rx.rmss.0.max(1));
        (fills && !self.arrivals.is_retransmission(rx)).then_some(Segments(above as u32))
    }

    /// Rule 2.
    fn learn(&mut self, rx: &RxFacts<'_>, length: Segments) {
        self.histogram.expire(rx.now);
        self.histogram.insert(rx.now, length);
        let longest = self.histogram.percentile(self.config.fa);
        self.dup_thresh = longest.map_or(MIN, |l| (l + Segments(1)).min(self.config.max_dup_thresh).max(MIN));
    }
}

impl HeaderSupport for Adviser {
    fn traits(&self) -> HeaderSupportTraits {
        HeaderSupportTraits::new(Features::DUP_THRESH)
    }

    fn on_data(&mut self, rx: &RxFacts<'_>) {
        if rx.arrival == Arrival::InOrder {
            return;
        }
        if let Some(length) = self.lateness(rx) {
            self.learn(rx, length);
        }
        self.arrivals.note(rx);
        self.arrivals.forget_below(rx.rcv_nxt);
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
        self.histogram.heap_size() + self.arrivals.heap_size()
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

impl Plugin for FromPeer {
    fn on_recovery_event(&mut self, _cx: &Context<'_>, event: RecoveryEvent) {
        if matches!(event, RecoveryEvent::Timeout { .. }) {
            self.dup_thresh = MIN;
        }
    }
}
