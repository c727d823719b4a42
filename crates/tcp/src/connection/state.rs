//! The states of a connection (RFC 9293 §3.3.2), and the events that lead from one to another. An event in a state
//! that the table does not list is a bug; debug builds panic.
//!
//! ```text
//! stateDiagram-v2
//!     [*] --> Listen
//!     [*] --> SynSent
//!     Listen --> SynReceived: SynArrives
//!     SynSent --> SynReceived: SynArrives
//!     SynSent --> Established: SynAcked
//!     SynReceived --> Established: SynAcked
//!     SynReceived --> Listen: ListenAgain
//!     Established --> FinWait1: Close
//!     CloseWait --> LastAck: Close
//!     FinWait1 --> FinWait2: FinAcked
//!     Closing --> TimeWait: FinAcked
//!     Established --> CloseWait: FinArrives
//!     FinWait1 --> Closing: FinArrives
//!     FinWait2 --> TimeWait: FinArrives
//!     LastAck --> Closed: FinAcked
//!     TimeWait --> Closed: End
//!     Listen --> Closed: End
//!     SynSent --> Closed: End
//!     SynReceived --> Closed: End
//!     Established --> Closed: End
//!     FinWait1 --> Closed: End
//!     FinWait2 --> Closed: End
//!     CloseWait --> Closed: End
//!     Closing --> Closed: End
//!     LastAck --> Closed: End
//! ```

/// The states of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data can be transferred in both directions.
    Established,
    /// We have closed; our FIN is not yet acknowledged.
    FinWait1,
    /// We have closed; the peer has not.
    FinWait2,
    /// The peer has closed; we have not.
    CloseWait,
    /// Both have closed at the same time; our FIN is not yet acknowledged.
    Closing,
    /// The peer closed first; our FIN is not yet acknowledged.
    LastAck,
    /// Both have closed; old segments may still arrive.
    TimeWait,
    /// The connection is closed.
    Closed,
}

/// What leads from one state to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The peer's SYN arrived, and ours is not acknowledged.
    SynArrives,
    /// Our SYN is acknowledged, and the peer's has arrived.
    SynAcked,
    /// The passive open was refused or took too long: it waits for another SYN.
    ListenAgain,
    /// The application closes, or has closed before the handshake was complete.
    Close,
    /// Our FIN is acknowledged.
    FinAcked,
    /// Everything up to the peer's FIN has arrived.
    FinArrives,
    /// The connection is over, or was refused, reset, aborted or timed out.
    End,
}

/// From each of these states, the event leads to that one.
const TRANSITIONS: [(Event, &[State], State); 12] = {
    use State::{
        CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen, SynReceived, SynSent, TimeWait,
    };
    [
        (Event::SynArrives, &[Listen, SynSent], SynReceived),
        (Event::SynAcked, &[SynSent, SynReceived], Established),
        (Event::ListenAgain, &[SynReceived], Listen),
        (Event::Close, &[Established], FinWait1),
        (Event::Close, &[CloseWait], LastAck),
        (Event::FinAcked, &[FinWait1], FinWait2),
        (Event::FinAcked, &[Closing], TimeWait),
        (Event::FinArrives, &[Established], CloseWait),
        (Event::FinArrives, &[FinWait1], Closing),
        (Event::FinArrives, &[FinWait2], TimeWait),
        (Event::FinAcked, &[LastAck], Closed),
        (
            Event::End,
            &[TimeWait, Listen, SynSent, SynReceived, Established, FinWait1, FinWait2, CloseWait, Closing, LastAck],
            Closed,
        ),
    ]
};

impl State {
    /// The state after the event; none if the event is not possible in this state.
    pub(super) fn after(self, event: Event) -> Option<State> {
        let listed = TRANSITIONS.iter().find(|(listed, from, _)| *listed == event && from.contains(&self));
        listed.map(|(_, _, to)| *to)
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
        diagram::check(&[State::Listen, State::SynSent], rows, &[include_str!("state.rs"), diagram::ARCHITECTURE]);
    }

    #[test]
    fn an_event_leads_from_a_state_to_at_most_one() {
        for (i, (event, origins, _)) in TRANSITIONS.iter().enumerate() {
            let others = TRANSITIONS[i + 1..].iter().filter(|(other, ..)| other == event);
            for (_, other_origins, _) in others {
                assert!(origins.iter().all(|origin| !other_origins.contains(origin)), "{event:?}");
            }
        }
    }

    #[test]
    fn an_event_in_another_state_leads_nowhere() {
        assert_eq!(State::Established.after(Event::FinAcked), None);
        assert_eq!(State::Closed.after(Event::SynArrives), None);
    }
}
