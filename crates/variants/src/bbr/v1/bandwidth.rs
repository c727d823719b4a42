//! Rounds, and the bottleneck bandwidth: the maximum delivery rate of the last ten rounds (§4.1.1).

use reknit_tcp::facts::Context;
use reknit_units::{Bytes, Instant, Rate};

use super::{Bbr, Sample};
use crate::bbr::filter::WindowedMax;

/// `BtlBwFilterLen`: a probing cycle of eight rounds, and two more.
const ROUNDS: usize = 10;

#[derive(Clone, Debug)]
pub(super) struct Bandwidth {
    /// `BBR.BtlBwFilter`.
    max: WindowedMax<Rate, ROUNDS>,
    /// `BBR.round_count`.
    rounds: u64,
    /// `BBR.next_round_delivered`: the round ends with the ACK of a segment that was sent after this much had been
    /// delivered.
    pub(super) next_round_delivered: Bytes,
    /// True if this ACK ends a round.
    pub(super) round_start: bool,
    /// Bytes delivered, and when the last of them were.
    pub(super) delivered: Bytes,
    pub(super) delivered_time: Instant,
}

impl Bandwidth {
    pub(super) fn new() -> Bandwidth {
        Bandwidth {
            max: WindowedMax::new(),
            rounds: 0,
            next_round_delivered: Bytes::ZERO,
            round_start: false,
            delivered: Bytes::ZERO,
            delivered_time: Instant::ZERO,
        }
    }

    pub(super) fn max(&self) -> Rate {
        self.max.get()
    }
}

impl Bbr {
    /// `BBRUpdateBtlBw` and `BBRUpdateRound`.
    pub(super) fn update_bandwidth(&mut self, cx: &Context<'_>, sample: &Sample) {
        let bandwidth = &mut self.bandwidth;
        bandwidth.round_start = false;
        bandwidth.delivered = sample.rate.total_delivered;
        if sample.acked.0 > 0 {
            bandwidth.delivered_time = cx.now;
        }
        let (Some(prior), Some(rate)) = (sample.rate.prior_delivered, sample.rate.rate()) else { return };
        if prior >= bandwidth.next_round_delivered {
            bandwidth.next_round_delivered = bandwidth.delivered;
            bandwidth.rounds += 1;
            bandwidth.round_start = true;
            bandwidth.max.advance(bandwidth.rounds);
            self.control.packet_conservation = false;
        }
        self.sample_policer(cx, sample);
        // A sample limited by the application counts only if it raises the maximum.
        if !sample.rate.is_app_limited || rate >= self.bandwidth.max() {
            self.bandwidth.max.update(rate);
        }
    }
}
