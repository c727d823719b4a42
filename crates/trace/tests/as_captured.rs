//! Verdicts on captures as tools make them: with clocks of all kinds, packets that are cut off, and segments that a network
//! card or the host combines (TSO, GRO).

#[expect(dead_code, reason = "leaves out records")]
mod records;
#[expect(dead_code, reason = "what judges whole captures")]
mod truth;

use std::collections::{BTreeMap, BTreeSet};

use records::{HEADER, RECORD, Records};
use reknit_trace::{Event, Verdict};
use truth::log::{RECEIVER, SENDER};
use truth::world::{Captured, Transfer, run};
use truth::{Confusion, PLACES};

const PATHS: [&str; 6] = ["lossy", "two-paths-50ms", "reordered-and-lossy", "bursty-loss", "rr-tcp", "wireless-arq"];
const VARIANTS: [&str; 3] = ["linux", "sack", "bbr1"];
/// The resolutions of clocks, microseconds.
const CLOCKS: [u64; 10] = [1, 10, 50, 100, 250, 500, 1_000, 2_000, 4_000, 10_000];
/// How much of each packet is captured, with an Ethernet header.
const SNAPLENS: [usize; 4] = [60, 68, 96, 128];
const ETHERNET: usize = 14;
/// All options fit, with three SACK blocks.
const WHOLE: usize = 94;
/// Segments that are combined pass within this time, microseconds.
const TOGETHER: u64 = 1_500;
const MAX_COMBINED: usize = 16;

fn transfers() -> impl Iterator<Item = (String, Captured)> {
    (0..PATHS.len() * VARIANTS.len()).map(|i| {
        let (path, variant) = (&PATHS[i % PATHS.len()..][..1], VARIANTS[i / PATHS.len()]);
        let transfer =
            Transfer { parts: path, variant, segments: 1200, seconds: 60, seed: 40 + i as u64, has_ip_ids: true };
        (format!("{} {variant}", path[0]), run(&transfer))
    })
}

fn micros(record: &[u8]) -> u64 {
    let field = |at: usize| u64::from(u32::from_le_bytes(record[at..at + 4].try_into().unwrap()));
    field(0) * 1_000_000 + field(4)
}

/// The capture of a clock that counts so many microseconds at a time.
fn with_clock(whole: &Records, tick: u64) -> Records {
    let mut coarse = whole.clone();
    for (_, record) in &mut coarse.records {
        let at = micros(record) / tick * tick;
        record[..4].copy_from_slice(&((at / 1_000_000) as u32).to_le_bytes());
        record[4..8].copy_from_slice(&((at % 1_000_000) as u32).to_le_bytes());
    }
    coarse
}

/// The capture with at most so many bytes of each packet.
fn cut_off(whole: &Records, snaplen: usize) -> Records {
    let mut cut = whole.clone();
    for (_, record) in &mut cut.records {
        record.truncate(RECORD + snaplen - ETHERNET);
        let captured = (record.len() - RECORD) as u32;
        record[8..12].copy_from_slice(&captured.to_le_bytes());
    }
    cut
}

/// What decides whether two data packets are combined: the headers without IP identification, checksums and sequence number.
struct Headers {
    from: Vec<u8>,
    seq: u32,
    len: u32,
    options: Vec<u8>,
}

impl Headers {
    /// None without data.
    fn of(record: &[u8]) -> Option<Headers> {
        let packet = &record[RECORD..];
        let whole = u32::from_le_bytes(record[12..16].try_into().unwrap());
        let header = 20 + usize::from(packet[32] >> 4) * 4;
        let len = whole - header as u32;
        let from = [&packet[12..24], &packet[28..36]].concat();
        let seq = u32::from_be_bytes(packet[24..28].try_into().unwrap());
        (len > 0).then(|| Headers { from, seq, len, options: packet[40..header].to_vec() })
    }
}

