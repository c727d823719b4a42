//! The secrets of a host and what is derived from them: initial sequence numbers, cookies, hashes of flows. Used as a connection
//! starts and as a cookie is made or checked. Owned by [`crate::Stack`].

use reknit_tcp::segment::Segment;
use reknit_tcp::{Identity, IsnKey, SeqNum};
use reknit_units::Instant;

use crate::cookie;
use crate::flow::{FourTuple, Secret};

/// The secrets of a stack.
#[derive(Debug)]
pub(crate) struct Secrets {
    hash: Secret,
    isn: IsnKey,
}

impl Secrets {
    /// From random bytes.
    pub(crate) fn new(random: [u8; 32]) -> Secrets {
        let (mut isn, mut hash) = ([0; 16], [0; 16]);
        isn.copy_from_slice(&random[..16]);
        hash.copy_from_slice(&random[16..]);
        Secrets { hash: Secret::new(hash), isn: IsnKey::new(isn) }
    }

    /// The key for hashes of flows.
    pub(crate) fn hash(&self) -> Secret {
        self.hash
    }

    /// The sequence numbers and timestamps of a new connection.
    pub(crate) fn identity(&self, now: Instant, flow: &FourTuple) -> Identity {
        Identity {
            isn: self.isn.isn(now, flow.local, flow.remote),
            timestamp_offset: self.isn.timestamp_offset(flow.local, flow.remote),
        }
    }

    /// Bits that no other host can guess, for the connection's own use.
    pub(crate) fn of_connection(&self, flow: &FourTuple) -> u64 {
        self.isn.secret(flow.local, flow.remote)
    }

    /// As [`cookie::make`].
    pub(crate) fn make_cookie(&self, now: Instant, flow: &FourTuple, syn: &Segment, sack: bool) -> SeqNum {
        cookie::make(&self.hash, now, flow, syn, sack)
    }

    /// As [`cookie::check`].
    pub(crate) fn check_cookie(&self, now: Instant, flow: &FourTuple, ack: &Segment) -> Option<Segment> {
        cookie::check(&self.hash, now, flow, ack)
    }
}
