//! Path MTU discovery of a connection: reports of routers, with the checks of RFC 5927, black holes that drop such reports, and
//! probes of larger segments (RFC 4821 §7), because the path may have changed or failed only for a while. Called by
//! `socket/mod.rs` after the connection has processed a segment or a timeout, and for an ICMP message.
//! A part of each socket.

use reknit_tcp::{Connection, SeqNum};
use reknit_units::{Bytes, Duration, Instant};

use crate::options::{MIN_MTU_V4, MIN_MTU_V6, mss_for, mtu_for};
use crate::path_mtus::LIFETIME;

/// The MTU that nearly every path carries (`BASE_PLPMTU` of RFC 8899 §5.1.2), and the smallest one.
const BASE_V4: [u16; 2] = [1200, MIN_MTU_V4];
const BASE_V6: [u16; 1] = [MIN_MTU_V6];
/// How often a segment is sent without an answer before its size is suspected.
const ATTEMPTS: u16 = 3;
/// The same if segments of this size have passed before.
const ATTEMPTS_AFTER_SUCCESS: u16 = 5;
/// The first wait after a probe was lost. It doubles each time, up to the time after which larger segments are tried in any case.
const FIRST_WAIT: Duration = Duration::from_secs(10);
/// The search ends when the largest size that works and the smallest that does not are this close.
const CLOSE: u16 = 32;

/// What a connection has learned about its path MTU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PathMtu {
    /// The largest packet that the path carries.
    pub(crate) mtu: u16,
    /// No router has reported it: full-sized segments were lost.
    pub(crate) is_black_hole: bool,
}

/// The effect of an ICMP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Report {
    /// None: its claim is not plausible, or known.
    Ignored,
    /// It may be forged, and has an effect only if segments are lost.
    Kept,
    /// Segments are smaller now.
    Believed(PathMtu),
}

/// An MTU that a router has reported but that may be forged. It is believed if segments are lost, and forgotten when what it
/// quotes is acknowledged (RFC 5927 §7.2).
#[derive(Clone, Copy, Debug)]
struct Claim {
    mtu: u16,
    /// The sequence number of the segment that the router quotes.
    quoted: SeqNum,
}

/// The segment size of a connection. The connection itself has the size that is used.
#[derive(Debug)]
pub(crate) struct SegmentSize {
    is_v6: bool,
    claim: Option<Claim>,
    /// Present if segments are smaller than both ends allow.
    search: Option<Box<Search>>,
}

impl SegmentSize {
    /// For a new connection, whose segments may already be limited by a known path MTU.
    pub(crate) fn new(now: Instant, is_v6: bool, connection: &Connection) -> SegmentSize {
        let is_limited = connection.path_segment_size().is_some();
        SegmentSize { is_v6, claim: None, search: is_limited.then(|| Box::new(Search::starting_at(now + LIFETIME))) }
    }

    /// A router has dropped a packet of `quoted_len` bytes, which begins with `quoted` and is outstanding (RFC 1191 §6, RFC
    /// 8201 §5).
    pub(crate) fn on_too_big(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        mtu: u16,
        quoted: SeqNum,
        quoted_len: usize,
    ) -> Report {
        let mtu = match mtu {
            // An old router does not say; then the next common size is tried (RFC 1191 §7).
            0 => BASE_V4.into_iter().find(|mtu| usize::from(*mtu) < quoted_len).unwrap_or(MIN_MTU_V4),
            mtu if self.is_v6 && mtu < MIN_MTU_V6 => return Report::Ignored,
            mtu => mtu.max(MIN_MTU_V4),
        };
        let mss = mss_for(mtu, self.is_v6);
        if quoted_len <= usize::from(mtu) || mss >= connection.segment_size() {
            return Report::Ignored;
        }
        // A segment of this size has arrived before, so the message may be forged. It is believed when segments do not
        // arrive any more (RFC 5927 §7.2).
        if connection.largest_acknowledged() > Bytes(u64::from(mss)) {
            self.claim = Some(Claim { mtu, quoted });
            return Report::Kept;
        }
        let learned = PathMtu { mtu, is_black_hole: false };
        if self.reduce(now, connection, mtu, LIFETIME) { Report::Believed(learned) } else { Report::Ignored }
    }

