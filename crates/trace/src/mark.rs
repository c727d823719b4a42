//! What passed the capture point, for pictures.

use reknit_units::Instant;

/// What a mark shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passed {
    /// A packet with data from `from` to `to`.
    Data,
    /// A retransmission with data from `from` to `to`.
    Retransmission,
    /// The receiver has everything before `to` and allows data before the edge of its window. The edge is none if the
    /// handshake, which negotiates the window scale, was not captured.
    Ack {
        /// The edge, as an offset.
        edge: Option<u64>,
    },
    /// The receiver has `from` to `to` too: the first SACK block, which is the newest (RFC 2018 §4).
    Sack,
    /// The receiver has received `from` to `to` twice (RFC 2883).
    Duplicate,
}

/// A packet or an acknowledgment of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The stream.
    pub stream: u32,
    /// The end that sends the data: 0 or 1.
    pub end: u8,
    /// The packet's number in the file.
    pub frame: u64,
    /// When it passed.
    pub at: Instant,
    /// Offsets of the data from the stream's first captured byte.
    pub from: u64,
    /// End of the data.
    pub to: u64,
    /// What it shows.
    pub what: Passed,
}
