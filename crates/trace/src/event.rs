//! Verdicts on single packets, and incidents of connections.

use reknit_units::{Duration, Instant, grouped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CapturePoint;

/// What made the sender retransmit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetransmitReason {
    /// Duplicate ACKs or SACK blocks.
    FastRetransmit,
    /// Its retransmission timer expired.
    Timeout,
    /// A tail loss probe (TLP, RFC 8985 §7).
    Probe,
    /// The capture does not show it.
    Unknown,
}

/// Why there is no verdict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownReason {
    /// Without timestamps and IP identifications, an original that is later than a round trip looks like its
    /// retransmission.
    SameHeaders,
    /// The receiver has not reported a duplicate, and it is not known to do so.
    NoDuplicateReports,
    /// The data was sent more than twice, and the reports do not show which transmissions arrived.
    SeveralTransmissions,
    /// The data was acknowledged long ago, and its packets are forgotten.
    Forgotten,
    /// It passed and was sent again, and the receiver acknowledged other data in between, but not this. It was lost downstream of
    /// the capture point, or waited behind data that was.
    NotAcknowledged,
    /// The capture ends before this can be decided.
    CaptureEnds,
    /// The connection was reset before this could be decided.
    ConnectionReset,
    /// The data may have been sent before the capture began.
    BeforeCapture,
    /// The capture missed packets, perhaps the ones that would decide this.
    CaptureLoss,
    /// The IP identifications of the receiver show that acknowledgments never passed: they were lost, or the capture missed them.
    AcksMissing,
    /// The packets were truncated before the end of the SACK blocks that would decide this, or these have the sequence numbers of
    /// the other side of a firewall.
    Truncated,
}

/// An incident of a connection rather than of a single packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incident {
    /// Data was lost and never sent again.
    NeverRepaired,
    /// Data was acknowledged, or must have passed, but is not in the capture.
    NotCaptured,
    /// The receiver's window was closed. Counted: probes.
    WindowClosed,
    /// Keep-alives had no answer. Counted: keep-alives.
    KeepAlives,
    /// Nothing was acknowledged until the connection or the capture ended. Counted: retransmissions.
    NoAnswer,
    /// The same, and smaller packets had arrived: the path MTU may be too small for full-sized segments.
    NoAnswerToFullSegments,
    /// A router said that packets were larger than the next link carries (ICMP). Counted: these packets.
    TooBig,
    /// Nothing was acknowledged for longer than a retransmission timer runs. Counted: retransmissions.
    Timeouts,
    /// The same without retransmissions: the receiver or the return path was silent.
    Silence,
    /// SYNs had no answer. Counted: SYNs.
    NoAnswerToSyn,
    /// The first SYNs or their answers were lost. Counted: SYNs.
    SlowOpening,
    /// The other end refused the connection.
    Refused,
    /// The sender of the data reset the connection.
    Reset,
    /// The receiver of the data reset the connection.
    ResetByReceiver,
}

