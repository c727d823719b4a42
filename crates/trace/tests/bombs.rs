//! Small files that would become huge: reading them costs time, but little memory.

use std::io::Write;

use flate2::write::GzEncoder;
use reknit_trace::{Analysis, Analyzer, Options};

/// Bytes after decompression.
const HUGE: usize = 64 << 20;
/// What reading may cost, kB. The largest window that is decoded is 100 MiB.
const ALLOWED: u64 = 160 << 10;
/// The largest block of zstd.
const BLOCK: usize = 128 << 10;

fn pcap_header() -> Vec<u8> {
    [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101].map(u32::to_le_bytes).concat()
}

/// A packet of `bytes`.
fn record(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len() as u32;
    [&[0, 0, len, len].map(u32::to_le_bytes).concat()[..], bytes].concat()
}

fn analyze(file: &[u8]) -> Result<Analysis, String> {
    let mut analyzer = Analyzer::new(Options { transits: true, ..Options::default() });
    analyzer.read(file, &mut |_| {}).map_err(|error| error.to_string())?;
    Ok(analyzer.finish(&mut |_| {}))
}

/// The most memory that this process has used so far, kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn gzip_bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&pcap_header()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..HUGE >> 20 {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap()
}

/// A zstd frame with a window of `2^exponent` bytes: the header of a capture, then blocks that repeat one byte.
fn zstd_bomb(exponent: u8, blocks: usize) -> Vec<u8> {
    let block = |is_last: bool, kind: u32, size: usize| -> [u8; 3] {
        let header = (u32::from(is_last) | kind << 1 | (size as u32) << 3).to_le_bytes();
        [header[0], header[1], header[2]]
    };
    let mut file = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (exponent - 10) << 3];
    file.extend(block(false, 0, 24));
    file.extend(pcap_header());
    for i in 1..=blocks {
        file.extend(block(i == blocks, 1, BLOCK));
        file.push(0);
    }
    file
}

/// A SYN between other ports in each packet.
fn syns(count: u32) -> Vec<u8> {
    let mut file = pcap_header();
    for i in 0..count {
        let mut packet = [0; 40];
        (packet[0], packet[3], packet[9]) = (0x45, 40, 6);
        packet[12..16].copy_from_slice(&i.to_be_bytes());
        (packet[20], packet[32], packet[33]) = (1, 0x50, 2);
        file.extend(record(&packet));
    }
    file
}

#[test]
fn huge_contents_cost_no_memory() {
    let (gzip, zstd) = (gzip_bomb(), zstd_bomb(24, HUGE / BLOCK));
    assert!(gzip.len() < HUGE / 200 && zstd.len() < HUGE / 20_000, "{} {}", gzip.len(), zstd.len());
    let (many, before) = (syns(300_000), peak());
    for file in [&gzip, &zstd] {
        let analysis = analyze(file).unwrap();
        assert_eq!((analysis.packets as usize, analysis.tcp_packets), (HUGE / 16, 0), "{:?}", analysis.warnings);
    }
    let after = peak();
    assert!(after - before < ALLOWED, "{} kB", after - before);
    // A window that no decoder should allocate is refused.
    let refused = analyze(&zstd_bomb(40, HUGE / BLOCK));
    assert!(refused.as_ref().is_err_and(|message| message.contains("window")), "{refused:?}");
    assert!(peak() - after < ALLOWED, "{} kB", peak() - after);
    // More connections than are analysed.
    let after = peak();
    let analysis = analyze(&many).unwrap();
    assert_eq!((analysis.streams as usize, analysis.tcp_packets), (reknit_trace::MAX_STREAMS, 300_000));
    assert!(analysis.warnings[0].contains("left out"), "{:?}", analysis.warnings);
    assert!(peak() - after < 2 * ALLOWED, "{} kB", peak() - after);
}
