//! The stages of loss recovery, each with the state that exists only in that stage, and the events that lead from one
//! to another. An event in a stage that the table does not list is a bug; debug builds panic. Events come from
//! [`super::detect`] (step 8), [`super::undo`] (step 7) and [`super::timeout`] (step 4 and timers). Owned by [`super::Sender`].
//!
//! ```text
//! stateDiagram-v2
//!     [*] --> Open
//!     Open --> Disorder: DuplicateAck
//!     Disorder --> Open: NothingMissing
//!     Open --> Recovery: LossDetected
//!     Disorder --> Recovery: LossDetected
//!     Recovery --> Recovery: LossDetected
//!     Undecided --> Recovery: LossDetected
//!     Loss --> Recovery: LossDetected
//!     Recovery --> Open: RecoveryOver
//!     Loss --> Open: RecoveryOver
//!     Open --> Loss: Timeout
//!     Disorder --> Loss: Timeout
//!     Recovery --> Loss: Timeout
//!     Undecided --> Loss: Timeout
//!     Loss --> Loss: Timeout
//!     Open --> Undecided: TestedTimeout
//!     Disorder --> Undecided: TestedTimeout
//!     Recovery --> Undecided: TestedTimeout
//!     Undecided --> Undecided: TestedTimeout
//!     Loss --> Undecided: TestedTimeout
//!     Undecided --> Loss: TimeoutDecided
//!     Recovery --> Open: SpuriousReduction
//!     Undecided --> Open: SpuriousReduction
//!     Loss --> Open: SpuriousReduction
//! ```

use reknit_units::{Bytes, Instant, Segments};

use super::state::SendVariables;
use crate::facts::Phase;
use crate::scoreboard::SegId;
use crate::seq::Offset;

/// A [`Phase`], with the time after a timeout divided in two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// No sign of loss.
    Open,
    /// Duplicate ACKs arrive.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// After a timeout that may be spurious.
    Undecided,
    /// After a timeout.
    Loss,
}

/// What leads from one stage to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A duplicate ACK arrived, or something is SACKed.
    DuplicateAck,
    /// SND.UNA advanced, and nothing is SACKed.
    NothingMissing,
    /// The loss detector has found a loss, and the postponements agree.
    LossDetected,
    /// What was outstanding at the beginning is acknowledged, or the plug-in ends recovery.
    RecoveryOver,
    /// The retransmission timer expired: the outstanding data counts as lost.
    Timeout,
    /// The retransmission timer expired: it is first tested whether the timeout was spurious.
    TestedTimeout,
    /// It is decided whether the timeout was spurious.
    TimeoutDecided,
    /// The reduction was spurious.
    SpuriousReduction,
}

/// From each of these stages, the event leads to that one.
const TRANSITIONS: [(Event, &[Stage], Stage); 8] = {
    use Stage::{Disorder, Loss, Open, Recovery, Undecided};
    [
        (Event::DuplicateAck, &[Open], Disorder),
        (Event::NothingMissing, &[Disorder], Open),
        (Event::LossDetected, &[Open, Disorder, Recovery, Undecided, Loss], Recovery),
        (Event::RecoveryOver, &[Recovery, Loss], Open),
        (Event::Timeout, &[Open, Disorder, Recovery, Undecided, Loss], Loss),
        (Event::TestedTimeout, &[Open, Disorder, Recovery, Undecided, Loss], Undecided),
        (Event::TimeoutDecided, &[Undecided], Loss),
        (Event::SpuriousReduction, &[Recovery, Undecided, Loss], Open),
    ]
};

/// A [`Stage`] with its state.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Reaction {
    Open,
    /// The largest value that FlightSize may reach; a value below cwnd has no effect.
    Disorder {
        flight_limit: Bytes,
    },
    /// `HighRxt` of RFC 6675, the highest segment retransmitted in this recovery, and `RescueRxt`.
    Recovery {
        high_rxt: Option<SegId>,
        rescue_rxt: Option<Offset>,
    },
    /// The number of new segments that may be sent; nothing else may.
    Undecided {
        granted: Segments,
    },
    Loss,
}

impl Reaction {
    fn stage(self) -> Stage {
        match self {
            Reaction::Open => Stage::Open,
            Reaction::Disorder { .. } => Stage::Disorder,
            Reaction::Recovery { .. } => Stage::Recovery,
            Reaction::Undecided { .. } => Stage::Undecided,
            Reaction::Loss => Stage::Loss,
        }
    }

    fn phase(self) -> Phase {
        match self {
            Reaction::Open => Phase::Open,
            Reaction::Disorder { .. } => Phase::Disorder,
            Reaction::Recovery { .. } => Phase::Recovery,
            Reaction::Undecided { .. } | Reaction::Loss => Phase::Loss,
        }
    }
}

/// The stage of loss recovery, and a fast retransmit that is postponed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct LossRecovery {
    reaction: Reaction,
    /// The hole whose fast retransmit is postponed, and until when. It may also come during an episode, as a separate
    /// congestion event.
    postponed: Option<(SegId, Instant)>,
}

/// Events.
impl LossRecovery {
    pub(super) fn new() -> LossRecovery {
        LossRecovery { reaction: Reaction::Open, postponed: None }
    }

    pub(super) fn begin_disorder(&mut self, state: &mut SendVariables) {
        state.note_flight_before_disorder();
        self.enter(Event::DuplicateAck, Reaction::Disorder { flight_limit: Bytes::ZERO }, state);
    }

    /// Fast recovery begins.
    pub(super) fn on_loss(&mut self, state: &mut SendVariables) {
        self.enter(Event::LossDetected, Reaction::Recovery { high_rxt: None, rescue_rxt: None }, state);
        state.recover_until_nxt();
        state.recover_to_cwnd();
    }

