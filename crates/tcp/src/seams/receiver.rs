//! The receiver's side: when to acknowledge, how large a window to announce, and which fields to send beyond the
//! standard options.

use reknit_units::{Bytes, Duration, Instant};

use crate::config::Config;
use crate::experiment::{ExperimentalOption, Features};
use crate::seams::Plugin;
use crate::seq::Offset;

/// The position of a data segment relative to the data received so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is the next one, and nothing is missing.
    InOrder,
    /// There is a gap below it.
    OutOfOrder,
    /// It fills a gap completely or partly.
    FillsGap,
    /// It contains nothing new.
    Duplicate,
}

/// The facts about a data segment that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct RxFacts<'a> {
    /// The time of arrival.
    pub now: Instant,
    /// The connection's options.
    pub config: &'a Config,
    /// The position of the segment.
    pub arrival: Arrival,
    /// First byte of the segment.
    pub start: Offset,
    /// One past its last byte.
    pub end: Offset,
    /// Next byte expected, after this segment.
    pub rcv_nxt: Offset,
    /// One past the highest byte received.
    pub highest: Offset,
    /// The application has read up to this position. The segment itself has not been read.
    pub read: Offset,
    /// Bytes that have arrived above the first gap.
    pub held: Bytes,
    /// True if there is still a gap below `highest`.
    pub gaps: bool,
    /// How many of the SACK blocks have changed more recently than the block that contains the segment.
    pub newer_blocks: usize,
    /// The longest segment so far: the estimate of the peer's segment size (RFC 5681 §4.2).
    pub rmss: Bytes,
    /// True if it carries a FIN.
    pub fin: bool,
    /// True if PSH is set.
    pub push: bool,
    /// How much more the peer may send.
    pub window: Bytes,
    /// True if this segment has enlarged the part of the buffer that is used ([`Space::grew`]).
    pub buffer_grew: bool,
    /// The peer's timestamp on it (RFC 7323 §3).
    pub timestamp: Option<u32>,
    /// The experimental option.
    pub experiment: &'a ExperimentalOption,
    /// What routers on the path report as dropped: the first bytes of the lowest and of the highest such segment.
    pub dropped: Option<(Offset, Offset)>,
    /// The round-trip time as the receiver measures it: from the handshake, later from echoed timestamps.
    pub rtt: Option<Duration>,
}

/// When to acknowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckAction {
    /// At once.
    Now,
    /// With the next segment that is sent anyway, but at the latest at this time.
    By(Instant),
    /// At once, because an ACK has waited for earlier segments; and once more by this time, for this one.
    NowAndBy(Instant),
    /// The policy itself acknowledges it, at its own [`AckPolicy::deadline`].
    Withhold,
}

/// An acknowledgment that the policy itself has scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimedAck {
    /// The number that it acknowledges: at most RCV.NXT, and not less than was acknowledged before.
    pub ack: Offset,
    /// True if it carries SACK blocks, as they are when it is sent.
    pub sack: bool,
}

/// How much segments that are sent for other reasons may acknowledge: data segments, window updates, responses to probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PiggybackLimit {
    /// The most that they may acknowledge.
    pub ack: Offset,
    /// True if they may carry SACK blocks.
    pub sack: bool,
}

impl PiggybackLimit {
    /// Everything.
    pub const FULL: PiggybackLimit = PiggybackLimit { ack: Offset::MAX, sack: true };
}

/// The receiver's acknowledgment policy.
pub trait AckPolicy: Plugin {
    /// A segment with data or a FIN arrived.
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction;

    /// The application has read. True if that is acknowledged at once. Only `linux-acks` needs it: Linux acknowledges a pushed
    /// segment when the application has read everything.
    fn on_read(&mut self, _reading: &Reading) -> bool {
        false
    }

    /// A segment was sent that acknowledges as much as it may.
    fn on_ack_sent(&mut self);

    /// When to call [`AckPolicy::on_timer`]; [`Instant::NEVER`] if nothing is withheld.
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// The deadline has passed. Returns the acknowledgment to send now. Called again until there is none or the
    /// deadline is in the future.
    fn on_timer(&mut self, _now: Instant) -> Option<TimedAck> {
        None
    }

    /// What segments sent for other reasons may acknowledge until then.
    fn disclosure(&self) -> PiggybackLimit {
        PiggybackLimit::FULL
    }
}

/// The part of the receive buffer that is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Its size: it holds what the application has not read, and the window.
    pub size: Bytes,
    /// True if a segment has enlarged it, so that the ACK policy may want to send a window update.
    pub grew: bool,
}

/// The application has read some data.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The time.
    pub now: Instant,
    /// It has now read up to this position.
    pub read: Offset,
    /// Bytes that it could read now.
    pub left: Bytes,
    /// Bytes that have arrived above the first gap.
    pub held: Bytes,
    /// From the next byte expected to the highest received.
    pub above_gap: Bytes,
    /// The longest segment so far.
    pub rmss: Bytes,
    /// The round-trip time as the receiver measures it.
    pub rtt: Option<Duration>,
}

/// How much of the receive buffer is used. Without a plug-in, it is the whole buffer.
///
/// With a plug-in, the window is announced in units of the window scale, rounded up, and opens by any amount as long as half of
/// the space is free. Otherwise it is rounded down, and opens by a segment or more.
///
/// Only `linux-receive-buffer` needs it: no RFC has such an algorithm, but without it a receiver announces more than Linux does,
/// and its sender sends more.
pub trait ReceiveBuffer: Plugin {
    /// The window of a SYN; the peer's segments will have up to `mss` bytes of data. Called again if another SYN is
    /// sent.
    fn initial(&mut self, mss: Bytes) -> Bytes;

    /// A segment with data or a FIN arrived. Returns what is used from now on. The right edge of the window never moves
    /// back, even if this is less than before.
    fn on_data(&mut self, rx: &RxFacts<'_>) -> Space;

    /// The application has read. Returns the size from now on, if it changes.
    fn on_read(&mut self, reading: &Reading) -> Option<Bytes>;

    /// The most that the window may be, even if there is more space.
    fn largest_window(&self) -> Bytes;
}

/// What never changes about a header support. Read when the connection opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderSupportTraits {
    /// The features that both ends must support.
    pub features: Features,
    /// The number of ACKs that report each duplicate. In RFC 2883 §4 it is one (`dsack-repeat`, in case ACKs are lost).
    pub duplicate_reports: u32,
}

impl HeaderSupportTraits {
    /// The features, and nothing else.
    pub const fn new(features: Features) -> HeaderSupportTraits {
        HeaderSupportTraits { features, duplicate_reports: 1 }
    }
}

/// Fields beyond the standard options. Used only if the peer has offered the same features.
pub trait HeaderSupport: Plugin {
    /// What never changes about it.
    fn traits(&self) -> HeaderSupportTraits;

    /// A data segment is sent; `again` if its bytes were sent before.
    fn annotate_data(&mut self, _again: bool, _experiment: &mut ExperimentalOption) {}

    /// A segment with data arrived.
    fn on_data(&mut self, _rx: &RxFacts<'_>) {}

    /// A pure ACK of everything below `ack` is sent.
    fn annotate_ack(&mut self, _ack: Offset, _experiment: &mut ExperimentalOption) {}
}
