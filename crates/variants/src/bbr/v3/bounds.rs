//! The bounds that losses set on the model (§5.5.10).

use reknit_tcp::facts::{Context, LostSegment};
use reknit_tcp::scoreboard::SegId;
use reknit_units::{Bytes, Rate};

use super::{Bbr, INFINITE_RATE, State};

/// `BBR.LossThresh`, in percent.
const LOSS_THRESH: u64 = 2;
/// `BBR.Beta`, in percent.
const BETA: u64 = 70;

#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// `BBR.inflight_longterm`.
    pub(super) inflight_longterm: Bytes,
    /// `BBR.bw_shortterm`.
    pub(super) bw_shortterm: Rate,
    /// `BBR.inflight_shortterm`.
    pub(super) inflight_shortterm: Bytes,
    /// `BBR.bw_latest`.
    bw_latest: Rate,
    /// `BBR.inflight_latest`.
    pub(super) inflight_latest: Bytes,
    /// `BBR.loss_round_start`.
    pub(super) loss_round_start: bool,
    /// `BBR.loss_round_delivered`.
    loss_round_delivered: Bytes,
    /// `BBR.is_loss_in_round`.
    pub(super) is_loss_in_round: bool,
    /// Number of separate ranges lost in this round, and the last segment of the last range.
    lost_ranges: u32,
    last_lost: Option<SegId>,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            inflight_longterm: Bytes::MAX,
            bw_shortterm: INFINITE_RATE,
            inflight_shortterm: Bytes::MAX,
            bw_latest: Rate::default(),
            inflight_latest: Bytes::ZERO,
            loss_round_start: false,
            loss_round_delivered: Bytes::ZERO,
            is_loss_in_round: false,
            lost_ranges: 0,
            last_lost: None,
        }
    }
}

fn share(of: Bytes, percent: u64) -> Bytes {
    if of == Bytes::MAX { of } else { Bytes(of.0 * percent / 100) }
}

impl Bounds {
    /// `ResetCongestionSignals`.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = Rate::default();
        self.inflight_latest = Bytes::ZERO;
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = INFINITE_RATE;
        self.inflight_shortterm = Bytes::MAX;
    }

    /// The number of separate ranges that were lost in the round that ends.
    pub(super) fn take_lost_ranges(&mut self) -> u32 {
        self.last_lost = None;
        std::mem::take(&mut self.lost_ranges)
    }
}

impl Bbr {
    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest_delivery_signals(&mut self) {
        let rate = self.delivery_rate();
        let bounds = &mut self.bounds;
        bounds.bw_latest = bounds.bw_latest.max(rate);
        bounds.inflight_latest = bounds.inflight_latest.max(self.rs.delivered);
        bounds.loss_round_start = self.rs.prior_delivered >= Some(bounds.loss_round_delivered);
        if bounds.loss_round_start {
            bounds.loss_round_delivered = self.rs.total_delivered;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest_delivery_signals(&mut self) {
        if self.bounds.loss_round_start {
            self.bounds.bw_latest = self.delivery_rate();
            self.bounds.inflight_latest = self.rs.delivered;
        }
    }

    /// `UpdateCongestionSignals`.
    pub(super) fn update_congestion_signals(&mut self) {
        self.update_max_bw();
        if self.bounds.loss_round_start {
            self.adapt_lower_bounds_from_congestion();
            self.bounds.is_loss_in_round = false;
        }
    }

    /// `AdaptLowerBoundsFromCongestion`, `InitLowerBounds`, `LossLowerBounds`.
    fn adapt_lower_bounds_from_congestion(&mut self) {
        if self.state.is_probing() || !self.bounds.is_loss_in_round {
            return;
        }
        let (max_bw, cwnd) = (self.rounds.max_bw(), self.cwnd);
        let bounds = &mut self.bounds;
        if bounds.bw_shortterm == INFINITE_RATE {
            bounds.bw_shortterm = max_bw;
        }
        if bounds.inflight_shortterm == Bytes::MAX {
            bounds.inflight_shortterm = cwnd;
        }
        bounds.bw_shortterm = bounds.bw_latest.max(bounds.bw_shortterm.scaled(BETA, 100));
        bounds.inflight_shortterm = bounds.inflight_latest.max(share(bounds.inflight_shortterm, BETA));
    }

    /// `BoundBWForModel`.
    pub(super) fn bound_bw_for_model(&mut self) {
        self.bw = self.rounds.max_bw().min(self.bounds.bw_shortterm);
    }

    /// `IsInflightTooHigh`.
    pub(super) fn is_inflight_too_high(&self, cx: &Context<'_>) -> bool {
        let is_above = self.rs.lost * 100 > self.rs.tx_in_flight * LOSS_THRESH;
        is_above || (self.rs.lost > Bytes::ZERO && !cx.snd.sack)
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_lost_packet(&mut self, cx: &Context<'_>, lost: &LostSegment) {
        self.note_loss(cx, lost);
        if !self.probe.is_sample {
            return;
        }
        self.rs.tx_in_flight = lost.tx_in_flight;
        self.rs.lost = lost.lost;
        self.rs.is_app_limited = lost.is_app_limited;
        if self.is_inflight_too_high(cx) {
            self.rs.tx_in_flight = inflight_at_loss(lost);
            self.handle_inflight_too_high(cx);
        }
    }

    /// `NoteLoss`.
    fn note_loss(&mut self, cx: &Context<'_>, lost: &LostSegment) {
        if !self.bounds.is_loss_in_round {
            self.bounds.loss_round_delivered = lost.total_delivered;
            self.save_state_upon_loss(cx);
        }
        let bounds = &mut self.bounds;
        bounds.is_loss_in_round = true;
        bounds.lost_ranges += u32::from(bounds.last_lost.map(SegId::next) != Some(lost.segment));
        bounds.last_lost = Some(lost.segment);
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(&mut self, cx: &Context<'_>) {
        self.probe.prev_too_high = true;
        self.probe.is_sample = false;
        if !self.rs.is_app_limited {
            self.cwnd = cx.snd.cwnd;
            self.bounds.inflight_longterm = self.rs.tx_in_flight.max(share(self.target_inflight(), BETA));
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(cx);
        }
    }
}

/// `InflightAtLoss`: the amount in flight at which the losses crossed the threshold, within the lost segment.
fn inflight_at_loss(lost: &LostSegment) -> Bytes {
    let inflight_prev = lost.tx_in_flight - lost.size;
    let lost_prev = lost.lost - lost.size;
    inflight_prev + Bytes((inflight_prev * LOSS_THRESH - lost_prev * 100).0 / (100 - LOSS_THRESH))
}
