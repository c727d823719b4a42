//! Follows connections on live traffic: the same verdicts, in memory that stays bounded however long it runs.

use std::collections::BTreeMap;

use reknit_units::{Duration, Instant};

use crate::packet::{Endpoint, Packet, Reader, TooBig};
use crate::stream::{Log, Stream};
use crate::{CapturePoint, Confidence, DirectionReport, Frame, Incident, Verdict};

/// Flows that are followed. If there are more, those that have been idle longest are forgotten.
pub const MAX_FLOWS: usize = 4096;
/// Directions whose cost is compared with the rate of the bottleneck, which takes some time.
const MAX_COMPARED: usize = 32;
/// The share of the flows that is forgotten at once.
const AT_ONCE: usize = 16;
/// Ranges of data that one direction may remember, and all together; beyond the budget, each keeps few.
const MAX_RANGES: usize = 1 << 15;
const BUDGET: usize = 1 << 18;
const FEW_RANGES: usize = 16;
/// Arrivals that one direction remembers: larger reordering extents are reported as this number.
const ARRIVALS: usize = 1024;
/// How long a flow may be idle.
const IDLE: Duration = Duration::from_secs(600);
/// The same after a FIN or RST.
const CLOSED: Duration = Duration::from_secs(30);

/// The two ends, the smaller first.
type Key = (Endpoint, Endpoint);

/// Counts since the beginning, of all flows, forgotten ones included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Packets of all kinds.
    pub packets: u64,
    /// TCP packets.
    pub tcp_packets: u64,
    /// Bytes of TCP payload.
    pub bytes: u64,
    /// Flows that began.
    pub flows: u64,
    /// Packets that were skipped because they had been captured before, for example on another interface.
    pub copies: u64,
    /// Flows that were forgotten although they were not over, because there were too many.
    pub forgotten: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Packets that were late.
    pub reordered: u64,
    /// Duplicates made by the network.
    pub duplicated: u64,
    /// Spurious retransmissions.
    pub spurious: u64,
    /// Packets that arrived, but that the receiver did not keep.
    pub discarded: u64,
    /// Packets without a verdict: the traffic does not show what happened to them.
    pub cannot_tell: u64,
    /// What happened to connections, in the order of [`Incident::ALL`].
    pub incidents: [u64; Incident::ALL.len()],
}

/// Analyses packets as they pass.
#[derive(Debug, Default)]
pub struct Watcher {
    at: Option<CapturePoint>,
    reader: Reader,
    flows: BTreeMap<Key, Stream>,
    /// Flows that were open when the traffic ended.
    finished: Vec<Stream>,
    log: Log,
    totals: Totals,
    last: Instant,
}

impl Watcher {
    /// `at`: where the packets are captured, in the direction of the data; none: inferred for each direction of each flow.
    pub fn new(at: Option<CapturePoint>) -> Watcher {
        Watcher { at, ..Watcher::default() }
    }

    /// The next frame.
    pub fn on_frame(&mut self, frame: &Frame<'_>) {
        self.totals.packets += 1;
        let now = frame.at.map_or(self.last, Instant::from_nanos).max(self.last);
        self.last = now;
        let mut reader = std::mem::take(&mut self.reader);
        for packet in reader.read(frame) {
            self.on_packet(packet, frame.number, now);
        }
        if let Some(too_big) = reader.take_too_big() {
            self.on_too_big(&too_big, frame.number, now);
        }
        self.reader = reader;
    }

    /// A router says that a packet was too big.
    fn on_too_big(&mut self, too_big: &TooBig, frame: u64, now: Instant) {
        let Some(flow) = self.flows.get_mut(&key(&too_big.packet)) else { return };
        flow.on_too_big(too_big, frame, now, &mut self.log);
        Self::count(self.at, flow, &mut self.log, &mut self.totals);
    }

    fn on_packet(&mut self, packet: &Packet, frame: u64, now: Instant) {
        self.totals.tcp_packets += 1;
        self.totals.bytes += u64::from(packet.segment.len);
        let key = key(packet);
        if self.flows.get(&key).is_some_and(|flow| flow.is_replaced_by(packet)) {
            self.end(key);
        }
        if !self.flows.contains_key(&key) {
            self.add(key, packet, now);
        }
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let most_ranges = if self.log.remembered < BUDGET { MAX_RANGES } else { FEW_RANGES };
        let copies = flow.copies();
        flow.on_packet(packet, frame, now, most_ranges, &mut self.log);
        self.totals.copies += flow.copies() - copies;
        Self::count(self.at, flow, &mut self.log, &mut self.totals);
    }

