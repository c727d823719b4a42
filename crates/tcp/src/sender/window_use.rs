//! Whether the congestion window is used: one that is not must not grow (RFC 7661 §4, RFC 9438 §5.8).

use reknit_units::{Bytes, Instant};

use super::Sender;
use super::transmit::Stop;
use crate::seq::Offset;

/// How much of the window was in use lately.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowUse {
    /// SND.NXT when the window was last full.
    pub(super) full_until: Offset,
    /// The most that was in flight in this round trip, and in the one before.
    peaks: (Bytes, Bytes),
    /// This round trip ends when this byte is acknowledged.
    round_end: Offset,
}

impl WindowUse {
    pub(super) fn new() -> WindowUse {
        WindowUse { full_until: Offset::SYN, peaks: (Bytes::ZERO, Bytes::ZERO), round_end: Offset::SYN }
    }

    /// `used` bytes are in flight. Returns the most of two round trips.
    fn note(&mut self, used: Bytes, snd_una: Offset, snd_nxt: Offset) -> Bytes {
        if snd_una >= self.round_end {
            self.peaks = (Bytes::ZERO, self.peaks.0);
            self.round_end = snd_nxt;
        }
        self.peaks.0 = self.peaks.0.max(used);
        self.peaks.0.max(self.peaks.1)
    }
}

impl Sender {
    /// Notes whether the window was the reason to stop, or is full anyway. A stop because of pacing says nothing.
    ///
    /// A stop because of the burst limit (none) counts if half of the window was in flight within two round trips: after
    /// an ACK of many segments, the limit only delays what the window allows. If the limit keeps the flight small, the
    /// window is not used.
    pub(super) fn note_use_of_window(&mut self, now: Instant, stop: Option<Stop>) {
        let used = if self.by_model { self.board.pipe().bytes } else { self.state.flight_size() };
        let peak = self.window_use.note(used, self.state.snd_una, self.state.snd_nxt);
        let full = match stop {
            Some(Stop::NoRoom) => true,
            None if peak * 2 >= self.state.cwnd => true,
            _ => used > self.plugins.congestion_control.used_above(&self.state),
        };
        let is_drained = stop == Some(Stop::NothingToSend) && self.has_queued_all();
        if full {
            self.window_use.full_until = self.state.snd_nxt;
        } else if is_drained && self.state.snd_una >= self.window_use.full_until {
            self.plugins.congestion_control.on_unused_window(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_two_round_trips() {
        let mut window_use = WindowUse::new();
        let mut note = |used, una, next| window_use.note(Bytes(used), Offset(una), Offset(next)).0;
        assert_eq!(note(10, 0, 10), 10);
        assert_eq!(note(4, 8, 12), 10); // the same round trip
        assert_eq!(note(2, 10, 12), 10); // the next one
        assert_eq!(note(3, 12, 15), 3);
        assert_eq!(note(5, 13, 18), 5);
    }
}
