//! Compares verdicts with what the simulator knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use reknit_path::{Phases, Profile};
use reknit_sim::{Datagram, End, Look, Scenario, TraceEvent, Tracer, run_traced, tcp_config};
use reknit_tcp::scoreboard::Cause;
use reknit_trace::{Analysis, Analyzer, Event, Frame, Options, Place, Verdict, Why};
use reknit_units::{Duration, Instant};
use reknit_wire::{Endpoints, encode};

/// What happened to a packet, or what is said about it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Label {
    Lost,
    Reordered,
    Duplicated,
    Spurious,
}

/// Packets by what happened and by the verdict.
#[derive(Clone, Debug, Default)]
pub(crate) struct Confusion {
    /// None: nothing happened, or nothing was said.
    pub(crate) cells: BTreeMap<(Option<Label>, Option<Label>), u64>,
    /// What happened where the verdict was "cannot tell".
    pub(crate) unknown: BTreeMap<Option<Label>, u64>,
    /// Causes of spurious retransmissions: told rightly, told wrongly, not told.
    pub(crate) why: [u64; 3],
}

impl Confusion {
    fn sum(&self, which: impl Fn(Option<Label>, Option<Label>) -> bool) -> u64 {
        self.cells.iter().filter(|((truth, said), _)| which(*truth, *said)).map(|(_, count)| count).sum()
    }

    /// Adds the counts of another run.
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
    }

    /// A table of what happened and what was said.
    pub(crate) fn markdown(&self) -> String {
        let labels = [
            (Some(Label::Lost), "lost"),
            (Some(Label::Reordered), "reordered"),
            (Some(Label::Duplicated), "copied"),
            (Some(Label::Spurious), "spurious retransmission"),
            (None, "nothing"),
        ];
        let names = labels.map(|(_, name)| name).join(" | ");
        let mut text = format!("| happened, said | {names} | cannot tell |\n|---|---|---|---|---|---|---|\n");
        for (truth, name) in labels {
            let _ = write!(text, "| {name} |");
            for (said, _) in labels {
                let count = self.cells.get(&(truth, said)).copied().unwrap_or_default();
                let _ = if truth == said && truth.is_none() { write!(text, " |") } else { write!(text, " {count} |") };
            }
            let _ = writeln!(text, " {} |", self.unknown.get(&truth).copied().unwrap_or_default());
        }
        let [right, wrong, untold] = self.why;
        let _ = writeln!(
            text,
            "\nOf {} events, {:.2} % have a verdict; of the verdicts, {:.2} % are right. The cause of a spurious retransmission is \
             told rightly\n{right} times, wrongly {wrong} times, and not told {untold} times.",
            self.happened(),
            100.0 * self.committed(),
            100.0 * self.right(),
        );
        text
    }

    /// Things that happened.
    pub(crate) fn happened(&self) -> u64 {
        self.sum(|truth, _| truth.is_some())
            + self.unknown.iter().filter(|(l, _)| l.is_some()).map(|(_, n)| n).sum::<u64>()
    }

    /// The share of verdicts that are right, of those that commit themselves.
    pub(crate) fn right(&self) -> f64 {
        let right = self.sum(|truth, said| truth.is_some() && truth == said);
        right as f64 / self.sum(|_, said| said.is_some()).max(1) as f64
    }

    /// The share of what happened for which there is a verdict.
    pub(crate) fn committed(&self) -> f64 {
        let committed = self.sum(|truth, said| truth.is_some() && said.is_some());
        committed as f64 / self.happened().max(1) as f64
    }
}

/// A data packet of the run.
#[derive(Clone, Debug, Default)]
struct Sent {
    flow: u32,
    segment: u32,
    number: u16,
    timeout: bool,
    probe: bool,
    delivered: u32,
    lost: bool,
    reordered: bool,
    /// The receiver's TCP discarded it for its old timestamp (PAWS), and did not report it as a duplicate.
    discarded: bool,
}

