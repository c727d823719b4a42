//! Verdicts on captures of simulated connections, compared with what really happened.

#[expect(dead_code, reason = "for captures that were changed")]
mod truth;

use reknit_trace::{Analysis, Analyzer, CapturePoint, Filter, Options, Time};
use truth::log::{MIDDLE, RECEIVER, SENDER};
use truth::world::{Captured, Transfer, run};
use truth::{Confusion, Label, PLACES, Told, judge};

fn transfer<'a>(parts: &'a [&'a str], variant: &'a str, seconds: u64) -> Transfer<'a> {
    Transfer { parts, variant, seconds, segments: 20_000, seed: 1, has_ip_ids: true }
}

#[track_caller]
fn judge_at(captured: &Captured, tap: usize) -> Confusion {
    let judged = judge(&captured.files[tap], &captured.log, tap);
    let (right, committed) = (judged.confusion.right(), judged.confusion.committed());
    let place = PLACES[tap];
    let wrong = judged.packets.iter().filter(|told| told.is_wrong());
    let shown: Vec<_> = wrong.map(|Told { frame, truth, said }| (frame, truth, said)).take(5).collect();
    assert!(right >= 0.99 && committed >= 0.95, "{place:?}: {right} {committed} {:?} {shown:#?}", judged.confusion);
    assert!(judged.confusion.happened() >= 20, "too little happens");
    judged.confusion
}

/// At both ends at least 99 % of the verdicts are right, and at least 95 % of what happened has one.
#[track_caller]
fn check(path: &str, variant: &str, seconds: u64) -> [Confusion; 2] {
    let captured = run(&transfer(&[path], variant, seconds));
    [SENDER, RECEIVER].map(|tap| judge_at(&captured, tap))
}

fn analyze_with(options: Options, file: &[u8]) -> Analysis {
    let mut analyzer = Analyzer::new(options);
    analyzer.read(file, &mut |_| {}).unwrap();
    analyzer.finish(&mut |_| {})
}

fn analyze(file: &[u8]) -> Analysis {
    analyze_with(Options::default(), file)
}

/// The packets of a pcap file from `from` on, nanoseconds after the first.
fn rest(file: &[u8], from: u64) -> Vec<u8> {
    let (mut rest, mut at, mut first) = (file[..24].to_vec(), 24, None);
    while at < file.len() {
        let number = |i: usize| u64::from(u32::from_le_bytes(file[at + i..at + i + 4].try_into().unwrap()));
        let time = number(0) * 1_000_000_000 + number(4) * 1_000;
        let record = &file[at..at + 16 + number(8) as usize];
        if time >= *first.get_or_insert(time) + from {
            rest.extend(record);
        }
        at += record.len();
    }
    rest
}

#[test]
fn a_part_has_the_verdicts_of_a_capture_that_begins_there() {
    let captured = run(&transfer(&["two-paths-50ms"], "linux", 8));
    for tap in [SENDER, RECEIVER] {
        for from in [1_500_000_000, 3_000_000_000, 5_000_000_000] {
            let (file, filter) = (&captured.files[tap], Filter { from: Some(Time::Since(from)), ..Filter::default() });
            let at = Some(PLACES[tap]);
            let part = analyze_with(Options { at, filter, ..Options::default() }, file);
            let begun = analyze_with(Options { at, ..Options::default() }, &rest(file, from));
            let [part, begun] = [part, begun].map(|analysis| analysis.directions[0].clone());
            assert_eq!(part.verdicts, begun.verdicts, "{:?} {from}", PLACES[tap]);
            assert!(part.verdicts.reordered > 50, "{:?} {from}: {:?}", PLACES[tap], part.verdicts);
            // The handshake may have been faster than what follows.
            let least = part.round_trip.as_ref().map(|round_trip| round_trip.least_ms);
            assert!(least.is_none_or(|least| (98.0..400.0).contains(&least)), "{:?} {from}: {least:?}", PLACES[tap]);
        }
    }
}

#[test]
fn packets_that_are_late_are_not_lost() {
    for confusion in check("two-paths-50ms", "sack", 10) {
        assert!(confusion.cells.keys().all(|(truth, _)| *truth != Some(Label::Lost)));
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
fn in_the_middle_both_sides_are_told_apart() {
    for parts in [["lossy", "two-paths-50ms"], ["two-paths-50ms", "lossy"]] {
        let captured = run(&transfer(&parts, "linux", 10));
        judge_at(&captured, MIDDLE);
        assert_eq!(analyze(&captured.files[MIDDLE]).directions[0].captured_at, CapturePoint::Middle);
    }
}

#[test]
fn without_ip_identifications_and_timestamps_the_receiver_cannot_always_tell() {
    let captured = run(&Transfer { has_ip_ids: false, ..transfer(&["rr-tcp"], "sack", 8) });
    judge_at(&captured, SENDER);
    let receiver = judge(&captured.files[RECEIVER], &captured.log, RECEIVER).confusion;
    assert!(receiver.unknown.values().sum::<u64>() > 0, "{receiver:?}");
}

#[test]
fn the_analysis_says_where_it_happened_and_what_it_cost() {
    let captured = run(&transfer(&["two-paths-50ms"], "sack", 10));
    for (tap, place) in [(SENDER, CapturePoint::Sender), (RECEIVER, CapturePoint::Receiver)] {
        let analysis = analyze(&captured.files[tap]);
        let direction = &analysis.directions[0];
        assert_eq!(direction.captured_at, place);
        assert!((98.0..110.0).contains(&direction.round_trip.as_ref().unwrap().least_ms), "{direction:?}");
        assert!(direction.verdicts.spurious > 10 && direction.verdicts.lost == 0, "{direction:?}");
        assert!((45.0..56.0).contains(&direction.reordering.late_p50_ms.unwrap()), "{direction:?}");
        assert!(direction.cost.false_reductions > 2 && direction.cost.lost_least_mbit_s > 0.0, "{direction:?}");
        assert!(
            direction.advice[0].to_string().starts_with("use a sender that waits for packets that are"),
            "{direction:?}"
        );
    }
}
