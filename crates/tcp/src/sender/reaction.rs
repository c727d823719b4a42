//! The phases of the sender's loss recovery, each with the state that exists only in that phase.
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

/// [`Phase`] with the sender's own state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Reaction {
    /// No sign of loss.
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
    /// The largest value that FlightSize may reach; a value below cwnd has no effect.
    pub(super) flight_limit: Bytes,
}

/// The progress of fast recovery's speculative retransmissions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    /// `HighRxt` of RFC 6675: the highest segment retransmitted in this recovery.
    pub(super) high_rxt: Option<SegId>,
    /// `RescueRxt` of RFC 6675.
    pub(super) rescue_rxt: Option<Offset>,
}

/// The state after a timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    /// While it is undecided whether anything was lost: the number of new segments that may be sent, and nothing else.
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
    /// Changes to another phase. Plug-ins see the phase.
    pub(super) fn enter(&mut self, reaction: Reaction) {
        self.reaction = reaction;
        self.state.phase = reaction.phase();
    }

    /// Returns to [`Reaction::Open`] from any phase.
    pub(super) fn leave_episode(&mut self) {
        self.enter(Reaction::Open);
        self.forced = false;
    }

    /// True in fast recovery or after a timeout.
    pub(super) fn in_episode(&self) -> bool {
        matches!(self.reaction, Reaction::Recovery(_) | Reaction::Loss(_))
    }

    /// True while it is undecided whether the last timeout was spurious.
    pub(super) fn is_probing_timeout(&self) -> bool {
        matches!(self.reaction, Reaction::Loss(Loss { probing: Some(_) }))
    }
}