impl Incident {
    /// All kinds, in their order.
    pub const ALL: [Incident; 14] = [
        Incident::NeverRepaired,
        Incident::NotCaptured,
        Incident::WindowClosed,
        Incident::KeepAlives,
        Incident::NoAnswer,
        Incident::NoAnswerToFullSegments,
        Incident::TooBig,
        Incident::Timeouts,
        Incident::Silence,
        Incident::NoAnswerToSyn,
        Incident::SlowOpening,
        Incident::Refused,
        Incident::Reset,
        Incident::ResetByReceiver,
    ];

    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Incident::NeverRepaired => "never_repaired",
            Incident::NotCaptured => "not_captured",
            Incident::WindowClosed => "window_closed",
            Incident::KeepAlives => "keep_alives",
            Incident::NoAnswer => "no_answer",
            Incident::NoAnswerToFullSegments => "no_answer_to_full_segments",
            Incident::TooBig => "too_big",
            Incident::Timeouts => "timeouts",
            Incident::Silence => "silence",
            Incident::NoAnswerToSyn => "no_answer_to_syn",
            Incident::SlowOpening => "slow_opening",
            Incident::Refused => "refused",
            Incident::Reset => "reset",
            Incident::ResetByReceiver => "reset_by_receiver",
        }
    }

    /// In words. `times`: how often it happened; the others are sums.
    pub fn text(self, times: u64, packets: u64, bytes: u64, lasted_s: f64) -> String {
        let lasted = if lasted_s < 10.0 { format!("{lasted_s:.2} s") } else { format!("{lasted_s:.0} s") };
        let many = |n: u64, what: &str| format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" });
        let unanswered = |n: u64, what: &str| format!("{} in {lasted} had no answer", many(n, what));
        match self {
            Incident::NeverRepaired if packets > 0 => {
                let (of, bytes, were) = (many(packets, "packet"), many(bytes, "byte"), was(packets));
                let them = if packets == 1 { "it" } else { "them" };
                format!("{of} ({bytes}) {were} lost and never retransmitted; later data waited {lasted} for {them}")
            }
            Incident::NeverRepaired => {
                format!(
                    "{} {} never captured; the connection waited {lasted} for them",
                    many(bytes, "byte"),
                    was(bytes)
                )
            }
            Incident::NotCaptured => format!("{} acknowledged, but not in the capture", many(bytes, "byte")),
            Incident::WindowClosed => {
                let probed = match packets {
                    0 => String::new(),
                    _ => format!("; the sender sent {}", many(packets, "window probe")),
                };
                format!("the receive window was zero {}, for {lasted} in all{probed}", how_often(times))
            }
            Incident::KeepAlives => unanswered(packets, "keep-alive"),
            Incident::NoAnswer => unanswered(packets, "retransmission"),
            Incident::NoAnswerToFullSegments => {
                let of = many(packets, "retransmission");
                format!("{of} of full-sized segments in {lasted} had no answer, although smaller ones got through")
            }
            Incident::TooBig => {
                let were = was(packets);
                format!("{} {were} too big for a link of the path, as ICMP says", many(packets, "packet"))
            }
            Incident::Timeouts => {
                format!("nothing was acknowledged for {lasted}, while {} sent", sent(packets))
            }
            Incident::Silence => format!("nothing was acknowledged for {lasted}, and nothing was retransmitted"),
            Incident::NoAnswerToSyn => unanswered(packets, "SYN"),
            Incident::SlowOpening => format!("the connection took {lasted} and {} to open", many(packets, "SYN")),
            Incident::Refused => "the connection was refused".to_owned(),
            Incident::Reset => "the sender reset the connection".to_owned(),
            Incident::ResetByReceiver => "the receiver reset the connection".to_owned(),
        }
    }

    /// True if it cost no time, as far as is known.
    pub const fn is_harmless(self) -> bool {
        matches!(self, Incident::NotCaptured | Incident::Reset | Incident::ResetByReceiver)
    }

    /// True if the connection failed.
    pub const fn is_failure(self) -> bool {
        matches!(
            self,
            Incident::NeverRepaired
                | Incident::KeepAlives
                | Incident::NoAnswer
                | Incident::NoAnswerToFullSegments
                | Incident::NoAnswerToSyn
                | Incident::Refused
        )
    }
}

impl RetransmitReason {
    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            RetransmitReason::FastRetransmit => "fast_retransmit",
            RetransmitReason::Timeout => "timeout",
            RetransmitReason::Probe => "probe",
            RetransmitReason::Unknown => "unknown",
        }
    }

    /// In words, after "retransmitted".
    pub const fn text(self) -> &'static str {
        match self {
            RetransmitReason::FastRetransmit => "after duplicate ACKs or SACK blocks",
            RetransmitReason::Timeout => "after a timeout",
            RetransmitReason::Probe => "as a probe of the tail",
            RetransmitReason::Unknown => "for an unknown reason",
        }
    }
}