/// The capture with segments that follow each other combined, and the frames of which each is made.
fn combined(whole: &Records) -> (Records, BTreeMap<u64, Vec<u64>>) {
    let mut records: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut parts: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (number, record) in &whole.records {
        if let Some((first, last)) = records.last_mut()
            && let Some((a, b)) = Headers::of(last).zip(Headers::of(record))
            && parts[first].len() < MAX_COMBINED
            && (a.from == b.from && a.options == b.options && a.seq.wrapping_add(a.len) == b.seq)
            && micros(record) - micros(last) <= TOGETHER
        {
            let original = u32::from_le_bytes(last[12..16].try_into().unwrap()) + b.len;
            last[12..16].copy_from_slice(&original.to_le_bytes());
            last[RECORD + 2..RECORD + 4].copy_from_slice(&(original as u16).to_be_bytes());
            parts.get_mut(first).unwrap().push(*number);
            continue;
        }
        records.push((*number, record.clone()));
        parts.insert(*number, vec![*number]);
    }
    (Records { records, ..whole.clone() }, parts)
}

/// Compares the verdicts on frames, each made of some frames of the whole capture, with what happened to these.
fn judge(
    captured: &Captured,
    tap: usize,
    events: &[Event],
    parts: &BTreeMap<u64, Vec<u64>>,
    confusion: &mut Confusion,
) {
    let mut said: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
    for event in events.iter().filter(|event| !matches!(event.verdict, Verdict::Incident { .. })) {
        said.entry(event.frame).or_default().push(*event);
    }
    let truth = captured.log.truth(tap);
    for (frame, parts) in parts {
        let claims: BTreeSet<_> = parts.iter().filter_map(|part| truth.get(part)).flatten().copied().collect();
        let Some(passing) = captured.log.frames[tap][*frame as usize - 1] else { continue };
        let said = said.get(frame).map_or(&[][..], Vec::as_slice);
        confusion.compare(&claims, said, &captured.log.sent[passing.serial]);
    }
}

/// Each frame is one of the whole capture.
fn alone(records: &Records) -> BTreeMap<u64, Vec<u64>> {
    records.records.iter().map(|(number, _)| (*number, vec![*number])).collect()
}

/// Judges all captures as `change` makes them.
fn judge_all(change: impl Fn(&Records) -> (Records, BTreeMap<u64, Vec<u64>>)) -> Confusion {
    let mut confusion = Confusion::default();
    for (name, captured) in transfers() {
        for tap in [SENDER, RECEIVER] {
            let file = &captured.files[tap];
            assert!(file.len() > HEADER, "{name}");
            let (records, parts) = change(&Records::of(file));
            let (_, events) = records.analyze(Some(PLACES[tap]));
            judge(&captured, tap, &events, &parts, &mut confusion);
        }
    }
    confusion
}

#[track_caller]
fn is_right(confusion: &Confusion, least_committed: f64, what: &str) {
    let (right, committed) = (confusion.right(), confusion.committed());
    assert!(right >= 0.99 && committed >= least_committed, "{what}: {right:.4} {committed:.4} {confusion:?}");
}

#[test]
fn coarse_clocks() {
    for tick in CLOCKS {
        let confusion = judge_all(|whole| {
            let records = with_clock(whole, tick);
            let parts = alone(&records);
            (records, parts)
        });
        is_right(&confusion, 0.9, &format!("a clock of {tick} us"));
    }
}

#[test]
fn packets_that_are_cut_off() {
    for snaplen in SNAPLENS {
        let confusion = judge_all(|whole| {
            let records = cut_off(whole, snaplen);
            let parts = alone(&records);
            let is_cut =
                records.records.iter().zip(&whole.records).any(|((_, cut), (_, whole))| cut.len() < whole.len());
            let (analysis, _) = records.analyze(None);
            assert_eq!(
                analysis.warnings.iter().any(|warning| warning.contains("truncated")),
                is_cut,
                "{:?}",
                analysis.warnings
            );
            (records, parts)
        });
        // Without the SACK blocks, less is known, but nothing else is said.
        let committed = if snaplen < WHOLE { 0.0 } else { 0.9 };
        is_right(&confusion, committed, &format!("{snaplen} bytes of each packet"));
    }
}

#[test]
fn segments_that_are_combined() {
    let confusion = judge_all(combined);
    is_right(&confusion, 0.9, "combined segments");
}
