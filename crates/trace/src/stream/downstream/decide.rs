//! The verdicts on ranges that are being forgotten, by what the acknowledgments have said about them. Called by `Data::decide`
//! for each range with anything to decide, after `Upstream::decide` and before `decide_repeats`. The range has been removed from the
//! `Ranges` of `Data`; the rulings go into its `Pieces`.

use std::cmp::Ordering;

use reknit_units::Duration;

use super::super::known::SequenceState;
use super::super::log::FindingSink;
use super::super::pieces::{Pieces, TransmissionVerdict};
use super::super::ranges::{Delivery, Evidence, Range};
use super::super::round_trip::RoundTrip;
use super::super::sighting::CapturedSegment;
use super::Downstream;
use crate::transit::{Departure, PacketFate};
use crate::{PathPart, UnknownReason, Verdict};

/// After this many retransmissions without a DSACK that was due, the receiver is assumed not to report duplicates.
const MAX_MISSING: u32 = 3;
/// If one report is missing for every this many, reports cannot be relied on.
const MAX_UNREPORTED: u64 = 5;
/// The share of losses that may be wrong because the capture missed a DSACK.
const MAX_WRONG: f64 = 0.01;

/// What is known when a range is settled.
#[derive(Clone, Copy, Debug)]
pub(in crate::stream) struct DecisionContext<'a> {
    pub(in crate::stream) known: &'a SequenceState,
    /// The share of packets that the capture missed.
    pub(in crate::stream) loss: f64,
    pub(in crate::stream) round_trip: &'a RoundTrip,
}

impl Downstream {
    /// The verdict on a range that is being forgotten: no more DSACKs for it are expected.
    pub(in crate::stream) fn decide(
        &mut self,
        range: &Range,
        with: &DecisionContext<'_>,
        pieces: &mut Pieces,
        out: &mut FindingSink<'_>,
    ) {
        let DecisionContext { known, loss, .. } = *with;
        if out.log.transits.is_some() {
            self.report_transits(range, known.may_report, out);
        }
        if range.is_delivered() {
            self.disorder.on_settled(range.place_there, range.first.frame);
        }
        if range.is_plain() && self.doubtful.is_empty() {
            return;
        }
        if let Some(late) = self.doubtful.remove(&range.start) {
            decide_late(range, late, loss, out);
        }
        if range.start < known.unseen_below {
            return;
        }
        let bytes = (range.start, range.end);
        match range.delivery {
            Delivery::Open | Delivery::Missing
                if range.is_retransmitted() && self.given_up.is_none() && !range.last_sent().is_too_big() =>
            {
                pieces.add(
                    PathPart::Downstream,
                    &range.first,
                    bytes,
                    TransmissionVerdict::Unknown(UnknownReason::CaptureEnds),
                );
            }
            Delivery::Open | Delivery::Missing | Delivery::Refused => {}
            Delivery::Likely { by, evidence } => self.decide_replaced(range, usize::from(by), evidence, with, pieces),
            Delivery::Clear => {
                let is_due =
                    range.is_retransmitted() && range.duplicates == 0 && !self.has_hidden_since(range.delivered_at);
                self.missing = self.missing.saturating_add(u32::from(is_due));
                rule_spurious(range, 0, pieces);
                if usize::from(range.duplicates) > range.again.len() {
                    let verdict = if range.first.is_beginning() {
                        Verdict::Unknown(UnknownReason::BeforeCapture)
                    } else if loss > 0.0 {
                        Verdict::Unknown(UnknownReason::CaptureLoss)
                    } else {
                        Verdict::Duplicated
                    };
                    out.report(PathPart::Downstream, range.first, bytes, verdict);
                }
            }
        }
    }