/// A packet at a point of capture.
#[derive(Clone, Copy, Debug)]
struct Tapped {
    serial: u64,
    /// It is a data packet of the forward direction.
    is_data: bool,
    /// A copy of it passed before.
    is_copy: bool,
}

struct Tap {
    analyzer: Analyzer,
    packets: Vec<Tapped>,
    events: Vec<Event>,
}

impl Tap {
    fn new(place: Place) -> Tap {
        Tap {
            analyzer: Analyzer::new(Options { at: Some(place), ..Options::default() }),
            packets: Vec::new(),
            events: Vec::new(),
        }
    }
}

/// Captures at both ends, analysed at once, with the truth.
struct Recorder {
    taps: [Tap; 2],
    sent: BTreeMap<u64, Sent>,
    /// For each flow, the last serial of all first transmissions that have arrived.
    newest: BTreeMap<u32, u64>,
    /// The last data packet that was delivered, and the packets that PAWS had discarded before.
    last: Option<u64>,
    discards: u64,
    duplicates: u64,
    /// IP identifications of the packets of each end.
    has_ip_ids: bool,
    ip_ids: [BTreeMap<u64, u16>; 2],
    zeros: Vec<u8>,
    packet: Vec<u8>,
}

impl Tracer for Recorder {
    const WATCHES: bool = true;

    fn on_packet(&mut self, now: Instant, event: TraceEvent, datagram: &Datagram) {
        let is_data = datagram.from == End::Sender && datagram.segment.len > 0;
        let is_copy = self.note(event, datagram, is_data);
        let at = match event {
            TraceEvent::Sent => datagram.from,
            TraceEvent::Delivered => datagram.from.other(),
            TraceEvent::Lost => return,
        };
        let [source, destination] = datagram.addresses();
        let len = usize::from(datagram.segment.len);
        encode(Endpoints { source, destination }, &datagram.segment, &self.zeros[..len], &mut self.packet);
        if self.has_ip_ids {
            // As Linux and others number the packets of a connection, also those that must not be fragmented.
            let from = usize::from(datagram.from == End::Receiver);
            let next = self.ip_ids[from].len() as u16;
            let id = *self.ip_ids[from].entry(datagram.serial).or_insert(next);
            self.packet[4..6].copy_from_slice(&id.to_be_bytes());
        }
        let tap = &mut self.taps[usize::from(at == End::Receiver)];
        tap.packets.push(Tapped { serial: datagram.serial, is_data, is_copy });
        let frame = Frame {
            number: tap.packets.len() as u64,
            at: Some(now.as_nanos()),
            interface: 0,
            link: 101,
            bytes: &self.packet[..self.packet.len() - len],
            original_len: self.packet.len(),
        };
        let events = &mut tap.events;
        tap.analyzer.on_frame(&frame, &mut |event| events.push(*event));
    }

    fn on_look(&mut self, _now: Instant, look: &Look<'_>) {
        if look.end == End::Receiver {
            let discards = look.connection.receive_stats().paws_discards;
            if discards > self.discards
                && let Some(sent) = self.last.and_then(|serial| self.sent.get_mut(&serial))
            {
                let is_reported = look.connection.receive_stats().duplicates > self.duplicates;
                sent.discarded |= sent.delivered == 1 && !is_reported;
            }
            self.discards = discards;
            self.duplicates = look.connection.receive_stats().duplicates;
        }
    }
}

impl Recorder {
    /// Notes what happens to a data packet. True if a copy of it has arrived before.
    fn note(&mut self, event: TraceEvent, datagram: &Datagram, is_data: bool) -> bool {
        let Some(transmission) = datagram.transmission.filter(|_| is_data) else { return false };
        let sent = self.sent.entry(datagram.serial).or_insert_with(|| Sent {
            flow: datagram.flow,
            segment: transmission.segment,
            number: transmission.number,
            timeout: transmission.cause == Cause::Timeout,
            probe: matches!(transmission.cause, Cause::Probe),
            ..Sent::default()
        });
        match event {
            TraceEvent::Sent => false,
            TraceEvent::Lost => {
                sent.lost = true;
                false
            }
            TraceEvent::Delivered => {
                sent.delivered += 1;
                self.last = Some(datagram.serial);
                let newest = self.newest.entry(datagram.flow).or_default();
                if sent.number == 1 && sent.delivered == 1 {
                    sent.reordered = *newest > datagram.serial;
                    *newest = (*newest).max(datagram.serial);
                }
                sent.delivered > 1
            }
        }
    }

