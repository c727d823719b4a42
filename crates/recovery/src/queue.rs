//! Whether the round-trip times show a queue.

use crate::Nanos;

/// The smallest RTTs of the last two rounds, and of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    /// The round ends when this packet, or a later one, is acknowledged.
    end: u64,
    round: Nanos,
    last_round: Nanos,
    /// That of the path without a queue. It rises slowly, because the path may change.
    base: Nanos,
}

impl Queue {
    pub(crate) const fn new() -> Queue {
        Queue { end: 0, round: Nanos::NEVER, last_round: Nanos::NEVER, base: Nanos::NEVER }
    }

    /// An ACK of `acked` and those below gave a sample; `next` is sent next.
    pub(crate) fn on_rtt(&mut self, acked: u64, rtt: Nanos, next: u64) {
        if acked >= self.end {
            self.last_round = self.round;
            self.round = Nanos::NEVER;
            self.end = next;
            self.base = self.base + self.base / 256;
        }
        self.round = self.round.min(rtt);
        self.base = self.base.min(rtt);
    }

    /// True if all RTTs of the last complete round, or of the current one, exceed the smallest by more than a tenth.
    pub(crate) fn is_shown(&self) -> bool {
        let threshold = self.base + self.base / 10;
        [self.round, self.last_round].iter().any(|rtt| *rtt > threshold && *rtt < Nanos::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_while_all_rtts_of_a_round_are_above_the_smallest() {
        let mut queue = Queue::new();
        assert!(!queue.is_shown());
        for round in 0..8 {
            let rtt = Nanos::from_millis(if (3..5).contains(&round) { 30 } else { 20 });
            queue.on_rtt(round * 10, rtt, round * 10 + 10);
            assert_eq!(queue.is_shown(), (3..6).contains(&round), "round {round}");
        }
    }

    #[test]
    fn a_longer_path_is_no_queue_for_ever() {
        let mut queue = Queue::new();
        queue.on_rtt(0, Nanos::from_millis(20), 1);
        for round in 1..300 {
            queue.on_rtt(round, Nanos::from_millis(40), round + 1);
        }
        assert!(!queue.is_shown());
    }
}
