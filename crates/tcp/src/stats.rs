//! Counters by cause: what the engine did, and how much of it was spurious.

use std::ops::AddAssign;

use reknit_units::{Duration, Instant, Segments};

use crate::facts::Trigger;
use crate::scoreboard::SendReason;

/// Transmissions of data segments by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// New data within the window.
    pub new: u64,
    /// New data beyond the window.
    pub limited_transmit: u64,
    /// Retransmitted by the loss detector.
    pub fast_retransmit: u64,
    /// Retransmitted by the retransmission timer.
    pub timeout: u64,
    /// Tail loss probes that retransmitted something.
    pub probe: u64,
    /// Speculative retransmissions (rescue).
    pub rescue: u64,
    /// Probes of a closed window.
    pub window_probe: u64,
}

impl Sent {
    /// All retransmissions.
    pub fn retransmissions(&self) -> u64 {
        self.fast_retransmit + self.timeout + self.probe + self.rescue
    }

    /// All data segments.
    pub fn total(&self) -> u64 {
        self.new + self.limited_transmit + self.retransmissions() + self.window_probe
    }

    pub(crate) fn count(&mut self, cause: SendReason, again: bool) {
        let counter = match cause {
            SendReason::Probe if again => &mut self.probe,
            SendReason::New | SendReason::Probe => &mut self.new,
            SendReason::LimitedTransmit => &mut self.limited_transmit,
            SendReason::FastRetransmit => &mut self.fast_retransmit,
            SendReason::Timeout => &mut self.timeout,
            SendReason::Rescue => &mut self.rescue,
            SendReason::WindowProbe => &mut self.window_probe,
        };
        *counter += 1;
    }
}

impl AddAssign for Sent {
    fn add_assign(&mut self, other: Sent) {
        // Destructured completely, so that no counter can be forgotten.
        let Sent { new, limited_transmit, fast_retransmit, timeout, probe, rescue, window_probe } = other;
        self.new += new;
        self.limited_transmit += limited_transmit;
        self.fast_retransmit += fast_retransmit;
        self.timeout += timeout;
        self.probe += probe;
        self.rescue += rescue;
        self.window_probe += window_probe;
    }
}

/// Reductions of the window by trigger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cuts {
    /// By the loss detector.
    pub fast_retransmit: u64,
    /// By the retransmission timer.
    pub timeout: u64,
    /// By a tail loss probe.
    pub probe: u64,
    /// By ECN.
    pub ecn: u64,
}

impl Cuts {
    /// All reductions.
    pub fn total(&self) -> u64 {
        self.fast_retransmit + self.timeout + self.probe + self.ecn
    }

    pub(crate) fn count(&mut self, trigger: Trigger) {
        *match trigger {
            Trigger::FastRetransmit => &mut self.fast_retransmit,
            Trigger::Timeout => &mut self.timeout,
            Trigger::Probe => &mut self.probe,
            Trigger::Ecn => &mut self.ecn,
        } += 1;
    }
}

impl AddAssign for Cuts {
    fn add_assign(&mut self, other: Cuts) {
        let Cuts { fast_retransmit, timeout, probe, ecn } = other;
        self.fast_retransmit += fast_retransmit;
        self.timeout += timeout;
        self.probe += probe;
        self.ecn += ecn;
    }
}

/// The last reduction of the window, for observers that know whether it was justified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Its cause.
    pub trigger: Trigger,
    /// When it happened.
    pub at: Instant,
    /// Stream position of the segment that was marked lost: the number of bytes before it.
    pub position: u64,
    /// How often that segment had been sent by then.
    pub transmissions: u16,
}

/// The timeouts to which the retransmission timer was set, including back-off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Armings {
    /// How often it was set.
    pub count: u64,
    /// The sum of the timeouts.
    pub total: Duration,
    /// The largest timeout.
    pub largest: Duration,
    /// The sum of the timeouts that expired, over [`SendStats::timeouts`] expiries.
    pub expired: Duration,
}

