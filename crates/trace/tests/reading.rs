//! Captures in all formats, and damaged ones: a result, a partial result that says so, or an error; never a panic.

use std::io::Write;

use flate2::write::GzEncoder;
use reknit_tcp::segment::{Flags, Options as SegmentOptions, SackBlock, Timestamps};
use reknit_tcp::{Segment, SeqNum};
use reknit_trace::{Analysis, Analyzer, Error, Filter, Frames, Options, Time};
use reknit_units::Instant;
use reknit_wire::{Endpoints, encode};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// A segment of a capture: when, from which end, and its fields.
struct Passing {
    ms: u64,
    end: usize,
    segment: Segment,
}

fn passing(ms: u64, end: usize, flags: Flags, seq: u32, ack: u32, len: u16) -> Passing {
    let timestamps = Some(Timestamps { val: 1000 * (end as u32 + 1) + ms as u32, ecr: 0 });
    let options = SegmentOptions { timestamps, sack_permitted: flags.has(Flags::SYN), ..SegmentOptions::default() };
    let (seq, ack) = (SeqNum(seq), SeqNum(ack));
    Passing { ms, end, segment: Segment { seq, ack, flags, len, options, ..Segment::default() } }
}

fn with_sack(mut passing: Passing, left: u32, right: u32) -> Passing {
    let block = SackBlock { left: SeqNum(left), right: SeqNum(right) };
    passing.segment.options.sack.push(block);
    passing
}

/// A connection at its receiver: of five segments the second is lost and repeated, the fourth is late by one.
fn connection() -> Vec<Passing> {
    const DATA: u16 = 1000;
    let data = |ms, number: u32| passing(ms, 0, Flags::ACK, 1 + number * 1000, 501, DATA);
    let ack = |ms, number: u32| passing(ms, 1, Flags::ACK, 501, 1 + number * 1000, 0);
    let mut repaired = data(150, 1);
    repaired.segment.options.timestamps = Some(Timestamps { val: 1140, ecr: 0 });
    let mut late = data(102, 3);
    late.segment.options.timestamps = Some(Timestamps { val: 1100, ecr: 0 });
    vec![
        passing(0, 0, Flags::SYN, 0, 0, 0),
        passing(0, 1, Flags::SYN | Flags::ACK, 500, 1, 0),
        passing(40, 0, Flags::ACK, 1, 501, 0),
        data(100, 0),
        ack(100, 1),
        data(101, 2),
        with_sack(ack(101, 1), 2001, 3001),
        data(101, 4),
        with_sack(ack(101, 1), 4001, 5001),
        late,
        with_sack(ack(102, 1), 2001, 5001),
        repaired,
        ack(150, 5),
    ]
}

/// The packets with their times in nanoseconds.
fn packets() -> Vec<(u64, Vec<u8>)> {
    let ends = ["10.0.0.1:40000", "10.0.0.2:443"].map(|end| end.parse().unwrap());
    let encoded = connection().into_iter().map(|Passing { ms, end, segment }| {
        let mut packet = Vec::new();
        let endpoints = Endpoints { source: ends[end], destination: ends[1 - end] };
        encode(endpoints, &segment, &vec![0; segment.len.into()], &mut packet);
        (ms * 1_000_000, packet)
    });
    encoded.collect()
}

fn pcapng() -> Vec<u8> {
    let mut file = Vec::new();
    let mut capture = reknit_wire::Capture::new(&mut file).unwrap();
    let interface = capture.interface("eth0").unwrap();
    for (nanos, packet) in packets() {
        // Only headers are captured.
        capture.packet(interface, Instant::from_nanos(nanos), &packet[..packet.len().min(80)], packet.len()).unwrap();
    }
    capture.finish().unwrap();
    file
}

