//! Sockets that are no longer needed and are removed when the stack is at its limit. Added as a socket enters TIME-WAIT or
//! FIN-WAIT-2 without an owner; asked before a socket is opened. Owned by [`crate::sockets`].

use std::collections::VecDeque;

use crate::socket_id::SocketId;

/// Sockets in TIME-WAIT, or closed and in FIN-WAIT-2, those that have waited longest first. Some may have ended.
#[derive(Debug, Default)]
pub(crate) struct Evictable {
    sockets: VecDeque<SocketId>,
}

impl Evictable {
    /// `socket` is no longer needed. Names that are no longer `valid` are removed occasionally.
    pub(crate) fn add(&mut self, socket: SocketId, most: usize, valid: impl Fn(SocketId) -> bool) {
        if self.sockets.len() >= 2 * most.max(32) {
            self.sockets.retain(|socket| valid(*socket));
        }
        self.sockets.push_back(socket);
    }

    /// The valid one that has waited longest.
    pub(crate) fn first(&mut self, valid: impl Fn(SocketId) -> bool) -> Option<SocketId> {
        while let Some(first) = self.sockets.front().copied() {
            if valid(first) {
                return Some(first);
            }
            self.sockets.pop_front();
        }
        None
    }
}