    /// Time passes. Call it about once a second.
    pub fn on_tick(&mut self, now: Instant) {
        let now = now.max(self.last);
        self.last = now;
        let mut over = Vec::new();
        for (key, flow) in &mut self.flows {
            flow.on_tick(now, &mut self.log);
            Self::count(self.at, flow, &mut self.log, &mut self.totals);
            let most = if flow.is_closing() { CLOSED } else { IDLE };
            if now.since(flow.last) > most {
                over.push(*key);
            }
        }
        for key in over {
            self.end(key);
        }
    }

    /// The time of the last packet, or of the last tick if that is later.
    pub fn now(&self) -> Instant {
        self.last
    }

    /// Counts since the beginning.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The traffic has ended: decides what can be decided, as at the end of a capture. [`Watcher::worst`] still knows the flows.
    pub fn finish(&mut self) {
        for mut flow in std::mem::take(&mut self.flows).into_values() {
            self.settle(&mut flow);
            self.finished.push(flow);
        }
    }

    /// Flows that are followed now, and those that were when the traffic ended.
    pub fn len(&self) -> usize {
        self.flows.len() + self.finished.len()
    }

    /// True if no flow is followed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The directions to which something happened, the worst first, at most `most`. The number of a stream is unique. The
    /// first 32 know the rate of the bottleneck and what to do.
    pub fn worst(&self, most: usize) -> Vec<DirectionReport> {
        let mut reports: Vec<(DirectionReport, &Stream)> = Vec::new();
        for flow in self.flows.values().chain(&self.finished) {
            for end in 0..2 {
                let (place, confidence) = place(self.at, flow, end);
                let Some(data) = flow.direction(end).data() else { continue };
                let counted = data.tallies.iter().zip(crate::SIDES).filter(|(_, side)| place.sees(*side));
                if counted.flat_map(|(tally, _)| tally).map(|tally| tally.all()).sum::<u64>() > 0 {
                    reports.extend(DirectionReport::of(flow, end, (place, confidence)).map(|report| (report, flow)));
                }
            }
        }
        reports.sort_by(|(a, _), (b, _)| b.severity().total_cmp(&a.severity()).then(a.stream.cmp(&b.stream)));
        reports.truncate(most);
        for (report, flow) in reports.iter_mut().take(MAX_COMPARED) {
            report.conclude(flow.direction(report.end.into()));
        }
        reports.into_iter().map(|(report, _)| report).collect()
    }

    fn add(&mut self, key: Key, packet: &Packet, now: Instant) {
        if self.flows.len() >= MAX_FLOWS {
            let mut by_age: Vec<(Instant, Key)> = self.flows.iter().map(|(key, flow)| (flow.last, *key)).collect();
            by_age.sort_unstable();
            for (_, oldest) in by_age.into_iter().take(MAX_FLOWS / AT_ONCE) {
                self.totals.forgotten += 1;
                self.end(oldest);
            }
        }
        let mut stream = Stream::new(self.totals.flows as u32, packet, now);
        stream.limit(ARRIVALS);
        self.totals.flows += 1;
        self.flows.insert(key, stream);
    }

    /// Ends a flow and counts what could only be decided now.
    fn end(&mut self, key: Key) {
        if let Some(mut flow) = self.flows.remove(&key) {
            self.settle(&mut flow);
        }
    }

    /// Counts what can only be decided at the end of a flow.
    fn settle(&mut self, flow: &mut Stream) {
        flow.finish(self.last, &mut self.log);
        Self::count(self.at, flow, &mut self.log, &mut self.totals);
        flow.end_runs();
    }

    fn count(at: Option<CapturePoint>, flow: &mut Stream, log: &mut Log, totals: &mut Totals) {
        for event in log.events.drain(..) {
            let end = usize::from(event.end);
            let (place, _) = place(at, flow, end);
            let event = event.seen_at(place);
            let is_spurious = matches!(event.verdict, Verdict::Spurious(_));
            if let Some(data) = flow.data_mut(end) {
                data.tallies[event.side as usize].get_or_insert_default().add(&event);
                if is_spurious && place.sees(event.side) {
                    data.rounds.on_spurious(event.frame);
                }
            }
            if !place.sees(event.side) {
                continue;
            }
            *match event.verdict {
                Verdict::Lost => &mut totals.lost,
                Verdict::Reordered { .. } => &mut totals.reordered,
                Verdict::Duplicated => &mut totals.duplicated,
                Verdict::Spurious(_) => &mut totals.spurious,
                Verdict::Unknown(_) => &mut totals.cannot_tell,
                Verdict::Discarded => &mut totals.discarded,
                Verdict::Incident { what, .. } => &mut totals.incidents[what as usize],
            } += 1;
        }
    }
}

fn place(at: Option<CapturePoint>, stream: &Stream, end: usize) -> (CapturePoint, Confidence) {
    at.map_or_else(|| stream.place(end), |place| (place, Confidence::Given))
}

fn key(packet: &Packet) -> Key {
    if packet.source <= packet.destination {
        (packet.source, packet.destination)
    } else {
        (packet.destination, packet.source)
    }
}
