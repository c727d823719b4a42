//! What the state of a socket means for its owner. `Stack::poll` calls `settle` for each socket of the send queue once it has
//! sent all it can, which is after every segment, timer and call that has woken it.

use reknit_tcp::State;
use reknit_units::Instant;

use super::Stack;
use crate::events::Event;
use crate::owner::Owner;

impl Stack {
    /// A socket has sent all it can for now: notifies its owner, and sets its timer.
    pub(super) fn settle(&mut self, now: Instant, index: u32) {
        let Some(socket) = self.sockets.live(index) else { return };
        if socket.replace_plugins(now) {
            return self.sockets.wake(index); // new data was held back
        }
        socket.note_limit(now);
        match socket.state() {
            // A half-open connection was refused or not completed in time.
            State::Listen if matches!(socket.owner(), Owner::HalfOpen(_)) => return self.remove_half_open(index),
            State::Listen => {
                socket.abort(now);
                return self.on_closed(index);
            }
            State::SynSent | State::SynReceived => {}
            State::Closed => return self.on_closed(index),
            State::FinWait2 | State::TimeWait if matches!(socket.owner(), Owner::Nobody { .. }) => {
                return self.sockets.keep_waiting(index);
            }
            _ if socket.becomes_connected() => self.on_established(now, index),
            _ => {}
        }
        self.sockets.rest(now, index, &mut self.events, &mut self.counters);
    }

    /// The handshake is complete.
    fn on_established(&mut self, now: Instant, index: u32) {
        let id = self.sockets.id(index);
        let Some(socket) = self.sockets.live(index) else { return };
        match socket.owner() {
            Owner::HalfOpen(owner) => {
                if let Some(listener) = self.listeners.get_mut(owner) {
                    socket.enqueue(owner);
                    if listener.on_established(id) {
                        self.events.push(Event::Acceptable(owner));
                    }
                } else {
                    self.sockets.disown(now, index);
                }
            }
            Owner::Application => self.events.push(Event::Connected(id)),
            Owner::Queued(_) | Owner::Nobody { .. } => {}
        }
    }

    /// The connection has ended. Its application, if it has one, can still read what has arrived, and the reason.
    pub(super) fn on_closed(&mut self, index: u32) {
        let id = self.sockets.id(index);
        let Some(socket) = self.sockets.live(index) else { return };
        match socket.owner() {
            Owner::HalfOpen(_) => return self.remove_half_open(index),
            Owner::Nobody { .. } => {
                if let Some(bytes) = socket.undelivered() {
                    self.counters.undelivered.add(bytes);
                }
                return self.sockets.remove(index);
            }
            Owner::Application | Owner::Queued(_) => {}
        }
        socket.notify_closed(id, &mut self.events);
        self.sockets.forget_flow(index);
    }

    fn remove_half_open(&mut self, index: u32) {
        if let Some(socket) = self.sockets.live(index)
            && let Owner::HalfOpen(listener) = socket.owner()
            && let Some(listener) = self.listeners.get_mut(listener)
        {
            listener.remove_half_open();
        }
        self.sockets.remove(index);
    }
}
