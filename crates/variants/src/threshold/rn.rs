//! # RN-TCP, reorder notifying
//!
//! Sathiaseelan, Radzik: Improving the Performance of TCP in the Case of Packet Reordering. LNCS 3079, 2004; as
//! described in the survey of Leung, Li, Yang, §5.2.5.
//!
//! **What it changes.** Both ends and the routers. A router that has dropped packets of a flow writes their range into
//! the flow's next packet. The receiver takes a gap as reordering unless a router has reported drops in it, and says so
//! in its ACKs. The sender waits longer for segments that were only reordered.
//!
//! **State.** Receiver: the gaps, in pieces that are `dropped` or not; `ahead`: reported drops beyond the highest byte
//! received. Sender: `reordered`, the report of the last ACK.
//!
//! **Rules.** Routers: see `drop_notices` of paths. Receiver:
//! - 1: a new gap is due to reordering.
//! - 2: bytes in the range of a notice were dropped, and stay marked as such.
//! - 3: bytes that arrive are removed from the gaps.
//! - 4: an ACK reports "reordered" if no part of the first gap was dropped.
//!
//! Sender: if the third duplicate ACK reports "reordered", `k` more with that report are required; a duplicate ACK
//! without it causes a fast retransmit at once. An ACK that advances SND.UNA reports on the next
//! gap.
//!
//! **Departures.** The survey gives no field sizes, no encoding of the gaps and no k. Limited transmit is that of RFC
//! 3042: the survey gives none, and its Table 2 says that RN-TCP does not maintain ACK clocking. So a window of up to
//! four segments cannot cause the six duplicate ACKs, and the timer repairs its losses. The sender reserves room in each
//! segment, because packets cannot grow on their way; routers write nowhere else. A notice that arrives before its gap
//! is kept. The range of a notice may include segments that were not dropped; if such a segment is late, it counts as
//! dropped, which is the safe choice.
//!
//! **Status.** Partial: the survey (§5.2.5), the only source, does not give k, the number of further duplicate ACKs, which
//! decides the result; nor the encoding, which does not change it.

use reknit_tcp::experiment::{Dropped, ExperimentalOption, Features};
use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent};
use reknit_tcp::seams::{Arrival, DupThresh, HeaderSupport, HeaderSupportTraits, Plugin, RxFacts};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use crate::algorithm::Algorithm;
use crate::requirement::{Need, Requirement};

/// Parameters of the sender.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifiedConfig {
    /// Duplicate ACKs that indicate a loss without the report "reordered" (survey §5.2.5: 3).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub dup_thresh: Segments,
    /// k, how many more are required while they report "reordered" (survey §5.2.5 gives no value).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub k: Segments,
}

impl Default for NotifiedConfig {
    fn default() -> NotifiedConfig {
        NotifiedConfig { dup_thresh: Segments(3), k: Segments(3) }
    }
}

impl Algorithm<dyn DupThresh> for NotifiedConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::MayExceedWindow]
    }

    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(Notified { config: self.clone(), reordered: false })
    }
}

#[derive(Clone, Debug)]
struct Notified {
    config: NotifiedConfig,
    reordered: bool,
}

impl DupThresh for Notified {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        if ack.advances() || ack.duplicate {
            self.reordered = cx.snd.features.has(Features::DROPS) && ack.experiment.reordered == Some(true);
        }
    }

    fn dup_thresh(&self, _cx: &Context<'_>) -> Segments {
        if self.reordered { self.config.dup_thresh + self.config.k } else { self.config.dup_thresh }
    }
}

impl Plugin for Notified {
    fn on_recovery_event(&mut self, _cx: &Context<'_>, event: RecoveryEvent) {
        if matches!(event, RecoveryEvent::Timeout { .. }) {
            self.reordered = false;
        }
    }
}

/// The header support has no parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropNoticesConfig {}

impl Algorithm<dyn HeaderSupport> for DropNoticesConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Needs(Need::Feature(Features::DROPS), "the threshold stays at 3")]
    }

    fn build(&self) -> Box<dyn HeaderSupport> {
        Box::new(Marks { gaps: VecDeque::new(), highest: Offset::DATA, rcv_nxt: Offset::DATA, ahead: None })
    }
}

/// The maximum number of pieces kept; bytes beyond them count as dropped.
const MAX_PIECES: usize = 1024;

/// Bytes that are missing, all for the same reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece {
    start: Offset,
    end: Offset,
    dropped: bool,
}

/// The receiver's state.
#[derive(Clone, Debug)]
struct Marks {
    /// In order, disjoint.
    gaps: VecDeque<Piece>,
    /// One past the highest byte received.
    highest: Offset,
    rcv_nxt: Offset,
    /// A range of drops at or above `highest`.
    ahead: Option<(Offset, Offset)>,
}

impl Marks {
    /// Rule 1.
    fn open_gap(&mut self, rx: &RxFacts<'_>) {
        let below = self.highest;
        self.highest = rx.highest;
        if below < rx.start && rx.start < rx.highest && self.gaps.len() < MAX_PIECES {
            self.gaps.push_back(Piece { start: below, end: rx.start, dropped: false });
        }
    }

