//! Data that never passed, was never acknowledged, or stalled. Called by [`super`] when a range above a hole is settled, when
//! an ACK ends a stall, and at the end of the connection or capture.

use reknit_units::{Duration, Instant};

use super::super::arrival::Arrival;
use super::super::known::SequenceState;
use super::super::log::{Finding, FindingSink};
use super::super::ranges::{Delivery, Origin, Range};
use super::super::sighting::CapturedSegment;
use super::super::stall::{Stall, StallDetector};
use super::super::upstream::origin;
use super::Data;
use crate::{Incident, PathPart, RetransmitReason, UnknownReason, Verdict};

/// If progress stopped less than this before the end of a capture, it is too early to report that there was no answer.
const MIN_SILENCE: Duration = Duration::from_secs(1);
/// The smallest segment that may exceed the path MTU: with headers, a packet of the 1280 bytes that each IPv6 link carries (RFC 8200
/// §5).
const MIN_FULL: u32 = 1_200;
/// Bytes of TCP options, by which a full segment is smaller than the announced size (RFC 6691).
const MAX_OPTIONS: u32 = 40;

impl Data {
    /// Data that was acknowledged so long ago that its packets are forgotten, or that was sent before the capture began.
    pub(super) fn report_forgotten(
        &self,
        bytes: (u64, u64),
        seen: CapturedSegment,
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) {
        let reason = if bytes.0 < known.unseen_below { UnknownReason::BeforeCapture } else { UnknownReason::Forgotten };
        let [mut here, mut after] = [Verdict::Unknown(reason); 2];
        if bytes.1 <= known.heard {
            after = Verdict::Spurious(RetransmitReason::Unknown);
            // Otherwise it may be the first transmission, which is late.
            if origin(bytes.0, seen, &self.ranges, &self.clock, self.timing(known)) == Origin::Repair {
                here = after;
            }
        }
        out.report(PathPart::AtCapturePoint, seen, bytes, here);
        out.report(PathPart::Downstream, seen, bytes, after);
    }

    pub(super) fn report_uncaptured(&mut self, bytes: (u64, u64), seen: CapturedSegment, out: &mut FindingSink<'_>) {
        self.missed += bytes.1 - bytes.0;
        let what = Incident::NotCaptured;
        let (frame, at, lasted) = (seen.frame, seen.at, Duration::ZERO);
        out.incident(&Finding { what, side: PathPart::Connection, frame, at, bytes, count: 1, lasted });
    }

    /// `ack` acknowledges something, which `is_gap` if it was not captured. `timeout`: the shortest time that a retransmission timer runs, if there may have been a stall.
    #[inline]
    pub(super) fn on_progress(
        &mut self,
        (ack, is_gap): (u64, bool),
        timeout: Option<Duration>,
        arrival: &Arrival<'_>,
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) {
        let now = arrival.now;
        // A capture may lack the ACKs: the first data after a pause acknowledges what came before, and a capture that lacks some of
        // the data may lack its ACKs too.
        let is_silence = arrival.packet.segment.len == 0 && ack <= known.highest && !is_gap;
        let stall = self.stall_detector.on_progress(ack < known.highest, timeout, now);
        if let Some(stall) = stall.filter(|stall| stall.retransmissions > 0 || is_silence) {
            let what = if stall.retransmissions > 0 { Incident::Timeouts } else { Incident::Silence };
            Self::report_stall(what, stall, (known.acked, ack), out);
        }
        if self.upstream.leaves_out(ack) && ack > known.acked {
            let receiver = self.downstream.receiver(ack, self.far.least());
            receiver.note_missing(ack, &mut self.ranges, now);
        }
    }

    #[cold]
    fn report_stall(what: Incident, stall: Stall, bytes: (u64, u64), out: &mut FindingSink<'_>) {
        let Stall { lasted, retransmissions: count, frame, at, .. } = stall;
        out.incident(&Finding {
            what,
            side: PathPart::Connection,
            frame,
            at,
            bytes: (bytes.0, bytes.1.max(bytes.0)),
            count,
            lasted,
        });
    }

    /// Bytes that never passed: if they are acknowledged, the capture missed them. Called at the start of `Data::decide`.
    #[cold]
    pub(super) fn settle_hole(
        &mut self,
        (from, to): (u64, u64),
        above: &CapturedSegment,
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) {
        let from = from.max(known.unseen_below);
        let acked = to.min(known.acked);
        if from < acked {
            self.report_uncaptured((from, acked), *above, out);
        }
        let from = from.max(acked);
        if from < to {
            let hole = (from, to);
            if known.heard == 0 {
                // Without any ACK, the receiver may have it: the capture missed it.
                out.report(PathPart::Upstream, *above, hole, Verdict::Unknown(UnknownReason::CaptureLoss));
            } else {
                self.report_unfilled(PathPart::Upstream, hole, above, above.at, out);
            }
        }
    }

