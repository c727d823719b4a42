//! ACK aggregation: how much more data ACKs report at once than the bandwidth accounts for (§5.5.9).

use reknit_tcp::facts::Context;
use reknit_units::{Bytes, Instant};

use super::Bbr;
use crate::bbr::filter::WindowedMax;

/// `BBR.ExtraAckedFilterLen`, in rounds.
const ROUNDS: usize = 10;

#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    /// `BBR.extra_acked_interval_start`.
    interval_start: Instant,
    /// `BBR.extra_acked_delivered`.
    delivered: Bytes,
    /// `BBR.extra_acked_filter`.
    filter: WindowedMax<Bytes, ROUNDS>,
}

impl Aggregation {
    pub(super) fn new() -> Aggregation {
        Aggregation { interval_start: Instant::ZERO, delivered: Bytes::ZERO, filter: WindowedMax::new() }
    }

    pub(super) fn begin_interval(&mut self, now: Instant) {
        self.interval_start = now;
        self.delivered = Bytes::ZERO;
    }
}

impl Bbr {
    /// `UpdateACKAggregation`.
    pub(super) fn update_ack_aggregation(&mut self, cx: &Context<'_>) {
        let aggregation = &mut self.aggregation;
        let mut expected = self.bw.bytes_in(cx.now.since(aggregation.interval_start));
        if aggregation.delivered <= expected {
            aggregation.begin_interval(cx.now);
            expected = Bytes::ZERO;
        }
        aggregation.delivered += self.newly_acked;
        let extra = (aggregation.delivered - expected).min(self.cwnd);
        aggregation.filter.advance(self.rounds.count);
        aggregation.filter.update(extra);
    }

    /// `BBR.extra_acked`. Until the pipe is full, only the current round counts.
    pub(super) fn extra_acked(&self) -> Bytes {
        let filter = &self.aggregation.filter;
        if self.full.reached { filter.get() } else { filter.current() }
    }
}
