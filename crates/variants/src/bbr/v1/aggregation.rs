//! How much more than the bandwidth ACKs tell of at once: links and receivers that collect before they deliver (Linux; not
//! in the draft of version 1).

use reknit_tcp::facts::Context;
use reknit_units::{Bytes, Duration, Instant, Segments};

use super::{Bbr, Sample};

/// The maximum is taken over this to twice this many rounds.
const WINDOW_ROUNDS: u32 = 5;
/// An epoch ends when it has delivered this much.
const LONGEST_EPOCH: Segments = Segments(1 << 20);
/// The window grows by at most this much at the bandwidth.
const MAX_EXTRA: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Aggregation {
    /// The maximum of this window and that of the one before.
    extra: [Segments; 2],
    rounds: u32,
    /// Since when ACKs have told of more than the bandwidth, and of how much.
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

    /// What the window needs on top, once the bandwidth is known.
    pub(super) fn aggregation_cwnd(&self, smss: Bytes) -> Segments {
        if !self.full_pipe.reached {
            return Segments::ZERO;
        }
        let most = self.bw().bytes_in(MAX_EXTRA).whole_segments(smss);
        self.aggregation.extra[0].max(self.aggregation.extra[1]).min(most)
    }
}
