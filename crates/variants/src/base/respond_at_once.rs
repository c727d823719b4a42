//! The window is reduced as soon as a loss is detected (RFC 5681 §3.1 and §3.2, RFC 6675 §5).

use reknit_tcp::facts::{Context, Phase, Trigger, Window};
use reknit_tcp::seams::{CongestionControl, LossResponse, Plugin, Reduction};
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AtOnceConfig {
    /// What the congestion control multiplies by β on a loss.
    pub of: DecreaseOf,
    /// Count in whole segments, as ns-2 does: half of three segments is one. RFC 5681 eq. 4 counts bytes, and cwnd after a
    /// fast retransmit is at least two segments.
    pub whole_segments: bool,
}

/// The quantity that a reduction multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecreaseOf {
    /// What the path's option `tcp.decrease_of` says (default: FlightSize, RFC 5681 eq. 4).
    #[default]
    Tcp,
    /// cwnd (allowed by RFC 9438 §4.6). FlightSize includes data that has arrived above a hole; under persistent
    /// reordering that is always a large part of it.
    Cwnd,
}

impl Algorithm<dyn LossResponse> for AtOnceConfig {
    fn build(&self) -> Box<dyn LossResponse> {
        Box::new(AtOnce { of: self.of, whole_segments: self.whole_segments })
    }
}

/// cwnd; in fast recovery, where it follows the pipe, what it is to be afterwards.
fn window(cx: &Context<'_>) -> Bytes {
    if cx.snd.phase == Phase::Recovery { cx.snd.recovery_window } else { cx.snd.cwnd }
}

#[derive(Clone, Debug)]
struct AtOnce {
    of: DecreaseOf,
    whole_segments: bool,
}

/// The whole segments in `window`.
fn whole(window: Bytes, smss: Bytes) -> Bytes {
    smss * (window.0 / smss.0)
}

impl Plugin for AtOnce {}

impl LossResponse for AtOnce {
    fn respond(
        &mut self,
        cx: &Context<'_>,
        reduction: &Reduction,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window> {
        let mut reduction = *reduction;
        if self.of == DecreaseOf::Cwnd {
            reduction.flight_size = window(cx);
        }
        let smss = cx.snd.smss;
        if self.whole_segments {
            reduction.flight_size = whole(reduction.flight_size, smss);
        }
        let reduced = congestion.ssthresh(cx, &reduction);
        let ssthresh = reduced.max(smss * 2);
        let cwnd = match reduction.trigger {
            Trigger::Timeout => smss, // the loss window of RFC 5681 §3.1
            Trigger::FastRetransmit | Trigger::Probe if self.whole_segments => whole(reduced, smss),
            Trigger::FastRetransmit | Trigger::Probe => ssthresh,
            // The minimum ssthresh of two segments must not raise a cwnd of one segment (RFC 3168 §6.1.2).
            Trigger::Ecn => ssthresh.min(cx.snd.cwnd),
        };
        let ssthresh = if self.whole_segments { whole(ssthresh, smss) } else { ssthresh };
        Some(Window { cwnd, ssthresh })
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::scoreboard::{Scoreboard, SegId};
    use reknit_units::Instant;

    use super::*;
    use crate::base::aimd;
    use crate::base::given::{self, segments};

    #[test]
    fn half_of_three_whole_segments_is_one() {
        let (snd, board, config) = (given::state(), Scoreboard::default(), reknit_tcp::Config::default());
        let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
        let reduction = Reduction { trigger: Trigger::FastRetransmit, hole: SegId(0), flight_size: segments(3) };
        let mut congestion = Algorithm::<dyn CongestionControl>::build(&aimd::RenoConfig::default());
        let mut windows = |whole_segments| {
            let mut response = AtOnceConfig { whole_segments, ..AtOnceConfig::default() }.build();
            let window = response.respond(&cx, &reduction, congestion.as_mut()).unwrap();
            (window.cwnd, window.ssthresh)
        };
        assert_eq!(windows(false), (segments(2), segments(2)));
        assert_eq!(windows(true), (segments(1), segments(2)));
    }
}