    /// Splits the piece that contains `at`, unless there would be too many.
    fn split(&mut self, at: Offset) {
        let i = self.gaps.partition_point(|piece| piece.end <= at);
        if let Some(piece) = self.gaps.get(i).copied().filter(|piece| piece.start < at)
            && self.gaps.len() < MAX_PIECES
        {
            self.gaps[i].start = at;
            self.gaps.insert(i, Piece { end: at, ..piece });
        }
    }

    /// The pieces that contain bytes of `start..end`.
    fn pieces(&mut self, start: Offset, end: Offset) -> std::ops::Range<usize> {
        self.split(start);
        self.split(end);
        let first = self.gaps.partition_point(|piece| piece.end <= start);
        let last = self.gaps.partition_point(|piece| piece.start < end);
        first..last.max(first)
    }

    /// Rule 2, for the bytes from `lowest` to `highest`.
    fn mark_dropped(&mut self, (lowest, highest): (Offset, Offset)) {
        let marked = self.pieces(lowest, highest + Bytes(1));
        for piece in self.gaps.range_mut(marked) {
            piece.dropped = true;
        }
        if self.highest <= highest {
            let lowest = self.ahead.map_or(lowest, |(known, _)| known.min(lowest)).max(self.highest);
            self.ahead = Some((lowest, self.ahead.map_or(highest, |(_, known)| known.max(highest))));
        }
    }

    /// Rule 3.
    fn fill(&mut self, rx: &RxFacts<'_>) {
        let filled = self.pieces(rx.start, rx.end.min(rx.highest));
        self.gaps.drain(filled);
    }

    /// Rule 4.
    fn first_gap_is_reordering(&self) -> bool {
        let mut at = self.rcv_nxt;
        for piece in &self.gaps {
            if piece.start != at {
                break;
            }
            if piece.dropped {
                return false;
            }
            at = piece.end;
        }
        at > self.rcv_nxt
    }
}

impl HeaderSupport for Marks {
    fn traits(&self) -> HeaderSupportTraits {
        HeaderSupportTraits::new(Features::DROPS)
    }

    fn annotate_data(&mut self, _again: bool, experiment: &mut ExperimentalOption) {
        experiment.dropped = Some(Dropped::NOTHING);
    }

    fn on_data(&mut self, rx: &RxFacts<'_>) {
        self.rcv_nxt = rx.rcv_nxt;
        self.open_gap(rx);
        for notice in [self.ahead.take(), rx.dropped].into_iter().flatten() {
            self.mark_dropped(notice);
        }
        if rx.arrival != Arrival::InOrder {
            self.fill(rx);
        }
    }

    fn annotate_ack(&mut self, _ack: Offset, experiment: &mut ExperimentalOption) {
        if self.rcv_nxt < self.highest {
            experiment.reordered = Some(self.first_gap_is_reordering());
        }
    }
}

impl Plugin for Marks {
    fn heap_size(&self) -> usize {
        self.gaps.capacity() * size_of::<Piece>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(gaps: &[(u64, u64)]) -> Marks {
        let pieces = gaps.iter().map(|(start, end)| Piece { start: Offset(*start), end: Offset(*end), dropped: false });
        Marks { gaps: pieces.collect(), highest: Offset(100), rcv_nxt: Offset(10), ahead: None }
    }

    fn pieces(marks: &Marks) -> Vec<(u64, u64, bool)> {
        marks.gaps.iter().map(|piece| (piece.start.0, piece.end.0, piece.dropped)).collect()
    }

    #[test]
    fn a_range_splits_the_gaps_at_its_ends() {
        let mut marks = marks(&[(10, 20), (30, 40), (50, 60)]);
        marks.mark_dropped((Offset(15), Offset(54)));
        let expected = [(10, 15, false), (15, 20, true), (30, 40, true), (50, 55, true), (55, 60, false)];
        assert_eq!(pieces(&marks), expected);
        assert!(!marks.first_gap_is_reordering());
    }

    #[test]
    fn what_arrives_is_cut_out() {
        let mut marks = marks(&[(10, 20), (30, 40)]);
        let filled = marks.pieces(Offset(12), Offset(35));
        marks.gaps.drain(filled);
        assert_eq!(pieces(&marks), [(10, 12, false), (35, 40, false)]);
        assert!(marks.first_gap_is_reordering());
    }

    #[test]
    fn drops_above_everything_that_arrived_are_kept() {
        let mut marks = marks(&[]);
        marks.mark_dropped((Offset(90), Offset(120)));
        assert_eq!(marks.ahead, Some((Offset(100), Offset(120))));
        marks.mark_dropped((Offset(5), Offset(6)));
        assert_eq!(marks.ahead, Some((Offset(100), Offset(120))));
    }

    #[test]
    fn pieces_are_bounded() {
        let gaps: Vec<(u64, u64)> = (0..MAX_PIECES as u64).map(|n| (10 + n * 20, 20 + n * 20)).collect();
        let mut marks = marks(&gaps);
        marks.mark_dropped((Offset(13), Offset(15)));
        assert_eq!((marks.gaps.len(), pieces(&marks)[0]), (MAX_PIECES, (10, 20, true)));
    }
}