fn pcap(big_endian: bool, nanoseconds: bool) -> Vec<u8> {
    let number = |n: u32| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
    let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file: Vec<u8> =
        [magic, if big_endian { 0x0002_0004 } else { 0x0004_0002 }, 0, 0, 262_144, 101].map(number).concat();
    for (nanos, packet) in packets() {
        let ticks = if nanoseconds { nanos } else { nanos / 1000 };
        let captured = packet.len().min(80);
        file.extend([0, ticks as u32, captured as u32, packet.len() as u32].map(number).concat());
        file.extend(&packet[..captured]);
    }
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn analyze(file: &[u8]) -> Result<Analysis, Error> {
    let mut analyzer = Analyzer::new(Options::default());
    analyzer.read(file, &mut |_| {})?;
    Ok(analyzer.finish(&mut |_| {}))
}

#[test]
fn all_formats_give_the_same_analysis() {
    let analysis = analyze(&pcapng()).unwrap();
    assert_eq!((analysis.packets, analysis.streams, analysis.warnings.clone()), (13, 1, vec![]));
    let [direction] = &analysis.directions[..] else { panic!("{analysis:?}") };
    let verdicts = &direction.verdicts;
    assert_eq!((verdicts.lost, verdicts.reordered, verdicts.spurious, verdicts.cannot_tell), (1, 1, 0, 0));
    assert_eq!((direction.reordering.extent_max, direction.reordering.late_max_ms), (Some(1), Some(1.0)));
    assert_eq!(direction.captured_at, reknit_trace::CapturePoint::Receiver);
    assert_eq!(direction.acknowledged_bytes, 5000);
    let plain = pcap(false, true);
    let two_frames = [
        compress_to_vec(&plain[..300], CompressionLevel::Fastest),
        compress_to_vec(&plain[300..], CompressionLevel::Fastest),
    ];
    let two_members = [gzip(&plain[..200]), gzip(&plain[200..])];
    for file in
        [pcap(false, false), pcap(true, false), pcap(true, true), plain, two_frames.concat(), two_members.concat()]
    {
        assert_eq!(analyze(&file).unwrap(), analysis);
    }
}

#[test]
fn what_is_no_capture_is_refused() {
    let message = |file: &[u8]| analyze(file).unwrap_err().to_string();
    assert!(message(b"").starts_with("is empty"));
    assert!(
        message(b"GIF89a............................")
            .contains("not a capture (begins with 47 49 46 38); supported are pcap and pcapng, plain or compressed")
    );
    assert!(message(&pcap(false, false)[..5]).starts_with("is cut off after 5 bytes, within the header"));
    assert!(message(&gzip(b"hello")).contains("supported are"));
    assert!(message(&[0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff]).contains("zstd"));
}

#[test]
fn a_capture_that_is_cut_anywhere_gives_what_comes_before() {
    let whole = analyze(&pcapng()).unwrap().packets;
    for file in [pcapng(), pcap(false, false)] {
        let mut last = 0;
        for cut in 0..file.len() {
            let Ok(analysis) = analyze(&file[..cut]) else { continue };
            assert!(analysis.packets >= last && analysis.packets <= whole, "{cut}");
            last = analysis.packets;
            for warning in analysis.warnings.iter().filter(|warning| warning.contains("the file is damaged")) {
                let next = format!("packet {} at byte ", analysis.packets + 1);
                assert!(warning.contains(&next), "{warning}");
            }
        }
        assert!(last >= whole - 1);
    }
    for compressed in [gzip(&pcapng()), compress_to_vec(&pcap(false, false)[..], CompressionLevel::Fastest)] {
        for cut in 0..compressed.len() {
            let Ok(analysis) = analyze(&compressed[..cut]) else { continue };
            let is_partial = analysis.warnings.iter().any(|warning| warning.contains("the file is damaged"));
            assert!(is_partial || analysis.packets == whole, "{cut} of {}: {analysis:?}", compressed.len());
        }
    }
}

/// A small generator (`SplitMix64`), so that the same files are tested everywhere.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) as usize
}

#[test]
fn damaged_captures_give_a_result_or_an_error() {
    const FILES: u32 = 12_000;
    let files = std::env::var("FUZZ_CHANGES").map_or(FILES, |n| n.parse().expect("FUZZ_CHANGES is a number"));
    let zstd = compress_to_vec(&pcap(false, false)[..], CompressionLevel::Fastest);
    let originals = [pcapng(), pcap(false, false), gzip(&pcapng()), zstd];
    let mut state = 7;
    let mut results = 0;
    for i in 0..files {
        let mut file = originals[i as usize % originals.len()].clone();
        for _ in 0..=next(&mut state) % 8 {
            let at = next(&mut state) % file.len();
            match next(&mut state) % 4 {
                0 => file[at] = next(&mut state) as u8,
                1 => file[at] ^= 1 << (next(&mut state) % 8),
                2 => file.truncate(at.max(24)),
                _ => {
                    let piece = file[at..(at + 40).min(file.len())].to_vec();
                    file.splice(at..at, piece);
                }
            }
        }
        results += u32::from(analyze(&file).is_ok());
    }
    assert!(results > files / 2, "only {results} files gave a result: the damage is not interesting");
    eprintln!("{results} of {files} files gave a result, the others an error");
}

#[test]
fn what_is_not_in_the_time_span_leaves_no_marks() {
    let filter =
        Filter { from: Some(Time::Since(100_000_000)), to: Some(Time::Since(101_000_000)), ..Filter::default() };
    let mut analyzer = Analyzer::new(Options { marks: true, filter, ..Options::default() });
    let file = pcapng();
    let mut frames = Frames::new(&file[..]).unwrap();
    let mut marked = Vec::new();
    while let Some(frame) = frames.next_frame() {
        analyzer.on_frame(&frame, &mut |_| {});
        marked.extend(analyzer.marks().iter().map(|mark| (frame.number, mark.frame)));
    }
    assert!(!marked.is_empty() && marked.iter().all(|(frame, mark)| frame == mark), "{marked:?}");
    assert!(marked.iter().all(|(frame, _)| (4..=9).contains(frame)), "{marked:?}");
}

#[test]
fn a_file_that_expands_enormously_costs_no_memory() {
    let mut file = pcap(false, false);
    // A packet of an unknown protocol, repeated.
    let mut record: Vec<u8> = [0_u32, 0, 65_536, 65_536].map(u32::to_le_bytes).concat();
    record.resize(16 + 65_536, 0);
    for _ in 0..200 {
        file.extend(&record);
    }
    let compressed = gzip(&file);
    assert!(compressed.len() < file.len() / 200);
    let analysis = analyze(&compressed).unwrap();
    assert_eq!((analysis.packets, analysis.tcp_packets), (213, 13));
    // A record that claims to be huge ends the reading.
    let huge: Vec<u8> = [0_u32, 0, u32::MAX, u32::MAX].map(u32::to_le_bytes).concat();
    let warnings = analyze(&[pcap(false, false), huge].concat()).unwrap().warnings;
    assert!(
        warnings[0].contains("packet 14 at byte ") && warnings[0].contains("at most 16 MiB are allowed"),
        "{warnings:?}"
    );
}
