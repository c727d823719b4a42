//! # The duplicate threshold of RR-TCP
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §4.1 to §4.3.
//!
//! **What it changes.** The threshold is a percentile of the measured reordering lengths. The percentile is the FA
//! ratio: the fraction of false fast retransmits to avoid. With `adaptive` (DSACK-TA) the ratio rises by a step with
//! each false fast retransmit, and falls with each timeout and idle period in proportion to its cost.
//!
//! **State.** The histogram, the FA ratio and the state of its adaptation.
//!
//! **Rules.**
//! - 1: each measured length is added to the histogram.
//! - 2: the threshold is the percentile plus one, from 3 to `max_dup_thresh`: 64, the value of Table 2. Longer windows
//!   need a larger one.
//! - 3 to 6 adapt the ratio, as in §4.3 of the paper.
//!
//! **Departures.** A mean of two lengths (§4.1.1) is rounded up, and a segment that was sent more than twice gives none. The
//! text of the paper sets the threshold to the percentile, but its example adds one (8 packets or
//! fewer, so 9); we add one. Events expire exactly, at each ACK, instead of by a coarse timer. Without SACK the
//! threshold is 3.
//!
//! **Status.** Faithful with a fixed ratio. With an adaptive one partial: the paper does not say how W is sampled, the
//! limits of the ratio, nor when limited transmit is exhausted. The last one decides the ratio where the maximum window
//! is full (Fig. 18).

use reknit_tcp::experiment::Features;
use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent};
use reknit_tcp::scoreboard::SegId;
use reknit_tcp::seams::{DupThresh, Memory, Plugin};
use reknit_units::{Instant, Segments};

use crate::algorithm::Algorithm;
use crate::requirement::{Need, Requirement};
pub use crate::threshold::rr::config::{RrTcpConfig, Sampling};
use crate::threshold::rr::histogram::Histogram;
use crate::threshold::rr::ratio::FaRatio;

/// What a connection with `share` leaves to the next one.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedState {
    /// The reordering lengths, in segments, and when they were measured, oldest first.
    pub events: Vec<(Instant, Segments)>,
    /// The FA ratio.
    pub fa: f64,
}

impl Algorithm<dyn DupThresh> for RrTcpConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::MayExceedWindow, Requirement::Needs(Need::Sack, "the threshold stays at 3")]
    }

    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(ReorderingRobust {
            histogram: Histogram::new(self.life, self.max_dup_thresh),
            ratio: FaRatio::new(self),
            dup_thresh: self.min_dup_thresh,
            config: self.clone(),
        })
    }
}

#[derive(Clone, Debug)]
struct ReorderingRobust {
    config: RrTcpConfig,
    histogram: Histogram,
    ratio: FaRatio,
    /// Rule 2, as of the last event.
    dup_thresh: Segments,
}

impl ReorderingRobust {
    /// Rule 1. Returns true if the histogram has changed.
    fn measure(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let expired = self.histogram.expire(cx.now);
        let length = self.length(cx, ack);
        if let Some(length) = length {
            self.histogram.insert(cx.now, length);
        }
        expired || length.is_some()
    }

    /// The reordering length that this ACK shows.
    fn length(&self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Segments> {
        if self.config.sampling == Sampling::Mean || !cx.snd.features.has(Features::RESENT) {
            return ack.reordering.map(|event| event.length);
        }
        if let Some(original) = late_original(ack) {
            return ack.highest.map(|highest| highest.beyond(original)).filter(|length| *length > Segments::ZERO);
        }
        let [segment] = *ack.newly else { return None };
        let record = cx.board.get(segment)?;
        match record.transmissions {
            1 => ack.reordering.filter(|event| event.segment == segment).map(|event| event.length),
            2 if ack.experiment.retransmitted == Some(false) => {
                record.first_length.filter(|length| *length > Segments::ZERO)
            }
            _ => None,
        }
    }

    /// Rule 2.
    fn update_threshold(&mut self) {
        let RrTcpConfig { min_dup_thresh, max_dup_thresh, min_events, .. } = self.config;
        let enough = self.histogram.len() >= min_events as usize;
        let longest = self.histogram.percentile(self.ratio.fa()).filter(|_| enough).unwrap_or_default();
        self.dup_thresh = (longest + Segments(1)).min(max_dup_thresh).max(min_dup_thresh);
    }
}

/// The segment whose original arrived after its copy, as the bit of a DSACK says.
fn late_original(ack: &AckFacts<'_>) -> Option<SegId> {
    let duplicate = ack.dsack?.segments.iter().find(|segment| segment.transmissions == 2 && segment.reports == 1)?;
    (ack.experiment.retransmitted == Some(false)).then_some(duplicate.id)
}

impl DupThresh for ReorderingRobust {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        let measured = self.measure(cx, ack);
        let moved = self.ratio.on_ack(cx, ack);
        if measured || moved {
            self.update_threshold();
        }
    }

    fn dup_thresh(&self, cx: &Context<'_>) -> Segments {
        if cx.snd.sack { self.dup_thresh } else { self.config.min_dup_thresh }
    }
}

impl Plugin for ReorderingRobust {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.ratio.on_recovery_event(cx, event);
        self.update_threshold();
    }

    fn heap_size(&self) -> usize {
        self.histogram.heap_size()
    }

    fn show(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("fa_ratio", self.ratio.fa());
    }

    fn remember(&self, memory: &mut Memory) {
        if self.config.share {
            memory.keep(SharedState { events: self.histogram.events().collect(), fa: self.ratio.fa() });
        }
    }

    fn recall(&mut self, now: Instant, memory: &Memory) {
        let Some(shared) = memory.get::<SharedState>().filter(|_| self.config.share) else { return };
        let is_alive = |(at, _): &&(Instant, Segments)| now.since(*at) <= self.config.life;
        for (at, length) in shared.events.iter().filter(is_alive) {
            self.histogram.insert(*at, *length);
        }
        if self.histogram.len() > 0 {
            self.ratio.begin_with(shared.fa);
            self.update_threshold();
        }
    }
}
