//! Pacing: what the window allows leaves at the rate that the congestion control names, a quantum at a time.
//!
//! A quantum leaves as one burst; the next one when the first has taken its time at the pacing rate. Where a burst leaves
//! later than it could have, it takes up to half of its time less, so that a timer that is late costs no rate. Without fq
//! Linux does the same: its bursts are what segmentation offload makes of about 1 ms at the pacing rate, two segments at
//! least.

use reknit_units::{Bytes, Duration, Instant, Rate};

use super::{Sender, context};
use crate::seams::Pacing;

/// When the next burst may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    /// The burst under way has taken its time.
    next: Instant,
    /// The moment of the burst under way, and what is left of it.
    at: Instant,
    left: Bytes,
    /// By how much the burst was late.
    credit: Duration,
    /// Something waits for `next`.
    waits: bool,
}

impl Pacer {
    /// True if a segment may leave now, as part of the burst under way or as the first of the next.
    fn admits(&self, now: Instant) -> bool {
        self.has_room(now) || now >= self.next
    }

    /// True if the burst under way goes on.
    fn has_room(&self, now: Instant) -> bool {
        self.at == now && self.left > Bytes::ZERO
    }

    /// `len` bytes left.
    fn on_sent(&mut self, now: Instant, len: Bytes, pacing: Pacing) {
        if !self.has_room(now) {
            self.credit = now.since(self.next);
            self.next = self.next.max(now);
            self.at = now;
            self.left = pacing.quantum.max(len);
        }
        let takes = pacing.rate.time_for(len);
        let credit = self.credit.min(takes / 2);
        self.credit = self.credit - credit;
        self.next = self.next + (takes - credit);
        self.left -= len;
    }
}

impl Sender {
    /// True if pacing keeps back what is there to send, until [`Sender::pacing_deadline`].
    pub(super) fn is_paced(&mut self, now: Instant) -> bool {
        self.pacer.waits = self.pacing.is_some() && !self.pacer.admits(now);
        self.pacer.waits
    }

    /// `len` bytes were sent, which pushes what follows back.
    pub(super) fn pace(&mut self, now: Instant, len: Bytes) {
        if let Some(pacing) = self.pacing {
            self.pacer.on_sent(now, len, pacing);
            self.state.next_send_time = self.pacer.next;
        }
    }

    /// The rate at which it was last asked to send.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.pacing.map(|pacing| pacing.rate)
    }

    /// Asks for the pace of what is sent now.
    pub(super) fn set_pace(&mut self, now: Instant) {
        self.pacing = self.plugins.congestion_control.pacing(&context!(self, now));
        self.pacer.waits = false;
    }

    /// When pacing lets the next burst go, if something waits for it.
    pub(super) fn pacing_deadline(&self) -> Instant {
        if self.pacer.waits && !self.is_quiet() { self.pacer.next } else { Instant::NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    /// 1000 bytes take 1 ms.
    const PACING: Pacing = Pacing { rate: Rate::from_bits_per_second(8_000_000), quantum: Bytes(2000) };

    fn send(pacer: &mut Pacer, now: Instant) -> u32 {
        let mut sent = 0;
        while pacer.admits(now) {
            pacer.on_sent(now, Bytes(1000), PACING);
            sent += 1;
        }
        sent
    }

    #[test]
    fn a_quantum_leaves_at_once_and_the_next_in_its_time() {
        let mut pacer = Pacer::default();
        assert_eq!(send(&mut pacer, Instant::ZERO), 2);
        assert_eq!(pacer.next, Instant::ZERO + MS * 2);
        assert_eq!(send(&mut pacer, Instant::ZERO + MS), 0);
        assert_eq!(send(&mut pacer, Instant::ZERO + MS * 2), 2);
    }

    #[test]
    fn a_late_burst_takes_half_of_its_time_at_least() {
        let mut pacer = Pacer::default();
        send(&mut pacer, Instant::ZERO);
        // Half a millisecond late is made up for; ten are not.
        let late = pacer.next + MS / 2;
        send(&mut pacer, late);
        assert_eq!(pacer.next, late + MS * 3 / 2);
        let late = pacer.next + MS * 10;
        send(&mut pacer, late);
        assert_eq!(pacer.next, late + MS);
    }

    #[test]
    fn what_was_left_of_a_burst_does_not_leave_later() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::ZERO, Bytes(1000), PACING);
        assert!(!pacer.admits(Instant::ZERO + MS / 2));
        assert_eq!(pacer.next, Instant::ZERO + MS);
    }
}
