//! Transfers of the kernel that were captured at three places: what happened to a packet is where it was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use reknit_trace::Frames;
use reknit_trace::packet::{Flags, Packet, Reader, Segment};

use crate::truth::log::{Log, MIDDLE, RECEIVER, SENDER, Sent};

/// The captures of one transfer.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) name: String,
    pub(crate) files: [Vec<u8>; 3],
    pub(crate) log: Log,
}

/// What identifies a transmission: Linux counts the packets of a connection in the IP identification.
type Key = (u32, u32, Option<u16>, Option<u32>);

/// All transfers of which `folder` has the captures `NAME-sender.pcapng`, `NAME-middle.pcapng` and
/// `NAME-receiver.pcapng`.
pub(crate) fn all(folder: &Path) -> Result<Vec<Live>, String> {
    const END: &str = "-sender.pcapng";
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let name = entry.map_err(|error| failed(folder, error))?.file_name().into_string().unwrap_or_default();
        names.extend(name.strip_suffix(END).map(str::to_owned));
    }
    let mut all = Vec::new();
    for name in names {
        let file = |place: &str| -> PathBuf { folder.join(format!("{name}-{place}.pcapng")) };
        let read = |place: &str| std::fs::read(file(place)).map_err(|error| failed(&file(place), error));
        let files = [read("sender")?, read("middle")?, read("receiver")?];
        let log = log(&files).map_err(|message| format!("{name}: {message}"))?;
        all.push(Live { name, files, log });
    }
    Ok(all)
}

/// A TCP packet of a capture, and whether it has data for the receiver.
type Seen = (Key, Segment, bool);

/// The segments of a capture, in the order of its frames, and whether they have data for the receiver.
fn segments(file: &[u8]) -> Result<Vec<Option<Seen>>, String> {
    let mut frames = Frames::new(file).map_err(|error| error.to_string())?;
    let (mut reader, mut all) = (Reader::default(), Vec::new());
    let mut bytes: BTreeMap<u16, u64> = BTreeMap::new();
    while let Some(frame) = frames.next_frame() {
        all.push(reader.read(&frame).first().copied());
        if let Some(Some(packet)) = all.last() {
            *bytes.entry(packet.source.port).or_default() += u64::from(packet.segment.len);
        }
    }
    // The address of the sender may be translated on the way.
    let sender = bytes.iter().max_by_key(|(_, bytes)| **bytes).map(|(port, _)| *port);
    let known = |packet: Packet| {
        let segment = packet.segment;
        let key = (segment.seq, segment.len, packet.ip_id, segment.timestamps.map(|(value, _)| value));
        (key, segment, Some(packet.source.port) == sender && segment.len > 0)
    };
    Ok(all.into_iter().map(|packet| packet.map(known)).collect())
}

fn log(files: &[Vec<u8>; 3]) -> Result<Log, String> {
    let mut log = Log::default();
    let mut serials: BTreeMap<Key, usize> = BTreeMap::new();
    let mut numbers: BTreeMap<u32, u16> = BTreeMap::new();
    let captures = [segments(&files[SENDER])?, segments(&files[MIDDLE])?, segments(&files[RECEIVER])?];
    for (key, ..) in captures[SENDER].iter().flatten().filter(|(.., is_data)| *is_data) {
        let number = numbers.entry(key.0).or_default();
        *number += 1;
        serials.insert(*key, log.sent.len());
        log.sent.push(Sent { segment: key.0.into(), number: *number, ..Sent::default() });
    }
    for (tap, capture) in captures.iter().enumerate() {
        for segment in capture {
            let serial = segment.as_ref().filter(|(.., is_data)| *is_data).map(|(key, ..)| {
                serials
                    .get(key)
                    .copied()
                    .ok_or(format!("a packet in capture {tap} that the sender did not send: {key:?}"))
            });
            log.pass(tap, serial.transpose()?);
        }
    }
    note_discards(&captures[RECEIVER], &mut log);
    Ok(log)
}

/// Marks the packets that the receiver's kernel discards for their old timestamps: older than the one that it remembers
/// (RFC 7323 §5.3), which it also echoes.
fn note_discards(capture: &[Option<Seen>], log: &mut Log) {
    let mut recent: Option<u32> = None;
    let mut received: BTreeSet<u32> = BTreeSet::new();
    for (segment, passing) in capture.iter().zip(&log.frames[RECEIVER]) {
        let Some((_, segment, _)) = segment else { continue };
        let Some((value, echo)) = segment.timestamps else { continue };
        let Some(passing) = passing else {
            recent = Some(echo).filter(|_| segment.flags.has(Flags::ACK));
            continue;
        };
        if recent.is_some_and(|recent| value.wrapping_sub(recent).cast_signed() < 0) {
            log.sent[passing.serial].is_discarded |= !passing.is_copy && !received.contains(&segment.seq);
        } else {
            received.insert(segment.seq);
        }
    }
}
