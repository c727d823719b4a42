//! The experimental option on the wire (RFC 6994 §3): kind, length, experiment identifier, then fields with one byte of
//! type and a content whose length depends on the type.
//!
//! Parsing of this option stops at the first invalid field, because the length of a field of unknown type is not known.
//! Other options are not affected.

use etherparse::{NetSlice, PacketHeaders, SlicedPacket, TransportSlice};
use reknit_tcp::SeqNum;
use reknit_tcp::experiment::{AckOrdinal, Dropped, EXPERIMENT_ID, ExperimentalOption, Features, HEADER_LEN, KIND};

use crate::kind;
use crate::packet::{Decoded, RawOptions};

/// The types of the fields, documented in `reknit_tcp::experiment`.
mod field {
    pub(super) const FEATURES: u8 = 0;
    pub(super) const RESENT: u8 = 1;
    pub(super) const TRANSMISSION: u8 = 2;
    pub(super) const ACK_ORDINAL: u8 = 3;
    pub(super) const DROPPED: u8 = 4;
    pub(super) const REORDERED: u8 = 5;
    pub(super) const DUP_THRESH: u8 = 6;
}

/// Appends the option to `raw`, preceded by NOPs so that it ends at a word boundary. Appends nothing if it is empty.
pub(crate) fn append(experiment: &ExperimentalOption, raw: &mut Vec<u8>) {
    if experiment.is_empty() {
        return;
    }
    let end = raw.len() + experiment.wire_len();
    let mut option = vec![KIND, 0];
    option.extend(EXPERIMENT_ID.to_be_bytes());
    append_fields(experiment, &mut option);
    option[1] = option.len() as u8;
    raw.resize(end - option.len(), kind::NOP);
    raw.extend(option);
}

fn append_fields(experiment: &ExperimentalOption, option: &mut Vec<u8>) {
    let ExperimentalOption { features, retransmitted, transmission, ack_ordinal, dropped, reordered, dup_thresh } =
        *experiment;
    if let Some(features) = features {
        option.extend([field::FEATURES, features.bits()]);
    }
    if let Some(retransmitted) = retransmitted {
        option.extend([field::RESENT, u8::from(retransmitted)]);
    }
    if let Some(transmission) = transmission {
        option.push(field::TRANSMISSION);
        option.extend(transmission.to_be_bytes());
    }
    if let Some(AckOrdinal { repetition, overtaken }) = ack_ordinal {
        option.extend([field::ACK_ORDINAL, repetition, u8::from(overtaken)]);
    }
    if let Some(dropped) = dropped {
        option.push(field::DROPPED);
        option.extend(dropped_to_wire(dropped));
    }
    if let Some(reordered) = reordered {
        option.extend([field::REORDERED, u8::from(reordered)]);
    }
    if let Some(dup_thresh) = dup_thresh {
        option.extend([field::DUP_THRESH, dup_thresh]);
    }
}

fn dropped_to_wire(dropped: Dropped) -> [u8; 8] {
    (u64::from(dropped.lowest.0) << 32 | u64::from(dropped.highest.0)).to_be_bytes()
}

fn dropped_from_wire(content: &[u8]) -> Option<Dropped> {
    let both = u64::from_be_bytes(content.try_into().ok()?);
    Some(Dropped { lowest: SeqNum((both >> 32) as u32), highest: SeqNum(both as u32) })
}

/// Parses an option of kind [`KIND`], including kind and length. None if it belongs to another experiment.
pub(crate) fn read(option: &[u8]) -> Option<ExperimentalOption> {
    let mut experiment = ExperimentalOption::default();
    for (_, field) in fields(option)? {
        match *field {
            [field::FEATURES, bits] => experiment.features = Some(Features::from_bits(bits)),
            [field::RESENT, flag] => experiment.retransmitted = Some(flag != 0),
            [field::TRANSMISSION, high, low] => experiment.transmission = Some(u16::from_be_bytes([high, low])),
            [field::ACK_ORDINAL, repetition, flag] => {
                experiment.ack_ordinal = Some(AckOrdinal { repetition, overtaken: flag != 0 });
            }
            [field::DROPPED, ref content @ ..] => experiment.dropped = dropped_from_wire(content),
            [field::REORDERED, flag] => experiment.reordered = Some(flag != 0),
            [field::DUP_THRESH, dup_thresh] => experiment.dup_thresh = Some(dup_thresh),
            _ => {}
        }
    }
    Some(experiment)
}

/// The fields of `option`, each with its position. None if it belongs to another experiment.
fn fields(option: &[u8]) -> Option<impl Iterator<Item = (usize, &[u8])>> {
    let id = EXPERIMENT_ID.to_be_bytes();
    if option.get(2..HEADER_LEN) != Some(&id[..]) {
        return None;
    }
    let mut at = HEADER_LEN;
    Some(std::iter::from_fn(move || {
        let len = 1 + match *option.get(at)? {
            field::FEATURES | field::RESENT | field::REORDERED | field::DUP_THRESH => 1,
            field::TRANSMISSION | field::ACK_ORDINAL => 2,
            field::DROPPED => 8,
            _ => return None,
        };
        let found = (at, option.get(at..at + len)?);
        at += len;
        Some(found)
    }))
}

