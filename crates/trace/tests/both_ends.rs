//! Two captures of one transfer, compared with what really happened between them.

#[expect(dead_code, reason = "verdicts are compared in another test")]
mod truth;
mod wrapping;

use std::collections::BTreeMap;

use reknit_path::Profile;
use reknit_trace::{BothEnds, BothEndsOptions, Matched};
use truth::log::{RECEIVER, SENDER};
use truth::world::{Captured, Transfer, run};
use wrapping::{Bytes, WRAPPINGS, with_checksum};

/// A record of a capture: microseconds, and the packet.
type Record = (u64, Bytes);

fn transfer(path: &str, has_ip_ids: bool) -> Captured {
    run(&Transfer { parts: &[path], variant: "linux", segments: 3000, seconds: 20, seed: 3, has_ip_ids })
}

fn records(file: &[u8]) -> Vec<Record> {
    let (mut records, mut rest) = (Vec::new(), &file[24..]);
    while let Some((header, after)) = rest.split_first_chunk::<16>() {
        let number = |at| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let (captured, after) = after.split_at(number(8) as usize);
        let at = u64::from(number(0)) * 1_000_000 + u64::from(number(4));
        records.push((at, Bytes { captured: with_checksum(captured), len: number(12) as usize }));
        rest = after;
    }
    records
}

fn file(link: u16, records: &[Record]) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, u32::from(link)].map(u32::to_le_bytes).concat();
    for (at, packet) in records {
        let fields =
            [(at / 1_000_000) as u32, (at % 1_000_000) as u32, packet.captured.len() as u32, packet.len as u32];
        file.extend(fields.map(u32::to_le_bytes).concat());
        file.extend(&packet.captured);
    }
    file
}

fn matched(files: [&[u8]; 2], options: &BothEndsOptions) -> Matched {
    Matched::read(files, options).unwrap().expect("the captures have the same packets")
}

fn compare(files: [&[u8]; 2], options: &BothEndsOptions) -> BothEnds {
    matched(files, options).report(["a".to_owned(), "b".to_owned()])
}

fn micros(ms: f64) -> u64 {
    let nanos = std::time::Duration::from_secs_f64(ms / 1e3).as_nanos();
    u64::try_from((nanos + 500) / 1000).unwrap()
}

fn same_clock() -> BothEndsOptions {
    BothEndsOptions { same_clock: true, ..BothEndsOptions::default() }
}

/// What happened to the packets of one end, by their identifications.
#[derive(PartialEq, Eq, Debug, Default)]
struct Truth {
    sent: u64,
    arrived: u64,
    duplicated: u64,
    reordered: u64,
    /// Microseconds, sorted.
    delays: Vec<u64>,
}

fn truth(captured: &Captured, from: u8) -> Truth {
    let of = |tap: usize| {
        let mine = records(&captured.files[tap]).into_iter().filter(move |(_, packet)| packet.captured[15] == from);
        mine.map(|(at, packet)| (at, u16::from_be_bytes([packet.captured[4], packet.captured[5]]))).collect::<Vec<_>>()
    };
    let (near, far) = if from == 1 { (of(SENDER), of(RECEIVER)) } else { (of(RECEIVER), of(SENDER)) };
    let sent: BTreeMap<u16, (usize, u64)> = near.iter().zip(1..).map(|((at, id), n)| (*id, (n, *at))).collect();
    assert_eq!(sent.len(), near.len(), "identifications are unique");
    let mut truth = Truth { sent: near.len() as u64, ..Truth::default() };
    let (mut seen, mut newest) = (std::collections::BTreeSet::new(), 0);
    for (at, id) in far {
        let (number, sent) = sent[&id];
        if !seen.insert(id) {
            truth.duplicated += 1;
            continue;
        }
        truth.delays.push(at - sent);
        truth.reordered += u64::from(number < newest);
        newest = newest.max(number);
    }
    truth.arrived = truth.delays.len() as u64;
    truth.delays.sort_unstable();
    truth
}

/// The packets of the data's sender.
#[track_caller]
fn check_data(report: &BothEnds, captured: &Captured) {
    check_end(report, captured, 1, "10.0.0.1:40000");
}

/// The packets of both ends.
#[track_caller]
fn check(report: &BothEnds, captured: &Captured) {
    check_data(report, captured);
    check_end(report, captured, 2, "10.0.0.2:5001");
}

#[track_caller]
fn check_end(report: &BothEnds, captured: &Captured, from: u8, name: &str) {
    let truth = truth(captured, from);
    let flow = report.flows.iter().find(|flow| flow.from == name).unwrap();
    let found = (flow.sent, flow.arrived, flow.duplicated, flow.reordered, flow.not_sent);
    assert_eq!(found, (truth.sent, truth.arrived, truth.duplicated, truth.reordered, 0), "{name}");
    assert_eq!(flow.lost + flow.unknown, truth.sent - truth.arrived, "{name}: {flow:?}");
    assert!(flow.unknown < 60, "{name}: {flow:?}");
}

