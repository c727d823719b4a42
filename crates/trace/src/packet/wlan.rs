//! IEEE 802.11 data frames, and the radio headers that capturing drivers add (radiotap, Prism, AVS).

use std::collections::BTreeMap;

use super::layer::{Layer, Next};
use super::rest::Cursor;
use super::{Skipped, link};

const DATA: u8 = 2;
/// Flags of the second byte.
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const MORE_FRAGMENTS: u8 = 0x04;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
/// Bits of the subtype of data frames.
const NO_DATA: u8 = 4;
const QOS: u8 = 8;
const AMSDU_PRESENT: u8 = 0x80;
const RETRY: u8 = 0x08;
/// Stations whose last frames are remembered.
const MOST_STATIONS: usize = 1 << 12;
const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];

/// A frame.
pub(super) fn read(frame: Cursor<'_>) -> Next<'_> {
    let ([control, flags], is_exchanged) = control(frame.array(0)?);
    let (kind, subtype) = (control >> 2 & 3, control >> 4);
    if control & 3 != 0 {
        return Err(Skipped::Protocol("IEEE 802.11 of another version"));
    }
    if kind != DATA || subtype & NO_DATA != 0 {
        return Err(Skipped::Protocol("IEEE 802.11 without data"));
    }
    let has_qos = subtype & QOS != 0;
    let addresses = if flags & TO_DS != 0 && flags & FROM_DS != 0 { 30 } else { 24 };
    let qos = if has_qos { frame.u8(addresses)? } else { 0 };
    let len = addresses + if has_qos { 2 } else { 0 } + if has_qos && flags & ORDER != 0 { 4 } else { 0 };
    let rest = frame.after(len)?;
    // Such access points exchange the bytes of the sequence number too, and send only whole frames on.
    if !is_exchanged && (flags & MORE_FRAGMENTS != 0 || frame.u8(22)? & 0x0f != 0) {
        return Err(Skipped::Protocol("fragments of IEEE 802.11"));
    }
    if qos & AMSDU_PRESENT != 0 && !rest.bytes.starts_with(&SNAP) {
        let is_plain = flags & PROTECTED == 0 || rest.bytes.get(14..17) == Some(&SNAP[..]);
        return if is_plain { Ok((Layer::Amsdu, rest)) } else { Err(ENCRYPTED) };
    }
    // Some programs decrypt, and keep the flag.
    if flags & PROTECTED != 0 && !rest.bytes.starts_with(&SNAP) { Err(ENCRYPTED) } else { Ok((Layer::Llc, rest)) }
}

/// True for link types with nothing but IEEE 802.11 inside.
pub(super) fn is_link(link: u16) -> bool {
    matches!(link, 105 | 119 | 127 | 163)
}

/// Frames that a station sends again because its receiver did not acknowledge them to the station. A receiver keeps the first of
/// them (IEEE 802.11-2020 §10.3.2.14), so they say nothing about the network.
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// The sequence control of the last frame of each transmitter, by its priority.
    last: BTreeMap<([u8; 6], u8), [u8; 2]>,
}

impl Retries {
    /// True if the frame was captured before.
    pub(super) fn has(&mut self, link: u16, frame: Cursor<'_>) -> bool {
        let Ok((Layer::Wlan, frame)) = link::read(link, frame) else { return false };
        let fields = || Ok::<_, Skipped>((control(frame.array(0)?), frame.array(10)?, frame.array(22)?));
        let Ok((([control, flags], _), transmitter, sequence)) = fields() else { return false };
        if control >> 2 & 3 != DATA {
            return false;
        }
        let addresses = if flags & TO_DS != 0 && flags & FROM_DS != 0 { 30 } else { 24 };
        let priority = if control >> 4 & QOS == 0 { 0 } else { frame.u8(addresses).unwrap_or(0) & 0x0f };
        if self.last.len() >= MOST_STATIONS {
            self.last.clear();
        }
        self.last.insert((transmitter, priority), sequence) == Some(sequence) && flags & RETRY != 0
    }
}

const ENCRYPTED: Skipped = Skipped::Protocol("IEEE 802.11 with encryption");

/// The frames of an A-MSDU, from their LLC headers on.
pub(super) fn subframes(mut rest: Cursor<'_>) -> impl Iterator<Item = Cursor<'_>> {
    const HEADER: usize = 14;
    std::iter::from_fn(move || {
        let len = usize::from(rest.u16(12).ok()?);
        let frame = rest.after(HEADER).ok()?.with_len(len);
        rest = rest.after((HEADER + len).next_multiple_of(4)).unwrap_or(Cursor { bytes: &[], original_len: 0 });
        (len > 0).then_some(frame)
    })
}

/// The frame control field, and whether its two bytes were exchanged, as some access points of Cisco do in CAPWAP.
fn control([first, second]: [u8; 2]) -> ([u8; 2], bool) {
    let is_data = |control: u8| control & 0x0f == DATA << 2;
    // In order, the two lowest bits of the first byte are the version, which is zero. Exchanged, they are the direction.
    let is_exchanged = !is_data(first) && is_data(second) && (first & (TO_DS | FROM_DS) != 0 || first == 0);
    (if is_exchanged { [second, first] } else { [first, second] }, is_exchanged)
}

/// The radiotap header.
pub(super) fn radiotap(frame: Cursor<'_>) -> Next<'_> {
    const PADDED: u8 = 0x20;
    const TSFT: u32 = 1;
    const FLAGS: u32 = 2;
    const MORE: u32 = 1 << 31;
    let len = usize::from(frame.u16_le(2)?);
    let present = frame.u32_le(4)?;
    let (mut at, mut word) = (8, present);
    while word & MORE != 0 && at < len {
        word = frame.u32_le(at)?;
        at += 4;
    }
    if present & TSFT != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let inside = frame.after(len)?;
    let is_padded = present & FLAGS != 0 && at < len && frame.u8(at)? & PADDED != 0;
    if is_padded { unpadded(inside) } else { Ok((Layer::Wlan, inside)) }
}

/// A frame whose header is padded to a multiple of four bytes: only a `QoS` header needs it. It must be a frame that can be read,
/// so its LLC header follows.
fn unpadded(frame: Cursor<'_>) -> Next<'_> {
    let (layer, rest) = read(frame)?;
    let header = frame.bytes.len() - rest.bytes.len();
    Ok((layer, rest.after(header.next_multiple_of(4) - header)?))
}

/// The header of Prism cards; some drivers write the AVS header instead.
pub(super) fn prism(frame: Cursor<'_>) -> Next<'_> {
    const AVS: u32 = 0x8021_1000;
    if frame.u32(0)? & 0xffff_f000 == AVS {
        return avs(frame);
    }
    let [little, big] = [frame.u32_le(4)?, frame.u32(4)?];
    Ok((Layer::Wlan, frame.after(little.min(big) as usize)?))
}

/// The header of AVS cards.
pub(super) fn avs(frame: Cursor<'_>) -> Next<'_> {
    Ok((Layer::Wlan, frame.after(frame.u32(4)? as usize)?))
}
