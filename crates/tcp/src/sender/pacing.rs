//! Pacing: sends what the window allows at the rate that the congestion control sets, one quantum at a time.
//! [`super::transmit`] calls `set` first, then `must_wait` before and `note_sent` after each segment.
//! Owned by [`super::Sender`].
//!
//! A quantum is sent as one burst. The next one may be sent once the bytes of the first have taken their time at the pacing rate.
//! If a burst is sent late, its time is shortened by up to half, so that a late timer does not reduce the rate. Linux
//! without fq does the same; its bursts are those of segmentation offload: about 1 ms at the pacing rate, but at least
//! two segments. A retransmission of a single segment is a separate burst there.
//!
//! However low the rate, a segment takes at most `max_rto`: a rate of zero, such as that of a window in a very long round
//! trip, rounded down, would stop the sender for good.

use reknit_units::{Bytes, Duration, Instant};

use super::state::SendVariables;
use crate::seams::Pacing;

/// The current rate, and when the next burst may be sent.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Pacer {
    /// None if only the window limits bursts.
    pacing: Option<Pacing>,
    /// When the time of the current burst ends.
    next: Instant,
    /// When the current burst began, and how much of it is left.
    at: Instant,
    left: Bytes,
    /// How late the burst was.
    credit: Duration,
    /// Something waits for `next`.
    waits: bool,
}

impl Pacer {
    /// Sets the pacing for what is sent now.
    pub(super) fn set(&mut self, pacing: Option<Pacing>) {
        self.pacing = pacing;
        self.waits = false;
    }

    pub(super) fn pacing(&self) -> Option<Pacing> {
        self.pacing
    }

    /// True if pacing delays what could be sent, until [`Pacer::deadline`].
    pub(super) fn must_wait(&mut self, now: Instant) -> bool {
        self.waits = self.pacing.is_some() && !self.admits(now);
        self.waits
    }

    /// `len` bytes were sent, for the first time or `again`, which delays the data after them by at most `longest`.
    pub(super) fn note_sent(
        &mut self,
        now: Instant,
        len: Bytes,
        again: bool,
        longest: Duration,
        state: &mut SendVariables,
    ) {
        if let Some(pacing) = self.pacing {
            self.on_sent(now, len, again, pacing, longest);
            state.set_next_send_time(self.next);
        }
    }

    /// When pacing allows the next burst, if something waits for it.
    pub(super) fn deadline(&self) -> Instant {
        if self.waits { self.next } else { Instant::NEVER }
    }

    /// True if a segment may be sent now, as part of the current burst or as the first of the next.
    fn admits(&self, now: Instant) -> bool {
        self.has_room(now) || now >= self.next
    }

    /// True if the current burst is not finished.
    fn has_room(&self, now: Instant) -> bool {
        self.at == now && self.left > Bytes::ZERO
    }

    /// The next burst may be sent at `time`, although no rate is set.
    pub(super) fn wait_until(&mut self, time: Instant) {
        self.next = time;
        self.waits = true;
    }

    /// `len` bytes were sent, for the first time or `again`.
    fn on_sent(&mut self, now: Instant, len: Bytes, again: bool, pacing: Pacing, longest: Duration) {
        if !self.has_room(now) {
            self.credit = now.since(self.next);
            self.next = self.next.max(now);
            self.at = now;
            self.left = pacing.quantum.max(len);
        }
        let takes = pacing.rate.time_for(len).min(longest);
        let credit = self.credit.min(takes / 2);
        self.credit = self.credit - credit;
        self.next = self.next + (takes - credit);
        self.left = if again && pacing.repairs_alone { Bytes::ZERO } else { self.left - len };
    }
}

#[cfg(test)]
mod tests {
    use reknit_units::Rate;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    /// 1000 bytes take 1 ms.
    const PACING: Pacing =
        Pacing { rate: Rate::from_bits_per_second(8_000_000), quantum: Bytes(2000), repairs_alone: true };

    const LONGEST: Duration = Duration::from_secs(60);

    fn send(pacer: &mut Pacer, now: Instant) -> u32 {
        let mut sent = 0;
        while pacer.admits(now) {
            pacer.on_sent(now, Bytes(1000), false, PACING, LONGEST);
            sent += 1;
        }
        sent
    }

    #[test]
    fn a_quantum_is_sent_at_once_and_the_next_one_later() {
        let mut pacer = Pacer::default();
        assert_eq!(send(&mut pacer, Instant::ZERO), 2);
        assert_eq!(pacer.next, Instant::ZERO + MS * 2);
        assert_eq!(send(&mut pacer, Instant::ZERO + MS), 0);
        assert_eq!(send(&mut pacer, Instant::ZERO + MS * 2), 2);
    }

    #[test]
    fn a_late_burst_uses_at_least_half_of_its_time() {
        let mut pacer = Pacer::default();
        send(&mut pacer, Instant::ZERO);
        // A delay of half a millisecond is compensated, one of ten milliseconds is not.
        let late = pacer.next + MS / 2;
        send(&mut pacer, late);
        assert_eq!(pacer.next, late + MS * 3 / 2);
        let late = pacer.next + MS * 10;
        send(&mut pacer, late);
        assert_eq!(pacer.next, late + MS);
    }

    #[test]
    fn a_retransmission_is_a_burst_of_its_own() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::ZERO, Bytes(1000), true, PACING, LONGEST);
        assert!(!pacer.admits(Instant::ZERO));
        assert_eq!(pacer.next, Instant::ZERO + MS);
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::ZERO, Bytes(1000), true, Pacing { repairs_alone: false, ..PACING }, LONGEST);
        assert!(pacer.admits(Instant::ZERO));
    }

    #[test]
    fn a_rate_of_zero_does_not_stop_the_sender() {
        let mut pacer = Pacer::default();
        let pacing = Pacing { rate: Rate::default(), quantum: Bytes::ZERO, ..PACING };
        pacer.on_sent(Instant::ZERO, Bytes(1000), false, pacing, LONGEST);
        assert_eq!(pacer.next, Instant::ZERO + LONGEST);
    }

    #[test]
    fn the_rest_of_a_burst_expires() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::ZERO, Bytes(1000), false, PACING, LONGEST);
        assert!(!pacer.admits(Instant::ZERO + MS / 2));
        assert_eq!(pacer.next, Instant::ZERO + MS);
    }
}
