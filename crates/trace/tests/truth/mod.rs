//! Compares verdicts with what really happened.

pub(crate) mod log;
pub(crate) mod world;

use std::collections::{BTreeMap, BTreeSet};

use log::{Log, Sent};
use reknit_tcp::scoreboard::SendReason;
use reknit_trace::{Analyzer, CapturePoint, Event, Options, PathPart, RetransmitReason, Verdict};

pub(crate) const PLACES: [CapturePoint; 3] = [CapturePoint::Sender, CapturePoint::Middle, CapturePoint::Receiver];

/// What happened to a packet, or what is said about it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Label {
    Lost,
    Reordered,
    Duplicated,
    Spurious,
}

/// A label, and on which side of the capture point it happened. For spurious retransmissions that does not count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Claim {
    pub(crate) label: Label,
    pub(crate) is_after: bool,
}

impl Claim {
    pub(crate) const fn before(label: Label) -> Claim {
        Claim { label, is_after: false }
    }

    pub(crate) const fn after(label: Label) -> Claim {
        Claim { label, is_after: true }
    }

    /// None: the verdict is that it cannot be told.
    fn of(event: &Event) -> Option<Claim> {
        let label = match event.verdict {
            // That the receiver did not keep it is not known before.
            Verdict::Lost | Verdict::Discarded => Label::Lost,
            Verdict::Reordered { .. } => Label::Reordered,
            Verdict::Duplicated => Label::Duplicated,
            Verdict::Spurious(_) => return Some(Claim::before(Label::Spurious)),
            Verdict::Unknown(_) | Verdict::Incident { .. } => return None,
        };
        Some(Claim { label, is_after: event.side == PathPart::Downstream })
    }
}

/// Packets by what happened and by the verdict.
#[derive(Clone, Debug, Default)]
pub(crate) struct Confusion {
    /// None: nothing happened, or nothing was said.
    pub(crate) cells: BTreeMap<(Option<Label>, Option<Label>), u64>,
    /// What happened where the verdict was "cannot tell".
    pub(crate) unknown: BTreeMap<Option<Label>, u64>,
    /// Verdicts that are right but for the side of the capture point.
    pub(crate) other_side: u64,
    /// Causes of spurious retransmissions: told rightly, told wrongly, not told.
    pub(crate) why: [u64; 3],
}

impl Confusion {
    fn sum(&self, which: impl Fn(Option<Label>, Option<Label>) -> bool) -> u64 {
        self.cells.iter().filter(|((truth, said), _)| which(*truth, *said)).map(|(_, count)| count).sum()
    }

    /// Things that happened.
    pub(crate) fn happened(&self) -> u64 {
        let unknown = self.unknown.iter().filter(|(label, _)| label.is_some()).map(|(_, count)| count);
        self.sum(|truth, _| truth.is_some()) + self.other_side + unknown.sum::<u64>()
    }

    /// The share of verdicts that are right, of those that commit themselves.
    pub(crate) fn right(&self) -> f64 {
        let right = self.sum(|truth, said| truth.is_some() && truth == said);
        let said = self.sum(|_, said| said.is_some()) + self.other_side;
        if said == 0 { 1.0 } else { right as f64 / said as f64 }
    }

    /// The share of what happened for which there is a verdict.
    pub(crate) fn committed(&self) -> f64 {
        let committed = self.sum(|truth, said| truth.is_some() && said.is_some()) + self.other_side;
        if self.happened() == 0 { 1.0 } else { committed as f64 / self.happened() as f64 }
    }