    /// True if this makes segments smaller. Larger ones are tried again after `wait`.
    fn reduce(&mut self, now: Instant, connection: &mut Connection, mtu: u16, wait: Duration) -> bool {
        self.claim = None;
        let is_smaller = connection.limit_segment_size(now, mss_for(mtu, self.is_v6));
        if is_smaller {
            self.search = Some(Box::new(Search::starting_at(now + wait)));
        }
        is_smaller
    }

    /// After a timeout: if full-sized segments are sent repeatedly without an answer, the path may carry only smaller ones and
    /// drop the messages that say so (RFC 4821 §7.7, RFC 8899 §4.3). Then segments become smaller, if `detects_black_holes` or a
    /// router has claimed so.
    pub(crate) fn on_timeout(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        detects_black_holes: bool,
    ) -> Option<PathMtu> {
        let record = connection.oldest_outstanding()?;
        let (size, transmissions) = (Bytes(u64::from(record.len)), record.transmissions);
        let is_open = |claim: &Claim| connection.is_outstanding(claim.quoted);
        if let Some(Claim { mtu, .. }) = self.claim.filter(|claim| transmissions > 1 && is_open(claim)) {
            let learned = PathMtu { mtu, is_black_hole: false };
            return self.reduce(now, connection, mtu, LIFETIME).then_some(learned);
        }
        let has_passed = connection.largest_acknowledged() >= size;
        // If such segments have passed before, the path may only have failed for a while.
        let (attempts, wait) =
            if has_passed { (ATTEMPTS_AFTER_SUCCESS, Duration::ZERO) } else { (ATTEMPTS, FIRST_WAIT) };
        let bases: &[u16] = if self.is_v6 { &BASE_V6 } else { &BASE_V4 };
        let smaller = bases.iter().copied().find(|mtu| Bytes(u64::from(mss_for(*mtu, self.is_v6))) < size);
        let mtu = smaller.filter(|_| detects_black_holes && transmissions >= attempts)?;
        self.reduce(now, connection, mtu, wait).then_some(PathMtu { mtu, is_black_hole: true })
    }

    /// After each arriving segment: forgets a claim that has proved wrong, and continues the search for larger segments, if there
    /// is one. Returns a larger MTU that the path carries.
    #[inline]
    pub(crate) fn on_segment(&mut self, now: Instant, connection: &mut Connection) -> Option<PathMtu> {
        if self.claim.is_some_and(|claim| !connection.is_outstanding(claim.quoted)) {
            self.claim = None;
        }
        if self.search.is_some() { self.search_on(now, connection) } else { None }
    }

    fn search_on(&mut self, now: Instant, connection: &mut Connection) -> Option<PathMtu> {
        let search = self.search.as_mut()?;
        let mut learned = None;
        if let Some((mss, has_arrived)) = connection.probed_segment_size() {
            search.on_result(now, connection.segment_size(), mss, has_arrived);
            learned = has_arrived.then(|| PathMtu { mtu: mtu_for(mss, self.is_v6), is_black_hole: false });
        }
        // First the largest that both ends allow, then halfway between what works and what does not.
        let next = search.fails.map_or(u16::MAX, |fails| connection.segment_size().midpoint(fails));
        if search.next <= now && !connection.probe_segment_size(next) {
            self.search = None; // segments are as large as both ends allow
        }
        learned
    }
}

/// The search for the largest segment size that a connection's path carries. The present one works.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// The smallest size, options included, that is known not to arrive.
    fails: Option<u16>,
    next: Instant,
    wait: Duration,
}

impl Search {
    fn starting_at(next: Instant) -> Search {
        Search { fails: None, next, wait: FIRST_WAIT }
    }

    /// A segment of `mss` was tried; `works` is the present size.
    fn on_result(&mut self, now: Instant, works: u16, mss: u16, has_arrived: bool) {
        if !has_arrived {
            self.fails = Some(mss);
            self.next = now + self.wait;
            self.wait = (self.wait * 2).min(LIFETIME);
        }
        if self.fails.is_some_and(|fails| fails - works <= CLOSE) {
            *self = Search::starting_at(now + LIFETIME);
        }
    }
}
