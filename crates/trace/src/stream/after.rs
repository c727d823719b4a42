//! What happened to the data after it was captured: the acknowledgments tell which packets arrived, in which order, and
//! which arrived twice.

use std::cmp::Ordering;

use reknit_path::Reordering;
use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::before::Receiver;
use super::disorder::Disorder;
use super::half::Out;
use super::ranges::{Delivery, Range, Ranges};
use super::round_trip::RoundTrip;
use crate::journey::{Departure, Outcome};
use crate::{Reason, Side, Verdict, Why};

/// Retransmissions without a report of a duplicate, although one was due, after which the receiver is taken for one that
/// does not report them.
const MOST_MISSING: u32 = 3;

/// One missing report for this many reports is too much to rely on them.
const MOST_UNREPORTED: u64 = 5;

/// Copies after which the network is known to make them.
const SOME_COPIES: u32 = 3;

/// A repair of losses that is under way: until everything that had been sent by then is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
enum Episode {
    #[default]
    None,
    Fast {
        until: u64,
    },
    Timeout {
        until: u64,
    },
}

/// The state of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct After {
    last_ack: Option<Instant>,
    /// The timestamp that it echoed.
    echo: Option<u32>,
    /// When data was last newly acknowledged or SACKed.
    progress: Option<Instant>,
    /// When data was last sent.
    sent: Option<Instant>,
    /// The highest order of sending of all data that arrived.
    top: u64,
    /// The end of the highest SACK block.
    sacked: u64,
    /// ACKs without progress since the last progress.
    repeated_acks: u32,
    episode: Episode,
    /// A probe for a lost tail has been sent since the last progress.
    has_probed: bool,
    blocks: [(u64, u64); 4],
    /// What an ACK newly reports: the order in which the ranges passed, and their indices.
    arrived: Vec<(u64, usize)>,
    waiting_since: Option<Instant>,
    /// How long data waited behind holes at the receiver.
    pub(crate) waited: Duration,
    /// Packets in their order of arrival at the receiver, without retransmissions.
    pub(crate) reordering: Reordering,
    pub(crate) disorder: Disorder,
    latest: Duration,
    /// Reports of duplicates.
    pub(crate) duplicates: u64,
    /// Those for data that was sent once: the network copies packets.
    copies: u32,
    missing: u32,
    has_sack: bool,
}

/// What an acknowledgment is compared with.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) ranges: &'a mut Ranges,
    pub(super) acked: u64,
    pub(super) round_trip: &'a mut RoundTrip,
    pub(super) now: Instant,
}

