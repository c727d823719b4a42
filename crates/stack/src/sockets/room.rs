//! Which sockets end so that others have room: in the table, among those that were closed and still send, and in memory.

use reknit_units::Instant;

use super::Sockets;
use crate::counters::Counters;
use crate::memory::LEAST_PATIENCE;
use crate::socket_id::SocketId;
use crate::table::Slot;
use crate::time_wait::Waiting;

/// The most sockets that make way for one: more than one, so that memory becomes free while many are opened.
const MOST_FOR_ONE: u32 = 4;
/// While fewer sockets than this hold memory, those that hold little need not make way.
const FEW: usize = 1024;

impl Sockets {
    /// Keeps only what FIN-WAIT-2 and TIME-WAIT need.
    pub(crate) fn keep_waiting(&mut self, index: u32) {
        let Slot::Live(socket) = self.table.slot(index) else { return };
        let (time_wait, fin_wait_2) = (socket.time_wait(), socket.fin_wait_2());
        let Some(state) = time_wait.or(fin_wait_2) else { return };
        let waiting = Waiting::new(*socket.flow(), socket.hop_limit(), state, fin_wait_2.is_some());
        self.orphans -= usize::from(socket.is_orphan());
        self.memory.update(socket.charge().0, 0);
        self.wheel.clear(index);
        self.table.wait(index, waiting);
        self.wheel.set(index, state.expires);
        let Sockets { table, spare, .. } = self;
        spare.add(table.id(index), table.len(), |id| table.is_evictable(id));
    }

    /// True if there is a socket that may be removed.
    pub(crate) fn has_spare(&mut self) -> bool {
        let table = &self.table;
        self.spare.first(|id| table.is_evictable(id)).is_some()
    }

    /// Removes the socket that has not been needed for the longest time. False if all are in use.
    pub(crate) fn evict_one(&mut self) -> bool {
        let table = &self.table;
        let Some(id) = self.spare.first(|id| table.is_evictable(id)) else { return false };
        self.remove(id.place());
        true
    }

    /// The application no longer needs the socket. If there are `most` such sockets already, the one that has waited longest for
    /// its peer is reset, or this one if none has waited for long. So is this one if it holds much and no memory is left.
    pub(crate) fn close(&mut self, now: Instant, id: SocketId, most: usize, counters: &mut Counters) {
        let Some(socket) = self.table.get_mut(id).filter(|socket| !socket.is_orphan()) else { return };
        socket.close(now);
        if socket.holds_much() && socket.undelivered().is_some() {
            self.make_way(now, counters);
            if self.memory.is_full() {
                counters.memory_resets += u64::from(self.end(now, id));
            }
        }
        let gives_way = if self.orphans < most { None } else { self.longest_orphan(now).or(Some(id)) };
        if let Some(id) = gives_way {
            self.end(now, id);
        }
        self.orphans += 1;
        let Sockets { table, waiting_orphans, .. } = self;
        waiting_orphans.add(id, now, table.len(), |id| table.get(id).is_some());
        self.wake(id.place());
    }

    /// The socket without an owner that has waited longest for its peer.
    fn longest_orphan(&mut self, now: Instant) -> Option<SocketId> {
        let table = &self.table;
        self.waiting_orphans.longest(now, LEAST_PATIENCE, |id| table.get(id)?.waits_since())
    }

    /// A socket begins to hold memory.
    pub(super) fn note_holder(&mut self, now: Instant, id: SocketId, counters: &mut Counters) {
        let Sockets { table, holders, .. } = self;
        holders.add(id, now, table.len(), |id| table.get(id).is_some());
        self.make_way(now, counters);
    }

    /// If there is little memory, some sockets that have waited long for their peers make way for one that needs some.
    fn make_way(&mut self, now: Instant, counters: &mut Counters) {
        for _ in 0..MOST_FOR_ONE {
            let Some(patience) = self.memory.patience() else { return };
            let (table, are_few) = (&mut self.table, self.holders.len() < FEW);
            let longest = self.holders.longest(now, patience, |id| {
                let socket = table.get_mut(id)?;
                let Some(since) = socket.waits_since() else {
                    socket.leave_holders();
                    return None;
                };
                Some(if are_few && !socket.holds_much() { now } else { since })
            });
            let Some(longest) = longest else { return };
            counters.memory_resets += u64::from(self.end(now, longest));
        }
    }

    /// Resets a connection, and releases its memory. False if it has ended before.
    fn end(&mut self, now: Instant, id: SocketId) -> bool {
        let Some(socket) = self.table.get_mut(id) else { return false };
        let is_open = socket.abort(now);
        let (before, after) = socket.charge();
        self.memory.update(before, after);
        self.wake(id.place());
        is_open
    }
}
