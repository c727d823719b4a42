//! ACK aggregation: how much more data ACKs report at once than the bandwidth accounts for. Links and receivers cause
//! it when they collect packets or ACKs (from Linux; not in the draft of version 1).

use reknit_tcp::facts::Context;
use reknit_units::{Bytes, Duration, Instant, Segments};

use super::{Bbr, Sample};

/// The maximum is taken over this many rounds, up to twice as many.
const WINDOW_ROUNDS: u32 = 5;
/// An epoch ends at the latest when this much was delivered.
const LONGEST_EPOCH: Segments = Segments(1 << 20);
/// The window grows by at most the data that the bandwidth carries in this time.
const MAX_EXTRA: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// The maxima of the current window and of the one before.
    extra: [Segments; 2],
    rounds: u32,
    /// When ACKs began to report more than the bandwidth, and how much they have reported since.
    epoch: Instant,
    acked: Segments,
}

impl Aggregation {
    pub(super) fn begin_epoch(&mut self, now: Instant) {
        self.epoch = now;
        self.acked = Segments::ZERO;
    }

    fn next_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= WINDOW_ROUNDS {
            self.rounds = 0;
            self.extra = [Segments::ZERO, self.extra[0]];
        }
    }
}

impl Bbr {
    pub(super) fn update_aggregation(&mut self, cx: &Context<'_>, sample: &Sample) {
        if sample.acked == Segments::ZERO || sample.rate.interval.is_none() {
            return;
        }
        let bw = self.bw();
        let aggregation = &mut self.aggregation;
        if self.bandwidth.round_start {
            aggregation.next_round();
        }
        let mut expected = bw.bytes_in(cx.now.since(aggregation.epoch)).whole_segments(cx.snd.smss);
        if aggregation.acked <= expected || aggregation.acked + sample.acked >= LONGEST_EPOCH {
            aggregation.begin_epoch(cx.now);
            expected = Segments::ZERO;
        }
        aggregation.acked += sample.acked;
        let extra = (aggregation.acked - expected).min(cx.snd.cwnd.whole_segments(cx.snd.smss));
        aggregation.extra[0] = aggregation.extra[0].max(extra);
    }

    /// How much to add to the window, once the bandwidth is known.
    pub(super) fn aggregation_cwnd(&self, smss: Bytes) -> Segments {
        if !self.full_pipe.reached {
            return Segments::ZERO;
        }
        let most = self.bw().bytes_in(MAX_EXTRA).whole_segments(smss);
        self.aggregation.extra[0].max(self.aggregation.extra[1]).min(most)
    }
}
