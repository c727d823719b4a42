//! What really happened to the packets of a transfer, by which of them passed each capture point, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use reknit_tcp::scoreboard::SendReason;

use super::{Claim, Label};

/// The capture points.
pub(crate) const SENDER: usize = 0;
pub(crate) const MIDDLE: usize = 1;
pub(crate) const RECEIVER: usize = 2;

/// A data packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// Tells segments apart.
    pub(crate) segment: u64,
    /// The number of the transmission of this segment, from 1.
    pub(crate) number: u16,
    /// Why it was sent, if that is known.
    pub(crate) cause: Option<SendReason>,
    /// How often it passed each capture point.
    pub(crate) passes: [u32; 3],
    /// It was still on its way when the transfer ended.
    pub(crate) is_under_way: bool,
    /// The receiver's TCP discarded it for its old timestamp (PAWS), and did not report it as a duplicate. Before the
    /// receiver, nothing distinguishes that from a loss.
    pub(crate) is_discarded: bool,
}

impl Sent {
    /// True if a capture before the receiver shows it as lost.
    fn is_lost(&self) -> bool {
        self.passes[RECEIVER] == 0 && !self.is_under_way || self.is_discarded
    }
}

/// A packet with data at a capture point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    /// Its number in [`Log::sent`].
    pub(crate) serial: usize,
    /// A copy of it passed before.
    pub(crate) is_copy: bool,
}

/// The data packets of a transfer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// In the order of sending.
    pub(crate) sent: Vec<Sent>,
    /// The frames of each capture; none for those without data.
    pub(crate) frames: [Vec<Option<Passing>>; 3],
}

impl Log {
    /// A packet passes a capture point; none: it has no data.
    pub(crate) fn pass(&mut self, tap: usize, serial: Option<usize>) {
        let passing = serial.map(|serial| {
            let passes = &mut self.sent[serial].passes[tap];
            *passes += 1;
            Passing { serial, is_copy: *passes > 1 }
        });
        self.frames[tap].push(passing);
    }

    /// The number of the first transmission of each segment that came as far as `to`.
    fn first_at(&self, to: usize, discarded_count: bool) -> BTreeMap<u64, u16> {
        let mut first = BTreeMap::new();
        for sent in self.sent.iter().filter(|sent| sent.passes[to] > 0 && (discarded_count || !sent.is_discarded)) {
            let number = first.entry(sent.segment).or_insert(sent.number);
            *number = sent.number.min(*number);
        }
        first
    }

    /// Packets that were overtaken, by those that were sent or passed `tap` later, on their way to `to`.
    fn overtaken(&self, to: usize, order: impl Fn(usize) -> Option<u64>) -> BTreeSet<usize> {
        let mut newest = 0;
        let mut overtaken = BTreeSet::new();
        for passing in self.frames[to].iter().flatten().filter(|passing| !passing.is_copy) {
            let Some(order) = order(passing.serial) else { continue };
            if order < newest {
                overtaken.insert(passing.serial);
            }
            newest = newest.max(order);
        }
        overtaken
    }

    /// When the first packet of each segment passed `tap`: the packet, and the number of its frame.
    fn order_at(&self, tap: usize) -> BTreeMap<usize, u64> {
        let mut segments = BTreeSet::new();
        let mut order = BTreeMap::new();
        for (passing, frame) in self.frames[tap].iter().zip(1..) {
            if let Some(passing) = passing.filter(|passing| segments.insert(self.sent[passing.serial].segment)) {
                order.insert(passing.serial, frame);
            }
        }
        order
    }

    /// What happened to the packets that passed `tap`, by frame, from 1.
    pub(crate) fn truth(&self, tap: usize) -> BTreeMap<u64, BTreeSet<Claim>> {
        let arrived = self.first_at(RECEIVER, tap == RECEIVER);
        let passed = self.first_at(tap, true);
        let late_before = self.overtaken(tap, |serial| (self.sent[serial].number == 1).then_some(serial as u64 + 1));
        let order = if tap == RECEIVER { BTreeMap::new() } else { self.order_at(tap) };
        let late_after = self.overtaken(RECEIVER, |serial| order.get(&serial).copied());
        let mut truth = BTreeMap::new();
        for (passing, frame) in self.frames[tap].iter().zip(1..) {
            let Some(Passing { serial, is_copy }) = *passing else { continue };
            let sent = &self.sent[serial];
            let mut claims = BTreeSet::new();
            let is_earlier = |first: &BTreeMap<u64, u16>| first.get(&sent.segment).is_some_and(|n| *n < sent.number);
            if is_copy {
                claims.insert(Claim::before(Label::Duplicated));
            } else if is_earlier(&arrived) {
                claims.insert(Claim::before(Label::Spurious));
            } else {
                if tap != SENDER && sent.number > 1 && !is_earlier(&passed) {
                    claims.insert(Claim::before(Label::Lost));
                } else if late_before.contains(&serial) {
                    claims.insert(Claim::before(Label::Reordered));
                }
                if tap != RECEIVER && sent.is_lost() {
                    claims.insert(Claim::after(Label::Lost));
                } else if late_after.contains(&serial) && tap != RECEIVER {
                    claims.insert(Claim::after(Label::Reordered));
                }
            }
            if tap != RECEIVER && !is_copy && sent.passes[RECEIVER] > sent.passes[tap] {
                claims.insert(Claim::after(Label::Duplicated));
            }
            truth.insert(frame, claims);
        }
        truth
    }
}