    /// A hole that was never filled.
    fn report_unfilled(
        &self,
        side: PathPart,
        bytes: (u64, u64),
        seen: &CapturedSegment,
        since: Instant,
        out: &mut FindingSink<'_>,
    ) {
        let lasted = out.now.since(since);
        if lasted < MIN_SILENCE.max(self.far.smoothed() * 4) {
            let reason = self.downstream.given_up().unwrap_or(UnknownReason::CaptureEnds);
            out.report(side, *seen, bytes, Verdict::Unknown(reason));
            return;
        }
        // At least this many: some packets may have been small.
        let count = if side == PathPart::Downstream {
            (bytes.1 - bytes.0).div_ceil(u64::from(self.largest.max(1))) as u32
        } else {
            0
        };
        let (frame, at) = (seen.frame, seen.at);
        out.incident(&Finding { what: Incident::NeverRepaired, side, frame, at, bytes, count, lasted });
    }

    /// The capture ends or the connection is reset: outstanding data was not answered. `mss`: the segment size that the receiver
    /// announced. Called before `finish`.
    pub(in crate::stream) fn on_end(&mut self, mss: Option<u16>, known: &SequenceState, out: &mut FindingSink<'_>) {
        let Some(stall) = self.stall_detector.finish(self.far.shortest_timeout().max(MIN_SILENCE), out.now) else {
            return;
        };
        // A sender that waits for an answer sends again, but does not go on.
        if known.acked >= known.highest || stall.retransmissions == 0 || stall.goes_on {
            return;
        }
        let full = mss.map_or(MIN_FULL, |mss| u32::from(mss).saturating_sub(MAX_OPTIONS).max(MIN_FULL));
        let only_full = self.largest > self.largest_settled && self.largest >= full;
        let is_mtu = only_full && self.largest_settled > 0 && stall.retransmissions > 1;
        let what = if is_mtu { Incident::NoAnswerToFullSegments } else { Incident::NoAnswer };
        self.downstream.give_up(UnknownReason::CaptureEnds);
        Self::report_stall(what, stall, (known.acked, known.highest), out);
    }

    /// The connection was reset before: what passed later, or was outstanding, is not answered.
    pub(in crate::stream) fn on_refusal(&mut self) {
        self.stall_detector = StallDetector::default();
        self.downstream.give_up(UnknownReason::ConnectionReset);
    }

    /// Data that the sender must have sent, by its sequence numbers or ACKs, but that never passed. Called after `on_end`, before
    /// `finish`.
    pub(in crate::stream) fn on_tail(
        &mut self,
        end: u64,
        frame: u64,
        since: Instant,
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) {
        let from = self.ranges.end().max(known.highest);
        self.settle_hole((from, end), &CapturedSegment::new(since, frame, None, None), known, out);
    }

    /// Packets that passed but did not arrive and were never sent again. Called by `Data::finish` before the last ranges are
    /// settled.
    pub(super) fn report_unrepaired(&self, known: &SequenceState, out: &mut FindingSink<'_>) {
        let Some((since, to)) = self.downstream.waiting() else { return };
        let is_unrepaired = |range: &&Range| {
            matches!(range.delivery, Delivery::Open | Delivery::Missing)
                && !range.is_retransmitted()
                && range.start < to
        };
        let mut holes: Vec<(CapturedSegment, (u64, u64))> = Vec::new();
        for range in self.ranges.from(known.acked).take_while(|range| range.start < to).filter(is_unrepaired) {
            match holes.last_mut() {
                Some((_, bytes)) if bytes.1 == range.start => bytes.1 = range.end,
                _ => holes.push((range.first, (range.start, range.end))),
            }
        }
        for (seen, bytes) in &holes {
            // Other data may have waited for longer.
            self.report_unfilled(PathPart::Downstream, *bytes, seen, since.max(seen.at), out);
        }
        let next = self.ranges.from(known.acked).next();
        if let Some(above) = next.filter(|range| range.start > known.acked && range.start <= to) {
            let bytes = (known.acked, above.start);
            out.report(PathPart::Downstream, above.first, bytes, Verdict::Unknown(UnknownReason::CaptureLoss));
        }
    }
}
