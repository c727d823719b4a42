//! Sockets that nobody uses any more, which give way when the stack may have no more.

use std::collections::VecDeque;

use crate::socket_id::SocketId;

/// Sockets that wait for the end of TIME-WAIT, or in FIN-WAIT-2 for a FIN that nobody wants, those that have waited longest
/// first. Some may have ended.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    sockets: VecDeque<SocketId>,
}

impl Spare {
    /// Nobody uses `socket` any more. Names that are not `valid` any more are forgotten now and then.
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