impl Armings {
    pub(crate) fn count(&mut self, timeout: Duration) {
        self.count += 1;
        self.total += timeout;
        self.largest = self.largest.max(timeout);
    }
}

impl AddAssign for Armings {
    fn add_assign(&mut self, other: Armings) {
        let Armings { count, total, largest, expired } = other;
        self.count += count;
        self.total += total;
        self.largest = self.largest.max(largest);
        self.expired += expired;
    }
}

/// Lengths up to this value have separate counters; longer ones share the last.
pub const LONGEST_LENGTH: usize = 255;

/// Counters of the sending side.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SendStats {
    /// Data segments sent, by cause.
    pub sent: Sent,
    /// Retransmissions that a DSACK proved spurious.
    pub spurious_retransmissions: u64,
    /// DSACKs of segments that had been sent once: the network duplicated them.
    pub network_duplicates: u64,
    /// Reductions of the window, by trigger.
    pub cuts: Cuts,
    /// The last of them.
    pub last_cut: Option<Cut>,
    /// Reductions found spurious by a spurious detector.
    pub spurious_cuts: u64,
    /// Of these, those that the response undid completely or in part.
    pub undos: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// The timeouts to which that timer was set.
    pub armings: Armings,
    /// Duplicate ACKs received.
    pub dup_acks: u64,
    /// ACKs received.
    pub acks: u64,
    /// ACKs that were overtaken by later ones.
    pub stale_acks: u64,
    /// Measured reordering events by length in segments, up to the longest so far.
    pub reordering: Vec<u64>,
}

impl SendStats {
    pub(crate) fn count_reordering(&mut self, length: Segments) {
        let length = (length.0 as usize).min(LONGEST_LENGTH);
        if self.reordering.len() <= length {
            self.reordering.resize(length + 1, 0);
        }
        self.reordering[length] += 1;
    }
}

/// Adds up the counters of successive connections, with the last reduction of the latest.
impl AddAssign<&SendStats> for SendStats {
    fn add_assign(&mut self, other: &SendStats) {
        let SendStats {
            sent,
            spurious_retransmissions,
            network_duplicates,
            cuts,
            last_cut,
            spurious_cuts,
            undos,
            timeouts,
            armings,
            dup_acks,
            acks,
            stale_acks,
            reordering,
        } = other;
        self.sent += *sent;
        self.spurious_retransmissions += spurious_retransmissions;
        self.network_duplicates += network_duplicates;
        self.cuts += *cuts;
        self.last_cut = last_cut.or(self.last_cut);
        self.spurious_cuts += spurious_cuts;
        self.undos += undos;
        self.timeouts += timeouts;
        self.armings += *armings;
        self.dup_acks += dup_acks;
        self.acks += acks;
        self.stale_acks += stale_acks;
        self.reordering.resize(self.reordering.len().max(reordering.len()), 0);
        for (sum, count) in self.reordering.iter_mut().zip(reordering) {
            *sum += count;
        }
    }
}

/// Counters of the receiving side.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ReceiveStats {
    /// Data segments received.
    pub segments: u64,
    /// Of these, those that had been received completely before.
    pub duplicates: u64,
    /// Of these, those after a gap.
    pub out_of_order: u64,
    /// Pure ACKs sent.
    pub acks_sent: u64,
    /// Segments with data that arrived and were discarded for their older timestamp (PAWS, RFC 7323 §5). Not included
    /// in `segments`.
    pub paws_discards: u64,
    /// Pure ACKs discarded for the same reason.
    pub paws_discarded_acks: u64,
}

impl AddAssign for ReceiveStats {
    fn add_assign(&mut self, other: ReceiveStats) {
        let ReceiveStats { segments, duplicates, out_of_order, acks_sent, paws_discards, paws_discarded_acks } = other;
        self.segments += segments;
        self.duplicates += duplicates;
        self.out_of_order += out_of_order;
        self.acks_sent += acks_sent;
        self.paws_discards += paws_discards;
        self.paws_discarded_acks += paws_discarded_acks;
    }
}
