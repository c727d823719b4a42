//! Reads captures packet by packet.

use std::io::Read;

use reknit_units::Instant;

use crate::analysis::Results;
use crate::filter::{Filter, Times};
use crate::packet::Reader;
use crate::stream::Log;
use crate::streams::Streams;
use crate::transit::Transits;
use crate::{Analysis, CapturePoint, Damage, DirectionReport, Error, Event, Frame, Frames, Mark, PathPart, Verdict};

/// The options of an analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Where the capture was made, in the direction of the data; none: inferred for each direction of each stream.
    pub at: Option<CapturePoint>,
    /// Whether to keep when each packet was sent and when it arrived.
    pub transits: bool,
    /// Whether to keep what passed, for pictures ([`Analyzer::marks`]).
    pub marks: bool,
    /// Which packets count. Connections keep the numbers that they have in the whole capture.
    pub filter: Filter,
}

/// Analyses the packets of a capture, in order.
#[derive(Debug, Default)]
pub struct Analyzer {
    pub(crate) options: Options,
    pub(crate) streams: Streams,
    log: Log,
    transits: Transits,
    /// Transits are kept only for this stream and the data that this end sent; none: for all.
    transits_of: Option<(u32, u8)>,
    pub(crate) reader: Reader,
    /// The times that count; none: all.
    times: Option<Times>,
    /// Reads packets at other times, for the numbers of their connections.
    outside: Reader,
    pub(crate) frames: u64,
    pub(crate) tcp: u64,
    /// Packets whose headers are cut off inside their options.
    pub(crate) cut: u64,
    pub(crate) span: Option<(u64, u64)>,
    /// Packets without a time, and packets with an earlier time than the packet before.
    pub(crate) timeless: u64,
    pub(crate) backwards: u64,
    pub(crate) damage: Option<Damage>,
}

impl Analyzer {
    /// An analysis with `options`.
    pub fn new(options: Options) -> Analyzer {
        let log =
            Log { transits: options.transits.then(Vec::new), marks: options.marks.then(Vec::new), ..Log::default() };
        Analyzer { options, log, times: options.filter.times(), ..Analyzer::default() }
    }

    /// Another analysis of the capture that an analysis with the same options has reported `direction` of. Its connection is
    /// analysed as before, with all that depends on the others; of these, as few as possible are. Transits are kept only for `direction`.
    pub fn again(options: Options, direction: &DirectionReport) -> Analyzer {
        let streams = direction.course.clone().map(|course| Streams::with(direction.stream, course));
        let transits_of = Some((direction.stream, direction.end));
        Analyzer { streams: streams.unwrap_or_default(), transits_of, ..Analyzer::new(options) }
    }

    /// Reads a whole capture: pcap or pcapng, plain or with gzip or zstd. `observer` sees every verdict, also those on
    /// sides of the capture point that do not count there.
    ///
    /// # Errors
    /// If nothing can be read. A capture that is damaged later on gives a partial result, which says so.
    pub fn read(&mut self, reader: impl Read, observer: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        let mut frames = Frames::new(reader)?;
        self.on_frames(&mut frames, observer);
        self.damage = frames.damage().cloned();
        Ok(())
    }

    fn on_frames(&mut self, frames: &mut Frames<'_>, observer: &mut dyn FnMut(&Event)) {
        while let Some(frame) = frames.next_frame() {
            self.on_frame(&frame, observer);
        }
    }

    /// The next frame.
    #[inline]
    pub fn on_frame(&mut self, frame: &Frame<'_>, observer: &mut dyn FnMut(&Event)) {
        self.log.marks.iter_mut().for_each(Vec::clear);
        if self.times.is_some() && !self.is_in_time(frame) {
            return;
        }
        self.frames += 1;
        let at = self.time_of(frame);
        let packets = self.reader.read(frame);
        self.tcp += packets.len() as u64;
        let has_none = packets.is_empty();
        for packet in packets {
            self.cut += u64::from(packet.segment.is_cut);
            self.streams.on_packet(packet, frame.number, Instant::from_nanos(at), &mut self.log);
        }
        if has_none {
            self.on_other(frame.number, Instant::from_nanos(at));
        }
        if !self.log.is_empty() {
            self.pass_on(observer);
        }
    }

    /// A frame without TCP: an ICMP message may be about a packet of TCP.
    #[cold]
    fn on_other(&mut self, frame: u64, now: Instant) {
        if let Some(too_big) = self.reader.take_too_big() {
            self.streams.on_too_big(&too_big, frame, now, &mut self.log);
        }
    }

