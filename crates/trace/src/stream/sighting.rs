//! A packet with data as it passed the capture point. Made by `Data::on_data` for each packet before any state changes.

use reknit_units::Instant;
use serde::{Deserialize, Serialize};

/// A packet that carried some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct CapturedSegment {
    pub(super) at: Instant,
    /// The packet's number in the file.
    pub(super) frame: u64,
    // Bits say which of them are present, which takes less memory than two options.
    tsval: u32,
    ip_id: u16,
    bits: u8,
}

const HAS_TSVAL: u8 = 1;
const HAS_IP_ID: u8 = 2;
const IS_STALE: u8 = 4;
const IS_EARLY: u8 = 8;
const IS_TOO_BIG: u8 = 16;
const IS_BEGINNING: u8 = 32;

impl CapturedSegment {
    /// An identification of zero says nothing: senders give it to all packets that must not be fragmented (RFC 6864 §4.1).
    pub(super) fn new(at: Instant, frame: u64, tsval: Option<u32>, ip_id: Option<u16>) -> CapturedSegment {
        let ip_id = ip_id.filter(|id| *id != 0);
        let bits = if tsval.is_some() { HAS_TSVAL } else { 0 } | if ip_id.is_some() { HAS_IP_ID } else { 0 };
        CapturedSegment { at, frame, tsval: tsval.unwrap_or_default(), ip_id: ip_id.unwrap_or_default(), bits }
    }

    pub(super) fn tsval(&self) -> Option<u32> {
        (self.bits & HAS_TSVAL != 0).then_some(self.tsval)
    }

    pub(super) fn ip_id(&self) -> Option<u16> {
        (self.bits & HAS_IP_ID != 0).then_some(self.ip_id)
    }

    /// When it passed, the receiver had echoed a newer timestamp, so it may have discarded it (PAWS, RFC 7323 §5).
    pub(super) fn is_stale(&self) -> bool {
        self.bits & IS_STALE != 0
    }

    /// When it passed, earlier data was missing.
    pub(super) fn is_early(&self) -> bool {
        self.bits & IS_EARLY != 0
    }

    /// A router has dropped it because it was larger than the next link carries.
    pub(super) fn is_too_big(&self) -> bool {
        self.bits & IS_TOO_BIG != 0
    }

    /// When it passed, no captured data of its direction was acknowledged.
    pub(super) fn is_beginning(&self) -> bool {
        self.bits & IS_BEGINNING != 0
    }

    pub(super) fn note_beginning(&mut self) {
        self.bits |= IS_BEGINNING;
    }

    pub(super) fn note_too_big(&mut self) {
        self.bits |= IS_TOO_BIG;
    }

    #[inline]
    pub(super) fn note(&mut self, is_stale: bool, is_early: bool) {
        self.bits |= if is_stale { IS_STALE } else { 0 } | if is_early { IS_EARLY } else { 0 };
    }
}
