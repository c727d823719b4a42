//! Sockets that may have to make way for others, those that have waited longest for their peers first. Owned by
//! [`crate::sockets`].

use std::collections::VecDeque;

use reknit_units::{Duration, Instant};

use crate::socket_id::SocketId;

/// The most sockets that are visited in search of one.
const MOST_VISITS: u32 = 16;

/// Sockets, in the order of the time since which they wait as far as is known: they may have gone on, or ended, since.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    sockets: VecDeque<(SocketId, Instant)>,
}

impl Waiters {
    /// Adds a socket. Those that are no longer `valid` are removed occasionally, so that there are not many more than `most`.
    pub(crate) fn add(&mut self, socket: SocketId, now: Instant, most: usize, valid: impl Fn(SocketId) -> bool) {
        if self.sockets.len() >= 2 * most.max(32) {
            self.sockets.retain(|(socket, _)| valid(*socket));
        }
        self.sockets.push_back((socket, now));
    }

    pub(crate) fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Removes the socket that has waited longest, if that is at least `patience`. `waits_since` tells since when a socket waits;
    /// those that do not wait are removed too.
    pub(crate) fn longest(
        &mut self,
        now: Instant,
        patience: Duration,
        mut waits_since: impl FnMut(SocketId) -> Option<Instant>,
    ) -> Option<SocketId> {
        for _ in 0..MOST_VISITS {
            let (socket, known) = self.sockets.pop_front()?;
            let Some(since) = waits_since(socket) else { continue };
            if since > known {
                self.sockets.push_back((socket, since)); // it has gone on
            } else if known + patience <= now {
                return Some(socket);
            } else {
                self.sockets.push_front((socket, known));
                return None;
            }
        }
        None
    }
}