    /// True if the frame was captured at a time that counts. If not, its connections get their numbers.
    #[cold]
    fn is_in_time(&mut self, frame: &Frame<'_>) -> bool {
        let last = self.span.map_or(0, |(_, last)| last);
        let Some(times) = &mut self.times else { return true };
        if times.contain(frame.at.unwrap_or(last)) {
            if self.frames == 0 {
                self.streams.resume();
            }
            return true;
        }
        let at = Instant::from_nanos(frame.at.unwrap_or(last));
        for packet in self.outside.read_any(frame) {
            self.streams.pass_by(packet, frame.number, at, &mut self.log);
        }
        self.log.events.clear();
        self.log.marks.iter_mut().for_each(Vec::clear);
        false
    }

    /// When the frame was captured; a frame without a time gets that of the frame before.
    #[inline]
    fn time_of(&mut self, frame: &Frame<'_>) -> u64 {
        let (_, last) = self.span.get_or_insert_with(|| frame.at.map_or((0, 0), |at| (at, at)));
        let Some(at) = frame.at else {
            self.timeless += 1;
            return *last;
        };
        self.backwards += u64::from(at < *last);
        *last = at.max(*last);
        at
    }

    /// Counts the events and passes them on. Called after each frame, and after each connection at the end.
    #[cold]
    fn pass_on(&mut self, observer: &mut dyn FnMut(&Event)) {
        for event in self.log.events.drain(..) {
            let end = usize::from(event.end);
            let stream = self.streams.get_mut(event.stream);
            let place = self.options.at.unwrap_or_else(|| stream.place(end).0);
            let event = event.seen_at(place);
            if let Some(data) = stream.data_mut(end) {
                if matches!(event.verdict, Verdict::Spurious(_)) && place.sees(event.side) {
                    data.rounds.on_spurious(event.frame);
                }
                data.tallies[event.side as usize].get_or_insert_default().add(&event);
            }
            observer(&event);
        }
        for transit in self.log.transits.iter_mut().flat_map(|transits| transits.drain(..)) {
            if self.transits_of.is_some_and(|wanted| wanted != (transit.stream, transit.end)) {
                continue;
            }
            let stream = self.streams.get_mut(transit.stream);
            let place = self.options.at.unwrap_or_else(|| stream.place(usize::from(transit.end)).0);
            if place.side_of_transits() == transit.side {
                self.transits.add(transit);
            }
        }
    }

    /// The marks of the last frame. Empty if the options do not ask for them.
    pub fn marks(&self) -> &[Mark] {
        self.log.marks.as_deref().unwrap_or_default()
    }

    /// When the packets were sent and when they arrived, as far as that is known by now.
    pub fn transits(&self) -> &Transits {
        &self.transits
    }

    /// The capture ends.
    pub fn finish(self, observer: &mut dyn FnMut(&Event)) -> Analysis {
        self.finish_with_transits(observer).0
    }

    /// The capture ends. The transits are empty if the options do not ask for them.
    pub fn finish_with_transits(mut self, observer: &mut dyn FnMut(&Event)) -> (Analysis, Transits) {
        let mut results = Results::default();
        let end = Instant::from_nanos(self.span.map_or(0, |(_, last)| last));
        let are_independent = self.streams.are_independent(&self.log);
        // Each connection is freed once it is reported: there may be many.
        for number in self.streams.all_numbers() {
            self.streams.get_mut(number).finish(end, &mut self.log);
            self.pass_on(observer);
            let first = are_independent.then(|| self.streams.first(number));
            results.add(&mut self.streams.take(number), first, &self.options);
        }
        let transits = std::mem::take(&mut self.transits);
        (Analysis::of(&self, results), transits)
    }
}

impl CapturePoint {
    /// True if verdicts on `side` count for a capture made here: at the sender nothing happens to packets before they
    /// are captured, and at the receiver nothing after; a packet whose bytes had passed counts only at the receiver, which did not need it.
    pub const fn sees(self, side: PathPart) -> bool {
        match side {
            PathPart::Upstream => !matches!(self, CapturePoint::Sender),
            PathPart::AtCapturePoint => matches!(self, CapturePoint::Receiver),
            PathPart::Downstream => !matches!(self, CapturePoint::Receiver),
            PathPart::Connection => true,
        }
    }
}
