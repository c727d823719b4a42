//! The send buffer: how much of what the application has written is ready to be sent.

use reknit_units::Bytes;

use crate::facts::Context;
use crate::seams::Plugin;

/// What waits in the send buffer, after the sender has sent what it could.
#[derive(Clone, Copy, Debug)]
pub struct SendQueue {
    /// Bytes that were not sent yet.
    pub unsent: Bytes,
    /// How much the congestion window allowed before the last transmission.
    pub room: Bytes,
}

/// What the application writes into the buffer next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// At most this much.
    pub bytes: Bytes,
    /// Nothing waits before it: it is sent without waiting until more segments can leave together.
    pub alone: bool,
}

/// How much of what the application has written is ready to be sent. Without a plug-in, everything.
///
/// Only `linux-send-buffer` needs it: no RFC has such an algorithm, but the size of the buffer decides when a sender of Linux is
/// limited by its application.
pub trait SendBuffer: Plugin {
    /// An ACK was processed, or the application has written into an empty buffer. True if the application, which has
    /// more to write, can go on.
    fn wakes_writer(&mut self, cx: &Context<'_>, queue: &SendQueue) -> bool;

    /// What it writes next, while `unsent` bytes wait; `None` if it waits again. Asked until then.
    fn next_fill(&self, cx: &Context<'_>, unsent: Bytes) -> Option<Fill>;
}
