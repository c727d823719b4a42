//! The state of a connection, and why it ended.

use reknit_units::Instant;

use super::CloseReason;
use super::state::{Event, State};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Lifecycle {
    state: State,
    time_wait_expires: Instant,
    close_reason: Option<CloseReason>,
}

impl Lifecycle {
    pub(super) fn new(state: State) -> Lifecycle {
        Lifecycle { state, time_wait_expires: Instant::NEVER, close_reason: None }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn is_synchronised(&self) -> bool {
        self.state >= State::Established && self.state < State::Closed
    }

    pub(super) fn time_wait_expires(&self) -> Instant {
        self.time_wait_expires
    }

    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason
    }

    /// Changes the state. In a state for which the event is not listed nothing changes; debug builds panic.
    pub(super) fn transition(&mut self, event: Event) {
        let next = self.state.after(event);
        debug_assert!(next.is_some(), "{event:?} in {:?}", self.state);
        self.state = next.unwrap_or(self.state);
    }

    /// TIME-WAIT begins, or begins again.
    pub(super) fn wait_until(&mut self, expires: Instant) {
        self.time_wait_expires = expires;
    }

    /// Ends the connection. If it has ended before, the first reason stays.
    pub(super) fn finish(&mut self, reason: CloseReason) {
        if self.state != State::Closed {
            self.transition(Event::End);
        }
        self.close_reason = self.close_reason.or(Some(reason));
    }
}