    /// The retransmission timer expired. What was postponed is no longer needed.
    pub(super) fn on_timeout(&mut self, is_tested: bool, state: &mut SendVariables) {
        if is_tested {
            self.enter(Event::TestedTimeout, Reaction::Undecided { granted: Segments::ZERO }, state);
        } else {
            self.enter(Event::Timeout, Reaction::Loss, state);
        }
        self.postponed = None;
    }

    /// It is decided whether the timeout was spurious.
    pub(super) fn on_timeout_decided(&mut self, state: &mut SendVariables) {
        self.enter(Event::TimeoutDecided, Reaction::Loss, state);
    }

    /// An episode or disorder is over.
    pub(super) fn open(&mut self, event: Event, state: &mut SendVariables) {
        self.enter(event, Reaction::Open, state);
    }

    fn enter(&mut self, event: Event, reaction: Reaction, state: &mut SendVariables) {
        let (from, to) = (self.reaction.stage(), reaction.stage());
        debug_assert!(is_listed(event, from, to), "{event:?} leads from {from:?} to {to:?}");
        self.reaction = reaction;
        state.set_phase(reaction.phase());
    }
}

fn is_listed(event: Event, from: Stage, to: Stage) -> bool {
    TRANSITIONS.iter().any(|(listed, origins, target)| *listed == event && origins.contains(&from) && *target == to)
}

/// The stage and its state.
impl LossRecovery {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.reaction, Reaction::Open)
    }

    pub(super) fn is_disorder(&self) -> bool {
        matches!(self.reaction, Reaction::Disorder { .. })
    }

    /// True in fast recovery or after a timeout.
    pub(super) fn in_episode(&self) -> bool {
        matches!(self.reaction, Reaction::Recovery { .. } | Reaction::Undecided { .. } | Reaction::Loss)
    }

    /// True while it is undecided whether the last timeout was spurious.
    pub(super) fn is_undecided(&self) -> bool {
        matches!(self.reaction, Reaction::Undecided { .. })
    }

    /// True after a timeout, unless it is undecided whether it was spurious.
    pub(super) fn is_loss(&self) -> bool {
        matches!(self.reaction, Reaction::Loss)
    }

    /// How far FlightSize may exceed cwnd: the limit of limited transmit.
    pub(super) fn flight_limit(&self) -> Bytes {
        if let Reaction::Disorder { flight_limit } = self.reaction { flight_limit } else { Bytes::ZERO }
    }

    /// Limited transmit allows FlightSize to reach this during disorder.
    pub(super) fn set_flight_limit(&mut self, limit: Bytes) {
        if let Reaction::Disorder { flight_limit } = &mut self.reaction {
            *flight_limit = limit;
        }
    }

    /// The number of new segments that may still be sent while a timeout is undecided; none at other times.
    pub(super) fn granted(&self) -> Option<Segments> {
        if let Reaction::Undecided { granted } = self.reaction { Some(granted) } else { None }
    }

    /// `segments` may be sent while the timeout is undecided.
    pub(super) fn grant(&mut self, segments: Segments) {
        if let Reaction::Undecided { granted } = &mut self.reaction {
            *granted = segments;
        }
    }

    /// `HighRxt` and `RescueRxt` in fast recovery.
    pub(super) fn retransmitted(&self) -> Option<(Option<SegId>, Option<Offset>)> {
        if let Reaction::Recovery { high_rxt, rescue_rxt } = self.reaction {
            Some((high_rxt, rescue_rxt))
        } else {
            None
        }
    }

    /// `id`, which ends at `end`, was retransmitted.
    pub(super) fn note_retransmission(&mut self, id: SegId, end: Offset) {
        if let Reaction::Recovery { high_rxt, rescue_rxt } = &mut self.reaction {
            *high_rxt = (*high_rxt).max(Some(id));
            *rescue_rxt = rescue_rxt.or(Some(end));
        }
    }

    /// RFC 6675 §4, `NextSeg` rule 4: one rescue until `recover` is acknowledged. It does not change `HighRxt`, which was
    /// `high_rxt` before.
    pub(super) fn note_rescue(&mut self, high_rxt: Option<SegId>, recover: Offset) {
        if self.retransmitted().is_some() {
            self.reaction = Reaction::Recovery { high_rxt, rescue_rxt: Some(recover) };
        }
    }
}

/// The postponement.
impl LossRecovery {
    /// Until when a fast retransmit is postponed.
    pub(super) fn postponed_until(&self) -> Option<Instant> {
        self.postponed.map(|(_, until)| until)
    }

    pub(super) fn postpone(&mut self, hole: SegId, until: Instant) {
        self.postponed = Some((hole, until));
    }

    pub(super) fn end_postponement(&mut self) {
        self.postponed = None;
    }

    /// `first` is the first segment that is outstanding: holes below it are filled.
    pub(super) fn forget_filled_hole(&mut self, first: SegId) {
        if self.postponed.is_some_and(|(hole, _)| hole < first) {
            self.postponed = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagram;

    #[test]
    fn the_diagram_shows_every_transition() {
        let rows =
            TRANSITIONS.iter().flat_map(|(event, origins, to)| origins.iter().map(move |from| (from, event, to)));
        diagram::check(&[Stage::Open], rows, &[include_str!("recovery.rs"), diagram::ARCHITECTURE]);
    }

    #[test]
    #[should_panic(expected = "NothingMissing leads from Open to Open")]
    fn an_event_in_another_stage_is_refused() {
        let mut state = SendVariables::new(&crate::Config::default(), super::super::state::WindowControl::LossBased);
        LossRecovery::new().open(Event::NothingMissing, &mut state);
    }
}
