//! Packet-timed rounds and the maximum bandwidth of the last two probing cycles (§5.5.1 to §5.5.6).

use reknit_units::{Bytes, Rate};

use super::Bbr;
use crate::bbr::filter::WindowedMax;

/// `BBR.MaxBwFilterLen`, in probing cycles.
const CYCLES: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Rounds {
    /// `BBR.round_count`.
    pub(super) count: u64,
    /// `BBR.round_start`.
    pub(super) start: bool,
    /// `BBR.next_round_delivered`.
    next_delivered: Bytes,
    /// `BBR.rounds_since_probe_up`.
    pub(super) since_probe_up: u64,
    /// `BBR.max_bw_filter`.
    max_bw: WindowedMax<Rate, CYCLES>,
    /// `BBR.cycle_count`.
    cycle_count: u64,
}

impl Rounds {
    pub(super) fn new() -> Rounds {
        Rounds {
            count: 0,
            start: false,
            next_delivered: Bytes::ZERO,
            since_probe_up: 0,
            max_bw: WindowedMax::new(),
            cycle_count: 0,
        }
    }

    /// `BBR.max_bw`.
    pub(super) fn max_bw(&self) -> Rate {
        self.max_bw.get()
    }

    /// `AdvanceMaxBwFilter`. In the draft the filter forgets a value when a new one arrives, so it is never empty: a cycle
    /// without a sample does not count. A bandwidth of zero would pace the next segment forever.
    pub(super) fn advance_max_bw_filter(&mut self) {
        if self.max_bw.current() > Rate::default() {
            self.cycle_count += 1;
            self.max_bw.advance(self.cycle_count);
        }
    }
}

impl Bbr {
    /// `StartRound`.
    pub(super) fn start_round(&mut self) {
        self.rounds.next_delivered = self.rs.total_delivered;
    }

    /// `UpdateRound`.
    fn update_round(&mut self) {
        self.rounds.start = self.rs.prior_delivered >= Some(self.rounds.next_delivered);
        if self.rounds.start {
            self.start_round();
            self.rounds.count += 1;
            self.rounds.since_probe_up += 1;
        }
    }

    /// `UpdateMaxBw`.
    pub(super) fn update_max_bw(&mut self) {
        self.update_round();
        let rate = self.delivery_rate();
        if rate > Rate::default() && (rate >= self.rounds.max_bw() || !self.rs.is_app_limited) {
            self.rounds.max_bw.update(rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_is_not_forgotten_in_cycles_without_a_sample() {
        let mut rounds = Rounds::new();
        let rate = Rate::from_bits_per_second(1_000_000);
        rounds.max_bw.update(rate);
        for _ in 0..5 {
            rounds.advance_max_bw_filter();
        }
        assert_eq!(rounds.max_bw(), rate);
        rounds.max_bw.update(Rate::from_bits_per_second(1000));
        rounds.advance_max_bw_filter();
        assert_eq!(rounds.max_bw(), Rate::from_bits_per_second(1000));
    }
}