impl After {
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.sent = Some(now);
    }

    pub(super) fn on_ack(
        &mut self,
        ack: u64,
        blocks: &[(u64, u64)],
        echo: Option<u32>,
        view: &mut View<'_>,
        out: &mut Out<'_>,
    ) {
        let before = self.progress;
        if ack > view.acked {
            self.note_arrived((view.acked, ack), view);
            self.progress = Some(view.now);
        }
        let has_duplicate = reports_duplicate(ack, blocks);
        let known = self.note_blocks(ack, &blocks[usize::from(has_duplicate)..], view);
        self.deliver(echo, view, out);
        self.blocks = known;
        if has_duplicate && let Some(block) = blocks.first() {
            self.on_duplicate(*block, view, out);
        }
        (self.last_ack, self.echo) = (Some(view.now), echo);
        if self.progress == before {
            self.repeated_acks += 1;
        } else {
            self.repeated_acks = 0;
            self.has_probed = false;
        }
        self.note_waiting(ack.max(view.acked), view.now);
    }

    /// What the acknowledgments have shown of the receiver. `round_trip`: the shortest to it.
    pub(super) fn receiver(&self, acked: u64, round_trip: Option<Duration>) -> Receiver {
        Receiver { acked, last_ack: self.last_ack, echo: self.echo, round_trip }
    }

    /// The receiver has the bytes of these SACK blocks. Returns them in the order of their bytes.
    #[inline]
    fn note_blocks(&mut self, ack: u64, blocks: &[(u64, u64)], view: &mut View<'_>) -> [(u64, u64); 4] {
        let mut known = [(0, 0); 4];
        if blocks.is_empty() {
            return known;
        }
        known[..blocks.len()].copy_from_slice(blocks);
        known[..blocks.len()].sort_unstable();
        for (left, right) in known.into_iter().filter(|(_, right)| *right > ack) {
            self.has_sack = true;
            self.sacked = self.sacked.max(right.min(view.ranges.end()));
            let (left, right) = self.unknown_part(left.max(ack), right);
            if left < right {
                self.note_arrived((left, right), view);
            }
        }
        known
    }

    /// The part of a SACK block that the last ACK did not have.
    fn unknown_part(&self, mut left: u64, mut right: u64) -> (u64, u64) {
        for (known_left, known_right) in self.blocks {
            if known_left <= left && left < known_right {
                left = known_right;
            }
            if known_left < right && right <= known_right {
                right = known_left;
            }
        }
        (left, right)
    }

    /// The receiver has the bytes from `from` to `to`.
    fn note_arrived(&mut self, (from, to): (u64, u64), view: &mut View<'_>) {
        let mut index = view.ranges.locate(from);
        while let Some(range) = view.ranges.at(index).filter(|range| range.start < to) {
            if !range.is_delivered() {
                let mut order = range.order();
                if !range.is_within(from, to) {
                    index = view.ranges.narrow(index, from, to);
                    order = view.ranges.at(index).map_or(0, Range::order);
                }
                self.arrived.push((order, index));
            }
            index += 1;
        }
        if from == view.acked {
            view.ranges.note_edge(index);
        }
    }

    /// One ACK does not tell in which order its packets arrived: they are taken to have arrived in the order in which they
    /// passed.
    fn deliver(&mut self, echo: Option<u32>, view: &mut View<'_>, out: &mut Out<'_>) {
        if self.arrived.is_empty() {
            return;
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        if arrived.len() > 1 && !arrived.is_sorted() {
            arrived.sort_unstable();
        }
        for arrival in arrived.drain(..) {
            self.deliver_range(arrival, echo, view, out);
        }
        self.progress = Some(view.now);
        self.arrived = arrived;
    }

    fn deliver_range(
        &mut self,
        (order, index): (u64, usize),
        echo: Option<u32>,
        view: &mut View<'_>,
        out: &mut Out<'_>,
    ) {
        let now = view.now;
        let Some(range) = view.ranges.at_mut(index) else { return };
        range.delivered_at = now;
        self.top = self.top.max(order);
        if range.again.is_empty() {
            range.delivery = Delivery::Clear;
            if !self.tell_arrival(range, order, now, out) {
                view.round_trip.add(now.since(range.first.at));
            }
            return;
        }
        // Only the segment at the left edge is echoed (RFC 7323 §4.3).
        let echo = echo.filter(|_| range.start <= view.acked);
        let by_echo = echo.and_then(|echo| by_echo(range, echo));
        let by_time = by_time(range, now, view.round_trip.least());
        let by = original_of(range, by_echo.unwrap_or(usize::MAX).min(by_time));
        if by == 0 {
            range.delivery = Delivery::Clear;
            tell_spurious(range, 0, out);
            self.tell_arrival(range, order, now, out);
        } else {
            range.delivery = Delivery::Likely { by: by as u8, by_echo: by_echo == Some(by) };
            tell_spurious(range, by, out);
        }
    }

    /// The first transmission of a range, which has this order, has arrived. True if it was late.
    fn tell_arrival(&mut self, range: &mut Range, order: u64, now: Instant, out: &mut Out<'_>) -> bool {
        range.place_there = self.reordering.arrived() as u32;
        let Some(late) = self.reordering.on_arrival(order, now) else { return false };
        self.latest = self.latest.max(late.late);
        let verdict = Verdict::Reordered { packets: late.extent, late: late.late };
        out.tell(Side::After, range.first, (range.start, range.end), verdict);
        true
    }

    /// The receiver reports that it has got these bytes twice.
    fn on_duplicate(&mut self, (left, right): (u64, u64), view: &mut View<'_>, out: &mut Out<'_>) {
        self.duplicates += 1;
        let mut index = view.ranges.locate(left);
        while view.ranges.at(index).is_some_and(|range| range.start < right) {
            index = view.ranges.narrow(index, left, right);
            if let Some(range) = view.ranges.at_mut(index).filter(|range| range.is_delivered()) {
                range.duplicates = range.duplicates.saturating_add(1);
                self.on_duplicate_of(index, view, out);
            }
            index += 1;
        }
    }

    fn on_duplicate_of(&mut self, index: usize, view: &mut View<'_>, out: &mut Out<'_>) {
        let Some(range) = view.ranges.at_mut(index) else { return };
        let sent_again = range.again.len();
        // If the original has come only now, this is how late it is, about.
        let late = view.now.since(range.first.at).saturating_sub(view.round_trip.smoothed());
        let is_copy = self.copies >= SOME_COPIES && late > self.latest * 4;
        match range.delivery {
            Delivery::Likely { by, .. } if usize::from(range.duplicates) > sent_again - usize::from(by) && is_copy => {
                range.duplicates -= 1;
                out.tell(Side::After, range.last_sent(), (range.start, range.end), Verdict::Duplicated);
            }
            Delivery::Likely { by, .. } if usize::from(range.duplicates) > sent_again - usize::from(by) => {
                // An earlier transmission has arrived too, so the one that came first was not needed.
                let by = by - 1;
                range.delivery = Delivery::Likely { by, by_echo: false };
                tell_spurious(range, by.into(), out);
                if by == 0 {
                    range.delivery = Delivery::Clear;
                    range.delivered_at = arrival_of_first(range, view.now, view.round_trip.smoothed());
                    self.tell_arrival(range, range.order(), view.now, out);
                }
            }
            Delivery::Clear if usize::from(range.duplicates) > sent_again => {
                self.copies = self.copies.saturating_add(1);
                out.tell(Side::After, range.first, (range.start, range.end), Verdict::Duplicated);
            }
            _ => {}
        }
    }

    fn note_waiting(&mut self, acked: u64, now: Instant) {
        if self.sacked > acked {
            self.waiting_since.get_or_insert(now);
        } else if let Some(since) = self.waiting_since.take() {
            self.waited += now.since(since);
        }
    }

    /// What makes the sender retransmit the range at `index` now.
    pub(super) fn why(
        &mut self,
        ranges: &Ranges,
        index: usize,
        (acked, highest): (u64, u64),
        now: Instant,
        round_trip: &RoundTrip,
    ) -> Why {
        let Some(range) = ranges.at(index) else { return Why::Unknown };
        match self.episode {
            Episode::Timeout { until } if acked < until && range.start < until => return Why::Timeout,
            Episode::Timeout { until } | Episode::Fast { until } if acked >= until => self.episode = Episode::None,
            _ => {}
        }
        let is_overtaken = self.top > range.order() || self.repeated_acks > 0;
        let last = [self.progress, Some(range.last_sent().at)].into_iter().flatten().max().unwrap_or(now);
        let idle = now.since(last);
        let is_timer = self.last_ack.is_none_or(|ack| now.since(ack) > clocked_by_acks(round_trip));
        let (is_lowest, is_highest) = (range.start <= acked, range.end >= highest);
        let why = if is_overtaken && !(is_timer && is_lowest && idle >= round_trip.shortest_timeout()) {
            Why::FastRetransmit
        } else if !is_timer {
            // An ACK released it: the next hole of a recovery without SACK.
            if self.episode == Episode::None { Why::Unknown } else { Why::FastRetransmit }
        } else if is_highest && !is_lowest {
            Why::Probe
        } else if is_lowest && !is_highest || self.has_probed {
            Why::Timeout
        } else if idle < Duration::from_millis(190) {
            Why::Probe // no common system has a timeout as short as this
        } else {
            Why::Unknown
        };
        match why {
            Why::FastRetransmit => self.episode = Episode::Fast { until: highest },
            Why::Timeout => self.episode = Episode::Timeout { until: highest },
            Why::Probe => self.has_probed = true,
            Why::Unknown => {}
        }
        why
    }

    /// A range is about to be forgotten: reports of its transmissions have had their time.
    pub(super) fn settle(&mut self, range: &Range, may_report: bool, out: &mut Out<'_>) {
        if out.log.journeys.is_some() {
            self.tell_journeys(range, may_report, out);
        }
        if range.is_delivered() {
            self.disorder.on_settled(range.place_there);
        }
        let bytes = (range.start, range.end);
        match range.delivery {
            Delivery::Open if range.again.iter().any(|again| !again.is_copy) => {
                out.tell(Side::After, range.first, bytes, Verdict::Unknown(Reason::CaptureEnds));
            }
            Delivery::Open => {}
            Delivery::Likely { by, by_echo } => {
                if !by_echo && !self.reports_duplicates(may_report) {
                    out.tell(Side::After, range.first, bytes, Verdict::Unknown(Reason::NoDuplicateReports));
                    return;
                }
                out.tell(Side::After, range.first, bytes, Verdict::Lost);
                let before = range.again.iter().take(usize::from(by) - 1);
                for again in before.filter(|again| !again.is_copy) {
                    out.tell(Side::After, again.seen, bytes, Verdict::Lost);
                }
            }
            Delivery::Clear => {
                let is_due = range.again.iter().any(|again| !again.is_copy) && range.duplicates == 0;
                self.missing = self.missing.saturating_add(u32::from(is_due));
            }
        }
    }

    /// Reports when the transmissions of an acknowledged range were sent and whether they arrived.
    fn tell_journeys(&self, range: &Range, may_report: bool, out: &mut Out<'_>) {
        let (by, is_sure) = match range.delivery {
            Delivery::Open => return,
            Delivery::Clear => (0, true),
            Delivery::Likely { by, by_echo } => (usize::from(by), by_echo || self.reports_duplicates(may_report)),
        };
        let transmissions = std::iter::once(range.first.at).chain(range.again.iter().map(|again| again.seen.at));
        for (i, sent) in transmissions.enumerate() {
            let outcome = match i.cmp(&by) {
                Ordering::Less if is_sure => Outcome::Lost,
                Ordering::Equal => Outcome::Arrived(range.delivered_at),
                Ordering::Less | Ordering::Greater => Outcome::Unknown,
            };
            // Data that was acknowledged before it was captured has no journey behind the point of capture.
            if range.delivered_at > sent || i > by {
                out.travelled(Side::After, range, Departure::At(sent), outcome, i > 0);
            }
        }
    }

    /// True if the receiver reports nearly all duplicates, so that those that it does not report were none. Under much
    /// reordering some combine acknowledgments, each of which reports one.
    fn reports_duplicates(&self, may_report: bool) -> bool {
        if self.duplicates == 0 {
            return (may_report || self.has_sack) && self.missing < MOST_MISSING;
        }
        self.missing < MOST_MISSING || u64::from(self.missing) * MOST_UNREPORTED < self.duplicates
    }

    pub(super) fn finish(&mut self, now: Instant) {
        self.disorder.finish();
        if let Some(since) = self.waiting_since.take() {
            self.waited += now.since(since);
        }
    }

    /// Gives back memory that is not needed as long as nothing passes.
    pub(super) fn shrink(&mut self) {
        self.arrived = Vec::new();
    }

    /// The longest lateness so far.
    pub(super) fn latest(&self) -> Duration {
        self.latest
    }
}