#[test]
fn what_is_lost_late_and_duplicated_is_known() {
    for path in ["reordered-and-lossy", "two-paths-50ms", "duplicates", "rr-tcp"] {
        let captured = transfer(path, true);
        let [a, b] = [SENDER, RECEIVER].map(|tap| &captured.files[tap][..]);
        let report = compare([a, b], &same_clock());
        check(&report, &captured);
        assert_eq!(report.warnings, [""; 0], "{path}");
        // Of the packets with data, the simulation knows the same.
        let lost = captured.log.sent.iter().filter(|sent| sent.passes[RECEIVER] == 0 && !sent.is_under_way).count();
        let flow = &report.flows[0];
        assert!(flow.lost + flow.unknown >= lost as u64 && flow.near == 0, "{path}: {lost} {flow:?}");
        let delays = truth(&captured, 1).delays;
        let expected = [0, 50, 99, 100].map(|per_cent| delays[(delays.len() - 1) * per_cent / 100]);
        let found = [flow.delay.least_ms, flow.delay.p50_ms, flow.delay.p99_ms, flow.delay.most_ms];
        assert_eq!(found.map(micros), expected, "{path}");
        // The other way round, and without identifications, which tell packets apart that look the same.
        let exchanged = compare([b, a], &same_clock());
        assert_eq!(exchanged.flows[0], reknit_trace::FlowReport { near: 1, ..flow.clone() });
        let anonymous = transfer(path, false);
        let [a, b] = [SENDER, RECEIVER].map(|tap| &anonymous.files[tap][..]);
        check_data(&compare([a, b], &same_clock()), &captured);
    }
}

#[test]
fn clocks_that_differ_are_aligned() {
    let captured = transfer("two-paths-50ms", true);
    let a = &captured.files[SENDER];
    let expected = compare([a, &captured.files[RECEIVER]], &same_clock());
    for (ahead, ppm) in [(0_i64, 0_i64), (1_234_567_891, 0), (3_600_000_000, 50), (987_654_321, -200)] {
        let shift = |(at, packet): Record| {
            let at = at.cast_signed();
            ((at + ahead + at * ppm / 1_000_000).cast_unsigned(), packet)
        };
        let b: Vec<Record> = records(&captured.files[RECEIVER]).into_iter().map(shift).collect();
        let report = compare([a, &file(101, &b)], &BothEndsOptions::default());
        check(&report, &captured);
        let accuracy = report.clock.accuracy_ms.unwrap();
        let off = report.clock.offset_ms - ahead as f64 / 1e3;
        assert!(off.abs() <= accuracy + 10.0 * ppm.abs() as f64 / 1e3, "{ahead} {ppm}: {:?}", report.clock);
        // A queue that grows and a clock that drifts look the same in some seconds.
        assert!(report.clock.skew_ppm.abs() <= ppm.abs() as f64 + 60.0, "{ahead} {ppm}: {:?}", report.clock);
        let delays = [&report, &expected].map(|report| report.flows[0].delay.p50_ms);
        assert!((delays[0] - delays[1]).abs() <= accuracy + 1.0, "{delays:?}");
    }
}

#[test]
fn the_two_captures_may_be_wrapped_differently() {
    let captured = transfer("reordered-and-lossy", true);
    let a = &captured.files[SENDER];
    for (name, link, how) in WRAPPINGS {
        if name.contains("fragments") || name.contains("A-MSDU") {
            continue;
        }
        let records = records(&captured.files[RECEIVER]);
        let b: Vec<Record> = records
            .into_iter()
            .flat_map(|(at, packet)| how(&packet).into_iter().map(move |frame| (at, frame)))
            .collect();
        let report = compare([&a[..], &file(*link, &b)], &same_clock());
        check(&report, &captured);
    }
}

/// Combines segments that follow each other and have the same timestamps, as the receiver's host does.
#[test]
fn what_was_under_way_when_the_captures_began_is_not_missing() {
    let captured = transfer("reordered-and-lossy", true);
    let part = |tap: usize| {
        let of_tap = records(&captured.files[tap]);
        let first = of_tap[0].0;
        let inside = |at: &u64| (2_000_000..4_000_000).contains(&(at - first));
        file(101, &of_tap.into_iter().filter(|(at, _)| inside(at)).collect::<Vec<_>>())
    };
    let report = compare([&part(SENDER), &part(RECEIVER)], &same_clock());
    assert!(report.flows.iter().all(|flow| flow.not_sent == 0 && flow.sent > 100), "{:?}", report.flows);
    assert_eq!(report.warnings, [""; 0]);
}

