//! The path that is measured in a capture does to packets what the captured path did, in the terms of RFC 4737.

#[expect(dead_code, reason = "what judges verdicts")]
mod truth;

use reknit_path::{Direction, NAMES, Profile, Train};
use reknit_trace::{Analyzer, DirectionReport, MeasuredPath, Options};
use reknit_units::{Bytes, Duration};
use truth::PLACES;
use truth::log::{RECEIVER, SENDER};
use truth::world::{Captured, Transfer, run, run_over};

const VARIANTS: [&str; 2] = ["linux", "bbr1"];
const HEADER: usize = 24;
const RECORD: usize = 16;
/// Shares are compared if at least so many packets were reordered.
const ENOUGH: f64 = 50.0;
/// How far shares of reordered packets and extents may be from each other.
const SHARE_WITHIN: f64 = 2.0;
const EXTENT_WITHIN: f64 = 4.0;
/// One path in so many may do something else: where parallel links reorder packets of a burst, their spacing decides.
const MAX_WRONG: usize = 40;
/// Transmission times that packets must be late for their order not to depend on the exact rate.
const LATE: f64 = 4.0;

fn measured(file: &[u8], tap: usize) -> Option<(DirectionReport, MeasuredPath)> {
    let mut analyzer = Analyzer::new(Options { at: Some(PLACES[tap]), transits: true, ..Options::default() });
    analyzer.read(file, &mut |_| {}).unwrap();
    let (analysis, transits) = analyzer.finish_with_transits(&mut |_| {});
    let largest = analysis.directions.iter().max_by_key(|direction| direction.bytes)?;
    let path = MeasuredPath::new(largest, transits.of(largest), None).ok()?;
    Some(((**largest).clone(), path))
}

fn transfers() -> impl Iterator<Item = (String, Transfer<'static>, Captured)> {
    (0..NAMES.len() * VARIANTS.len()).map(|i| {
        let (path, variant) = (&NAMES[i % NAMES.len()..][..1], VARIANTS[i / NAMES.len()]);
        let transfer =
            Transfer { parts: path, variant, segments: 2000, seconds: 30, seed: 1 + i as u64, has_ip_ids: true };
        (format!("{} {variant}", path[0]), transfer, run(&transfer))
    })
}

fn profile(path: &MeasuredPath) -> Profile {
    Profile::parse("measured", &path.toml()).unwrap()
}

/// How many of 20,000 packets the path reorders, if they are sent at four fifths of its rate.
fn reordered(path: &MeasuredPath, seed: u64) -> usize {
    let gap = Duration::from_secs_f64(1500.0 * 8.0 / (path.rate_mbit_s * 0.8e6));
    let train = Train { packets: 20_000, size: Bytes(1500), gap };
    train.through(&profile(path), Direction::Forward, seed).extents().len()
}

/// The capture from a record on, and without a record in so many.
fn part(file: &[u8], first: usize, lacks: usize) -> Vec<u8> {
    let (header, mut rest) = file.split_at(HEADER.min(file.len()));
    let (mut kept, mut number) = (header.to_vec(), 0);
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (record, after) = rest.split_at(RECORD + len);
        (number, rest) = (number + 1, after);
        if number > first && number % lacks != 0 {
            kept.extend(record);
        }
    }
    kept
}

#[test]
fn a_capture_in_order_gives_a_path_in_order() {
    let mut checked = 0;
    for (name, _, captured) in transfers() {
        for tap in [SENDER, RECEIVER] {
            let file = &captured.files[tap];
            let files = [file.clone(), part(file, 700, usize::MAX), part(file, 0, 90), part(file, 300, 30)];
            for (i, file) in files.iter().enumerate() {
                let Some((direction, path)) = measured(file, tap) else { continue };
                if direction.verdicts.reordered == 0 {
                    let late = reordered(&path, i as u64);
                    assert_eq!(late, 0, "{name}, {:?}, {i}", PLACES[tap]);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 150, "{checked}");
}

#[test]
fn reordering_is_reproduced() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for (name, transfer, captured) in transfers() {
        for tap in [SENDER, RECEIVER] {
            let Some((there, path)) = measured(&captured.files[tap], tap) else { continue };
            let (there, name) = (there.reordering, format!("{name}, {:?}", PLACES[tap]));
            let packet_ms = 1500.0 * 8e-3 / path.rate_mbit_s;
            let is_clear = there.late_p50_ms.is_some_and(|late| late > LATE * packet_ms);
            if there.ratio * (there.arrived as f64) < ENOUGH || !is_clear {
                continue;
            }
            let again = run_over(&[profile(&path)], &transfer);
            let (here, _) = measured(&again.files[tap], tap).unwrap();
            let here = here.reordering;
            let shares = [here.ratio, there.ratio];
            let extents = [here.extent_p50, there.extent_p50].map(|extent| extent.unwrap_or_default() as f64);
            let is_right = |[a, b]: [f64; 2], factor: f64| a <= b * factor && b <= a * factor;
            if !is_right(shares, SHARE_WITHIN) || !is_right(extents, EXTENT_WITHIN) {
                wrong.push(format!("{name}: {shares:.3?} {extents:?}"));
            }
            compared += 1;
        }
    }
    assert!(compared > 80, "{compared}");
    assert!(wrong.len() * MAX_WRONG <= compared, "{}", wrong.join("\n"));
}
