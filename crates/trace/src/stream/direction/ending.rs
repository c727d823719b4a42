//! The end of a direction: resets, and what is still open when the connection or the capture ends. Called by `Stream` at a RST and at
//! the end of the capture.

use reknit_units::{Duration, Instant};

use super::super::arrival::Arrival;
use super::super::data::Data;
use super::super::keep_alive::{KeepAlives, Unanswered};
use super::super::known::SequenceState;
use super::super::log::{Finding, FindingSink};
use super::{Begins, Direction, counted};
use crate::{Incident, PathPart};

/// A reset whose sequence number is further ahead than this says nothing about what was sent.
pub(super) const MAX_AHEAD: u64 = 1 << 24;

impl Direction {
    fn report_unanswered(&mut self, what: Incident, unanswered: Unanswered, out: &mut FindingSink<'_>) {
        let Unanswered { count, frame, at } = unanswered;
        let lasted = out.now.since(at);
        self.report(&Finding { what, side: PathPart::Connection, frame, at, bytes: (0, 0), count, lasted }, out);
    }

    /// The sender resets the connection: outstanding data will not be answered. `seq` is what it would have sent next.
    #[cold]
    pub(super) fn on_reset(&mut self, seq: u64, arrival: &Arrival<'_>) {
        let is_known = self.known.highest > 0 && seq > self.known.announced;
        if is_known && seq - self.known.announced < MAX_AHEAD {
            let since = if self.last.1 == Instant::ZERO { arrival.now } else { self.last.1 };
            (self.known.announced, self.last) = (seq, (arrival.frame, since));
        }
    }

    /// The receiver resets the connection, which answers the FIN.
    #[cold]
    pub(in crate::stream) fn on_reset_by_receiver(&mut self) {
        self.fins = KeepAlives::default();
    }

    /// Data that was sent but did not pass is not missed. Called when this end resets a connection that the other has closed.
    #[cold]
    pub(in crate::stream) fn forget_tail(&mut self) {
        self.known.announced = self.known.highest;
    }

    /// The connection is over: called at a RST before it is reported, and at the end of the capture. `mss`: the segment size that
    /// the other end announced.
    #[cold]
    pub(in crate::stream) fn on_end(&mut self, mss: Option<u16>, out: &mut FindingSink<'_>) {
        if let Some(unanswered) = self.keep_alives.finish() {
            self.report_unanswered(Incident::KeepAlives, unanswered, out);
        }
        let is_waiting = self.fin.is_some_and(|fin| self.known.acked == fin);
        if let Some(fins) = self.fins.finish().filter(|_| is_waiting) {
            self.report_unanswered(Incident::NoAnswer, fins, out);
        }
        if let Some(data) = &mut self.data {
            data.on_end(mss, &self.known, out);
        }
    }

    /// The capture ends: decides what can be decided. `is_reset`: the connection has ended before.
    pub(in crate::stream) fn finish(&mut self, is_reset: bool, mss: Option<u16>, out: &mut FindingSink<'_>) {
        if !is_reset {
            self.on_end(mss, out);
        } else if let Some(data) = &mut self.data {
            data.on_refusal();
        }
        if let Some(closed) = self.window.open(out.now) {
            self.report_closed(&closed, out);
        }
        self.report_unseen(out);
        self.finish_tail(out);
        if let Some(data) = &mut self.data {
            counted(data, out, |data, out| data.finish(&self.known, out));
        }
    }

    /// Data that was announced by the sender or acknowledged, but did not pass. Called by `finish`, after `on_end`.
    fn finish_tail(&mut self, out: &mut FindingSink<'_>) {
        let end = self.fin.unwrap_or(u64::MAX).min(self.known.announced.max(self.known.acked));
        if self.known.highest == 0 || end <= self.known.highest.max(self.known.unseen_below) {
            return;
        }
        let Direction { known, bound, first_offset, most_arrivals, last, .. } = self;
        let new = || Box::new(Data::new(*first_offset, known, *bound, out.now, *most_arrivals));
        let data = self.data.get_or_insert_with(new);
        data.on_tail(end, last.0, last.1, known, out);
    }

    /// Only the acknowledgments were captured. Called by `finish`, before the data is settled.
    fn report_unseen(&mut self, out: &mut FindingSink<'_>) {
        let Some(bytes) = self.unseen() else { return };
        let (what, side, (frame, at)) = (Incident::NotCaptured, PathPart::Connection, self.last);
        let finding = Finding { what, side, frame, at, bytes, count: 1, lasted: Duration::ZERO };
        self.report(&finding, out);
    }

    /// Another connection between the same ports begins in mid-air, with this sequence number: what was left of the first is
    /// decided. Its numbers follow those of the first.
    pub(in crate::stream) fn begin_again(
        &mut self,
        seq: u32,
        is_reset: bool,
        mss: Option<u16>,
        out: &mut FindingSink<'_>,
    ) {
        self.finish(is_reset, mss, out);
        if let Some(data) = &mut self.data {
            data.begin_again();
        }
        self.acknowledged_before = self.acknowledged();
        let SequenceState { far, near, may_report, .. } = self.known;
        self.known = SequenceState { far, near, may_report, ..SequenceState::default() };
        (self.begins, self.first_seq, self.fin, self.last) = (Begins::NotYet, None, None, (0, Instant::ZERO));
        self.window.begin_again();
        self.numbers.begin_again(seq);
    }
}
