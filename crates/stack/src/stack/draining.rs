//! Whether everything that applications have written has been acknowledged, and the shutdown of a host. Called by applications.

use reknit_tcp::State;
use reknit_units::Instant;

use super::Stack;
use crate::error::Error;
use crate::socket::Socket;
use crate::socket_id::SocketId;
use crate::undelivered::Undelivered;

impl Stack {
    /// Ok if the peer has acknowledged everything that was written, and the end of the stream if the direction was shut down.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if it has not yet: [`crate::Event::Delivered`] follows. If the connection has failed before, why.
    pub fn delivered(&mut self, id: SocketId) -> Result<(), Error> {
        self.sockets.get_mut(id)?.delivered()
    }

    /// What is not acknowledged, of all sockets. Visits all of them.
    pub fn undelivered(&self) -> Undelivered {
        let mut total = Undelivered::default();
        self.sockets.iter().filter_map(Socket::undelivered).for_each(|bytes| total.add(bytes));
        total
    }

    /// True if undelivered data can still be delivered. Visits all sockets.
    pub fn is_delivering(&self) -> bool {
        self.sockets.iter().any(|socket| socket.undelivered().is_some() && socket.state() != State::Closed)
    }

    /// Orderly shutdown: closes the listeners, which resets connections that were not accepted; every other connection sends the
    /// remaining data and then its FIN.
    pub fn finish_all(&mut self, now: Instant) {
        for listener in self.listeners.ids() {
            self.unlisten(now, listener);
        }
        for index in self.sockets.live_indices() {
            if let Some(socket) = self.sockets.live(index) {
                socket.shut_write();
            }
            self.sockets.wake(index);
        }
    }

    /// Resets every connection whose data is not delivered.
    pub fn abort_undelivered(&mut self, now: Instant) {
        for index in self.sockets.live_indices() {
            if let Some(socket) = self.sockets.live(index)
                && socket.undelivered().is_some()
                && socket.abort(now)
            {
                self.sockets.wake(index);
            }
        }
    }
}
