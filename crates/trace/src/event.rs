//! What the analysis says about single packets.

use reknit_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What made the sender retransmit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Duplicate ACKs or SACK blocks.
    FastRetransmit,
    /// Its retransmission timer expired.
    Timeout,
    /// It probed for a lost tail (TLP, RFC 8985 §7).
    Probe,
    /// The capture does not tell.
    Unknown,
}

/// Why there is no verdict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Without timestamps and IP identifications, an original that is later than a round trip looks like its
    /// retransmission.
    SameHeaders,
    /// The receiver has not reported a duplicate, and it is not known to do so.
    NoDuplicateReports,
    /// The data was sent more than twice, and the reports do not tell which transmissions arrived.
    SeveralTransmissions,
    /// The data was acknowledged long ago, and its packets are forgotten.
    Forgotten,
    /// It passed and was sent again, and the receiver acknowledged other data in between, but not this. It was lost behind
    /// the point of capture, or waited there behind data that was.
    NotAcknowledged,
    /// The capture ends before this can be decided.
    CaptureEnds,
}

impl Why {
    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Why::FastRetransmit => "fast_retransmit",
            Why::Timeout => "timeout",
            Why::Probe => "probe",
            Why::Unknown => "unknown",
        }
    }

    /// In words, after "retransmitted".
    pub const fn text(self) -> &'static str {
        match self {
            Why::FastRetransmit => "after duplicate ACKs or SACK blocks",
            Why::Timeout => "after a timeout",
            Why::Probe => "as a probe of the tail",
            Why::Unknown => "for an unknown reason",
        }
    }
}

impl Reason {
    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::SameHeaders => "same_headers",
            Reason::NoDuplicateReports => "no_duplicate_reports",
            Reason::SeveralTransmissions => "several_transmissions",
            Reason::Forgotten => "forgotten",
            Reason::NotAcknowledged => "not_acknowledged",
            Reason::CaptureEnds => "capture_ends",
        }
    }

    /// In words, after "because".
    pub const fn text(self) -> &'static str {
        match self {
            Reason::SameHeaders => "the original and its retransmission look the same",
            Reason::NoDuplicateReports => "the receiver does not report duplicates",
            Reason::SeveralTransmissions => "the data was sent more than twice",
            Reason::Forgotten => "the data was acknowledged long ago",
            Reason::NotAcknowledged => "the receiver did not acknowledge the data, though it had passed here",
            Reason::CaptureEnds => "the capture ends",
        }
    }
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A packet was lost. On the sender's side of the loss, `frame` is the lost packet; beyond it, its replacement.
    Lost,
    /// The packet was late: packets that were sent later arrived before it.
    Reordered {
        /// Arrivals since the first packet that overtook it (RFC 4737 §4.2).
        packets: u32,
        /// Time since then (§4.3).
        late: Duration,
    },
    /// The network copied the packet.
    Duplicated,
    /// The packet is a retransmission, but an earlier transmission of its data was not lost.
    Spurious(Why),
    /// Cannot tell.
    Unknown(Reason),
}

/// On which side of the point of capture something happened, as the data travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Before the packets were captured: seen in their order.
    Before,
    /// At the point of capture: all bytes of the packet had passed before. At the receiver, it was not needed.
    Here,
    /// After it: seen in the acknowledgments.
    After,
}

/// All sides, in their order.
pub(crate) const SIDES: [Side; 3] = [Side::Before, Side::Here, Side::After];

/// A verdict on one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The stream.
    pub stream: u32,
    /// The end that sent the packet: 0 or 1.
    pub end: u8,
    /// Where it happened.
    pub side: Side,
    /// The packet's number in the file.
    pub frame: u64,
    /// When the packet was captured.
    pub at: Instant,
    /// When it was decided: the time of the packet that decided it.
    pub decided: Instant,
    /// The first byte, counted from the stream's first captured byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// The verdict.
    pub verdict: Verdict,
}
