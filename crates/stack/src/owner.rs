//! Who uses a socket, and which events its owner waits for. Changed by the owner's calls (`socket/calls.rs`); checked when
//! the socket notifies its owner (`Socket::notify`), which is the last step of `Stack::settle`.
//! A part of each socket.

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
    /// Nobody: it was closed, and the remaining data is sent until this time.
    Nobody {
        /// When it is aborted.
        until: Instant,
    },
}

/// The events that the owner of a socket waits for, and those that it has been notified of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interest {
    read: bool,
    write: bool,
    delivered: bool,
    knows_connected: bool,
    knows_closed: bool,
}

impl Interest {
    /// The interest of a new owner: everything but space to write.
    pub(crate) fn new() -> Interest {
        Interest { read: true, write: false, delivered: false, knows_connected: false, knows_closed: false }
    }

    /// The owner has found nothing to read, and must be notified when there is something.
    pub(crate) fn want_read(&mut self) {
        self.read = true;
    }

    /// Whether the owner has more to write than fits now, and must be notified when there is space.
    pub(crate) fn want_write(&mut self, wants: bool) {
        self.write = wants;
    }

    pub(crate) fn wants_write(self) -> bool {
        self.write
    }

    pub(crate) fn wants_read(self) -> bool {
        self.read
    }

    /// The owner is notified that it can read. True if it wanted to know.
    pub(crate) fn take_read(&mut self) -> bool {
        std::mem::take(&mut self.read)
    }

    /// The owner is notified that it can write. True if it wanted to know.
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

    /// The owner is notified that everything is acknowledged, or that it never will be. True if it wanted to know.
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