/// The packets, cut to this many bytes.
fn cut(records: Vec<Record>, len: usize) -> Vec<Record> {
    let cut = |(at, mut packet): Record| {
        packet.captured.truncate(len);
        (at, packet)
    };
    records.into_iter().map(cut).collect()
}

#[test]
fn one_of_the_captures_may_be_cut_shorter() {
    let captured = transfer("reordered-and-lossy", true);
    let all = [SENDER, RECEIVER].map(|tap| records(&captured.files[tap]));
    // Behind the timestamps, within them, and before the options.
    for len in [20 + 20 + 16, 20 + 20 + 6, 20 + 20] {
        for (of_a, of_b) in [(len, 2000), (2000, len)] {
            let [a, b] = [cut(all[0].clone(), of_a), cut(all[1].clone(), of_b)].map(|records| file(101, &records));
            check(&compare([&a, &b], &same_clock()), &captured);
        }
    }
    let [a, b] = udp_captures(true);
    let whole = compare([&a, &b], &BothEndsOptions::default());
    for len in [20 + 8 + 31, 20 + 8 + 16] {
        let short = file(101, &cut(records(&b), len));
        assert_eq!(compare([&a, &short], &BothEndsOptions::default()).flows, whole.flows, "{len}");
    }
}

fn combined(records: Vec<Record>) -> Vec<Record> {
    let mut combined: Vec<Record> = Vec::new();
    let number = |packet: &Bytes, at: usize| u32::from_be_bytes(packet.captured[at..at + 4].try_into().unwrap());
    let payload = |packet: &Bytes| packet.len - packet.captured.len();
    for (at, packet) in records {
        if let Some((_, last)) = combined.last_mut() {
            let follows = number(last, 24).wrapping_add(payload(last) as u32) == number(&packet, 24);
            let is_same =
                last.captured[28..32] == packet.captured[28..32] && last.captured[40..] == packet.captured[40..];
            let is_data = payload(last) > 0 && payload(&packet) > 0 && last.captured[15] == packet.captured[15];
            if follows && is_same && is_data && last.len + payload(&packet) < 60_000 {
                last.len += payload(&packet);
                let total = (last.len as u16).to_be_bytes();
                last.captured[2..4].copy_from_slice(&total);
                continue;
            }
        }
        combined.push((at, packet));
    }
    combined
}

#[test]
fn packets_that_a_host_combines_are_taken_apart() {
    let captured = transfer("lossy", true);
    let whole = records(&captured.files[RECEIVER]);
    let b = combined(whole.clone());
    assert!(b.len() + 20 < whole.len(), "{} of {}", b.len(), whole.len());
    let report = compare([&captured.files[SENDER], &file(101, &b)], &same_clock());
    check(&report, &captured);
}

fn udp(ends: [[u8; 4]; 2], number: u32, ttl: u8) -> Bytes {
    let mut packet = vec![0x45, 0, 0, 228, 0, 0, 0x40, 0, ttl, 17, 0, 0];
    packet.extend(ends.concat());
    packet.extend([0x9c, 0x40, 0x13, 0x88, 0, 208, 0, 0]);
    packet.extend(number.to_be_bytes());
    packet.extend([7; 40]);
    Bytes { captured: packet, len: 228 }
}

const HOSTS: [[u8; 4]; 2] = [[10, 0, 0, 1], [192, 0, 2, 9]];
const NAT: [u8; 4] = [198, 51, 100, 1];

/// 1,000 packets of UDP at both ends, and what is between them: every hundredth is lost, every fiftieth late by 5 ms, one
/// comes twice. A NAT translates the sender's address; the receiver's clock is 2.5 s ahead.
fn udp_captures(is_answered: bool) -> [Vec<u8>; 2] {
    let (mut a, mut b): (Vec<Record>, Vec<Record>) = (Vec::new(), Vec::new());
    let ahead = 2_500_000;
    for i in 0..1000_u32 {
        let sent = 1_000_000_000 + u64::from(i) * 1000;
        a.push((sent, udp(HOSTS, i, 64)));
        if i % 100 != 50 {
            let delay = 20_000 + if i % 50 == 7 { 5_000 } else { 0 };
            b.push((sent + delay + ahead, udp([NAT, HOSTS[1]], i, 60)));
        }
        if i == 500 {
            b.push((sent + 20_300 + ahead, udp([NAT, HOSTS[1]], i, 60)));
        }
        if is_answered {
            b.push((sent + 30_000 + ahead, udp([HOSTS[1], NAT], 1_000_000 + i, 64)));
            a.push((sent + 50_000, udp([HOSTS[1], HOSTS[0]], 1_000_000 + i, 59)));
        }
    }
    [a, b].map(|mut records| {
        records.sort_by_key(|(at, _)| *at);
        file(101, &records)
    })
}