/// Writes `dropped` into a packet that has space for it, as a router would: the field exists and stays in place.
/// Updates the checksum. Returns false, and does not change the packet, if there is no space or the packet is invalid.
pub fn set_dropped(packet: &mut [u8], dropped: Dropped) -> bool {
    if Decoded::read(packet).is_err() {
        return false;
    }
    let Some(tcp) = tcp_position(packet) else { return false };
    let Some(at) = dropped_position(&packet[tcp..]) else { return false };
    packet[tcp + at..tcp + at + 8].copy_from_slice(&dropped_to_wire(dropped));
    let Some(checksum) = checksum(packet) else { return false };
    packet[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// The position of the TCP header in a complete packet.
fn tcp_position(packet: &[u8]) -> Option<usize> {
    let headers = PacketHeaders::from_ip_slice(packet).ok()?;
    let net = headers.net.as_ref()?;
    Some(net.header_len())
}

/// The position of the field's content in `segment`, which begins with its TCP header.
fn dropped_position(segment: &[u8]) -> Option<usize> {
    const FIXED: usize = 20;
    let header_len = 4 * usize::from(*segment.get(12)? >> 4);
    let raw = segment.get(FIXED..header_len)?;
    let mut options = RawOptions::new(raw);
    let option = options.find(|option| option[0] == KIND && fields(option).is_some())?;
    let begin = FIXED + raw.len() - options.rest_len() - option.len();
    let (at, _) = fields(option)?.find(|(_, content)| content[0] == field::DROPPED)?;
    Some(begin + at + 1)
}

/// The correct TCP checksum of the packet, over its bytes as they are: headers that are parsed lose reserved bits.
fn checksum(packet: &[u8]) -> Option<u16> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let TransportSlice::Tcp(tcp) = sliced.transport? else { return None };
    match sliced.net? {
        NetSlice::Ipv4(ip) => tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination()).ok(),
        NetSlice::Ipv6(ip) => tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination()).ok(),
        NetSlice::Arp(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::segment::{Flags, Options, SackBlock, SackBlocks, Timestamps};
    use reknit_tcp::{Segment, SeqNum};

    use super::*;
    use crate::{Endpoints, encode};

    const ORDINAL: AckOrdinal = AckOrdinal { repetition: 200, overtaken: true };
    const DROPPED: Dropped = Dropped { lowest: SeqNum(u32::MAX - 5), highest: SeqNum(1455) };

    /// Each field alone, and every combination of two fields.
    fn samples() -> Vec<ExperimentalOption> {
        let one = ExperimentalOption::default();
        let alone = [
            ExperimentalOption { features: Some(Features::RESENT | Features::REPEATS), ..one },
            ExperimentalOption { retransmitted: Some(true), ..one },
            ExperimentalOption { transmission: Some(0xfffe), ..one },
            ExperimentalOption { ack_ordinal: Some(ORDINAL), ..one },
            ExperimentalOption { dropped: Some(DROPPED), ..one },
            ExperimentalOption { reordered: Some(false), ..one },
            ExperimentalOption { dup_thresh: Some(64), ..one },
        ];
        let both = |a: ExperimentalOption, b: ExperimentalOption| ExperimentalOption {
            features: a.features.or(b.features),
            retransmitted: a.retransmitted.or(b.retransmitted),
            transmission: a.transmission.or(b.transmission),
            ack_ordinal: a.ack_ordinal.or(b.ack_ordinal),
            dropped: a.dropped.or(b.dropped),
            reordered: a.reordered.or(b.reordered),
            dup_thresh: a.dup_thresh.or(b.dup_thresh),
        };
        let mut samples = vec![ExperimentalOption::default(), alone.into_iter().fold(one, both)];
        samples.extend(alone.iter().flat_map(|a| alone.iter().map(|b| both(*a, *b))));
        samples
    }

    fn endpoints(v6: bool) -> Endpoints {
        let (a, b) = if v6 { ("[fd77::1]:4000", "[fd77::2]:80") } else { ("10.0.0.1:4000", "10.0.0.2:80") };
        Endpoints { source: a.parse().unwrap(), destination: b.parse().unwrap() }
    }

    fn segment(experiment: ExperimentalOption) -> Segment {
        let timestamps = Some(Timestamps { val: 7, ecr: 9 });
        let options = Options { timestamps, experiment, ..Options::default() };
        Segment { seq: SeqNum(77), flags: Flags::ACK, len: 5, options, ..Segment::default() }
    }

    #[test]
    fn a_written_option_is_read_back() {
        let mut packet = Vec::new();
        for experiment in samples() {
            for v6 in [false, true] {
                let segment = segment(experiment);
                encode(endpoints(v6), &segment, b"hello", &mut packet);
                assert_eq!(Decoded::read(&packet).unwrap().segment, segment);
                assert_eq!(packet.len(), if v6 { 40 } else { 20 } + segment.header_len() + 5);
            }
        }
    }

    #[test]
    fn it_fits_beside_two_sack_blocks_and_timestamps() {
        let mut sack = SackBlocks::EMPTY;
        sack.push(SackBlock { left: SeqNum(1), right: SeqNum(2) });
        let timestamps = Some(Timestamps { val: 7, ecr: 9 });
        let experiment = ExperimentalOption {
            retransmitted: Some(true),
            ack_ordinal: Some(ORDINAL),
            reordered: Some(true),
            ..ExperimentalOption::default()
        };
        let segment = Segment {
            flags: Flags::ACK,
            options: Options { timestamps, sack, experiment, ..Options::default() },
            ..Segment::default()
        };
        let mut packet = Vec::new();
        encode(endpoints(false), &segment, b"", &mut packet);
        assert_eq!(Decoded::read(&packet).unwrap().segment, segment);
    }

    #[test]
    fn the_bytes_are_as_rfc_6994_specifies() {
        let experiment =
            ExperimentalOption { transmission: Some(0x1234), dup_thresh: Some(9), ..ExperimentalOption::default() };
        let mut raw = Vec::new();
        append(&experiment, &mut raw);
        assert_eq!(raw, [1, 1, 1, 253, 9, 0x52, 0x52, 2, 0x12, 0x34, 6, 9]);
        append(&ExperimentalOption::default(), &mut raw);
        assert_eq!(raw.len(), 12);
    }

    #[test]
    fn another_experiment_is_ignored() {
        assert_eq!(read(&[KIND, 6, 0x52, 0x53, 1, 1]), None);
        assert_eq!(read(&[KIND, 3, 0x52]), None);
        assert_eq!(read(&[KIND, 4, 0x52, 0x52]), Some(ExperimentalOption::default()));
    }

    #[test]
    fn fields_before_an_invalid_one_are_read() {
        let expected = ExperimentalOption { retransmitted: Some(true), ..ExperimentalOption::default() };
        for broken in [&[99, 1, 1][..], &[2, 1], &[4, 1, 2, 3, 4, 5, 6, 7], &[6]] {
            let option = [&[KIND, 0, 0x52, 0x52, 1, 1], broken].concat();
            assert_eq!(read(&option), Some(expected), "{broken:?}");
        }
    }

    #[test]
    fn no_bytes_can_crash_the_parser() {
        for kind in 0..=u8::MAX {
            for len in 0..40 {
                let mut option = vec![kind; len];
                option.splice(..len.min(4), [KIND, len as u8, 0x52, 0x52]);
                let _ = read(&option);
            }
        }
    }

    #[test]
    fn a_router_writes_if_there_is_space() {
        let mut packet = Vec::new();
        for v6 in [false, true] {
            for experiment in samples() {
                encode(endpoints(v6), &segment(experiment), b"hello", &mut packet);
                let before = packet.clone();
                let other = Dropped { lowest: SeqNum(3), highest: SeqNum(4) };
                let has_room = experiment.dropped.is_some();
                assert_eq!(set_dropped(&mut packet, other), has_room);
                let dropped = experiment.dropped.map(|_| other);
                assert_eq!(
                    Decoded::read(&packet).unwrap().segment,
                    segment(ExperimentalOption { dropped, ..experiment })
                );
                assert!(has_room || packet == before);
            }
        }
    }

    #[test]
    fn a_router_keeps_reserved_bits_in_the_checksum() {
        for (v6, tcp) in [(false, 20), (true, 40)] {
            let mut packet = Vec::new();
            let experiment = ExperimentalOption { dropped: Some(DROPPED), ..ExperimentalOption::default() };
            encode(endpoints(v6), &segment(experiment), b"hello", &mut packet);
            packet[tcp + 12] |= 0x0e;
            let sum = checksum(&packet).unwrap();
            packet[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
            assert!(Decoded::read(&packet).is_ok());
            assert!(set_dropped(&mut packet, Dropped { lowest: SeqNum(3), highest: SeqNum(4) }));
            assert!(Decoded::read(&packet).is_ok());
        }
    }

    #[test]
    fn a_router_does_not_change_invalid_packets() {
        let mut packet = Vec::new();
        encode(
            endpoints(false),
            &segment(ExperimentalOption { dropped: Some(DROPPED), ..ExperimentalOption::default() }),
            b"hello",
            &mut packet,
        );
        for at in 0..packet.len() {
            for byte in 0..=u8::MAX {
                let mut odd = packet.clone();
                odd[at] = byte;
                let before = odd.clone();
                if odd != packet && set_dropped(&mut odd, DROPPED) {
                    assert!(Decoded::read(&odd).is_ok());
                } else if odd != packet {
                    assert_eq!(odd, before);
                }
            }
            assert!(!set_dropped(&mut packet.clone()[..at], DROPPED));
        }
    }
}
