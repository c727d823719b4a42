//! When packets were sent and when they arrived.

use std::collections::BTreeMap;

use reknit_units::Instant;

use crate::{CapturePoint, DirectionReport, PathPart};

/// Transits that are kept, all directions together.
const MOST: usize = 2_000_000;

/// When a packet was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// The time at the capture point.
    At(Instant),
    /// The sender's timestamp (RFC 7323): the packet was captured where it arrived.
    Stamp(u32),
    /// Not known; it was sent at about the time of the data before it.
    Unknown,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketFate {
    /// When it arrived; in a capture at the sender, when it was acknowledged.
    Arrived(Instant),
    /// It was lost.
    Lost,
    /// Another transmission delivered its data, and the capture does not show whether this one arrived. It used the links, at
    /// least the first ones.
    Unknown,
}

/// One packet on the part of the path upstream or downstream of the capture point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transit {
    /// The stream.
    pub stream: u32,
    /// The end that sent the packet: 0 or 1.
    pub end: u8,
    /// On which side of the capture point.
    pub side: PathPart,
    /// When it was sent.
    pub sent: Departure,
    /// What became of it.
    pub outcome: PacketFate,
    /// It is a retransmission.
    pub is_retransmission: bool,
    /// When its data arrived, in this packet or in a retransmission.
    pub settled: Instant,
    /// Bytes of data.
    pub len: u32,
}

/// The transits of the packets of each direction, in the order of their bytes.
#[derive(Clone, Debug, Default)]
pub struct Transits {
    by_direction: BTreeMap<(u32, u8), Vec<Transit>>,
    kept: usize,
}

impl Transits {
    /// Keeps a transit unless there are too many.
    pub(crate) fn add(&mut self, transit: Transit) {
        if self.kept < MOST {
            self.kept += 1;
            self.by_direction.entry((transit.stream, transit.end)).or_default().push(transit);
        }
    }

    /// Those of one direction.
    pub fn of(&self, direction: &DirectionReport) -> &[Transit] {
        self.by_direction.get(&(direction.stream, direction.end)).map_or(&[], Vec::as_slice)
    }

    /// True if not all were kept.
    pub fn is_full(&self) -> bool {
        self.kept == MOST
    }
}

impl CapturePoint {
    /// The side on which a capture made here shows when packets were sent and when they arrived.
    pub(crate) const fn side_of_transits(self) -> PathPart {
        match self {
            CapturePoint::Sender | CapturePoint::Middle => PathPart::Downstream,
            CapturePoint::Receiver => PathPart::Upstream,
        }
    }
}