#[test]
fn any_protocol_is_compared_also_behind_a_nat() {
    for is_answered in [false, true] {
        let [a, b] = udp_captures(is_answered);
        let report = compare([&a, &b], &BothEndsOptions::default());
        assert_eq!(report.flows.len(), 1 + usize::from(is_answered), "{:?}", report.flows);
        let flow = report.flows.iter().find(|flow| flow.from == "10.0.0.1:40000").unwrap();
        assert_eq!((&*flow.protocol, &*flow.to, flow.near), ("UDP", "192.0.2.9:5000", 0));
        assert_eq!((flow.sent, flow.arrived, flow.lost, flow.unknown), (1000, 990, 10, 0));
        assert_eq!((flow.duplicated, flow.not_sent, flow.loss_runs.longest), (1, 0, 1));
        assert_eq!((flow.reordering.extent_p50, flow.reordered), (Some(4), 20));
        assert_eq!((flow.reordering.late_max_ms, flow.delay.relative), (Some(4.0), !is_answered));
        let expected = if is_answered { [20_000, 20_000, 25_000] } else { [0, 0, 5_000] };
        assert_eq!([flow.delay.least_ms, flow.delay.p50_ms, flow.delay.most_ms].map(micros), expected);
        assert_eq!(report.clock.accuracy_ms, is_answered.then_some(20.0));
    }
}

#[test]
fn the_path_between_two_captures_is_written() {
    let [a, b] = udp_captures(true);
    let path = matched([&a, &b], &BothEndsOptions::default()).path(None).unwrap();
    assert_eq!((path.lost + path.queue_drops, path.round_trip.as_millis()), (10, 40));
    assert_eq!(path.late, 20);
    Profile::parse("measured.toml", &path.toml()).unwrap();
    let [a, b] = udp_captures(false);
    let error = matched([&a, &b], &BothEndsOptions::default()).path(None).unwrap_err();
    assert!(error.contains("the round trip is not known"), "{error}");
}

#[test]
fn captures_of_other_packets_do_not_match() {
    let [a, b] = [transfer("lossy", true), transfer("rr-tcp", true)];
    let none = Matched::read([&a.files[SENDER][..], &b.files[RECEIVER]], &BothEndsOptions::default()).unwrap();
    assert!(none.is_none());
    let (which, error) = Matched::read([&a.files[SENDER][..], b"no capture"], &same_clock()).unwrap_err();
    assert!(which == 1 && error.to_string().contains("not a capture"), "{which} {error}");
}

/// An IPv4 packet with this identification from the first or the second host.
fn packet(id: u16, is_back: bool, (seq, ack): (u32, u32), flags: u8, len: usize) -> Bytes {
    let mut captured = vec![0x45, 0, 0, 40 + len as u8, (id >> 8) as u8, id as u8, 0, 0, 64, 6, 0, 0];
    let [source, destination] = if is_back { [2, 1] } else { [1, 2] };
    captured.extend([10, 0, 0, source, 10, 0, 0, destination]);
    captured.extend([0, source, 0, destination]);
    captured.extend([seq, ack].map(u32::to_be_bytes).concat());
    captured.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
    captured.resize(40 + len, 0);
    Bytes { len: captured.len(), captured }
}

#[test]
fn packets_that_look_the_same_are_matched_with_those_of_their_time() {
    // Each second the same segments, each of which is reset with the same numbers. Nobody else has packets in this direction.
    let [mut near, mut far] = [Vec::new(), Vec::new()];
    for i in 0..60_u32 {
        let (at, number) = (1_000_000 + u64::from(i) * 200_000, 40 * (i % 5));
        let data = || packet(100 + i as u16, false, (0, number), 0x10, 26);
        let reset = || packet(0, true, (number, 0), 0x04, 0);
        near.push((at, data()));
        far.push((at + 30_000, data()));
        far.push((at + 30_100, reset()));
        if i % 7 != 3 {
            near.push((at + 60_000, reset()));
        }
    }
    let report = compare(
        [near, far].each_ref().map(|records| file(101, records)).each_ref().map(|file| &file[..]),
        &BothEndsOptions::default(),
    );
    let resets = report.flows.iter().find(|flow| flow.from.starts_with("10.0.0.2")).unwrap();
    let (lost, sent) = (60 / 7, 60);
    assert_eq!((resets.near, resets.sent, resets.reordered), (1, sent, 0), "{resets:?}");
    assert!(resets.lost.abs_diff(lost) <= 1 && resets.not_sent == 0, "{resets:?}");
    assert!(resets.delay.most_ms < 100.0, "{resets:?}");
}
