//! Who uses a socket, and what they wait for.

use reknit_units::Instant;

use crate::listeners::ListenerId;

/// Who uses a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A listener, until the handshake is complete.
    HalfOpen(ListenerId),
    /// A listener, until the application accepts it.
    Queued(ListenerId),
    /// The application.
    Application,
    /// Nobody: it was closed, and the rest is sent until this time.
    Nobody {
        /// When it is aborted.
        until: Instant,
    },
}

/// What the owner of a socket waits for, and what it has been told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interest {
    read: bool,
    write: bool,
    delivered: bool,
    knows_connected: bool,
    knows_closed: bool,
}

impl Interest {
    /// Of a new owner, who wants to be told of everything.
    pub(crate) fn new() -> Interest {
        Interest { read: true, write: false, delivered: false, knows_connected: false, knows_closed: false }
    }

    /// The owner has found nothing to read, and must be told when there is something.
    pub(crate) fn want_read(&mut self) {
        self.read = true;
    }

    /// Whether the owner has more to write than fits now, and must be told when there is room.
    pub(crate) fn want_write(&mut self, wants: bool) {
        self.write = wants;
    }

    pub(crate) fn wants_write(self) -> bool {
        self.write
    }

    pub(crate) fn wants_read(self) -> bool {
        self.read
    }

    /// The owner is told that it can read. True if it wanted to know.
    pub(crate) fn take_read(&mut self) -> bool {
        std::mem::take(&mut self.read)
    }

    /// The owner is told that it can write. True if it wanted to know.
    pub(crate) fn take_write(&mut self) -> bool {
        std::mem::take(&mut self.write)
    }

    /// The owner waits until everything that was written is acknowledged.
    pub(crate) fn want_delivered(&mut self) {
        self.delivered = true;
    }

    pub(crate) fn wants_delivered(self) -> bool {
        self.delivered
    }

    /// The owner is told that everything is acknowledged, or that it never will be. True if it wanted to know.
    pub(crate) fn take_delivered(&mut self) -> bool {
        std::mem::take(&mut self.delivered)
    }

    /// True once: when the connection is first seen established.
    pub(crate) fn take_connected(&mut self) -> bool {
        !std::mem::replace(&mut self.knows_connected, true)
    }

    /// True once: when the connection is first seen closed.
    pub(crate) fn take_closed(&mut self) -> bool {
        !std::mem::replace(&mut self.knows_closed, true)
    }
}