    /// What happened to each packet of a tap.
    fn truth(&self, tap: usize) -> BTreeMap<u64, BTreeSet<Label>> {
        let mut arrived: BTreeMap<(u32, u32), u16> = BTreeMap::new();
        // At the sender, nothing distinguishes a packet that the receiver discards from a lost one.
        let is_known = |sent: &&Sent| sent.delivered > 0 && !(tap == 0 && sent.discarded);
        for sent in self.sent.values().filter(is_known) {
            let first = arrived.entry((sent.flow, sent.segment)).or_insert(u16::MAX);
            *first = sent.number.min(*first);
        }
        let mut truth = BTreeMap::new();
        for (tapped, frame) in self.taps[tap].packets.iter().zip(1..).filter(|(tapped, _)| tapped.is_data) {
            let sent = &self.sent[&tapped.serial];
            let earlier = arrived.get(&(sent.flow, sent.segment)).is_some_and(|first| *first < sent.number);
            let mut labels = BTreeSet::new();
            let at_sender = tap == 0;
            if tapped.is_copy {
                labels.insert(Label::Duplicated);
            } else if sent.number > 1 && earlier {
                labels.insert(Label::Spurious);
            } else if at_sender && (sent.lost && sent.delivered == 0 || sent.discarded) || !at_sender && sent.number > 1
            {
                labels.insert(Label::Lost);
            } else if sent.reordered {
                labels.insert(Label::Reordered);
            }
            if at_sender && sent.delivered > 1 {
                labels.insert(Label::Duplicated);
            }
            truth.insert(frame, labels);
        }
        truth
    }

    fn confusion(&self, tap: usize) -> Confusion {
        let place = [Place::Sender, Place::Receiver][tap];
        let truth = self.truth(tap);
        let mut said: BTreeMap<u64, Vec<Verdict>> = BTreeMap::new();
        let mut confusion = Confusion::default();
        for event in self.taps[tap].events.iter().filter(|event| place.sees(event.side)) {
            said.entry(event.frame).or_default().push(event.verdict);
        }
        let nothing = Vec::new();
        for (frame, labels) in &truth {
            let verdicts = said.remove(frame);
            let sent = &self.sent[&self.taps[tap].packets[*frame as usize - 1].serial];
            compare(labels, verdicts.as_ref().unwrap_or(&nothing), sent, &mut confusion);
        }
        for verdict in said.values().flatten().filter_map(|verdict| label(*verdict)) {
            *confusion.cells.entry((None, Some(verdict))).or_default() += 1;
        }
        confusion
    }
}

fn label(verdict: Verdict) -> Option<Label> {
    match verdict {
        Verdict::Lost => Some(Label::Lost),
        Verdict::Reordered { .. } => Some(Label::Reordered),
        Verdict::Duplicated => Some(Label::Duplicated),
        Verdict::Spurious(_) => Some(Label::Spurious),
        Verdict::Unknown(_) => None,
    }
}

