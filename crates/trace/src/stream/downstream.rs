//! What happened to the data downstream of the capture point: the acknowledgments show which packets arrived, in which
//! order, and which arrived twice. Called by [`super::data`] for each acknowledgment, after [`super::upstream`].
//! Owned by [`super::data`].

mod ack_ids;
mod answers;
mod decide;
mod transmission;

use std::collections::BTreeMap;

use reknit_path::{Late, Reordering};
use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::cause::Causes;
use super::disorder::Disorder;
use super::log::FindingSink;
use super::ranges::{Delivery, Evidence, Origin, Range, Ranges};
use super::round_trip::RoundTrip;
use super::upstream::Receiver;
use ack_ids::AckIds;
pub(super) use decide::DecisionContext;
use transmission::{arrival_of_first, by_echo, by_time, count_answers, fitting, mark_arrived, original_of};

use crate::{PathPart, UnknownReason, Verdict};

/// After this many copies, it is known that the network makes them.
const SOME_COPIES: u32 = 3;
/// This many recently retransmitted ranges may be what an acknowledgment without news answers as a duplicate.
const AWAITING: usize = 4;

/// The state of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Downstream {
    pub(super) causes: Causes,
    /// The timestamp that the receiver echoed last.
    echo: Option<u32>,
    /// The end of the highest SACK block.
    sacked: u64,
    blocks: [(u64, u64); 4],
    /// What an ACK newly reports: ranges, as their order of passing and their index. Empty between calls.
    arrived: Vec<(u64, usize)>,
    /// Some of these were sent again.
    #[serde(skip)]
    has_repeats: bool,
    waiting_since: Option<Instant>,
    /// How long data waited behind holes at the receiver.
    waited: Duration,
    /// Packets in their order of arrival at the receiver, without retransmissions.
    pub(crate) reordering: Reordering,
    pub(crate) disorder: Disorder,
    latest: Duration,
    /// Ranges that arrived so late that a retransmission may have delivered them, if the capture missed packets.
    doubtful: BTreeMap<u64, (u32, Duration)>,
    /// Reports of duplicates.
    pub(crate) duplicates: u64,
    /// Reports about data that was sent once: the network copies packets.
    copies: u32,
    missing: u32,
    /// Packets that were lost.
    lost: u64,
    has_sack: bool,
    /// Why outstanding data was not answered, which has been reported.
    given_up: Option<UnknownReason>,
    /// Where the ranges begin that retransmissions have delivered lately.
    repaired: [u64; AWAITING],
    /// ACKs without news since the last progress: without SACK, each answers a packet that arrived behind a hole.
    answers: u32,
    ack_ids: AckIds,
    /// When an acknowledgment last passed whose SACK blocks could not be read.
    hidden_at: Option<Instant>,
    /// How many such acknowledgments passed.
    pub(crate) hidden: u32,
}

/// The state with which an acknowledgment is compared, from before it.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) ranges: &'a mut Ranges,
    pub(super) acked: u64,
    /// Data before this may have been sent before the capture began.
    pub(super) unseen_below: u64,
    /// The highest acknowledgment that passed.
    pub(super) heard: u64,
    pub(super) round_trip: &'a mut RoundTrip,
    pub(super) now: Instant,
    /// If packets of the receiver are missing before this one: when the one before them passed.
    pub(super) missing_since: Option<Instant>,
}

/// An acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgment<'a> {
    pub(super) ack: u64,
    pub(super) blocks: &'a [(u64, u64)],
    pub(super) echo: Option<u32>,
    /// It may be the answer to a duplicate: it has no data, and does not change the window.
    pub(super) is_bare: bool,
    /// Further blocks may be among the options that were not captured.
    pub(super) hides_blocks: bool,
    /// It has the headers of the packet before.
    pub(super) is_copy: bool,
}

impl Downstream {
    /// An acknowledgment passes. True if it newly acknowledges something.
    pub(super) fn on_ack(&mut self, ack: &Acknowledgment<'_>, view: &mut View<'_>, out: &mut FindingSink<'_>) -> bool {
        let Acknowledgment { ack, blocks, echo, is_bare, hides_blocks, is_copy } = *ack;
        let mut has_progressed = ack > view.acked;
        if has_progressed {
            self.note_arrived((view.acked, ack), view);
        }
        let has_duplicate = reports_duplicate(ack, blocks);
        let known = self.note_blocks(ack, &blocks[usize::from(has_duplicate)..], view);
        has_progressed |= self.deliver(echo, view, out);
        self.blocks = known;
        // The first block is what has just arrived (RFC 2018 §4), or arrived twice.
        if hides_blocks && !has_duplicate && (blocks.is_empty() || !has_progressed) {
            self.hidden_at = Some(view.now);
            self.hidden += 1;
        }
        if has_duplicate && let Some(block) = blocks.first() {
            self.on_duplicate(*block, view, out);
        }
        if !has_progressed && is_bare && !hides_blocks {
            if !is_copy {
                self.on_bare_ack(ack, blocks, view);
            }
        } else if has_progressed {
            self.answers = 0;
        }
        self.echo = echo.or(self.echo);
        self.causes.on_ack(has_progressed, view.now);
        let acked = ack.max(view.acked);
        // A hole may be older than the capture.
        self.note_waiting(acked >= view.unseen_below && self.sacked > acked, view.now);
        has_progressed
    }

