//! The deliveries that RACK keeps track of (RFC 8985 §6.2): the delivered segment that was sent last, and the segments
//! sent before it that are still open.

use reknit_tcp::facts::Context;
use reknit_tcp::scoreboard::{SegId, SegmentRecord};
use reknit_tcp::seams::{LossReason, Verdicts};
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Instant};
use std::collections::BTreeSet;

/// `RACK.xmit_ts` and `RACK.end_seq`: the delivered segment that was sent last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Transmission {
    xmit_ts: Instant,
    end_seq: Offset,
}

impl Transmission {
    pub(crate) fn of(record: &SegmentRecord) -> Transmission {
        Transmission { xmit_ts: record.last_sent, end_seq: record.end() }
    }
}

/// Each ACK may have to skip all segments that are set aside.
const MAX_SET_ASIDE: usize = 256;

/// The last of the open segments that were sent before `latest`.
#[derive(Clone, Copy, Debug)]
enum Suspects {
    /// There are none.
    None,
    /// This one, or the one before it if this one has been delivered.
    UpTo(SegId),
    /// It must be searched for.
    Unknown,
}

/// The delivered segment that was sent last, and the segments that it overtook.
#[derive(Clone, Debug)]
pub(crate) struct Overtaking {
    latest: Option<Transmission>,
    suspects_until: Suspects,
    /// Segments that are not judged, although they may be open. Most connections have none.
    #[expect(clippy::box_collection, reason = "a pointer instead of 24 bytes in each idle connection")]
    set_aside: Option<Box<BTreeSet<SegId>>>,
    /// `RACK.rtt`.
    pub(crate) rtt: Duration,
}

impl Default for Overtaking {
    fn default() -> Overtaking {
        Overtaking { latest: None, suspects_until: Suspects::None, set_aside: None, rtt: Duration::ZERO }
    }
}

impl Overtaking {
    /// `id` was delivered.
    pub(crate) fn deliver(&mut self, id: SegId, record: &SegmentRecord) {
        if self.latest.is_none_or(|latest| Transmission::of(record) > latest) {
            self.latest = Some(Transmission::of(record));
            self.suspects_until = Suspects::UpTo(id);
        }
    }

    /// Call it when segments marked lost count as in flight again, or the reverse.
    pub(crate) fn look_again(&mut self) {
        self.suspects_until = Suspects::Unknown;
    }

    /// Do not judge these, or only the lowest of them if they are too many.
    pub(crate) fn set_aside(&mut self, ids: impl Iterator<Item = SegId>) {
        for id in ids {
            let set_aside = self.set_aside.get_or_insert_default();
            set_aside.insert(id);
            if set_aside.len() > MAX_SET_ASIDE {
                set_aside.pop_last();
            }
        }
    }

    /// `id` was retransmitted: it is judged again.
    pub(crate) fn take_back(&mut self, id: SegId) {
        if let Some(set_aside) = &mut self.set_aside {
            set_aside.remove(&id);
        }
    }

    /// Segments below `first` have been acknowledged.
    pub(crate) fn retire(&mut self, first: SegId) {
        let Some(set_aside) = &mut self.set_aside else { return };
        while set_aside.first().is_some_and(|id| *id < first) {
            set_aside.pop_first();
        }
        if set_aside.is_empty() {
            self.set_aside = None;
        }
    }

    fn is_set_aside(&self, id: SegId) -> bool {
        self.set_aside.as_ref().is_some_and(|set_aside| set_aside.contains(&id))
    }

    /// The open segments that are judged, in the order of their last transmissions.
    fn judged<'a>(&self, cx: &Context<'a>) -> impl Iterator<Item = (SegId, &'a SegmentRecord)> {
        cx.board.in_send_order().filter(|(id, _)| !self.is_set_aside(*id))
    }

    /// §6.2 step 5: segments sent before the latest delivered one, and at least `patience` ago, are lost. Returns when
    /// to check again: when the last of the others is overdue.
    pub(crate) fn judge(&mut self, cx: &Context<'_>, patience: Duration, verdicts: &mut Verdicts) -> Instant {
        let Some(latest) = self.latest else { return Instant::NEVER };
        for (id, record) in self.judged(cx) {
            if Transmission::of(record) >= latest || record.last_sent + patience > cx.now {
                break;
            }
            verdicts.lost(id, LossReason::Overtaken);
            if verdicts.is_full() {
                return cx.now;
            }
        }
        let newest = self.newest_suspect(cx, latest).map(|newest| newest.last_sent + patience);
        newest.filter(|overdue| *overdue > cx.now).unwrap_or(Instant::NEVER)
    }

    /// The open segment that was sent last of those sent before `latest`.
    fn newest_suspect<'a>(&mut self, cx: &Context<'a>, latest: Transmission) -> Option<&'a SegmentRecord> {
        let is_earlier = |r: &SegmentRecord| r.is_open() && Transmission::of(r) < latest;
        let is_suspect = |id: SegId| !self.is_set_aside(id) && cx.board.get(id).is_some_and(is_earlier);
        let known = match self.suspects_until {
            Suspects::None => return None,
            Suspects::Unknown => None,
            Suspects::UpTo(id) if is_suspect(id) => Some(id),
            Suspects::UpTo(id) => match cx.board.newest_open_before(id) {
                None => {
                    self.suspects_until = Suspects::None;
                    return None;
                }
                // A segment that has been retransmitted meanwhile is in another place.
                before => before.filter(|id| is_suspect(*id)),
            },
        };
        let scan = || self.judged(cx).take_while(|(_, r)| is_earlier(r)).last().map(|(id, _)| id);
        let newest = known.or_else(scan);
        self.suspects_until = newest.map_or(Suspects::None, Suspects::UpTo);
        cx.board.get(newest?)
    }
}

/// The smallest sample in a window of time, accurate to half the window: it uses two buckets in turn.
#[derive(Clone, Debug)]
pub(crate) struct WindowedMin {
    half: Duration,
    turn: Instant,
    current: Option<Duration>,
    previous: Option<Duration>,
}

impl WindowedMin {
    pub(crate) fn new(window: Duration) -> WindowedMin {
        WindowedMin { half: window / 2, turn: Instant::ZERO, current: None, previous: None }
    }

    pub(crate) fn update(&mut self, now: Instant, sample: Duration) {
        if now.since(self.turn) > self.half {
            self.previous = self.current.take();
            self.turn = now;
        }
        self.current = Some(self.current.map_or(sample, |min| min.min(sample)));
    }

    pub(crate) fn get(&self) -> Option<Duration> {
        match (self.current, self.previous) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_older_than_the_window_are_dropped() {
        let mut min = WindowedMin::new(Duration::from_secs(10));
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        min.update(at(1), Duration::from_millis(40));
        min.update(at(4), Duration::from_millis(50));
        assert_eq!(min.get(), Some(Duration::from_millis(40)));
        min.update(at(7), Duration::from_millis(60));
        assert_eq!(min.get(), Some(Duration::from_millis(40)));
        min.update(at(13), Duration::from_millis(70));
        assert_eq!(min.get(), Some(Duration::from_millis(60)));
    }
}
