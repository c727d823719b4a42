//! Events that have not been passed on yet. They are written through [`FindingSink`] while a packet is processed; `Analyzer` and
//! `Watcher` drain them after each packet, and after each connection at the end. Owned by `Analyzer` and `Watcher`.

use reknit_units::{Duration, Instant};

use super::numbers::ORIGIN;
use super::ranges::Range;
use super::sighting::CapturedSegment;
use crate::transit::{Departure, PacketFate};
use crate::{Event, Incident, Mark, Passed, PathPart, Transit, Verdict};

/// The events of all connections.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) events: Vec<Event>,
    /// None unless the options ask for them.
    pub(crate) transits: Option<Vec<Transit>>,
    /// None unless the options ask for them.
    pub(crate) marks: Option<Vec<Mark>>,
    /// How many ranges all directions together remember.
    pub(crate) remembered: usize,
    /// Packets that all directions together have sampled.
    pub(crate) sampled: usize,
    /// Rests of all connections together.
    pub(crate) rests: usize,
}

impl Log {
    /// True if there is nothing to pass on.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.transits.as_ref().is_none_or(Vec::is_empty)
    }
}

/// The log, for findings about one direction.
pub(super) struct FindingSink<'a> {
    pub(super) stream: u32,
    pub(super) end: u8,
    pub(super) now: Instant,
    pub(super) log: &'a mut Log,
}

/// An incident of the connection rather than of a single packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding {
    pub(super) what: Incident,
    pub(super) side: PathPart,
    /// The packet that shows it, and when it passed.
    pub(super) frame: u64,
    pub(super) at: Instant,
    /// The affected data, as offsets; empty if there is none.
    pub(super) bytes: (u64, u64),
    pub(super) count: u32,
    pub(super) lasted: Duration,
}

impl FindingSink<'_> {
    /// Reports when the data of `range` was sent, for the first time or again, and what became of that packet. Called as `range`
    /// is settled.
    pub(super) fn travelled(
        &mut self,
        side: PathPart,
        range: &Range,
        sent: Departure,
        outcome: PacketFate,
        is_retransmission: bool,
    ) {
        let (stream, end, len) = (self.stream, self.end, (range.end - range.start) as u32);
        let settled = match outcome {
            PacketFate::Arrived(at) => range.delivered_at.max(at),
            PacketFate::Lost | PacketFate::Unknown => range.delivered_at,
        };
        if let Some(transits) = &mut self.log.transits {
            transits.push(Transit { stream, end, side, sent, outcome, is_retransmission, settled, len });
        }
    }

    /// Reports what passes now, for pictures.
    pub(super) fn mark(&mut self, frame: u64, (from, to): (u64, u64), what: Passed) {
        let (stream, end, at) = (self.stream, self.end, self.now);
        if let Some(marks) = &mut self.log.marks {
            let [from, to] = [from, to].map(|offset| offset.saturating_sub(ORIGIN));
            marks.push(Mark { stream, end, frame, at, from, to, what });
        }
    }

    /// Reports the verdict on the packet that was seen as `seen`, which carries these bytes.
    pub(super) fn report(&mut self, side: PathPart, seen: CapturedSegment, bytes: (u64, u64), verdict: Verdict) {
        self.report_replaced(side, seen, bytes, verdict, None);
    }

    /// The same, with the frame of the packet that replaced it.
    pub(super) fn report_replaced(
        &mut self,
        side: PathPart,
        seen: CapturedSegment,
        bytes: (u64, u64),
        verdict: Verdict,
        replaced_by: Option<u64>,
    ) {
        let event = Event {
            stream: self.stream,
            end: self.end,
            side,
            frame: seen.frame,
            at: seen.at,
            decided: self.now,
            offset: bytes.0.saturating_sub(ORIGIN),
            len: (bytes.1 - bytes.0) as u32,
            verdict,
            replaced_by,
        };
        // The pieces of a packet that has been split have the same history.
        let is_same = |other: &Event| {
            (other.frame, other.side, other.end) == (event.frame, side, event.end)
                && std::mem::discriminant(&other.verdict) == std::mem::discriminant(&verdict)
        };
        if !self.log.events.last().is_some_and(is_same) {
            self.log.events.push(event);
        }
    }

    /// Reports an incident of the connection.
    pub(super) fn incident(&mut self, finding: &Finding) {
        let Finding { what, side, frame, at, bytes, count, lasted } = *finding;
        self.log.events.push(Event {
            stream: self.stream,
            end: self.end,
            side,
            frame,
            at,
            decided: self.now,
            offset: bytes.0.saturating_sub(ORIGIN),
            len: u32::try_from(bytes.1.saturating_sub(bytes.0)).unwrap_or(u32::MAX),
            verdict: Verdict::Incident { what, count, lasted },
            replaced_by: None,
        });
    }
}
