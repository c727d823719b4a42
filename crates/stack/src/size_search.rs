//! Larger segments are tried again after they have become smaller (RFC 4821 §7): the path may have changed, or only failed
//! for a while.

use reknit_units::{Duration, Instant};

use crate::options::mtu_for;
use crate::paths::LIFETIME;
use crate::stack::Stack;

/// The first wait after a probe was lost; each next one takes twice as long, up to the time after which larger segments are
/// tried in any case.
pub(crate) const FIRST_WAIT: Duration = Duration::from_secs(10);
/// The search ends when the largest size that works and the smallest that does not are this close.
const CLOSE: u16 = 32;

/// The search for the segment size that a connection's path carries. The present one works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeSearch {
    /// The smallest size, options included, that does not arrive, as far as is known.
    fails: Option<u16>,
    next: Instant,
    wait: Duration,
}

impl SizeSearch {
    /// A search that begins at `next`.
    pub(crate) fn at(next: Instant) -> SizeSearch {
        SizeSearch { fails: None, next, wait: FIRST_WAIT }
    }

    /// A segment of `mss` was tried; `works` is the present size.
    fn on_result(&mut self, now: Instant, works: u16, mss: u16, has_arrived: bool) {
        if !has_arrived {
            self.fails = Some(mss);
            self.next = now + self.wait;
            self.wait = (self.wait * 2).min(LIFETIME);
        }
        if self.fails.is_some_and(|fails| fails - works <= CLOSE) {
            *self = SizeSearch::at(now + LIFETIME);
        }
    }
}

impl Stack {
    /// Goes on with the search for larger segments, if the socket has one: after each segment that arrives.
    pub(crate) fn search_size(&mut self, now: Instant, index: u32) {
        let Some(socket) = self.table.live(index) else { return };
        let Some(search) = socket.size_search.as_mut() else { return };
        let remote = socket.flow.remote.ip();
        let connection = socket.stream.connection_mut();
        if let Some((mss, has_arrived)) = connection.probed_segment_size() {
            search.on_result(now, connection.segment_size(), mss, has_arrived);
            if has_arrived {
                self.paths.set(now, remote, mtu_for(mss, remote.is_ipv6()));
            }
        }
        // First the largest that both ends allow, then halfway between what works and what does not.
        let next = search.fails.map_or(u16::MAX, |fails| connection.segment_size().midpoint(fails));
        if search.next <= now && !connection.probe_segment_size(next) {
            socket.size_search = None; // segments are as large as both ends allow
        }
    }
}
