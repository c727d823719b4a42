//! Captures as people have them: cut, with packets missing, wrapped, with coarse clocks, with a short snaplen, with segments
//! combined by offload. Each is made from a simulated one, so what happened to each packet is known.

use std::collections::BTreeMap;

use reknit_trace::{Analysis, DirectionReport};

use crate::records::changes::{Parts, alone, combined, cut_off, with_clock};
use crate::records::{HEADER, RECORD, Records};
use crate::truth::log::Log;
use crate::truth::{Confusion, Label, PLACES};
use crate::wrapping::{Bytes, WRAPPINGS, with_checksum};

/// The resolutions of clocks, microseconds.
const CLOCKS: [u64; 10] = [1, 10, 50, 100, 250, 500, 1_000, 2_000, 4_000, 10_000];
/// How much of each packet is captured, with an Ethernet header.
const SNAPLENS: [usize; 6] = [60, 68, 80, 88, 96, 128];
/// The shares of packets that are missing.
const MISSING: [f64; 8] = [0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1];
/// A headline is wrong if it denies what happened to more than this share of the packets.
const MUCH: f64 = 0.01;

/// How a capture differs from a whole one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Cut,
    Lacking,
    Wrapped,
    Clock,
    Snaplen,
    Offload,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] =
        [Kind::Cut, Kind::Lacking, Kind::Wrapped, Kind::Clock, Kind::Snaplen, Kind::Offload];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Cut => "the first 1 % to 75 % cut off",
            Kind::Lacking => "0.1 % to 10 % of the packets missing",
            Kind::Wrapped => "in tunnels, tags, other link layers and fragments",
            Kind::Clock => "clocks of 1 us to 10 ms",
            Kind::Snaplen => "60 to 128 bytes of each packet",
            Kind::Offload => "segments combined (TSO, GRO)",
        }
    }
}

/// All captures of one kind.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) captures: u64,
    pub(crate) confusion: Confusion,
    /// Those whose counts deny what happened.
    pub(crate) contradicting: u64,
}

/// Numbers that look random (`SplitMix64`).
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.next() % all.len() as u64) as usize]
    }
}

/// Judges the capture `file`, changed in each way once.
pub(crate) fn judge_all(file: &[u8], log: &Log, tap: usize, random: &mut Random, found: &mut BTreeMap<Kind, Found>) {
    if file.len() <= HEADER {
        return;
    }
    let whole = Records::of(file);
    for kind in Kind::ALL {
        let (records, parts) = changed(&whole, kind, random);
        let (analysis, events) = records.analyze(Some(PLACES[tap]));
        let mut confusion = Confusion::default();
        confusion.compare_frames(log, tap, &events, &parts);
        let found = found.entry(kind).or_default();
        found.captures += 1;
        found.contradicting += u64::from(contradicts(&analysis, &confusion));
        found.confusion.add(&confusion);
    }
}

fn changed(whole: &Records, kind: Kind, random: &mut Random) -> (Records, Parts) {
    let with_parts = |records: Records| {
        let parts = alone(&records);
        (records, parts)
    };
    match kind {
        Kind::Cut => {
            #[expect(clippy::cast_sign_loss, reason = "a share is not negative")]
            let first = (whole.records.len() as f64 * (0.01 + 0.74 * random.unit())) as u64;
            with_parts(whole.kept(|number| number > first))
        }
        Kind::Lacking => {
            let share = random.of(&MISSING);
            with_parts(whole.kept(|_| random.unit() >= share))
        }
        Kind::Wrapped => {
            let (_, link, how) = random.of(WRAPPINGS);
            let parts = alone(whole);
            (wrapped(whole, link, how), parts)
        }
        Kind::Clock => with_parts(with_clock(whole, random.of(&CLOCKS))),
        Kind::Snaplen => with_parts(cut_off(whole, random.of(&SNAPLENS))),
        Kind::Offload => combined(whole),
    }
}

/// The capture with each packet in the frames that `how` makes of it.
fn wrapped(whole: &Records, link: u16, how: fn(&Bytes) -> Vec<Bytes>) -> Records {
    let mut header = whole.header.clone();
    header[HEADER - 4..].copy_from_slice(&u32::from(link).to_le_bytes());
    let frames = |(number, record): &(u64, Vec<u8>)| {
        let (head, packet) = record.split_at(RECORD);
        let len = u32::from_le_bytes(head[12..16].try_into().expect("four bytes")) as usize;
        let record = |frame: Bytes| {
            let lengths = [frame.captured.len() as u32, frame.len as u32].map(u32::to_le_bytes).concat();
            (*number, [&head[..8], &lengths, &frame.captured].concat())
        };
        let frames = how(&Bytes { captured: with_checksum(packet), len });
        frames.into_iter().map(record).collect::<Vec<_>>()
    };
    Records { header, records: whole.records.iter().flat_map(frames).collect() }
}

/// How often this happened.
fn happened(confusion: &Confusion, label: Label) -> u64 {
    let cells = confusion.cells.iter().filter(|((truth, _), _)| *truth == Some(label)).map(|(_, count)| count);
    cells.sum::<u64>() + confusion.unknown.get(&Some(label)).copied().unwrap_or_default()
}

/// True if the counts, and with them the headline, deny what happened to many packets: nothing lost, nothing late, or nothing
/// retransmitted spuriously.
fn contradicts(analysis: &Analysis, confusion: &Confusion) -> bool {
    let Some(worst) = analysis.directions.iter().max_by_key(|direction| direction.bytes) else { return false };
    let much = |label: Label| happened(confusion, label) as f64 > MUCH * worst.packets as f64;
    let verdicts = &worst.verdicts;
    let is_certain = verdicts.cannot_tell == 0;
    let hides_reordering = worst.options.hidden_sacks > 0;
    let denies = |label: Label, said: u64| is_certain && said == 0 && much(label);
    denies(Label::Lost, verdicts.lost + verdicts.discarded)
        || denies(Label::Spurious, verdicts.spurious)
        || !hides_reordering && denies(Label::Reordered, verdicts.reordered)
        || is_reversed(worst, confusion)
}

/// True if the headline says "late, not lost" of a capture in which most retransmissions were needed, or the reverse.
fn is_reversed(worst: &DirectionReport, confusion: &Confusion) -> bool {
    let (lost, spurious) = (happened(confusion, Label::Lost), happened(confusion, Label::Spurious));
    let (said_lost, said_spurious) = (worst.verdicts.lost + worst.verdicts.discarded, worst.verdicts.spurious);
    // Then the headline begins with the events that have no verdict.
    if worst.verdicts.cannot_tell > said_lost + said_spurious {
        return false;
    }
    let enough = |count: u64| count as f64 > MUCH * worst.packets as f64;
    said_lost * 4 < said_spurious && spurious * 4 < lost && enough(lost)
        || said_spurious * 4 < said_lost && lost * 4 < spurious && enough(spurious)
}
