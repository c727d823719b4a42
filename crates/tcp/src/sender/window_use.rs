//! Whether the congestion window is used: an unused window must not grow (RFC 7661 §4, RFC 9438 §5.8). Noted after each
//! transmission (step 10), read in step 9. Owned by [`super::Sender`].

use reknit_units::Bytes;

use super::state::SendVariables;
use super::transmit::Stop;
use crate::scoreboard::Scoreboard;
use crate::seams::CongestionControlTraits;
use crate::seq::Offset;

/// How much of the window was in use lately.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct WindowUse {
    /// SND.NXT when the window was last full.
    full_until: Offset,
    /// The most that was in flight in this round trip, and in the one before.
    peaks: (Bytes, Bytes),
    /// This round trip ends when this byte is acknowledged.
    round_end: Offset,
}

impl WindowUse {
    pub(super) fn new() -> WindowUse {
        WindowUse { full_until: Offset::SYN, peaks: (Bytes::ZERO, Bytes::ZERO), round_end: Offset::SYN }
    }

    /// True if the window was full when the data from `una` on was in flight.
    pub(super) fn was_full_at(&self, una: Offset) -> bool {
        una < self.full_until
    }

    /// Notes after a transmission whether the window was the reason to stop, or is full anyway. A stop because of pacing
    /// says nothing.
    ///
    /// A stop because of the burst limit (none) counts if half of the window was in flight within two round trips: after
    /// an ACK of many segments, the limit only delays what the window allows. If the limit keeps the flight small, the
    /// window is not used. Returns true if the window is unused because the application has nothing to send.
    pub(super) fn note_stop(
        &mut self,
        stop: Option<Stop>,
        state: &SendVariables,
        board: &Scoreboard,
        congestion: CongestionControlTraits,
    ) -> bool {
        let used = if state.is_model_based() { board.pipe().bytes } else { state.flight_size() };
        let peak = self.peak(used, state.snd_una, state.snd_nxt);
        let half_is_use = congestion.half_is_use_in_slow_start && state.in_slow_start();
        let unused = if half_is_use { Bytes(state.cwnd.0 / 2) } else { state.cwnd - state.smss };
        let full = match stop {
            Some(Stop::NoRoom) => true,
            None if peak * 2 >= state.cwnd => true,
            _ => used > unused,
        };
        if full {
            self.full_until = state.snd_nxt;
        }
        !full && stop == Some(Stop::NothingToSend) && !self.was_full_at(state.snd_una)
    }

    /// `used` bytes are in flight. Returns the most of two round trips.
    fn peak(&mut self, used: Bytes, snd_una: Offset, snd_nxt: Offset) -> Bytes {
        if snd_una >= self.round_end {
            self.peaks = (Bytes::ZERO, self.peaks.0);
            self.round_end = snd_nxt;
        }
        self.peaks.0 = self.peaks.0.max(used);
        self.peaks.0.max(self.peaks.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_two_round_trips() {
        let mut window_use = WindowUse::new();
        let mut peak = |used, una, next| window_use.peak(Bytes(used), Offset(una), Offset(next)).0;
        assert_eq!(peak(10, 0, 10), 10);
        assert_eq!(peak(4, 8, 12), 10); // the same round trip
        assert_eq!(peak(2, 10, 12), 10); // the next one
        assert_eq!(peak(3, 12, 15), 3);
        assert_eq!(peak(5, 13, 18), 5);
    }
}