    /// A packet of the receiver passes, with `len` bytes of data. Returns whether it is a copy, and, if packets are missing before it,
    /// when the last one before the gap passed.
    #[inline]
    pub(super) fn on_packet(&mut self, ip_id: Option<u16>, len: u32, now: Instant) -> (bool, Option<Instant>) {
        (self.ack_ids.is_copy(ip_id), self.ack_ids.on_packet(ip_id, len, now))
    }

    /// True if SACK blocks that passed since then could not be read.
    fn has_hidden_since(&self, at: Instant) -> bool {
        self.hidden_at.is_some_and(|hidden| hidden >= at)
    }

    /// True if the last SACK blocks cover all of these bytes.
    pub(super) fn has_sacked(&self, from: u64, to: u64) -> bool {
        self.blocks.iter().any(|(left, right)| *left <= from && to <= *right)
    }

    /// The timestamp that the receiver echoed last: it discards packets with older ones (PAWS).
    pub(super) fn echo(&self) -> Option<u32> {
        self.echo
    }

    /// What the acknowledgments have shown about the receiver. `round_trip`: the shortest to it.
    pub(super) fn receiver(&self, acked: u64, round_trip: Option<Duration>) -> Receiver {
        Receiver { acked, last_ack: self.causes.last_ack(), round_trip }
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

    /// The part of a SACK block that the previous ACK did not report.
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
                self.has_repeats |= !range.again.is_empty();
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
        if let Some(last) = index.checked_sub(1) {
            note_part(view.ranges, last, to);
        }
    }

