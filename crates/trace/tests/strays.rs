//! Packets that are no part of their connection or come twice: other connections between the same ports, files that are not sorted,
//! copies and retries; and packets that cannot be read.

#[expect(dead_code, reason = "other tests need more")]
mod wire;

use reknit_tcp::segment::Flags;
use reknit_trace::{DirectionReport, Frame, Verdict};
use wire::{ACK, Headers, Passing, SYN, Wire, analyze_file};

const FIN: Flags = Flags::FIN;
const NO_TIMESTAMPS: Headers = Headers { timestamps: false, sack: true, near: 0, port: 40_000, isn: [1000, 5000] };

fn says(direction: &DirectionReport, text: &str) -> bool {
    direction.advice.iter().any(|advice| advice.to_string().contains(text))
}

#[test]
fn another_connection_without_its_syn_misses_nothing() {
    let mut wire = Wire::opened(Headers::default());
    wire.data(60.0, 0, 1, 1000);
    wire.ack(110.0, 1, 1001);
    wire.pass(120.0, 0, Passing { flags: FIN | ACK, seq: 1001, ack: 1, ..Passing::default() });
    wire.pass(170.0, 1, Passing { flags: FIN | ACK, seq: 1, ack: 1002, ..Passing::default() });
    wire.pass(170.2, 0, Passing { flags: ACK, seq: 1002, ack: 2, ..Passing::default() });
    wire.headers.isn = [556_692_560, 2_284_746_331];
    wire.pass(90_050.0, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    wire.pass(90_050.2, 0, Passing { flags: ACK, seq: 1, ack: 1, ..Passing::default() });
    for i in 0..3_u32 {
        wire.data(90_060.0 + f64::from(i), 0, 1 + i * 1000, 1000);
        wire.ack(90_110.0 + f64::from(i), 1, 1 + (i + 1) * 1000);
    }
    let (analysis, events) = wire.analyze();
    assert_eq!((analysis.streams, &analysis.warnings[..], events.len()), (1, &[][..], 0), "{events:?}");
    assert_eq!(wire.direction(0).acknowledged_bytes, 4000);
}

#[test]
fn the_other_side_of_a_firewall_that_changes_numbers_is_left_out() {
    let mut wire = Wire::new(Headers { near: 1, timestamps: false, ..Headers::default() });
    let isns = [[1000, 5000], [954_495_045, 2_011_778_449]];
    let both = |wire: &mut Wire, ms: f64, end: usize, passing: Passing<'_>| {
        for isn in if end == 1 { [isns[1], isns[0]] } else { isns } {
            wire.headers.isn = isn;
            wire.pass(ms, end, passing);
        }
    };
    wire.headers.isn = isns[0];
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    both(&mut wire, 0.2, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    both(&mut wire, 50.2, 0, Passing { flags: ACK, seq: 1, ack: 1, ..Passing::default() });
    for i in 0..20_u32 {
        let ms = 60.0 + f64::from(i);
        both(&mut wire, ms, 1, Passing { flags: ACK, seq: 1 + i * 1000, ack: 1, len: 1000, ..Passing::default() });
        both(&mut wire, ms + 50.0, 0, Passing { flags: ACK, seq: 1, ack: 1 + (i + 1) * 1000, ..Passing::default() });
    }
    let (analysis, events) = wire.analyze();
    assert!(events.is_empty(), "{events:?}");
    let [warning] = &analysis.warnings[..] else { panic!("{:?}", analysis.warnings) };
    assert!(warning.starts_with("41 packets are left out: their sequence numbers do not belong"), "{warning}");
    assert_eq!(wire.direction(1).acknowledged_bytes, 20_000);
}

/// The header of the file, and its records.
fn records(file: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let (header, mut rest) = file.split_at(24);
    let mut all = Vec::new();
    while !rest.is_empty() {
        let len = 16 + u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (record, after) = rest.split_at(len);
        all.push(record);
        rest = after;
    }
    (header, all)
}

#[test]
fn a_file_that_contains_everything_twice_or_is_not_sorted() {
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    for i in 0..30_u32 {
        wire.data(60.0 + f64::from(i) * 60.0, 0, 1 + i * 1000, 1000);
        wire.ack(110.0 + f64::from(i) * 60.0, 1, 1 + (i + 1) * 1000);
    }
    let file = wire.file();
    let (header, all) = records(&file);
    let quiet = |records: &[&[u8]], left_out: &str| {
        let (analysis, events) = analyze_file(&[&[header][..], records].concat().concat(), None);
        assert!(events.iter().all(|event| matches!(event.verdict, Verdict::Incident { .. })), "{left_out}: {events:?}");
        let warnings = &analysis.warnings;
        assert!(warnings.iter().any(|warning| warning.starts_with(left_out)), "{left_out}: {warnings:?}");
    };
    quiet(&[&all[..], &all[..]].concat(), "63 packets are left out: they repeat others at earlier times");
    // A block of packets comes too late.
    let (before, block, after) = (&all[..20], &all[20..30], &all[30..]);
    quiet(&[before, after, block].concat(), "10 packets are left out: they repeat others at earlier times");
    // A clock that is set back repeats nothing.
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    wire.data(3_600_000.0, 0, 1, 1000);
    let late = wire.file();
    wire.data(3_500_000.0, 0, 1001, 1000);
    wire.ack(3_500_050.0, 1, 2001);
    let early = wire.file();
    let (header, late) = records(&late);
    let back = [&[header], &late[..], &records(&early).1[3..5]].concat().concat();
    let (analysis, events) = analyze_file(&back, None);
    assert!(events.is_empty() && analysis.warnings[0].starts_with("2 packets are earlier"), "{:?}", analysis.warnings);
}

#[test]
fn copies_in_one_direction_without_any_mark() {
    let mut wire = Wire::new(NO_TIMESTAMPS);
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    let twice = |wire: &mut Wire, ms: f64, passing: Passing<'_>| {
        for apart in [0.0, 0.1] {
            wire.pass(ms + apart, 1, passing);
            wire.unmark();
        }
    };
    twice(&mut wire, 0.2, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    wire.pass(50.2, 0, Passing { flags: ACK, seq: 1, ack: 1, ..Passing::default() });
    for i in 0..12_u32 {
        let ms = 60.0 + f64::from(i) * 100.0;
        twice(&mut wire, ms, Passing { flags: ACK, seq: 1 + i * 30, ack: 1 + i, len: 30, ..Passing::default() });
        wire.pass(
            ms + 50.0,
            0,
            Passing { flags: ACK, seq: 1 + i, ack: 1 + (i + 1) * 30, len: 1, ..Passing::default() },
        );
        twice(&mut wire, ms + 50.2, Passing { flags: ACK, seq: 1 + (i + 1) * 30, ack: 2 + i, ..Passing::default() });
    }
    let (analysis, events) = wire.analyze();
    assert!(events.is_empty(), "{events:?}");
    assert!(analysis.warnings[0].contains("left out: copies"), "{:?}", analysis.warnings);
}

#[test]
fn a_capture_without_ip_cannot_be_compared() {
    let arp = [&[0xff; 6][..], &[2; 6], &[0x08, 0x06], &[0; 28]].concat();
    let mut analyzer = reknit_trace::Analyzer::default();
    analyzer.on_frame(&ethernet(&arp), &mut |_| {});
    let refused = analyzer.finish(&mut |_| {}).refuse_without_tcp().unwrap_err();
    assert!(refused.contains("no IP either") && !refused.contains("each end"), "{refused}");
}

fn ethernet(bytes: &[u8]) -> Frame<'_> {
    Frame { number: 1, at: Some(1), link: 1, interface: 0, bytes, original_len: bytes.len() }
}

