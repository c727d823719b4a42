//! # Sharing reordering state between connections
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §6 (proposed there
//! without details).
//!
//! **What it changes.** A connection begins with the reordering lengths and the FA ratio that the last connection to
//! the same peer had when it closed, so short connections need not learn them again. Windows and round-trip times are
//! not shared, so no connection becomes more aggressive.
//!
//! **State.** The reordering events and the ratio for each of the last 64 peers.
//!
//! **Rules.** When a connection closes, its state is stored. When one opens, events older than 80 s are dropped; if
//! none is left, the connection starts without history.
//!
//! **Departures.** All numbers are our choice; a connection also keeps its own events for 80 s. The connection that
//! closes last replaces the stored state.
//!
//! **Status.** Partial: the paper only mentions the idea.

use std::collections::VecDeque;

use reknit_tcp::seams::ReorderingHistory;
use reknit_units::{Duration, Instant};

use crate::composition::Composition;
use crate::threshold::rr::variants;
use crate::variant::{Side, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "rr-share",
    aliases: &[],
    summary: "rr-taes whose reordering state is shared by successive connections to a peer",
    source: "RR-TCP, ICSI TR-02-006, section 6",
    side: Side::Sender,
    peer_needs: "SACK, DSACK",
    status: Status::Partial,
    compose: || Composition { shares_reordering: true, ..variants::taes() },
};

/// The maximum number of peers.
const MAX_PEERS: usize = 64;
/// How long an event is kept.
const LIFE: Duration = Duration::from_secs(80);

/// What closed connections have learned about reordering, by peer.
#[derive(Clone, Debug)]
pub struct ReorderingCache<Peer> {
    /// The peer whose connection closed last is at the back.
    peers: VecDeque<(Peer, ReorderingHistory)>,
}

impl<Peer> Default for ReorderingCache<Peer> {
    fn default() -> ReorderingCache<Peer> {
        ReorderingCache { peers: VecDeque::new() }
    }
}

impl<Peer: PartialEq> ReorderingCache<Peer> {
    /// A connection to `peer` has closed.
    pub fn remember(&mut self, peer: Peer, history: ReorderingHistory) {
        self.peers.retain(|(known, _)| *known != peer);
        if self.peers.len() == MAX_PEERS {
            self.peers.pop_front();
        }
        self.peers.push_back((peer, history));
    }

    /// A connection to `peer` opens: what it may begin with.
    pub fn recall(&mut self, peer: &Peer, now: Instant) -> Option<&ReorderingHistory> {
        for (_, history) in &mut self.peers {
            history.events.retain(|(at, _)| now.since(*at) <= LIFE);
        }
        self.peers.retain(|(_, history)| !history.events.is_empty());
        self.peers.iter().find(|(known, _)| known == peer).map(|(_, history)| history)
    }
}

#[cfg(test)]
mod tests {
    use reknit_units::Segments;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn history(seconds: impl IntoIterator<Item = u64>) -> ReorderingHistory {
        let events = seconds.into_iter().map(|s| (at(s), Segments(s as u32))).collect();
        ReorderingHistory { events, coverage: 0.7 }
    }

    #[test]
    fn only_younger_events_are_recalled() {
        let mut cache = ReorderingCache::default();
        cache.remember("peer", history([10, 19, 21, 30]));
        assert_eq!(cache.recall(&"peer", at(40)), Some(&history([10, 19, 21, 30])));
        assert_eq!(cache.recall(&"peer", at(100)), Some(&history([21, 30])));
        assert_eq!(cache.recall(&"peer", at(111)), None);
    }

    #[test]
    fn the_peer_that_closed_longest_ago_is_replaced() {
        let mut cache = ReorderingCache::default();
        for peer in 0..MAX_PEERS as u64 {
            cache.remember(peer, history([1]));
        }
        cache.remember(0, history([2]));
        cache.remember(64, history([3]));
        assert_eq!(cache.recall(&0, at(5)), Some(&history([2])));
        assert_eq!(cache.recall(&1, at(5)), None);
        assert_eq!(cache.recall(&64, at(5)), Some(&history([3])));
    }
}