    /// Delivers what `note_arrived` has collected. One ACK does not show in which order its packets arrived: the order in which
    /// they passed is assumed. False if nothing arrived.
    fn deliver(&mut self, echo: Option<u32>, view: &mut View<'_>, out: &mut FindingSink<'_>) -> bool {
        if self.arrived.is_empty() {
            return false;
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        let is_alone = arrived.len() == 1;
        if std::mem::take(&mut self.has_repeats) && !is_alone {
            mark_arrived(&arrived, view.ranges);
            if self.answers > 0 && !self.has_sack && self.duplicates == 0 {
                count_answers(self.answers, &arrived, view.acked, view.ranges);
            }
        }
        if arrived.len() > 1 && !arrived.is_sorted() {
            arrived.sort_unstable();
        }
        for arrival in &arrived {
            self.deliver_range(*arrival, echo, is_alone, view, out);
        }
        arrived.clear();
        self.arrived = arrived;
        true
    }

    fn deliver_range(
        &mut self,
        (order, index): (u64, usize),
        echo: Option<u32>,
        is_alone: bool,
        view: &mut View<'_>,
        out: &mut FindingSink<'_>,
    ) {
        let now = view.now;
        let Some(range) = view.ranges.at_mut(index) else { return };
        range.delivered_at = now;
        let was = std::mem::replace(&mut range.delivery, Delivery::Clear);

        // Only the segment at the left edge is echoed (RFC 7323 §4.3). Where that is, only an acknowledgment shows.
        let echo = echo.filter(|_| range.start <= view.heard);
        if range.start < view.unseen_below {
            // Its first transmission may be older than the capture.
        } else if was == Delivery::Clear {
            self.on_counted_arrival(range, now); // as `count_answers` or `mark_arrived` says
        } else if !range.again.is_empty() {
            // If the receiver did not have the first transmission, neither the time nor the echo tells which one it has.
            let is_known = was == Delivery::Missing;
            let shortest_answer = view.round_trip.shortest_answer().filter(|_| !is_known);
            let echo = echo.filter(|_| !is_known);
            self.deliver_repeated(range, order, echo, shortest_answer, (now, view.missing_since), out);
        } else if range.origin != Origin::Original || was == Delivery::Refused {
            // Data that fills a hole of the capture may be a retransmission, and data beyond the window is kept only if the
            // window opens in the meantime.
        } else if order >= self.causes.top() {
            range.place_there = self.reordering.arrived() as u32;
            self.reordering.on_arrival(order, now);
            view.round_trip.add(now.since(range.first.at));
        } else if !self.on_late(
            range,
            order,
            echo.filter(|_| is_alone),
            (view.heard, view.round_trip.least()),
            now,
            out,
        ) {
            view.round_trip.add(now.since(range.first.at));
        }
        self.causes.on_arrival(order);
    }

    /// A range that was sent again has arrived.
    fn deliver_repeated(
        &mut self,
        range: &mut Range,
        order: u64,
        echo: Option<u32>,
        shortest_answer: Option<Duration>,
        (now, missing_since): (Instant, Option<Instant>),
        out: &mut FindingSink<'_>,
    ) {
        let by_echo = echo.and_then(|echo| by_echo(range, echo));
        // If a retransmission's own timestamp is echoed, it has arrived, however short the time: then the bound was too long.
        let is_echoed =
            by_echo.is_some_and(|by| by > 0 && range.again.get(by - 1).and_then(|a| a.seen.tsval()) == echo);
        let by_time = if is_echoed { usize::MAX } else { by_time(range, now, shortest_answer) };
        let by = fitting(range, original_of(range, by_echo.unwrap_or(usize::MAX).min(by_time)));
        if by > 0 {
            // What passed a round trip after the first transmission would have acknowledged it.
            let answered_from = range.first.at + shortest_answer.unwrap_or_default();
            let is_doubtful = missing_since.is_some_and(|since| since < answered_from);
            let evidence = match by_echo {
                Some(echoed) if echoed == by => Evidence::Echo,
                _ if is_doubtful => Evidence::Doubtful,
                _ => Evidence::Time,
            };
            range.delivery = Delivery::Likely { by: by as u8, evidence };
            self.repaired.rotate_right(1);
            self.repaired[0] = range.start;
        } else if range.origin == Origin::Original {
            self.on_arrival_of_original(range, order, now, out);
        }
    }

    /// A range that was sent once, as far as the capture shows, has arrived after data that was sent later. False if it is not
    /// late because that data was a retransmission.
    #[cold]
    fn on_late(
        &mut self,
        range: &mut Range,
        order: u64,
        echo: Option<u32>,
        (heard, round_trip): (u64, Option<Duration>),
        now: Instant,
        out: &mut FindingSink<'_>,
    ) -> bool {
        // What is next in order has not arrived before; other data may have, as hidden SACK blocks would show.
        if range.start > heard && self.has_hidden_since(range.first.at) {
            let verdict = Verdict::Unknown(UnknownReason::Truncated);
            out.report(PathPart::Downstream, range.first, (range.start, range.end), verdict);
            return true;
        }
        let is_newer = |(echo, value): (u32, u32)| echo.wrapping_sub(value).cast_signed() > 0;
        if echo.zip(range.first.tsval()).is_some_and(is_newer) {
            self.doubtful.insert(range.start, (0, Duration::ZERO));
            return true;
        }
        range.place_there = self.reordering.arrived() as u32;
        let Some(late) = self.reordering.on_arrival(order, now) else { return false };
        self.latest = self.latest.max(late.late);
        if round_trip.is_some_and(|round_trip| late.late >= round_trip.mul_f64(0.9)) {
            self.doubtful.insert(range.start, (late.extent, late.late));
        } else {
            report_late(range, late, out);
        }
        true
    }

    /// The first transmission of a range that was sent again has arrived.
    fn on_arrival_of_original(&mut self, range: &mut Range, order: u64, now: Instant, out: &mut FindingSink<'_>) {
        range.place_there = self.reordering.arrived() as u32;
        if let Some(late) = self.reordering.on_arrival(order, now) {
            self.latest = self.latest.max(late.late);
            report_late(range, late, out);
        }
    }

    /// The receiver reports that it received these bytes twice (DSACK). Called after the rest of the ACK is processed.
    fn on_duplicate(&mut self, (left, right): (u64, u64), view: &mut View<'_>, out: &mut FindingSink<'_>) {
        self.duplicates += 1;
        if self.duplicates == 1 {
            view.ranges.forget_duplicates(); // they were guessed
        }
        let mut index = view.ranges.locate(left);
        while view.ranges.at(index).is_some_and(|range| range.start < right) {
            index = view.ranges.narrow(index, left, right);
            if let Some(range) = view.ranges.at_mut(index).filter(|range| range.is_delivered()) {
                range.duplicates = range.duplicates.saturating_add(1);
                self.on_duplicate_of(range, view.now, view.round_trip.smoothed(), out);
            }
            index += 1;
        }
    }

    fn on_duplicate_of(&mut self, range: &mut Range, now: Instant, usual: Duration, out: &mut FindingSink<'_>) {
        let sent_again = range.again.len();
        // If the original has arrived only now, it is about this late.
        let late = now.since(range.first.at).saturating_sub(usual);
        let is_copy = self.copies >= SOME_COPIES && late > self.latest * 4;
        match range.delivery {
            Delivery::Likely { by, .. } if usize::from(range.duplicates) > sent_again - usize::from(by) && is_copy => {
                range.duplicates -= 1;
                out.report(PathPart::Downstream, range.last_sent(), (range.start, range.end), Verdict::Duplicated);
            }
            Delivery::Likely { by, .. } if usize::from(range.duplicates) > sent_again - usize::from(by) => {
                // An earlier transmission has arrived too, so the retransmission that arrived first was not needed.
                let by = by - 1;
                range.delivery = Delivery::Likely { by, evidence: Evidence::Time };
                if by == 0 {
                    range.delivery = Delivery::Clear;
                    range.delivered_at = arrival_of_first(range, now, usual);
                    if range.origin == Origin::Original {
                        self.on_arrival_of_original(range, range.order(), now, out);
                    }
                }
            }
            Delivery::Clear if usize::from(range.duplicates) > sent_again => {
                self.copies = self.copies.saturating_add(1);
            }
            _ => {}
        }
    }

    #[inline]
    fn note_waiting(&mut self, is_waiting: bool, now: Instant) {
        if is_waiting {
            self.waiting_since.get_or_insert(now);
        } else if let Some(since) = self.waiting_since.take() {
            self.waited += now.since(since);
        }
    }

    /// How long data has waited by `now`, the wait that is not over included.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        self.waited + self.waiting_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Since when data waits behind a hole, and the end of the data that waits.
    pub(super) fn waiting(&self) -> Option<(Instant, u64)> {
        self.waiting_since.map(|since| (since, self.sacked))
    }

    /// True if the receiver keeps data that arrives out of order, as far as is known.
    pub(super) fn keeps_order(&self, may_report: bool) -> bool {
        self.has_sack || may_report || self.duplicates > 0
    }

    /// Outstanding data was not answered. Called at the end, before the last ranges are settled.
    pub(super) fn give_up(&mut self, reason: UnknownReason) {
        self.given_up = Some(reason);
    }

    /// Why outstanding data was not answered; none before [`Downstream::give_up`].
    pub(super) fn given_up(&self) -> Option<UnknownReason> {
        self.given_up
    }

    /// True if some ranges arrived so late that a retransmission may have delivered them.
    #[inline]
    pub(super) fn has_doubts(&self) -> bool {
        !self.doubtful.is_empty()
    }

    /// The connection or the capture has ended. Called by `Data::finish`, once all ranges are settled.
    pub(super) fn finish(&mut self, now: Instant) {
        self.disorder.finish();
        (self.waited, self.waiting_since) = (self.waited(now), None);
    }

    /// Another connection begins: nothing that was reported belongs to it.
    pub(super) fn begin_again(&mut self) {
        (self.echo, self.sacked, self.blocks) = (None, 0, [(0, 0); 4]);
        (self.repaired, self.hidden_at, self.given_up) = ([0; AWAITING], None, None);
    }

    /// Releases memory that is not needed while nothing passes.
    pub(super) fn shrink(&mut self) {
        self.arrived = Vec::new();
    }

    /// How late the latest packet was.
    pub(super) fn latest(&self) -> Duration {
        self.latest
    }
}

/// The receiver has the range at `index`, which ends at `to`. If it has no more of that segment, the segment was lost, and it has
/// this part from a retransmission with other boundaries.
#[inline]
fn note_part(ranges: &mut Ranges, index: usize, to: u64) {
    let segment = |range: &Range| (range.first.at, range.first.frame);
    let Some(last) = ranges.at(index).filter(|range| range.end == to && range.is_retransmitted()) else { return };
    let lost_segment = segment(last);
    let is_rest = |range: &Range| segment(range) == lost_segment && !range.is_delivered();
    if ranges.at(index + 1).is_some_and(is_rest) {
        let mut index = index;
        while let Some(range) = ranges.at_mut(index).filter(|range| is_rest(range)) {
            range.delivery = Delivery::Missing;
            index += 1;
        }
    }
}

fn report_late(range: &Range, late: Late, out: &mut FindingSink<'_>) {
    let verdict = Verdict::Reordered { packets: late.extent, late: late.late };
    out.report(PathPart::Downstream, range.first, (range.start, range.end), verdict);
}

/// True if the first block reports a duplicate (RFC 2883 §4): it is acknowledged, or inside the second block.
pub(super) fn reports_duplicate(ack: u64, blocks: &[(u64, u64)]) -> bool {
    match blocks {
        [first, ..] if first.1 <= ack => true,
        [first, second, ..] => second.0 <= first.0 && first.1 <= second.1,
        _ => false,
    }
}