#[test]
fn retries_of_the_link_layer_are_no_duplicates() {
    const LINKTYPE_IEEE802_11: u32 = 105;
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    for i in 0..5_u32 {
        wire.data(60.0 + f64::from(i) * 60.0, 0, 1 + i * 1000, 1000);
        let original = wire.len() - 1;
        let copy = Passing { flags: ACK, len: 1000, copy_of: Some(original), ..Passing::default() };
        wire.pass(63.0 + f64::from(i) * 60.0, 0, copy);
        wire.ack(113.0 + f64::from(i) * 60.0, 1, 1 + (i + 1) * 1000);
    }
    let file = wire.file();
    let (header, all) = records(&file);
    let mut wlan = [&header[..20], &LINKTYPE_IEEE802_11.to_le_bytes()].concat();
    let mut last: &[u8] = &[];
    let mut sequence = 0_u16;
    for record in all {
        let (head, packet) = record.split_at(16);
        let is_retry = packet == last;
        last = packet;
        sequence += u16::from(!is_retry);
        let from = packet[15]; // the last byte of the sender's address
        let mut frame = vec![0x08, if is_retry { 0x09 } else { 0x01 }, 0, 0];
        frame.extend([[1; 6], [from; 6], [3; 6]].concat());
        frame.extend((sequence << 4).to_le_bytes());
        frame.extend([0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        let lens = [8, 12].map(|at| u32::from_le_bytes(head[at..at + 4].try_into().unwrap()) + 32);
        wlan.extend(&head[..8]);
        wlan.extend(lens.map(u32::to_le_bytes).concat());
        wlan.extend([&frame[..], packet].concat());
    }
    let (analysis, events) = analyze_file(&wlan, None);
    assert!(!events.iter().any(|event| event.verdict == Verdict::Duplicated), "{events:?}");
    let left_out: Vec<String> = analysis.left_out.iter().map(ToString::to_string).collect();
    assert_eq!((analysis.tcp_packets, &left_out[..]), (13, &["5 of retries of IEEE 802.11".to_owned()][..]));
}

#[test]
fn compressed_headers_are_not_missing_from_the_capture() {
    const LINKTYPE_PPP: u32 = 9;
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    for i in 0..5_u32 {
        wire.data(60.0 + f64::from(i) * 60.0, 0, 1 + i * 1000, 1000);
        wire.ack(113.0 + f64::from(i) * 60.0, 1, 1 + (i + 1) * 1000);
    }
    let file = wire.file();
    let (header, all) = records(&file);
    let mut ppp = [&header[..20], &LINKTYPE_PPP.to_le_bytes()].concat();
    for (i, record) in all.iter().enumerate() {
        let (head, packet) = record.split_at(16);
        let lens = [8, 12].map(|at| u32::from_le_bytes(head[at..at + 4].try_into().unwrap()) + 4);
        ppp.extend(&head[..8]);
        ppp.extend(lens.map(u32::to_le_bytes).concat());
        let protocol = if i == 5 { 0x2d } else { 0x21 };
        ppp.extend([&[0xff, 0x03, 0, protocol], packet].concat());
    }
    let (analysis, _) = analyze_file(&ppp, None);
    let [warning] = &analysis.warnings[..] else { panic!("{:?}", analysis.warnings) };
    assert!(warning.ends_with("among the 1 that were left out because they are compressed"), "{warning}");
    let direction = &analysis.directions[0];
    assert!(
        says(direction, "before the link compresses") && !says(direction, "larger buffer"),
        "{:?}",
        direction.advice
    );
}
