//! What must hold for every capture: cut anywhere, with packets missing, with coarse clocks, and at every place.

#[expect(dead_code, reason = "how tools capture")]
mod records;
#[expect(dead_code, reason = "what judges whole captures")]
mod truth;

use std::collections::{BTreeMap, BTreeSet};

use records::changes::alone;
use records::{HEADER, Records};
use reknit_trace::{Analysis, Event, PathPart, Verdict, Verdicts};
use truth::log::{MIDDLE, RECEIVER, SENDER};
use truth::world::{Captured, Transfer, run};
use truth::{Confusion, PLACES};

const PATHS: [&[&str]; 8] = [
    &["lossy"],
    &["two-paths-50ms"],
    &["reordered-and-lossy"],
    &["bursty-loss"],
    &["fiber-lte"],
    &["sudden-delays"],
    &["clean"],
    &["lossy", "two-paths-50ms"],
];
const VARIANTS: [&str; 4] = ["linux", "sack", "rack", "bbr"];

/// At most one of so many captures that lack packets calls a packet late that the whole capture does not. This cannot be decided if
/// nothing shows what is missing: without the retransmission that delivered the data, or the acknowledgments that reported it
/// first, its first transmission looks late. What is cut off changes nothing.
const MAX_CHANGED: u64 = 50;

/// What is said about each packet where the analysis commits itself.
fn committed(events: &[Event]) -> BTreeSet<(u64, PathPart, &'static str)> {
    let says = |event: &Event| {
        let name = match event.verdict {
            Verdict::Lost => "lost",
            Verdict::Reordered { .. } => "late",
            Verdict::Duplicated => "copy",
            Verdict::Spurious(_) => "spurious",
            Verdict::Discarded => "discarded",
            Verdict::Unknown(_) | Verdict::Incident { .. } => return None,
        };
        Some((event.frame, event.side, name))
    };
    events.iter().filter_map(says).collect()
}

#[track_caller]
fn waiting_has_a_reason(analysis: &Analysis, what: &str) {
    for direction in &analysis.directions {
        // Less than a millisecond is the order of packets in the capture.
        let is_told = direction.waited_s == 0.0 || !direction.is_quiet();
        assert!(is_told, "{what}: data waited {} s without an event: {direction:?}", direction.waited_s);
    }
}

/// The counts of the report are those of the events, which comments and plots show.
#[track_caller]
fn counts_agree(analysis: &Analysis, events: &[Event], what: &str) {
    for direction in &analysis.directions {
        let of = |is: &dyn Fn(&Verdict) -> bool| {
            let here = events.iter().filter(|event| (event.stream, event.end) == (direction.stream, direction.end));
            here.filter(|event| is(&event.verdict)).count() as u64
        };
        let verdicts = &direction.verdicts;
        let counted = [
            of(&|verdict| matches!(verdict, Verdict::Lost)),
            of(&|verdict| matches!(verdict, Verdict::Reordered { .. })),
            of(&|verdict| matches!(verdict, Verdict::Duplicated)),
            of(&|verdict| matches!(verdict, Verdict::Spurious(_))),
            of(&|verdict| matches!(verdict, Verdict::Discarded)),
            of(&|verdict| matches!(verdict, Verdict::Unknown(_))),
            of(&|verdict| matches!(verdict, Verdict::Incident { .. })),
        ];
        let incidents = direction.incidents.iter().map(|incident| incident.times).sum();
        let Verdicts { lost, reordered, duplicated, spurious, discarded, cannot_tell, .. } = *verdicts;
        let reported = [lost, reordered, duplicated, spurious, discarded, cannot_tell, incidents];
        assert_eq!(counted, reported, "{what}");
    }
}

/// Numbers that look random (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// What is wrong with captures of one kind.
#[derive(Default)]
struct Kind {
    confusion: Confusion,
    captures: u64,
    changed: Vec<String>,
}

impl Kind {
    /// The frames `changed` have other verdicts than in the whole capture.
    fn note_changed(&mut self, what: &str, changed: &[u64], whole: &[Event], part: &[Event]) {
        let Some(first) = changed.first() else { return };
        let said = |events: &[Event]| {
            let here = events.iter().filter(|event| event.frame == *first);
            here.map(|event| (event.side, event.verdict)).collect::<Vec<_>>()
        };
        let (before, after) = (said(whole), said(part));
        self.changed.push(format!("{what}: {} other; frame {first}: {after:?}, not {before:?}", changed.len()));
    }
}

fn transfers() -> impl Iterator<Item = (String, Captured)> {
    (0..PATHS.len() * VARIANTS.len()).map(|i| {
        let (parts, variant) = (PATHS[i % PATHS.len()], VARIANTS[i / PATHS.len()]);
        let transfer =
            Transfer { parts, variant, segments: 900, seconds: 60, seed: 1 + i as u64, has_ip_ids: i % 3 > 0 };
        (format!("{parts:?} {variant} {i}"), run(&transfer))
    })
}

fn taps(captured: &Captured) -> impl Iterator<Item = usize> {
    [SENDER, MIDDLE, RECEIVER].into_iter().filter(|tap| captured.files[*tap].len() > HEADER)
}

#[test]
fn captures_that_are_cut_or_lack_packets_say_nothing_else() {
    let mut random = Random(1);
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    for (name, captured) in transfers() {
        for tap in taps(&captured) {
            let at = Some(PLACES[tap]);
            let whole = Records::of(&captured.files[tap]);
            let (analysis, whole_events) = whole.analyze(at);
            waiting_has_a_reason(&analysis, &name);
            assert!(analysis.warnings.is_empty(), "{name}: {:?}", analysis.warnings);
            let said = committed(&whole_events);
            let total = whole.records.len() as u64;
            for i in 0..32 {
                let (kind, part, lost) = if i < 16 {
                    let first = 4 + random.below(total * 3 / 4);
                    ("cut", whole.kept(|n| n > first), 0.0)
                } else {
                    let share = [0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1][i % 8];
                    ("lacks", whole.kept(|_| random.unit() >= share), share)
                };
                let what = format!("{name}, {:?}, {kind} {i}: {} of {total}", PLACES[tap], part.records.len());
                let (analysis, events) = part.analyze(at);
                waiting_has_a_reason(&analysis, &what);
                counts_agree(&analysis, &events, &what);
                let (inferred, events_there) = part.analyze(None);
                counts_agree(&inferred, &events_there, &what);
                assert!(lost < 0.05 || !analysis.warnings.is_empty(), "{what}: no warning");
                let entry = kinds.entry(kind).or_default();
                entry.captures += 1;
                entry.confusion.compare_frames(&captured.log, tap, &events, &alone(&part));
                let changed: Vec<u64> = if kind == "cut" {
                    committed(&events).difference(&said).map(|(frame, ..)| *frame).collect()
                } else {
                    late(&events).difference(&late(&whole_events)).copied().collect()
                };
                entry.note_changed(&what, &changed, &whole_events, &events);
            }
        }
    }
    let mut wrong = Vec::new();
    for (kind, Kind { confusion, captures, changed }) in &kinds {
        let (right, committed) = (confusion.right(), confusion.committed());
        let most_changed = if *kind == "cut" { 0 } else { captures / MAX_CHANGED };
        if right < 0.99 || committed < 0.9 || changed.len() as u64 > most_changed {
            wrong.push(format!("{kind}: {right:.4} {committed:.4} {confusion:?}\n{}", changed.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn late(events: &[Event]) -> BTreeSet<u64> {
    let is_late = |event: &&Event| matches!(event.verdict, Verdict::Reordered { .. });
    events.iter().filter(is_late).map(|event| event.frame).collect()
}
