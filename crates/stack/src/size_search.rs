//! Larger segments are tried again after they have become smaller (RFC 4821 §7): the path may have changed, or only failed
//! for a while.

use reknit_units::{Duration, Instant};

use crate::options::mss_for;
use crate::paths::LIFETIME;
use crate::stack::Stack;

/// The first wait after a probe was lost; each next one takes twice as long, up to the time after which a larger MTU is tried
/// in any case.
pub(crate) const FIRST_WAIT: Duration = Duration::from_secs(10);
/// The search ends when the largest MTU that works and the smallest that does not are this close.
const CLOSE: u16 = 32;

/// The search for the MTU of a connection's path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeSearch {
    /// The MTU that is known to work.
    works: u16,
    /// The smallest MTU that does not, as far as is known.
    fails: Option<u16>,
    /// The MTU of the probe that is out.
    tried: Option<u16>,
    next: Instant,
    wait: Duration,
}

impl SizeSearch {
    /// A search that begins at `next`. A path with the MTU `works` carries something.
    pub(crate) fn at(next: Instant, works: u16) -> SizeSearch {
        SizeSearch { works, fails: None, tried: None, next, wait: FIRST_WAIT }
    }

    /// The MTU to try next: first the largest, then halfway between what works and what does not.
    fn candidate(&self, largest: u16) -> u16 {
        self.fails.map_or(largest, |fails| self.works.midpoint(fails))
    }

    fn on_result(&mut self, now: Instant, tried: u16, has_arrived: bool) {
        self.tried = None;
        if has_arrived {
            self.works = tried;
        } else {
            self.fails = Some(tried);
            self.next = now + self.wait;
            self.wait = (self.wait * 2).min(LIFETIME);
        }
        if self.fails.is_some_and(|fails| fails - self.works <= CLOSE) {
            *self = SizeSearch::at(now + LIFETIME, self.works);
        }
    }
}

impl Stack {
    /// Goes on with the search for larger segments, if the socket has one: after each segment that arrives.
    pub(crate) fn search_size(&mut self, now: Instant, index: u32) {
        let largest = self.options.mtu;
        let Some(socket) = self.table.live(index) else { return };
        let Some(search) = socket.size_search.as_mut() else { return };
        let remote = socket.flow.remote.ip();
        let connection = socket.stream.connection_mut();
        if let Some(tried) = search.tried
            && let Some(has_arrived) = connection.probed_segment_size()
        {
            search.on_result(now, tried, has_arrived);
            if has_arrived {
                self.paths.set(now, remote, tried);
            }
        }
        if search.tried.is_none() && search.next <= now {
            let candidate = search.candidate(largest);
            if connection.probe_segment_size(mss_for(candidate, remote.is_ipv6())) {
                search.tried = Some(candidate);
            } else {
                socket.size_search = None; // segments are as large as both ends allow
            }
        }
    }
}
