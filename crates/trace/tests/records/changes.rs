//! What tools make of a capture: clocks of all kinds, packets that are cut off, and segments that a network card or the host
//! combines (TSO, GRO).

use std::collections::BTreeMap;

use super::{RECORD, Records};

const ETHERNET: usize = 14;
/// Segments that are combined pass within this time, microseconds.
const TOGETHER: u64 = 1_500;
const MAX_COMBINED: usize = 16;

/// The frames of the whole capture of which each frame is made.
pub(crate) type Parts = BTreeMap<u64, Vec<u64>>;

fn micros(record: &[u8]) -> u64 {
    let field = |at: usize| u64::from(u32::from_le_bytes(record[at..at + 4].try_into().unwrap()));
    field(0) * 1_000_000 + field(4)
}

/// The capture of a clock that counts so many microseconds at a time.
pub(crate) fn with_clock(whole: &Records, tick: u64) -> Records {
    let mut coarse = whole.clone();
    for (_, record) in &mut coarse.records {
        let at = micros(record) / tick * tick;
        record[..4].copy_from_slice(&((at / 1_000_000) as u32).to_le_bytes());
        record[4..8].copy_from_slice(&((at % 1_000_000) as u32).to_le_bytes());
    }
    coarse
}

/// The capture with at most so many bytes of each packet.
pub(crate) fn cut_off(whole: &Records, snaplen: usize) -> Records {
    let mut cut = whole.clone();
    for (_, record) in &mut cut.records {
        record.truncate(RECORD + snaplen - ETHERNET);
        let captured = (record.len() - RECORD) as u32;
        record[8..12].copy_from_slice(&captured.to_le_bytes());
    }
    cut
}

/// What decides whether two data packets are combined: the headers without IP identification, checksums and sequence number.
struct Headers {
    from: Vec<u8>,
    seq: u32,
    len: u32,
    options: Vec<u8>,
}

impl Headers {
    /// None without data.
    fn of(record: &[u8]) -> Option<Headers> {
        let packet = &record[RECORD..];
        let whole = u32::from_le_bytes(record[12..16].try_into().unwrap());
        let header = 20 + usize::from(packet[32] >> 4) * 4;
        let len = whole - header as u32;
        let from = [&packet[12..24], &packet[28..36]].concat();
        let seq = u32::from_be_bytes(packet[24..28].try_into().unwrap());
        (len > 0).then(|| Headers { from, seq, len, options: packet[40..header].to_vec() })
    }
}

/// The capture with segments that follow each other combined, and the frames of which each is made.
pub(crate) fn combined(whole: &Records) -> (Records, Parts) {
    let mut records: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut parts: Parts = BTreeMap::new();
    for (number, record) in &whole.records {
        if let Some((first, last)) = records.last_mut()
            && let Some((a, b)) = Headers::of(last).zip(Headers::of(record))
            && parts[first].len() < MAX_COMBINED
            && (a.from == b.from && a.options == b.options && a.seq.wrapping_add(a.len) == b.seq)
            && micros(record) - micros(last) <= TOGETHER
        {
            let original = u32::from_le_bytes(last[12..16].try_into().unwrap()) + b.len;
            last[12..16].copy_from_slice(&original.to_le_bytes());
            last[RECORD + 2..RECORD + 4].copy_from_slice(&(original as u16).to_be_bytes());
            parts.get_mut(first).unwrap().push(*number);
            continue;
        }
        records.push((*number, record.clone()));
        parts.insert(*number, vec![*number]);
    }
    (Records { records, ..whole.clone() }, parts)
}

/// Each frame is one of the whole capture.
pub(crate) fn alone(records: &Records) -> Parts {
    records.records.iter().map(|(number, _)| (*number, vec![*number])).collect()
}
