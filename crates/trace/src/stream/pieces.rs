//! Combines the verdicts on the pieces of a packet, which may carry several ranges of data with different histories. Both sides
//! call `add` while they settle a range; then `Data::decide` calls `touch` and `on_settled`. Owned by [`super::data`].

use serde::{Deserialize, Serialize};

use super::log::FindingSink;
use super::ranges::Range;
use super::sighting::CapturedSegment;
use crate::{PathPart, RetransmitReason, UnknownReason, Verdict};

/// What is decided about one transmission of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum TransmissionVerdict {
    /// It was lost. The frame of the transmission that replaced it, if known.
    Lost(Option<u64>),
    /// It arrived, but the receiver did not keep it.
    Discarded(Option<u64>),
    /// It arrived and was needed.
    Needed,
    Unknown(UnknownReason),
    Spurious(RetransmitReason),
}

impl TransmissionVerdict {
    /// The piece with the highest weight decides: a retransmission is needed if any part of it was needed.
    const fn weight(self) -> u8 {
        match self {
            TransmissionVerdict::Lost(_) => 4,
            TransmissionVerdict::Discarded(_) => 3,
            TransmissionVerdict::Needed => 2,
            TransmissionVerdict::Unknown(_) => 1,
            TransmissionVerdict::Spurious(_) => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Piece {
    side: PathPart,
    seen: CapturedSegment,
    bytes: (u64, u64),
    ruling: TransmissionVerdict,
    /// The range that is being settled is part of this packet.
    is_touched: bool,
    /// Other parts of the packet arrived: it was cut anew on its way, or by segmentation offload.
    is_part: bool,
}

/// Packets whose ranges are being settled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Pieces {
    open: Vec<Piece>,
    /// The packet that replaced the one that was reported last as lost, on which sides of the capture point (bits), and whether only
    /// a part was lost.
    last: Option<(u64, u8, bool)>,
}

impl Pieces {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The first packet that is not reported yet.
    pub(super) fn first_frame(&self) -> u64 {
        self.open.iter().map(|piece| piece.seen.frame).min().unwrap_or(u64::MAX)
    }

    /// The verdict on the bytes of one range in the packet that was seen as `seen`.
    pub(super) fn add(
        &mut self,
        side: PathPart,
        seen: &CapturedSegment,
        bytes: (u64, u64),
        ruling: TransmissionVerdict,
    ) {
        let is_same = |piece: &&mut Piece| piece.seen.frame == seen.frame && piece.side == side;
        let Some(piece) = self.open.iter_mut().find(is_same) else {
            self.open.push(Piece { side, seen: *seen, bytes, ruling, is_touched: true, is_part: false });
            return;
        };
        piece.is_touched = true;
        match ruling.weight().cmp(&piece.ruling.weight()) {
            std::cmp::Ordering::Greater => (piece.ruling, piece.bytes) = (ruling, bytes),
            std::cmp::Ordering::Equal => piece.bytes.1 = bytes.1.max(piece.bytes.1),
            std::cmp::Ordering::Less => {}
        }
    }

    /// The range that is being settled is part of the packet that first carried it too.
    pub(super) fn touch(&mut self, range: &Range) {
        for piece in self.open.iter_mut().filter(|piece| piece.seen.frame == range.first.frame) {
            piece.is_touched = true;
            // If it is the first part with a verdict, but not the beginning of the packet, the beginning arrived.
            piece.is_part |= range.is_plain() || piece.bytes.0 == range.start && range.within > 0;
        }
    }

    /// A range has been settled by both sides: packets without a part of it are complete and are reported.
    pub(super) fn on_settled(&mut self, out: &mut FindingSink<'_>) {
        let mut open = std::mem::take(&mut self.open);
        open.retain_mut(|piece| {
            let stays = std::mem::take(&mut piece.is_touched);
            if !stays {
                self.report(piece, out);
            }
            stays
        });
        self.open = open;
    }

    /// The last range has been settled.
    pub(super) fn finish(&mut self, out: &mut FindingSink<'_>) {
        for piece in std::mem::take(&mut self.open) {
            self.report(&piece, out);
        }
    }

    fn report(&mut self, piece: &Piece, out: &mut FindingSink<'_>) {
        let (verdict, replaced_by) = match piece.ruling {
            TransmissionVerdict::Lost(by) => {
                // One packet replaces parts of two captured ones: between them, one packet was lost on the wire.
                let (side, is_part) = (1_u8 << piece.side as u8, piece.is_part);
                let (sides, part) = match self.last.filter(|(last, ..)| Some(*last) == by) {
                    Some((_, sides, part)) if sides & side != 0 && (part || is_part) => return,
                    Some((_, sides, part)) => (sides, part),
                    None => (0, false),
                };
                self.last = by.map(|by| (by, sides | side, part || is_part));
                (Verdict::Lost, by)
            }
            TransmissionVerdict::Discarded(by) => (Verdict::Discarded, by),
            TransmissionVerdict::Unknown(reason) => (Verdict::Unknown(reason), None),
            TransmissionVerdict::Spurious(why) => (Verdict::Spurious(why), None),
            TransmissionVerdict::Needed => return,
        };
        out.report_replaced(piece.side, piece.seen, piece.bytes, verdict, replaced_by);
    }
}
