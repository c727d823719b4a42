//! Verdicts on captures as tools make them: with clocks of all kinds, packets that are cut off, and segments that a network
//! card or the host combines (TSO, GRO).

#[expect(dead_code, reason = "leaves out records")]
mod records;
#[expect(dead_code, reason = "what judges whole captures")]
mod truth;

use records::changes::{Parts, alone, combined, cut_off, with_clock};
use records::{HEADER, Records};
use truth::log::{RECEIVER, SENDER};
use truth::world::{Captured, Transfer, run};
use truth::{Confusion, PLACES};

const PATHS: [&str; 6] = ["lossy", "two-paths-50ms", "reordered-and-lossy", "bursty-loss", "rr-tcp", "wireless-arq"];
const VARIANTS: [&str; 3] = ["linux", "sack", "bbr1"];
/// The resolutions of clocks, microseconds.
const CLOCKS: [u64; 10] = [1, 10, 50, 100, 250, 500, 1_000, 2_000, 4_000, 10_000];
/// How much of each packet is captured, with an Ethernet header: without timestamps, with them, with the first SACK block, with the
/// second, and with everything. The least share of events that must have a verdict.
const SNAPLENS: [(usize, f64); 7] = [(60, 0.5), (68, 0.6), (76, 0.6), (80, 0.9), (88, 0.9), (96, 0.99), (128, 0.99)];

fn transfers() -> impl Iterator<Item = (String, Captured)> {
    (0..PATHS.len() * VARIANTS.len()).map(|i| {
        let (path, variant) = (&PATHS[i % PATHS.len()..][..1], VARIANTS[i / PATHS.len()]);
        let transfer =
            Transfer { parts: path, variant, segments: 1200, seconds: 60, seed: 40 + i as u64, has_ip_ids: true };
        (format!("{} {variant}", path[0]), run(&transfer))
    })
}

/// Judges all captures as `change` makes them.
fn judge_all(change: impl Fn(&Records) -> (Records, Parts)) -> Confusion {
    let mut confusion = Confusion::default();
    for (name, captured) in transfers() {
        for tap in [SENDER, RECEIVER] {
            let file = &captured.files[tap];
            assert!(file.len() > HEADER, "{name}");
            let (records, parts) = change(&Records::of(file));
            let (_, events) = records.analyze(Some(PLACES[tap]));
            confusion.compare_frames(&captured.log, tap, &events, &parts);
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
    for (snaplen, least_committed) in SNAPLENS {
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
        is_right(&confusion, least_committed, &format!("{snaplen} bytes of each packet"));
    }
}

#[test]
fn segments_that_are_combined() {
    let confusion = judge_all(combined);
    is_right(&confusion, 0.9, "combined segments");
}