/// How soon after an ACK a packet is sent because of it.
fn clocked_by_acks(round_trip: &RoundTrip) -> Duration {
    (round_trip.smoothed() / 8).max(Duration::from_millis(2))
}

/// True if the first block reports a duplicate (RFC 2883 §4): it is acknowledged, or inside the second block.
pub(super) fn reports_duplicate(ack: u64, blocks: &[(u64, u64)]) -> bool {
    match blocks {
        [first, ..] if first.1 <= ack => true,
        [first, second, ..] => second.0 <= first.0 && first.1 <= second.1,
        _ => false,
    }
}

/// The transmission that brought a range, by the timestamp that the receiver echoes: 0 is the first. None if two of them
/// have the same timestamp.
fn by_echo(range: &Range, echo: u32) -> Option<usize> {
    let values = || std::iter::once(&range.first).chain(range.again.iter().map(|again| &again.seen));
    let mut by = 0;
    let mut last = None;
    for (i, seen) in values().enumerate() {
        let value = seen.tsval()?;
        if last == Some(value) {
            return None;
        }
        last = Some(value);
        if echo.wrapping_sub(value).cast_signed() >= 0 {
            by = i;
        }
    }
    Some(by)
}

/// The last transmission that can have arrived by now.
fn by_time(range: &Range, now: Instant, least: Option<Duration>) -> usize {
    let least = least.unwrap_or_default().mul_f64(0.9);
    let in_time = |again: &&super::ranges::Again| now.since(again.seen.at) >= least;
    range.again.iter().take_while(in_time).count()
}

/// The transmission of which this one is a copy; itself if it is none. What the network or the capture has copied was not
/// sent again.
fn original_of(range: &Range, by: usize) -> usize {
    let is_copy = |by: &usize| range.again[by - 1].is_copy;
    (1..=by).rev().find(|by| !is_copy(by)).unwrap_or(0)
}

/// When the first transmission arrived, if it and the last retransmission both did, one of them now and one when the data
/// was acknowledged: the retransmission took about a round trip.
fn arrival_of_first(range: &Range, now: Instant, usual: Duration) -> Instant {
    let sent = range.last_sent().at;
    let is_usual = |arrival: Instant| arrival.since(sent).abs_diff(usual);
    if is_usual(now) < is_usual(range.delivered_at) { range.delivered_at } else { now }
}

/// All retransmissions after transmission `by`, which arrived, were not needed.
fn tell_spurious(range: &mut Range, by: usize, out: &mut Out<'_>) {
    let bytes = (range.start, range.end);
    for again in range.again.iter_mut().skip(by).filter(|again| !again.is_told) {
        again.is_told = true;
        out.tell(Side::After, again.seen, bytes, Verdict::Spurious(again.why));
    }
}
