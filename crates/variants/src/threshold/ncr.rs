//! # TCP-NCR
//!
//! Bhandarkar, Reddy, Allman, Blanton: Improving the Robustness of TCP to Non-Congestion Events. RFC 4653, 2006.
//!
//! **What it changes.** The threshold is a fraction of the outstanding data, so a loss is detected about one round trip
//! after it happened. Meanwhile new data is sent ("Extended Limited Transmit", ELT): for every second SACKed segment
//! ("careful", the rate of a halved window) or for each one ("aggressive").
//!
//! **State.** `FlightSizePrev`: FlightSize at the start of ELT, which is the start of disorder; the engine keeps it.
//! `Skipped`: SACKed bytes for which nothing is sent. The threshold needs no state: it is a function of FlightSize
//! after the previous ACK.
//!
//! **Rules.** §3.1 (I) and §3.3 (E.6): `DupThresh = max(LT_F * FlightSize, 3)`. §3.2 (T): an ACK that advances shows
//! that there was only reordering; cwnd is reduced to what is outstanding, and slow start leads back to
//! `FlightSizePrev`. §3.3 (E): new data is sent as the pipe allows. §3.4: a loss reduces the window from
//! `FlightSizePrev`.
//!
//! **Departures.** (T.1) keeps the fraction of a segment by which cwnd has grown, because FlightSize cannot show it;
//! otherwise the window would never grow under frequent reordering. The threshold is rounded up to whole segments. A
//! timeout during ELT also reduces the window from `FlightSizePrev`. If disorder remains at the end of a recovery, ELT
//! begins at once; the RFC waits for an ACK without SACK. Nagle's algorithm need not be on, because segments are
//! counted, not bytes. Without SACK the RFC does not apply, and the base is used.
//!
//! **Limits.** Under permanent reordering the window stays at the initial `FlightSizePrev`, as required by (T.4).
//!
//! **Status.** Faithful.

use reknit_tcp::facts::{AckFacts, Context, Phase, Trigger, Window};
use reknit_tcp::seams::{
    CongestionControl, DisorderEnd, DupThresh, LimitedTransmit, LossResponse, Plugin, Reduction, Seam, SenderPlugins,
};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::newreno;
use crate::base::{fixed_threshold, limited_transmit, respond_at_once};
use crate::requirement::{Need, Requirement};

/// RFC 4653 requires SACK.
pub(crate) fn without_sack(plugins: &mut SenderPlugins) {
    newreno::without_sack(plugins);
    plugins.dup_thresh = fixed_threshold::FixedConfig::default().build();
    plugins.limited_transmit = Box::new(limited_transmit::Rfc3042);
    plugins.loss_response = respond_at_once::AtOnceConfig::default().build();
}

/// How much is sent until it is known whether a segment was lost (§3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One new segment for every second SACKed segment.
    #[default]
    Careful,
    /// One new segment for each SACKed segment.
    Aggressive,
}

/// Parameters of the threshold and of Extended Limited Transmit, which need each other.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NcrConfig {
    /// Careful (`LT_F` = 2/3) or aggressive (`LT_F` = 1/2) (§3).
    pub mode: Mode,
}

impl Algorithm<dyn DupThresh> for NcrConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[
            Requirement::Only(Seam::DupThresh, &["ncr"]),
            Requirement::Only(Seam::LimitedTransmit, &["ncr"]),
            Requirement::Needs(Need::Sack, "the threshold stays at 3"),
        ]
    }

    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(Share { mode: self.mode })
    }
}

impl Algorithm<dyn LimitedTransmit> for NcrConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[
            Requirement::Only(Seam::DupThresh, &["ncr"]),
            Requirement::Only(Seam::LimitedTransmit, &["ncr"]),
            Requirement::Needs(Need::Sack, "the threshold stays at 3"),
        ]
    }

    fn build(&self) -> Box<dyn LimitedTransmit> {
        let extended = Extended { mode: self.mode, skipped: Bytes::ZERO, from: Offset::DATA, steps: Segments::ZERO };
        Box::new(extended)
    }
}

/// (I.3) and (E.6).
#[derive(Clone, Debug)]
struct Share {
    mode: Mode,
}

impl Plugin for Share {}

impl DupThresh for Share {
    fn dup_thresh(&self, cx: &Context<'_>) -> Segments {
        share(self.mode, cx.snd.flight_size(), cx.snd.smss)
    }
}

/// `max(LT_F * (FlightSize / SMSS), 3)`, in whole segments.
pub(super) fn share(mode: Mode, flight_size: Bytes, smss: Bytes) -> Segments {
    let (numerator, denominator) = match mode {
        Mode::Careful => (2, 3),
        Mode::Aggressive => (1, 2),
    };
    let segments = (flight_size.0 * numerator).div_ceil(smss.0 * denominator);
    Segments(segments as u32).max(Segments(3))
}

