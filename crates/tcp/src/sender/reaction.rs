//! Where the sender stands in its reaction to loss, with what is true only there.
//!
//! ```text
//!            duplicate              verdict, postponements agree
//!   Open <------------> Disorder -------------------------------> Recovery
//!    ^     advance                                                   |
//!    |                                            everything outstanding at its start is ACKed
//!    +---------------------------------------------------------------+
//!    |                                                               |
//!    +-------------------------- Loss <---- timer, from any phase ---+
//! ```

use reknit_units::{Bytes, Segments};

use super::Sender;
use crate::facts::Phase;
use crate::scoreboard::SegId;
use crate::seq::Offset;

/// [`Phase`] as the sender keeps it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Reaction {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Duplicate ACKs arrive.
    Disorder(Disorder),
    /// Fast recovery.
    Recovery(Recovery),
    /// After a timeout.
    Loss(Loss),
}

/// What limited transmit allows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disorder {
    /// How large FlightSize may become; below cwnd it changes nothing.
    pub(super) flight_limit: Bytes,
}

/// How far fast recovery has come with what it sends on suspicion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    /// `HighRxt` of RFC 6675: segments retransmitted in this recovery lie at or below this one.
    pub(super) high_rxt: Option<SegId>,
    /// `RescueRxt` of RFC 6675.
    pub(super) rescue_rxt: Option<Offset>,
}

/// The answer to a timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    /// While it is open whether anything was lost: so many new segments may be sent, and nothing else.
    pub(super) probing: Option<Segments>,
}

impl Reaction {
    fn phase(self) -> Phase {
        match self {
            Reaction::Open => Phase::Open,
            Reaction::Disorder(_) => Phase::Disorder,
            Reaction::Recovery(_) => Phase::Recovery,
            Reaction::Loss(_) => Phase::Loss,
        }
    }
}

impl Sender {
    /// Moves to another state of the reaction. Plug-ins see the phase.
    pub(super) fn enter(&mut self, reaction: Reaction) {
        self.reaction = reaction;
        self.state.phase = reaction.phase();
    }

    /// Back to [`Reaction::Open`] from wherever the sender is.
    pub(super) fn leave_episode(&mut self) {
        self.enter(Reaction::Open);
        self.forced = false;
    }

    /// In fast recovery or after a timeout.
    pub(super) fn in_episode(&self) -> bool {
        matches!(self.reaction, Reaction::Recovery(_) | Reaction::Loss(_))
    }

    /// True while it is open whether the last timeout was spurious.
    pub(super) fn is_probing_timeout(&self) -> bool {
        matches!(self.reaction, Reaction::Loss(Loss { probing: Some(_) }))
    }
}
