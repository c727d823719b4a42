//! Combines the verdicts on the pieces of a packet, which may carry several ranges of data with different histories. Both sides
//! call `add` while they settle a range; then `Data::decide` calls `touch` and `on_settled`. Owned by [`super::data`].

use serde::{Deserialize, Serialize};

use super::log::FindingSink;
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
}

/// Packets whose ranges are being settled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Pieces(Vec<Piece>);

impl Pieces {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first packet that is not reported yet.
    pub(super) fn first_frame(&self) -> u64 {
        self.0.iter().map(|piece| piece.seen.frame).min().unwrap_or(u64::MAX)
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
        let Some(piece) = self.0.iter_mut().find(is_same) else {
            self.0.push(Piece { side, seen: *seen, bytes, ruling, is_touched: true });
            return;
        };
        piece.is_touched = true;
        match ruling.weight().cmp(&piece.ruling.weight()) {
            std::cmp::Ordering::Greater => (piece.ruling, piece.bytes) = (ruling, bytes),
            std::cmp::Ordering::Equal => piece.bytes.1 = bytes.1.max(piece.bytes.1),
            std::cmp::Ordering::Less => {}
        }
    }

    /// The range that is being settled is part of this packet too.
    pub(super) fn touch(&mut self, frame: u64) {
        for piece in self.0.iter_mut().filter(|piece| piece.seen.frame == frame) {
            piece.is_touched = true;
        }
    }

    /// A range has been settled by both sides: packets without a part of it are complete and are reported.
    pub(super) fn on_settled(&mut self, out: &mut FindingSink<'_>) {
        let mut open = std::mem::take(&mut self.0);
        open.retain_mut(|piece| {
            let stays = std::mem::take(&mut piece.is_touched);
            if !stays {
                report(piece, out);
            }
            stays
        });
        self.0 = open;
    }

    /// The last range has been settled.
    pub(super) fn finish(&mut self, out: &mut FindingSink<'_>) {
        for piece in self.0.drain(..) {
            report(&piece, out);
        }
    }
}

fn report(piece: &Piece, out: &mut FindingSink<'_>) {
    let (verdict, replaced_by) = match piece.ruling {
        TransmissionVerdict::Lost(by) => (Verdict::Lost, by),
        TransmissionVerdict::Discarded(by) => (Verdict::Discarded, by),
        TransmissionVerdict::Unknown(reason) => (Verdict::Unknown(reason), None),
        TransmissionVerdict::Spurious(why) => (Verdict::Spurious(why), None),
        TransmissionVerdict::Needed => return,
    };
    out.report_replaced(piece.side, piece.seen, piece.bytes, verdict, replaced_by);
}
