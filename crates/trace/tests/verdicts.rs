//! Verdicts on captures of simulated connections, compared with what the simulator knows. An ignored test does the same for
//! many paths and variants, and writes docs/truth.md.

mod truth;

use std::fmt::Write;

use reknit_trace::Place;
use truth::{Confusion, judge};

/// At both ends at least 99 % of the verdicts are right, and at least 95 % of what happened has one.
#[track_caller]
fn check(path: &str, variant: &str, seconds: u64) -> [Confusion; 2] {
    let judged = judge(path, variant, seconds, 1, true);
    for (place, confusion) in ["sender", "receiver"].iter().zip(&judged.confusion) {
        let (right, committed) = (confusion.right(), confusion.committed());
        assert!(right >= 0.99 && committed >= 0.95, "{path}, {variant}, {place}: {right} {committed} {confusion:?}");
        assert!(confusion.happened() >= 20, "{path}, {variant}: too little happens");
    }
    judged.confusion
}

#[test]
fn packets_that_are_late_are_not_lost() {
    let [sender, receiver] = check("two-paths-50ms", "sack", 10);
    for confusion in [sender, receiver] {
        assert!(confusion.cells.keys().all(|(truth, _)| *truth != Some(truth::Label::Lost)));
    }
}

#[test]
fn packets_that_are_lost_are_not_late() {
    check("lossy", "linux", 10);
}

#[test]
fn loss_and_reordering_together_are_told_apart() {
    check("reordered-and-lossy", "linux", 8);
}

#[test]
fn copies_are_told_from_retransmissions() {
    check("duplicates", "sack", 5);
}

#[test]
fn without_ip_identifications_and_timestamps_the_receiver_cannot_always_tell() {
    let judged = judge("rr-tcp", "sack", 8, 1, false);
    let [sender, receiver] = &judged.confusion;
    assert!(sender.right() >= 0.99 && sender.committed() >= 0.95, "{sender:?}");
    assert!(receiver.unknown.values().sum::<u64>() > 0, "{receiver:?}");
}

#[test]
fn the_analysis_says_where_it_happened_and_what_it_cost() {
    let judged = judge("two-paths-50ms", "sack", 10, 1, true);
    for (analysis, place) in judged.analyses.iter().zip([Place::Sender, Place::Receiver]) {
        let direction = &analysis.directions[0];
        assert_eq!(direction.captured_at, place);
        assert!((98.0..110.0).contains(&direction.round_trip.as_ref().unwrap().least_ms), "{direction:?}");
        assert!(direction.verdicts.spurious > 10 && direction.verdicts.lost == 0, "{direction:?}");
        assert!((45.0..56.0).contains(&direction.reordering.late_p50_ms.unwrap()), "{direction:?}");
        assert!(direction.cost.false_reductions > 2 && direction.cost.lost_least_mbit_s > 0.0, "{direction:?}");
        assert!(direction.advice[0].contains("tolerates packets"), "{direction:?}");
    }
}

/// Paths that lose, delay, reorder and copy packets, alone and together.
const PATHS: [&str; 24] = [
    "bursty-loss",
    "diffserv",
    "displaced",
    "drop-bursts",
    "duplicates",
    "fiber-lte",
    "gcp-vm",
    "gvisor-30ms",
    "late-duplicates",
    "leo",
    "lossy",
    "mqvpn-jit-5",
    "quicgo-home",
    "random-delay",
    "reordered-and-lossy",
    "route-flap",
    "rr-tcp",
    "satellite-arq",
    "striping",
    "sudden-delays",
    "switch-planes",
    "two-paths-200ms",
    "two-paths-50ms",
    "wireless-arq",
];
const VARIANTS: [&str; 6] = ["sack", "rack", "pr", "linux", "bbr", "reknit"];
const SECONDS: u64 = 20;

/// Writes docs/truth.md: `cargo test -p reknit-trace --test verdicts -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn write_the_page_about_the_truth() {
    let mut whole = [Confusion::default(), Confusion::default()];
    let mut rows = String::new();
    for path in PATHS {
        let mut of_path = [Confusion::default(), Confusion::default()];
        for variant in VARIANTS {
            let judged = judge(path, variant, SECONDS, 1, true);
            for (sum, confusion) in of_path.iter_mut().zip(&judged.confusion) {
                sum.add(confusion);
            }
        }
        let cells = of_path
            .each_ref()
            .map(|c| format!("{} | {:.2} | {:.2}", c.happened(), 100.0 * c.right(), 100.0 * c.committed()));
        let _ = writeln!(rows, "| `{path}` | {} |", cells.join(" | "));
        for (sum, confusion) in whole.iter_mut().zip(&of_path) {
            sum.add(confusion);
        }
    }
    let mut page = format!(
        "# Are the verdicts right?\n\nWritten by `cargo test -p reknit-trace --test verdicts -- --ignored`: verdicts of `reknit analyze` on \
         captures of simulated\nconnections, compared with what the simulator knows. {} paths, the variants {}, {SECONDS} s each, captured \
         at both\nends, with IP identifications that count as those of Linux. At the sender, a packet that the receiver discards for its \
         old\ntimestamp (PAWS) counts as lost, because nothing distinguishes it.\n",
        PATHS.len(),
        VARIANTS.map(|variant| format!("`{variant}`")).join(", "),
    );
    for (place, confusion) in ["sender", "receiver"].iter().zip(&whole) {
        let _ = write!(page, "\n## At the {place}\n\n{}", confusion.markdown());
    }
    let _ = write!(
        page,
        "\n## By path\n\nEvents, the share of verdicts that are right, and the share of events with a verdict, %:\n\n| path | sender: \
         events | right | told | receiver: events | right | told |\n|---|---|---|---|---|---|---|\n{rows}"
    );
    std::fs::write("../../docs/truth.md", page).expect("docs is writable");
}
