//! The smallest RTTs of the last rounds, which show whether there was a queue when a segment was sent.

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::scoreboard::SegId;
use reknit_units::Duration;

/// The number of rounds that are kept.
const ROUNDS: usize = 8;

/// A round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// It ends with the delivery of this segment or a later one, and contains the RTTs of those below.
    end: SegId,
    min_rtt: Duration,
}

impl Round {
    const NONE: Round = Round { end: SegId(0), min_rtt: Duration::MAX };
}

/// The last rounds. A round ends when a segment is delivered that was sent after the round began.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    ends: [SegId; ROUNDS],
    /// In microseconds.
    min_rtts: [u32; ROUNDS],
    /// The index of the oldest.
    next: u8,
    now: Round,
}

impl Rounds {
    pub(super) fn new() -> Rounds {
        Rounds { ends: [SegId(0); ROUNDS], min_rtts: [u32::MAX; ROUNDS], next: 0, now: Round::NONE }
    }

    pub(super) fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        if ack.highest >= Some(self.now.end) {
            let oldest = usize::from(self.next);
            self.ends[oldest] = self.now.end;
            self.min_rtts[oldest] = u32::try_from(self.now.min_rtt.as_nanos() / 1000).unwrap_or(u32::MAX);
            self.next = ((oldest + 1) % ROUNDS) as u8;
            self.now = Round { end: cx.board.next_id(), min_rtt: Duration::MAX };
        }
        self.now.min_rtt = self.now.min_rtt.min(ack.rtt.unwrap_or(Duration::MAX));
    }

    fn last(&self, i: usize) -> Round {
        let min_rtt = match self.min_rtts[i] {
            u32::MAX => Duration::MAX,
            micros => Duration::from_micros(u64::from(micros)),
        };
        Round { end: self.ends[i], min_rtt }
    }

    /// The smallest RTT of all rounds.
    fn base(&self) -> Duration {
        (0..ROUNDS).map(|i| self.last(i).min_rtt).min().unwrap_or(Duration::MAX).min(self.now.min_rtt)
    }

    /// True if all RTTs of the round to which `id` belongs exceeded the smallest by more than a tenth: there was a
    /// queue, so a loss may be due to its overflow.
    pub(super) fn had_queue(&self, id: SegId) -> bool {
        let oldest = usize::from(self.next);
        let older = (oldest..ROUNDS).chain(0..oldest).map(|i| self.last(i));
        let round = older.chain([self.now]).find(|round| id < round.end);
        round.is_some_and(|round| self.has_queue(round))
    }

    fn has_queue(&self, round: Round) -> bool {
        let threshold = self.base() + self.base() / 10;
        round.min_rtt > threshold && round.min_rtt < Duration::MAX
    }

    /// True if the last complete round had a queue.
    pub(super) fn shows_queue(&self) -> bool {
        self.has_queue(self.last((usize::from(self.next) + ROUNDS - 1) % ROUNDS))
    }
}
