//! Loads the state of several connections into the cache before their segments are processed.
//!
//! With many connections, the state of most of them is in no cache. If segments are processed one by one, the processor waits
//! for memory several times for each: for the bucket of the flow, the entry of the socket, the socket, its algorithms, and its
//! timer. If the state of many connections is read in one loop, it waits for all of them at the same time.
//!
//! `black_box` gets references. A value would be copied on the stack, and a copy in other units than it was stored in waits
//! until the line has come from memory, which keeps the processor from asking for the next ones.

use std::hint::black_box;

use reknit_wire::Decoded;

use crate::flow::Flow;
use crate::stack::Stack;

/// The most connections that are read at once. Their state fits the cache of one core.
pub(crate) const AHEAD: usize = 32;
/// The state of fewer sockets than this fits a cache, and is not read ahead.
const FEW: usize = 1024;

impl Stack {
    /// Loads the state of the connections of `segments`, of which the first 32 count, into the cache. Changes nothing else.
    ///
    /// With thousands of connections, a batch of segments is processed faster if it is passed to this method before
    /// [`Stack::on_segment`] is called for each of them.
    pub fn read_ahead<'a>(&self, segments: impl IntoIterator<Item = &'a Decoded<'a>>) {
        if self.table.len() < FEW {
            return;
        }
        let mut segments = segments.into_iter();
        let (Some(first), Some(second)) = (segments.next(), segments.next()) else {
            return; // Waiting for one connection at a time is not faster.
        };
        let mut hashes = [0; AHEAD];
        let flows = [first, second].into_iter().chain(segments).map(|segment| Flow::of_arrival(segment.endpoints));
        let count = hashes.iter_mut().zip(flows).map(|(hash, flow)| *hash = self.table.hash(&flow)).count();
        let mut sockets = [0; AHEAD];
        let found = hashes[..count].iter().filter_map(|hash| self.table.guess(*hash));
        let count = sockets.iter_mut().zip(found).map(|(socket, index)| *socket = index).count();
        self.read_sockets(&sockets[..count]);
    }

    /// Loads the state of the sockets that send next, each time that those it has loaded have had their turn.
    pub(crate) fn read_senders(&mut self) {
        if self.read_ahead > 0 {
            return;
        }
        let was_written = std::mem::take(&mut self.was_written);
        let mut sockets = [0; AHEAD];
        self.read_ahead = sockets.iter_mut().zip(&self.sending).map(|(socket, index)| *socket = *index).count();
        // Segments and timers have just used the state of the sockets that they wake; of a few, it is still in the cache.
        let are_loaded = self.sending.len() <= AHEAD && !was_written;
        if self.read_ahead > 1 && !are_loaded {
            self.read_sockets(&sockets[..self.read_ahead]);
        }
    }

    /// Loads the state of `sockets`. Each loop needs what the one before has loaded.
    pub(crate) fn read_sockets(&self, sockets: &[u32]) {
        if self.table.len() < FEW {
            return;
        }
        for index in sockets {
            black_box(&(self.table.peek(*index).is_some(), self.wheel.due(*index)));
        }
        let live = || sockets.iter().filter_map(|index| self.table.peek(*index));
        for socket in live() {
            socket.stream.read_ahead();
            black_box(&(
                socket.owner,
                socket.flow.remote.port(),
                socket.stopwatch,
                socket.tuning.window,
                socket.shrink_at,
            ));
        }
        for socket in live() {
            socket.stream.read_algorithms_ahead();
        }
    }
}