    /// Adds what was said about other packets.
    pub(crate) fn add(&mut self, other: &Confusion) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
        for (truth, count) in &other.unknown {
            *self.unknown.entry(*truth).or_default() += count;
        }
        for (sum, count) in self.why.iter_mut().zip(other.why) {
            *sum += count;
        }
        self.other_side += other.other_side;
    }

    /// Adds what was said about one packet.
    pub(crate) fn compare(&mut self, truth: &BTreeSet<Claim>, events: &[Event], sent: &Sent) {
        let mut said: BTreeSet<Claim> = events.iter().filter_map(Claim::of).collect();
        let mut unknown = events.iter().filter(|event| matches!(event.verdict, Verdict::Unknown(_))).count();
        let mut missed = truth.clone();
        for claim in truth.iter().filter(|claim| said.remove(claim)) {
            missed.remove(claim);
            *self.cells.entry((Some(claim.label), Some(claim.label))).or_default() += 1;
        }
        for claim in missed {
            if said.remove(&Claim { is_after: !claim.is_after, ..claim }) {
                self.other_side += 1;
            } else if let Some(wrong) = said.pop_first() {
                *self.cells.entry((Some(claim.label), Some(wrong.label))).or_default() += 1;
            } else if unknown > 0 {
                unknown -= 1;
                *self.unknown.entry(Some(claim.label)).or_default() += 1;
            } else {
                *self.cells.entry((Some(claim.label), None)).or_default() += 1;
            }
        }
        for claim in said {
            *self.cells.entry((None, Some(claim.label))).or_default() += 1;
        }
        if truth.is_empty() && unknown > 0 {
            *self.unknown.entry(None).or_default() += 1;
        }
        let whys = events.iter().filter_map(|event| match event.verdict {
            Verdict::Spurious(why) => Some(why),
            _ => None,
        });
        for (why, cause) in whys.zip(sent.cause) {
            self.compare_why(why, cause);
        }
    }

    /// Adds what was said about frames, each made of some frames of the whole capture.
    pub(crate) fn compare_frames(&mut self, log: &Log, tap: usize, events: &[Event], parts: &BTreeMap<u64, Vec<u64>>) {
        let mut said: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
        for event in events.iter().filter(|event| !matches!(event.verdict, Verdict::Incident { .. })) {
            said.entry(event.frame).or_default().push(*event);
        }
        let truth = log.truth(tap);
        for (frame, parts) in parts {
            let Some(passing) = log.frames[tap][*frame as usize - 1] else { continue };
            let claims: BTreeSet<Claim> = parts.iter().filter_map(|part| truth.get(part)).flatten().copied().collect();
            let said = said.get(frame).map_or(&[][..], Vec::as_slice);
            self.compare(&claims, said, &log.sent[passing.serial]);
        }
    }

    fn compare_why(&mut self, why: RetransmitReason, cause: SendReason) {
        let is_right = match why {
            RetransmitReason::Timeout => cause == SendReason::Timeout,
            RetransmitReason::Probe => cause == SendReason::Probe,
            RetransmitReason::FastRetransmit => !matches!(cause, SendReason::Timeout | SendReason::Probe),
            RetransmitReason::Unknown => {
                self.why[2] += 1;
                return;
            }
        };
        self.why[usize::from(!is_right)] += 1;
    }
}

/// A capture and what was made of it.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) confusion: Confusion,
    /// Every packet with data.
    pub(crate) packets: Vec<Told>,
}

/// What happened to a packet, and what is said about it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) frame: u64,
    pub(crate) truth: BTreeSet<Claim>,
    pub(crate) said: Vec<Event>,
}

impl Told {
    /// What is said where the tool commits itself.
    pub(crate) fn claims(&self) -> BTreeSet<Claim> {
        self.said.iter().filter_map(Claim::of).collect()
    }

    /// True if something else is said than happened.
    pub(crate) fn is_wrong(&self) -> bool {
        self.claims() != self.truth
    }
}

/// Analyses a capture, and compares the verdicts with the truth. The place is given: whether it is inferred rightly is
/// another question.
pub(crate) fn judge(file: &[u8], log: &Log, tap: usize) -> Judged {
    let place = PLACES[tap];
    let mut events = Vec::new();
    let mut analyzer = Analyzer::new(Options { at: Some(place), ..Options::default() });
    analyzer.read(file, &mut |event| events.push(*event)).expect("a good capture");
    analyzer.finish(&mut |event| events.push(*event));
    let mut said: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
    let is_about_packet = |event: &Event| !matches!(event.verdict, Verdict::Incident { .. });
    for event in events.into_iter().filter(|event| place.sees(event.side) && is_about_packet(event)) {
        said.entry(event.frame).or_default().push(event);
    }
    let (mut confusion, mut packets) = (Confusion::default(), Vec::new());
    for (frame, truth) in log.truth(tap) {
        let said = said.remove(&frame).unwrap_or_default();
        let serial = log.frames[tap][frame as usize - 1].expect("a packet with data").serial;
        confusion.compare(&truth, &said, &log.sent[serial]);
        packets.push(Told { frame, truth, said });
    }
    for claim in said.values().flatten().filter_map(Claim::of) {
        *confusion.cells.entry((None, Some(claim.label))).or_default() += 1;
    }
    Judged { confusion, packets }
}
