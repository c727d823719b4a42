//! # SACK-based loss recovery that counts its pipe
//!
//! Fall, Floyd: Simulation-based Comparisons of Tahoe, Reno, and SACK TCP. Computer Communication Review 26(3), 1996;
//! ns-2's `Agent/TCP/Sack1`. The recovery that SACK senders had before RFC 3517 computed the pipe from the scoreboard.
//!
//! **What it changes.** `sack` with another estimate of how much is in the network during fast recovery: what was
//! outstanding at its start, changed by one segment for each transmission and for each duplicate ACK. Lost segments are
//! never subtracted, so after many losses the sender waits for ACKs that cannot arrive, until the retransmission timer
//! expires.
//!
//! **State.** The pipe.
//!
//! **Rules.**
//! - 1: recovery begins with FlightSize, less a segment for each duplicate ACK so far.
//! - 2: what is sent is added.
//! - 3: a duplicate ACK that SACKs something new subtracts a segment.
//! - 4: a partial ACK subtracts two: the retransmission and its original both left the network.
//! - 5: the sender sends while the pipe is less than cwnd by a segment or more.
//!
//! **Departures.** Which segments are lost is decided as in `sack`; ns-2 retransmits every hole (`retransmit =
//! "any-hole"`).
//!
//! **Status.** Faithful.

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seams::{FastRecovery, FastRecoveryTraits, Plugin};
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::requirement::{NEEDS_SACK, Requirement};

/// Parameters: none.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountedPipeConfig {}

impl Algorithm<dyn FastRecovery> for CountedPipeConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn FastRecovery> {
        Box::new(CountedPipe { pipe: Bytes::ZERO })
    }
}

#[derive(Clone, Debug)]
struct CountedPipe {
    pipe: Bytes,
}

impl Plugin for CountedPipe {}

impl FastRecovery for CountedPipe {
    fn traits(&self) -> FastRecoveryTraits {
        FastRecoveryTraits { may_stall: true, ..FastRecoveryTraits::default() }
    }

    /// Rule 1.
    fn enter(&mut self, cx: &Context<'_>, _ack: Option<&AckFacts<'_>>) -> Bytes {
        self.pipe = cx.snd.flight_size() - cx.snd.dup_acks.of(cx.snd.smss);
        cx.snd.cwnd
    }

    /// Rules 3 and 4.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        if ack.advances() {
            self.pipe -= cx.snd.smss * 2;
        } else if ack.duplicate {
            self.pipe -= cx.snd.smss;
        }
        cx.snd.cwnd
    }

    /// Rule 2.
    fn on_sent(&mut self, bytes: Bytes) {
        self.pipe += bytes;
    }

    /// Rule 5.
    fn allowance(&self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd - self.pipe
    }

    fn exit(&mut self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd.min(cx.snd.recovery_window)
    }
}
