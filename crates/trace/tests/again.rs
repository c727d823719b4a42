//! A second reading of a capture, in which one of several connections is analysed: the same report, events and transits.

#[expect(dead_code, reason = "other tests need more")]
mod wire;

use reknit_trace::{Analysis, Analyzer, DirectionReport, Event, Filter, Options, Time, Transit};
use wire::{ACK, Headers, Passing, Wire};

/// The worst connection, and the port of its client, which others had before it and have after it.
const WORST: u32 = 3;
const PORT: u16 = 40_001;

/// A connection opens at `ms` and sends 1200 segments, of which some are lost. Each 300th is sent again only after a pause, the
/// first time of `silent_ms`; the ACK of it also says that the receiver has the one before it twice.
fn transfer(wire: &mut Wire, ms: f64, every: u32, silent_ms: f64) {
    wire.open(ms);
    let (mut ms, mut missing) = (ms + 200.0, None);
    for i in 0..1200_u32 {
        let at = |i: u32| 1 + i * 1000;
        wire.data(ms, 0, at(i), 1000);
        if i % 300 == 299 {
            wire.data(ms + 0.5, 0, at(i - 1), 1000);
            ms += if i < 300 { silent_ms } else { 3000.0 };
            wire.data(ms, 0, at(i), 1000);
            let sack = &[(at(i - 1), at(i))];
            wire.pass(ms + 50.0, 1, Passing { flags: ACK, seq: 1, ack: at(i + 1), sack, ..Passing::default() });
            ms += 51.0;
            continue;
        }
        if i % every == every / 2 && i % 300 < 250 {
            missing = Some((i, ms));
        } else {
            let sack = missing.map(|(lost, _)| (at(lost + 1), at(i + 1)));
            let ack = missing.map_or(at(i + 1), |(lost, _)| at(lost));
            wire.pass(ms + 50.0, 1, Passing { flags: ACK, seq: 1, ack, sack: sack.as_slice(), ..Passing::default() });
        }
        if let Some((lost, _)) = missing.filter(|(_, since)| ms - since > 60.0) {
            wire.data(ms + 0.3, 0, at(lost), 1000);
            missing = None;
        }
        ms += 5.0;
    }
}

/// Six connections, three of them between the same ports, one after another.
fn capture() -> Vec<u8> {
    let mut wire = Wire::new(Headers::default());
    for (port, isn, ms, every, silent_ms) in [
        (40_000, [7, 9], 0.0, 97, 2_000.0),
        (PORT, [1 << 30, 8], 50.0, 91, 2_000.0),
        (PORT, [1 << 20, 1 << 21], 30_000.0, 23, 45_000.0),
        (PORT, [1 << 31, 1 << 28], 100_000.0, 89, 2_000.0),
        (40_002, [5, 6], 101_000.0, 29, 2_000.0),
    ] {
        wire.headers = Headers { port, isn, ..Headers::default() };
        transfer(&mut wire, ms, every, silent_ms);
    }
    // Packets of another one, so that silent connections are visited.
    wire.headers = Headers { port: 40_003, ..Headers::default() };
    wire.open(29_000.0);
    for i in 0..2000_u32 {
        let ms = 29_200.0 + 40.0 * f64::from(i);
        wire.data(ms, 0, 1 + i * 100, 100);
        wire.ack(ms + 10.0, 1, 1 + (i + 1) * 100);
    }
    wire.file()
}

struct Found {
    analysis: Analysis,
    transits: Vec<Transit>,
    events: Vec<Event>,
}

/// What `analyzer` finds in `file` about `direction`, or about the worst one.
fn read(mut analyzer: Analyzer, file: &[u8], direction: Option<&DirectionReport>) -> Found {
    let mut events = Vec::new();
    analyzer.read(file, &mut |event| events.push(*event)).unwrap();
    let (analysis, transits) = analyzer.finish_with_transits(&mut |event| events.push(*event));
    let direction = direction.unwrap_or(&analysis.directions[0]);
    events.retain(|event| event.stream == direction.stream);
    Found { transits: transits.of(direction).to_vec(), events, analysis }
}

#[track_caller]
fn check(file: &[u8], options: Options) -> Box<DirectionReport> {
    let whole = read(Analyzer::new(options), file, None);
    let worst = &whole.analysis.directions[0];
    assert!(worst.may_be_faster() && whole.events.len() > 20, "{worst:?}");
    let again = read(Analyzer::again(options, worst), file, Some(worst));
    assert_eq!(again.analysis.streams, 1, "the others are not analysed");
    let report = again.analysis.directions.iter().find(|direction| direction.end == worst.end);
    assert_eq!(report, Some(worst));
    assert!(again.events == whole.events, "{:?}", again.events);
    assert!(again.transits == whole.transits && !again.transits.is_empty());
    worst.clone()
}

#[test]
fn one_connection_alone_is_analysed_as_among_the_others() {
    let (file, options) = (capture(), Options { transits: true, ..Options::default() });
    let worst = check(&file, options);
    assert_eq!((worst.stream, worst.from.as_str()), (WORST, "192.0.2.1:40001"));
    // Only the last part counts, but the connections keep their numbers.
    let filter = Filter { from: Some(Time::Since(60_000_000_000)), ..Filter::default() };
    check(&file, Options { filter, ..options });
}