fn compare(labels: &BTreeSet<Label>, verdicts: &[Verdict], sent: &Sent, confusion: &mut Confusion) {
    let mut truth = labels.clone();
    let mut said: BTreeSet<Label> = verdicts.iter().filter_map(|verdict| label(*verdict)).collect();
    for label in labels {
        if said.remove(label) {
            truth.remove(label);
            *confusion.cells.entry((Some(*label), Some(*label))).or_default() += 1;
        }
    }
    let mut unknown = verdicts.iter().filter(|verdict| label(**verdict).is_none()).count();
    for label in truth {
        if let Some(wrong) = said.pop_first() {
            *confusion.cells.entry((Some(label), Some(wrong))).or_default() += 1;
        } else if unknown > 0 {
            unknown -= 1;
            *confusion.unknown.entry(Some(label)).or_default() += 1;
        } else {
            *confusion.cells.entry((Some(label), None)).or_default() += 1;
        }
    }
    for label in said {
        *confusion.cells.entry((None, Some(label))).or_default() += 1;
    }
    if labels.is_empty() && unknown > 0 {
        *confusion.unknown.entry(None).or_default() += 1;
    }
    for verdict in verdicts {
        if let Verdict::Spurious(why) = verdict {
            let right = match why {
                Why::Timeout => sent.timeout,
                Why::Probe => sent.probe,
                Why::FastRetransmit => !sent.timeout && !sent.probe,
                Why::Unknown => {
                    confusion.why[2] += 1;
                    continue;
                }
            };
            confusion.why[usize::from(!right)] += 1;
        }
    }
}

/// A run and what was made of it, at the sender and at the receiver.
pub(crate) struct Judged {
    pub confusion: [Confusion; 2],
    pub analyses: [Analysis; 2],
}

/// Runs `variant` on `path`, and compares the verdicts at both ends with the truth.
pub(crate) fn judge(path: &str, variant: &str, seconds: u64, seed: u64, has_ip_ids: bool) -> Judged {
    let profile = Arc::new(Profile::load(path, &[]).expect("a valid path"));
    let tcp = tcp_config(&profile).expect("valid options");
    let composition = (reknit_variants::find(variant).expect("a variant").compose)();
    let scenario = Scenario::bulk(profile, tcp, composition, Duration::from_secs(seconds), seed);
    let recorder = Recorder {
        taps: [Place::Sender, Place::Receiver].map(Tap::new),
        sent: BTreeMap::new(),
        newest: BTreeMap::new(),
        last: None,
        discards: 0,
        duplicates: 0,
        has_ip_ids,
        ip_ids: Default::default(),
        zeros: vec![0; usize::from(u16::MAX)],
        packet: Vec::new(),
    };
    let (_, mut recorder) = run_traced(&Scenario { phases: Phases::Drawn, ..scenario }, recorder);
    let analyses = [0, 1].map(|tap| {
        let tap = &mut recorder.taps[tap];
        let events = &mut tap.events;
        std::mem::take(&mut tap.analyzer).finish(&mut |event| events.push(*event))
    });
    if std::env::var_os("TRUTH_DEBUG").is_some() {
        recorder.debug();
    }
    Judged { confusion: [0, 1].map(|tap| recorder.confusion(tap)), analyses }
}

impl Recorder {
    fn debug(&self) {
        for tap in 0..2 {
            let truth = self.truth(tap);
            let place = [Place::Sender, Place::Receiver][tap];
            let mut said: BTreeMap<u64, Vec<(Verdict, Instant)>> = BTreeMap::new();
            for event in self.taps[tap].events.iter().filter(|event| place.sees(event.side)) {
                said.entry(event.frame).or_default().push((event.verdict, event.decided));
            }
            let mut shown = 0;
            for (frame, labels) in &truth {
                let said = said.get(frame).cloned().unwrap_or_default();
                let names: BTreeSet<Label> = said.iter().filter_map(|(v, _)| label(*v)).collect();
                if names != *labels && shown < 12 {
                    shown += 1;
                    let tapped = self.taps[tap].packets[*frame as usize - 1];
                    eprintln!("tap {tap} frame {frame} truth {labels:?} said {said:?} {:?}", self.sent[&tapped.serial]);
                    let segment = self.sent[&tapped.serial].segment;
                    for (serial, sent) in self.sent.iter().filter(|(_, s)| s.segment == segment) {
                        eprintln!("      {serial} {sent:?}");
                    }
                }
            }
        }
    }
}
