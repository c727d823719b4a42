//! The smallest RTTs of the last rounds, which show whether there was a queue when a packet was sent.

use crate::Nanos;

/// A round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// It ends with the delivery of this packet or a later one, and contains the RTTs of those below.
    end: u64,
    min_rtt: Nanos,
}

/// The last `ROUNDS` rounds. A round ends when a packet is delivered that was sent after the round began.
#[derive(Clone, Debug)]
pub struct Rounds<const ROUNDS: usize> {
    ends: [u64; ROUNDS],
    /// In microseconds.
    min_rtts: [u32; ROUNDS],
    /// The index of the oldest.
    next: u8,
    now: Round,
}

impl<const ROUNDS: usize> Default for Rounds<ROUNDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const ROUNDS: usize> Rounds<ROUNDS> {
    /// Before the first.
    pub const fn new() -> Self {
        let now = Round { end: 0, min_rtt: Nanos::NEVER };
        Rounds { ends: [0; ROUNDS], min_rtts: [u32::MAX; ROUNDS], next: 0, now }
    }

    /// An ACK arrived. `highest` is the highest packet that has been delivered, `next` the next one to be sent.
    pub fn on_ack(&mut self, highest: Option<u64>, rtt: Option<Nanos>, next: u64) {
        if highest >= Some(self.now.end) {
            let oldest = usize::from(self.next);
            self.ends[oldest] = self.now.end;
            self.min_rtts[oldest] = self.now.min_rtt.as_micros_u32();
            self.next = ((oldest + 1) % ROUNDS) as u8;
            self.now = Round { end: next, min_rtt: Nanos::NEVER };
        }
        self.now.min_rtt = self.now.min_rtt.min(rtt.unwrap_or(Nanos::NEVER));
    }

    fn last(&self, i: usize) -> Round {
        let min_rtt = match self.min_rtts[i] {
            u32::MAX => Nanos::NEVER,
            micros => Nanos::from_micros(u64::from(micros)),
        };
        Round { end: self.ends[i], min_rtt }
    }

    /// The smallest RTT of all rounds.
    fn base(&self) -> Nanos {
        (0..ROUNDS).map(|i| self.last(i).min_rtt).min().unwrap_or(Nanos::NEVER).min(self.now.min_rtt)
    }

    /// True if all RTTs of the round to which `number` belongs exceeded the smallest by more than a tenth: there was a
    /// queue, so a loss may be due to its overflow.
    pub fn had_queue(&self, number: u64) -> bool {
        let oldest = usize::from(self.next);
        let older = (oldest..ROUNDS).chain(0..oldest).map(|i| self.last(i));
        let round = older.chain([self.now]).find(|round| number < round.end);
        round.is_some_and(|round| self.has_queue(round))
    }

    fn has_queue(&self, round: Round) -> bool {
        let threshold = self.base() + self.base() / 10;
        round.min_rtt > threshold && round.min_rtt < Nanos::NEVER
    }

    /// True if the last complete round had a queue.
    pub fn shows_queue(&self) -> bool {
        self.has_queue(self.last((usize::from(self.next) + ROUNDS - 1) % ROUNDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtts_above_the_smallest_show_a_queue() {
        let mut rounds = Rounds::<4>::new();
        for round in 0..4 {
            let rtt = Nanos::from_millis(if round < 2 { 20 } else { 30 });
            rounds.on_ack(Some(round * 10), Some(rtt), round * 10 + 10);
        }
        assert!(!rounds.had_queue(15) && rounds.had_queue(25) && rounds.had_queue(35));
        assert!(rounds.shows_queue());
    }
}