    /// A range that the retransmission `by` has delivered, unless the receiver does not report duplicates.
    fn decide_replaced(
        &mut self,
        range: &Range,
        by: usize,
        evidence: Evidence,
        with: &DecisionContext<'_>,
        pieces: &mut Pieces,
    ) {
        let DecisionContext { known, loss, round_trip } = *with;
        let (bytes, by_echo) = ((range.start, range.end), evidence == Evidence::Echo);
        let brought = range.again.get(by - 1);
        if let Some(again) = brought {
            pieces.add(PathPart::Downstream, &again.seen, bytes, TransmissionVerdict::Needed);
        }
        rule_spurious(range, by, pieces);
        let earlier = || std::iter::once(&range.first).chain(range.again.iter().take(by - 1).map(|again| &again.seen));
        if earlier().all(CapturedSegment::is_too_big) {
            return; // as the router has said
        }
        // Without a bound, the shortest round trip so far is the best estimate.
        let least = if round_trip.bound().is_none() { round_trip.least().unwrap_or_default() } else { Duration::ZERO };
        let is_soon = brought.is_some_and(|again| range.delivered_at.since(again.seen.at) < least.mul_f64(0.9));
        let unknown = if !by_echo && is_soon {
            Some(UnknownReason::SameHeaders)
        } else if !by_echo && self.has_hidden_since(range.delivered_at) {
            Some(UnknownReason::Truncated)
        } else if !by_echo && !self.would_report(range, known.may_report) {
            Some(UnknownReason::NoDuplicateReports)
        } else if !by_echo && evidence == Evidence::Doubtful {
            Some(UnknownReason::AcksMissing)
        } else {
            (!by_echo && self.may_lack_reports(loss)).then_some(UnknownReason::CaptureLoss)
        };
        if let Some(reason) = unknown {
            pieces.add(PathPart::Downstream, &range.first, bytes, TransmissionVerdict::Unknown(reason));
            return;
        }
        self.lost += 1;
        let replaced_by = brought.map(|again| again.seen.frame);
        if !range.first.is_too_big() {
            pieces.add(PathPart::Downstream, &range.first, bytes, TransmissionVerdict::Lost(replaced_by));
        }
        let before = range.again.iter().take(by - 1);
        for again in before.filter(|again| again.what.is_sent_again() && !again.seen.is_too_big()) {
            pieces.add(PathPart::Downstream, &again.seen, bytes, TransmissionVerdict::Lost(replaced_by));
        }
    }

    /// Reports when the transmissions of an acknowledged range were sent and whether they arrived.
    fn report_transits(&self, range: &Range, may_report: bool, out: &mut FindingSink<'_>) {
        let (by, is_sure) = match range.delivery {
            Delivery::Open | Delivery::Missing | Delivery::Refused => return,
            Delivery::Clear => (0, true),
            Delivery::Likely { by, evidence } => {
                let is_sure = match evidence {
                    Evidence::Echo => true,
                    Evidence::Time => self.would_report(range, may_report),
                    Evidence::Doubtful => false,
                };
                (usize::from(by), is_sure)
            }
        };
        let transmissions = std::iter::once(range.first.at).chain(range.again.iter().map(|again| again.seen.at));
        for (i, sent) in transmissions.enumerate() {
            let outcome = match i.cmp(&by) {
                Ordering::Less if is_sure && !range.first.is_too_big() => PacketFate::Lost,
                Ordering::Equal => PacketFate::Arrived(range.delivered_at),
                Ordering::Less | Ordering::Greater => PacketFate::Unknown,
            };
            // Data that was acknowledged before it was captured has no transit downstream of the capture point.
            if range.delivered_at > sent || i > by {
                out.travelled(PathPart::Downstream, range, Departure::At(sent), outcome, i > 0);
            }
        }
    }

    /// True if the receiver would have reported a duplicate of this range: it reports nearly all of them. Under heavy reordering
    /// some receivers combine acknowledgments, and each ACK reports one duplicate. Without reports, an acknowledgment without
    /// news would have answered a duplicate.
    fn would_report(&self, range: &Range, may_report: bool) -> bool {
        if self.has_hidden_since(range.delivered_at) {
            return false;
        }
        if self.duplicates > 0 {
            return self.missing < MAX_MISSING || u64::from(self.missing) * MAX_UNREPORTED < self.duplicates;
        }
        let is_expected = may_report || self.has_sack;
        range.duplicates == 0 && (!is_expected || self.missing < MAX_MISSING)
    }

    /// True if the capture missed so many packets that a DSACK may be among them.
    fn may_lack_reports(&self, loss: f64) -> bool {
        loss * self.duplicates as f64 > MAX_WRONG * (self.lost + 1) as f64
    }
}

/// A range that was late by more than a round trip.
fn decide_late(range: &Range, (packets, late): (u32, Duration), loss: f64, out: &mut FindingSink<'_>) {
    let verdict = if packets == 0 || loss > 0.0 {
        Verdict::Unknown(UnknownReason::CaptureLoss)
    } else {
        Verdict::Reordered { packets, late }
    };
    out.report(PathPart::Downstream, range.first, (range.start, range.end), verdict);
}

/// All retransmissions after transmission `by`, which arrived, were not needed.
fn rule_spurious(range: &Range, by: usize, pieces: &mut Pieces) {
    for again in range.again.iter().skip(by).filter(|again| again.what.is_sent_again()) {
        pieces.add(
            PathPart::Downstream,
            &again.seen,
            (range.start, range.end),
            TransmissionVerdict::Spurious(again.why),
        );
    }
}
