//! The receiver's side: when to acknowledge, and which fields to send beyond the standard options.

use reknit_units::{Bytes, Duration, Instant};

use crate::config::Config;
use crate::experiment::{Experiment, Features};
use crate::seams::Plugin;
use crate::seq::Offset;

/// How a data segment fits what the receiver has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is the next one and nothing is missing.
    InOrder,
    /// It leaves a gap below it.
    OutOfOrder,
    /// It fills a gap, wholly or in part.
    FillsGap,
    /// It brings nothing new.
    Duplicate,
}

/// What the receiver knows when a data segment has arrived.
#[derive(Clone, Copy, Debug)]
pub struct RxFacts<'a> {
    /// The moment.
    pub now: Instant,
    /// The connection's options.
    pub config: &'a Config,
    /// How the segment fits.
    pub arrival: Arrival,
    /// First byte of the segment.
    pub start: Offset,
    /// One past its last byte.
    pub end: Offset,
    /// Next byte expected, after this segment.
    pub rcv_nxt: Offset,
    /// One past the highest byte received.
    pub highest: Offset,
    /// True if something is still missing below `highest`.
    pub gaps: bool,
    /// How many of the blocks that SACK reports have changed more recently than the one that the segment is part of.
    pub newer_blocks: usize,
    /// The longest segment so far: the estimate of the peer's segment size (RFC 5681 §4.2).
    pub rmss: Bytes,
    /// True if it carries a FIN.
    pub fin: bool,
    /// How much more the peer may send.
    pub window: Bytes,
    /// The peer's timestamp on it (RFC 7323 §3).
    pub timestamp: Option<u32>,
    /// What the experimental option says.
    pub experiment: &'a Experiment,
    /// What routers on the way say they have dropped: where the lowest and the highest such segment begins.
    pub dropped: Option<(Offset, Offset)>,
    /// The round-trip time as a receiver knows it: from the handshake, later from echoed timestamps.
    pub rtt: Option<Duration>,
}

/// When to acknowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckAction {
    /// At once.
    Now,
    /// With the next segment that is sent anyway, or at this moment.
    By(Instant),
    /// The policy acknowledges it itself, when its own [`AckPolicy::deadline`] comes.
    Withhold,
}

/// An acknowledgment that a policy has timed itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimedAck {
    /// What it acknowledges: at most RCV.NXT, and not less than was acknowledged before.
    pub ack: Offset,
    /// True if it reports what has arrived above (SACK), as of the moment when it is sent.
    pub sack: bool,
}

/// What segments sent for other reasons may acknowledge: data segments, window updates, responses to probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disclosure {
    /// The most that they may acknowledge.
    pub ack: Offset,
    /// True if they may report what has arrived above.
    pub sack: bool,
}

impl Disclosure {
    /// Everything.
    pub const FULL: Disclosure = Disclosure { ack: Offset::MAX, sack: true };
}

/// The receiver's acknowledgment policy.
pub trait AckPolicy: Plugin {
    /// A segment with data or a FIN arrived.
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction;

    /// Everything that may be disclosed has been acknowledged.
    fn on_ack_sent(&mut self);

    /// When [`AckPolicy::on_timer`] wants to be called, [`Instant::NEVER`] if nothing is withheld.
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// The deadline has come: the acknowledgment to send now. Called again until there is none or the deadline lies in
    /// the future.
    fn on_timer(&mut self, _now: Instant) -> Option<TimedAck> {
        None
    }

    /// What segments sent for other reasons may acknowledge until then.
    fn disclosure(&self) -> Disclosure {
        Disclosure::FULL
    }
}

/// Fields beyond the standard options. In use only if the peer has offered the same features.
pub trait HeaderSupport: Plugin {
    /// What both ends must know.
    fn features(&self) -> Features;

    /// A data segment is sent, `again` if its bytes were sent before.
    fn annotate_data(&mut self, _again: bool, _experiment: &mut Experiment) {}

    /// A segment with data arrived.
    fn on_data(&mut self, _rx: &RxFacts<'_>) {}

    /// A pure ACK of everything below `ack` is sent.
    fn annotate_ack(&mut self, _ack: Offset, _experiment: &mut Experiment) {}

    /// How many ACKs report each duplicate (RFC 2883 §4: one).
    fn duplicate_reports(&self) -> u32 {
        1
    }
}
