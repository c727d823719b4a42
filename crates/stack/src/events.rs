//! Events for the application, in the order in which they happened. Queued as packets and timers are processed and as
//! `Stack::settle` runs; taken by [`crate::Stack::next_event`]. Owned by [`crate::Stack`].

use std::collections::VecDeque;

use crate::listeners::ListenerId;
use crate::socket_id::SocketId;
use crate::udp::UdpId;

/// What has happened to a socket or a listener.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// A connection waits to be accepted. Signalled again only after [`crate::Stack::accept`] has found none.
    Acceptable(ListenerId),
    /// A peer asks for a connection that the program may take. Signalled again only after [`crate::Stack::next_request`] has
    /// found none.
    Requested,
    /// The connection that [`crate::Stack::connect`] opened is established. Data may be written.
    Connected(SocketId),
    /// There is something to read: data, the end of the stream, or an error. Signalled again only after
    /// [`crate::Stack::read`] has found nothing.
    Readable(SocketId),
    /// The send buffer has space. Signalled only after [`crate::Stack::write`] has not taken everything.
    Writable(SocketId),
    /// The peer has acknowledged everything. Signalled only after [`crate::Stack::delivered`] would have blocked.
    Delivered(SocketId),
    /// The connection has ended, normally or not. It can still be read, and must be closed.
    Closed(SocketId),
    /// There is a datagram to receive. Signalled again only after [`crate::Stack::receive_udp`] has found none.
    UdpReadable(UdpId),
    /// The send buffer has space for datagrams. Signalled only after [`crate::Stack::send_udp`] would have blocked.
    UdpWritable(UdpId),
}

/// Events that the application has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: VecDeque<Event>,
}

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        self.queue.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.queue.pop_front()
    }
}