impl UnknownReason {
    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            UnknownReason::SameHeaders => "same_headers",
            UnknownReason::NoDuplicateReports => "no_duplicate_reports",
            UnknownReason::SeveralTransmissions => "several_transmissions",
            UnknownReason::Forgotten => "forgotten",
            UnknownReason::NotAcknowledged => "not_acknowledged",
            UnknownReason::CaptureEnds => "capture_ends",
            UnknownReason::ConnectionReset => "connection_reset",
            UnknownReason::BeforeCapture => "before_capture",
            UnknownReason::CaptureLoss => "capture_loss",
            UnknownReason::AcksMissing => "acks_missing",
            UnknownReason::Truncated => "truncated",
        }
    }

    /// In words, after "because".
    pub const fn text(self) -> &'static str {
        match self {
            UnknownReason::SameHeaders => "the original and its retransmission look the same",
            UnknownReason::NoDuplicateReports => "the receiver does not report duplicates",
            UnknownReason::SeveralTransmissions => "the data was sent more than twice",
            UnknownReason::Forgotten => "the data was acknowledged long ago",
            UnknownReason::NotAcknowledged => {
                "the receiver did not acknowledge the data, although it had passed the point of capture"
            }
            UnknownReason::CaptureEnds => "the capture ends too early",
            UnknownReason::ConnectionReset => "the connection was reset before they were acknowledged",
            UnknownReason::BeforeCapture => "the data may have been sent before the capture began",
            UnknownReason::CaptureLoss => "packets are missing from the capture",
            UnknownReason::AcksMissing => "acknowledgments of the receiver are missing: lost, or not captured",
            UnknownReason::Truncated => "the SACK blocks cannot be read",
        }
    }
}

/// How often something happened.
pub fn how_often(times: u64) -> String {
    if times == 1 { "once".to_owned() } else { format!("{} times", grouped(times)) }
}

const fn was(n: u64) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

fn sent(retransmissions: u64) -> String {
    if retransmissions == 1 {
        "1 retransmission was".to_owned()
    } else {
        format!("{} retransmissions were", grouped(retransmissions))
    }
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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
    Spurious(RetransmitReason),
    /// The packet arrived, but the receiver did not keep it because earlier data was missing.
    Discarded,
    /// There is no verdict.
    Unknown(UnknownReason),
    /// An incident of the connection; the packet is the one that shows it.
    Incident {
        /// What happened.
        what: Incident,
        /// How many packets were involved; each kind says which are counted.
        count: u32,
        /// How long it lasted.
        lasted: Duration,
    },
}

/// On which side of the capture point something happened, in the direction of the data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathPart {
    /// Upstream: seen in the order of the packets.
    #[serde(rename = "before")]
    Upstream,
    /// At the capture point: all bytes of the packet had passed before. At the receiver, it was not needed.
    #[serde(rename = "here")]
    AtCapturePoint,
    /// Downstream: seen in the acknowledgments.
    #[serde(rename = "after")]
    Downstream,
    /// The whole connection, wherever it was captured.
    Connection,
}

/// All sides, in their order.
pub(crate) const SIDES: [PathPart; 4] =
    [PathPart::Upstream, PathPart::AtCapturePoint, PathPart::Downstream, PathPart::Connection];

/// A verdict on one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// The stream.
    pub stream: u32,
    /// The end that sent the packet: 0 or 1.
    pub end: u8,
    /// Where it happened.
    pub side: PathPart,
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
    /// The frame of the packet that replaced a lost one, if it was captured.
    pub replaced_by: Option<u64>,
}

impl Event {
    /// What it means in a capture made at `place`: what was captured next to the receiver fitted through the path.
    pub(crate) fn seen_at(mut self, place: CapturePoint) -> Event {
        if let Verdict::Incident { what, .. } = &mut self.verdict
            && *what == Incident::NoAnswerToFullSegments
            && place == CapturePoint::Receiver
        {
            *what = Incident::NoAnswer;
        }
        self
    }
}