/// Extended Limited Transmit.
#[derive(Clone, Debug)]
struct Extended {
    mode: Mode,
    /// `Skipped`.
    skipped: Bytes,
    /// The last (E) steps allowed this many segments, beginning at `from`.
    steps: Segments,
    from: Offset,
}

impl Extended {
    /// (E.4), for what the last (E) steps really sent: the application, the peer's window or the burst limit may have
    /// prevented some of it.
    fn count_skipped(&mut self, cx: &Context<'_>) {
        let sent = cx.snd.snd_nxt.since(self.from).min(self.steps.of(cx.snd.smss));
        if self.mode == Mode::Careful {
            self.skipped += sent;
        }
        self.steps = Segments::ZERO;
    }

    /// (E.2) to (E.5): how many segments are sent while `pipe + Skipped <= FlightSizePrev - SMSS`. Each one increases
    /// the pipe and, in careful mode, `Skipped`.
    fn steps(&self, cx: &Context<'_>, pipe: Bytes) -> Segments {
        let smss = cx.snd.smss;
        let room = cx.snd.flight_before_disorder - (pipe + self.skipped);
        match self.mode {
            Mode::Aggressive => room.whole_segments(smss),
            Mode::Careful => Segments(room.whole_segments(smss).0.div_ceil(2)),
        }
    }
}

impl Plugin for Extended {}

impl LimitedTransmit for Extended {
    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        self.count_skipped(cx);
        // (T.3) comes before the (E) steps of (T.4).
        let room = if ack.advances() { cx.snd.cwnd - cx.snd.flight_size() } else { Bytes::ZERO };
        let by_window = room.whole_segments(cx.snd.smss).of(cx.snd.smss);
        self.steps = self.steps(cx, cx.board.pipe().bytes + by_window);
        self.from = cx.snd.snd_nxt + by_window;
        cx.snd.flight_size() + by_window + self.steps.of(cx.snd.smss)
    }

    /// §3.2 (T.1), (T.2), and (I.2) for the ELT that may follow.
    fn on_disorder_end(&mut self, cx: &Context<'_>, end: DisorderEnd) -> Option<Window> {
        self.skipped = Bytes::ZERO;
        self.steps = Segments::ZERO;
        let before = cx.snd.flight_before_disorder;
        let cwnd = (cx.snd.flight_size() + cx.snd.smss).min(before);
        let only_growth = cx.snd.cwnd > cwnd && cx.snd.cwnd < cwnd + cx.snd.smss;
        let cwnd = if only_growth { cx.snd.cwnd } else { cwnd };
        (end == DisorderEnd::Advance).then_some(Window { cwnd, ssthresh: before })
    }
}

/// Parameters of the response: none.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FromBeforeDisorderConfig {}

impl Algorithm<dyn LossResponse> for FromBeforeDisorderConfig {
    fn build(&self) -> Box<dyn LossResponse> {
        Box::new(FromBeforeDisorder { at_once: respond_at_once::AtOnceConfig::default().build() })
    }
}

/// §3.4: `ssthresh = cwnd = FlightSizePrev / 2`.
#[derive(Clone, Debug)]
struct FromBeforeDisorder {
    at_once: Box<dyn LossResponse>,
}

impl LossResponse for FromBeforeDisorder {
    fn respond(
        &mut self,
        cx: &Context<'_>,
        reduction: &Reduction,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window> {
        let loss = matches!(reduction.trigger, Trigger::FastRetransmit | Trigger::Timeout);
        let flight_size = match cx.snd.phase {
            Phase::Disorder if loss => cx.snd.flight_before_disorder,
            _ => reduction.flight_size,
        };
        self.at_once.respond(cx, &Reduction { flight_size, ..*reduction }, congestion)
    }
}

impl Plugin for FromBeforeDisorder {
    fn heap_size(&self) -> usize {
        size_of_val(&*self.at_once) + self.at_once.heap_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::given::{SMSS, segments};

    #[test]
    fn the_threshold_is_a_share_of_what_is_outstanding_and_never_below_three() {
        let shares = |mode, flights: [u32; 6]| flights.map(|n| share(mode, segments(n), SMSS).0);
        assert_eq!(shares(Mode::Aggressive, [1, 6, 7, 10, 11, 18]), [3, 3, 4, 5, 6, 9]);
        assert_eq!(shares(Mode::Careful, [1, 4, 5, 10, 12, 15]), [3, 3, 4, 7, 8, 10]);
        assert_eq!(share(Mode::Careful, segments(12) + Bytes(1), SMSS), Segments(9));
    }
}
