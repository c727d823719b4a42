//! Slow start, congestion avoidance and halving (RFC 5681 §3.1), by bytes acknowledged (RFC 3465) or by ACKs.

use reknit_tcp::facts::{AckFacts, Context, Phase, Window};
use reknit_tcp::seams::{CongestionControl, Plugin, Reduction};
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::progress::Progress;

/// Parameters; `byte_counting` is an option of the connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RenoConfig {
    /// Which bytes let the window grow, if bytes are counted.
    pub progress: Progress,
}

impl Algorithm<dyn CongestionControl> for RenoConfig {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Aimd { progress: self.progress, acked: 0 })
    }
}

#[derive(Clone, Debug)]
struct Aimd {
    progress: Progress,
    /// Progress of congestion avoidance towards the next segment: bytes acknowledged with byte counting, otherwise the
    /// sum of SMSS squared over the ACKs.
    acked: u64,
}

impl Aimd {
    /// RFC 3465 §2.2 and §2.3: at most L = 2 segments per ACK, 1 after a timeout.
    fn slow_start(&self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        let smss = cx.snd.smss;
        if !cx.config.byte_counting {
            return cx.snd.cwnd + smss;
        }
        let limit = if cx.snd.phase == Phase::Loss { smss } else { smss * 2 };
        cx.snd.cwnd + self.progress.of(ack).min(limit)
    }

    /// One segment per window: RFC 3465 §2.1, or SMSS * SMSS / cwnd per ACK (RFC 5681 eq. 3), with the remainder kept.
    fn congestion_avoidance(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        let (cwnd, smss) = (cx.snd.cwnd, cx.snd.smss);
        if cx.config.byte_counting {
            self.acked += self.progress.of(ack).0;
            if self.acked < cwnd.0 {
                return cwnd;
            }
            self.acked -= cwnd.0;
            return cwnd + smss;
        }
        self.acked += smss.0 * smss.0;
        let growth = self.acked / cwnd.0;
        self.acked %= cwnd.0;
        cwnd + Bytes(growth)
    }
}

impl Plugin for Aimd {}

impl CongestionControl for Aimd {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        cx.snd.window_with(if self.progress.of(ack) == Bytes::ZERO {
            cx.snd.cwnd
        } else if cx.snd.in_slow_start() {
            self.slow_start(cx, ack)
        } else {
            self.congestion_avoidance(cx, ack)
        })
    }

    fn ssthresh(&mut self, _cx: &Context<'_>, reduction: &Reduction) -> Bytes {
        self.acked = 0;
        Bytes(reduction.flight_size.0 / 2)
    }

    fn save(&mut self) {}

    fn restore(&mut self, _cx: &Context<'_>) {
        self.acked = 0;
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::facts::Trigger;
    use reknit_tcp::scoreboard::{Scoreboard, SegId};
    use reknit_tcp::seq::Offset;

    use super::*;
    use crate::base::given::{self, segments};

    #[test]
    fn a_reduction_resets_the_count_towards_the_next_segment() {
        let (snd, board, config) = (given::state(), Scoreboard::default(), reknit_tcp::Config::default());
        let cx = Context { now: reknit_units::Instant::ZERO, config: &config, snd: &snd, board: &board };
        let mut aimd = Aimd { progress: Progress::Acked, acked: segments(7).0 };
        let reduction = Reduction { trigger: Trigger::FastRetransmit, hole: SegId(0), flight_size: segments(8) };
        assert_eq!(aimd.ssthresh(&cx, &reduction), segments(4));
        let ack = AckFacts { ack: Offset::DATA + segments(1), ..given::ack() };
        assert_eq!(aimd.on_ack(&cx, &ack).cwnd, snd.cwnd);
    }
}
