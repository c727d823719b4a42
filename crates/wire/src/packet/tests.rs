use super::*;
use crate::{HOP_LIMIT, encode, encode_headers_for_offload, encode_with};

fn endpoints(v6: bool) -> Endpoints {
    let (a, b) = if v6 { ("[fd77::1]:4000", "[fd77::2]:80") } else { ("10.0.0.1:4000", "10.0.0.2:80") };
    Endpoints { source: a.parse().unwrap(), destination: b.parse().unwrap() }
}

fn block(left: u32, right: u32) -> SackBlock {
    SackBlock { left: SeqNum(left), right: SeqNum(right) }
}

fn samples() -> Vec<(Segment, &'static [u8])> {
    let timestamps = Some(Timestamps { val: 7, ecr: u32::MAX });
    let syn =
        Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, timestamps, ..Options::default() };
    let mut sack = SackBlocks::EMPTY;
    for n in 0..3 {
        sack.push(block(n * 10, n * 10 + 5));
    }
    let mut four = sack;
    four.push(block(u32::MAX, 3));
    let base = Segment { seq: SeqNum(u32::MAX), ack: SeqNum(1), window: 512, ..Segment::default() };
    vec![
        (Segment { flags: Flags::SYN, options: syn, ..base }, b""),
        (Segment { flags: Flags::SYN, options: Options { timestamps: None, ..syn }, ..base }, b""),
        (Segment { flags: Flags::SYN, options: Options { sack_permitted: false, ..syn }, ..base }, b""),
        (Segment { flags: Flags::ACK | Flags::PSH, len: 5, ecn: Ecn::Ect0, ..base }, b"hello"),
        (Segment { flags: Flags::ACK, options: Options { timestamps, sack, ..Options::default() }, ..base }, b""),
        (Segment { flags: Flags::ACK, options: Options { sack: four, ..Options::default() }, ..base }, b""),
        (Segment { flags: Flags::FIN | Flags::ACK | Flags::ECE | Flags::CWR, ecn: Ecn::Congested, ..base }, b""),
        (Segment { flags: Flags::RST, ..base }, b""),
    ]
}

#[test]
fn a_written_packet_is_read_back() {
    let mut packet = Vec::new();
    for v6 in [false, true] {
        for (segment, payload) in samples() {
            encode(endpoints(v6), &segment, payload, &mut packet);
            let decoded = Decoded::read(&packet).unwrap();
            assert_eq!(decoded, Decoded { endpoints: endpoints(v6), hop_limit: HOP_LIMIT, segment, payload });
            let ip = if v6 { 40 } else { 20 };
            assert_eq!(packet.len(), ip + segment.header_len() + payload.len());
        }
    }
}

#[test]
fn headers_for_a_device_leave_the_checksum_to_it() {
    let (mut whole, mut headers) = (Vec::new(), Vec::new());
    for v6 in [false, true] {
        for (segment, payload) in samples() {
            encode_with(endpoints(v6), 7, &segment, payload, &mut whole);
            let ip_len = encode_headers_for_offload(endpoints(v6), 7, &segment, payload.len(), &mut headers);
            headers.extend_from_slice(payload);
            assert_eq!(Decoded::read_verified(&headers), Decoded::read(&whole));
            // The device sums up everything from the TCP header on, with the sum of the pseudo-header in its place.
            let sum = internet_checksum(&headers[ip_len..]);
            headers[ip_len + 16..ip_len + 18].copy_from_slice(&sum);
            assert_eq!(Decoded::read(&headers), Decoded::read(&whole));
        }
    }
}

#[test]
fn unknown_options_do_not_hide_others() {
    // MSS, MPTCP's kind 30, SACK permitted, an invalid timestamp of length 4, window scale.
    let raw = [2, 4, 5, 0xb4, 30, 4, 1, 1, 4, 2, 8, 4, 0, 0, 1, 3, 3, 7, 0, 0];
    let expected = Options { mss: Some(1460), sack_permitted: true, window_scale: Some(7), ..Options::default() };
    assert_eq!(options_from_wire(&raw), expected);
}

/// Parses `raw` options, padded to whole words with end-of-list options.
fn options(raw: &[u8]) -> Options {
    let mut padded = raw.to_vec();
    padded.resize(raw.len().next_multiple_of(4), 0);
    options_from_wire(&padded)
}

/// The packet of sample `n`.
fn packet(v6: bool, n: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let (segment, payload) = samples()[n];
    encode(endpoints(v6), &segment, payload, &mut packet);
    packet
}

/// `packet` with other bytes from `at` on, and with correct checksums.
fn altered(mut packet: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    let v6 = packet[0] >> 4 == 6;
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    let (header, addresses) = if v6 { (40, 8) } else { (20, 12) };
    if !v6 {
        packet[10..12].fill(0);
        let checksum = internet_checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&checksum);
    }
    packet[header + 16..header + 18].fill(0);
    let pseudo_len = ((packet.len() - header) as u32).to_be_bytes();
    let covered = [&packet[addresses..header], &[0, 0, 0, 6], &pseudo_len, &packet[header..]].concat();
    packet[header + 16..header + 18].copy_from_slice(&internet_checksum(&covered));
    packet
}

/// RFC 1071.
fn internet_checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    (!(sum as u16)).to_be_bytes()
}

#[test]
fn every_flag_and_every_codepoint_is_read_as_written() {
    let mut packet = Vec::new();
    for v6 in [false, true] {
        for bits in 0..=u8::MAX {
            for ecn in [Ecn::NotCapable, Ecn::Capable1, Ecn::Ect0, Ecn::Congested] {
                let segment = Segment { flags: Flags::from_bits(bits), ecn, ..Segment::default() };
                encode(endpoints(v6), &segment, b"", &mut packet);
                assert_eq!(Decoded::read(&packet).unwrap().segment, segment);
            }
        }
    }
}

/// RFC 9293 §3.1: reserved bits are ignored if their function is not implemented, but the checksum covers them.
#[test]
fn reserved_bits_are_ignored_unless_they_were_flipped() {
    let mut packet = Vec::new();
    for v6 in [false, true] {
        let tcp = if v6 { 40 } else { 20 };
        let segment = Segment { flags: Flags::ACK, ..Segment::default() };
        encode(endpoints(v6), &segment, b"", &mut packet);
        for bit in 0..4 {
            let mut reserved = packet.clone();
            reserved[tcp + 12] |= 1 << bit;
            assert_eq!(Decoded::read(&reserved), Err(DecodeError::Checksum("TCP")));
            let checksum = u32::from(u16::from_be_bytes([packet[tcp + 16], packet[tcp + 17]]));
            // RFC 1624: one's complement.
            let word = 0x100 << bit;
            let sum = (!checksum & 0xffff) + word;
            let renewed = !((sum & 0xffff) + (sum >> 16)) as u16;
            reserved[tcp + 16..tcp + 18].copy_from_slice(&renewed.to_be_bytes());
            assert_eq!(Decoded::read(&reserved).unwrap().segment, segment);
        }
    }
}

#[test]
fn a_payload_of_any_length_is_read_as_written() {
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(1460).collect();
    let mut packet = Vec::new();
    for v6 in [false, true] {
        for len in [0, 1, 2, 3, 535, 536, 1459, 1460] {
            let segment = Segment { len: len as u16, flags: Flags::ACK, ..Segment::default() };
            encode(endpoints(v6), &segment, &bytes[..len], &mut packet);
            let decoded = Decoded::read(&packet).unwrap();
            assert_eq!((decoded.segment, decoded.payload), (segment, &bytes[..len]));
        }
    }
}

#[test]
fn the_payload_determines_the_length_of_the_segment() {
    let mut packet = Vec::new();
    encode(endpoints(false), &Segment { len: 100, ..Segment::default() }, b"abc", &mut packet);
    assert_eq!(Decoded::read(&packet).unwrap().segment.len, 3);
}

#[test]
#[should_panic(expected = "different families")]
fn both_addresses_must_be_of_one_family() {
    let mixed = Endpoints { source: endpoints(false).source, destination: endpoints(true).destination };
    encode(mixed, &Segment::default(), b"", &mut Vec::new());
}

#[test]
fn one_to_four_blocks_are_read() {
    for n in 1..=4u8 {
        let mut raw = vec![1, 1, 5, 2 + 8 * n];
        let mut expected = SackBlocks::EMPTY;
        for i in 1..=n {
            raw.extend([0, 0, 0, i, 0, 0, 1, i]);
            expected.push(block(u32::from(i), 256 + u32::from(i)));
        }
        assert_eq!(options(&raw).sack, expected);
    }
}

#[test]
fn options_need_no_padding_between_them() {
    let raw = [3, 3, 9, 2, 4, 2, 0, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 4, 2];
    let expected = Options {
        mss: Some(512),
        window_scale: Some(9),
        sack_permitted: true,
        timestamps: Some(Timestamps { val: 1, ecr: 2 }),
        ..Options::default()
    };
    assert_eq!(options(&raw), expected);
}

#[test]
fn an_option_of_a_wrong_length_is_skipped_by_its_length() {
    // RFC 9293 §3.2, MUST-7. The MSS after it shows that nothing else was lost.
    let expected = Options { mss: Some(1460), ..Options::default() };
    for (kind, right) in [(2, &[4][..]), (3, &[3]), (4, &[2]), (5, &[10, 18, 26, 34]), (8, &[10])] {
        for len in (2..=36).filter(|len| !right.contains(len)) {
            let mut raw = vec![0xaa; usize::from(len)];
            raw[..2].copy_from_slice(&[kind, len]);
            raw.extend([2, 4, 5, 0xb4]);
            assert_eq!(options(&raw), expected, "kind {kind}, length {len}");
        }
    }
}

#[test]
fn an_unknown_option_of_any_length_is_skipped() {
    // RFC 9293 §3.2, MUST-6.
    for kind in (6..=u8::MAX).filter(|kind| *kind != kind::TIMESTAMPS) {
        for len in 2..=36 {
            let mut raw = vec![2; usize::from(len)];
            raw[..2].copy_from_slice(&[kind, len]);
            raw.extend([2, 4, 5, 0xb4]);
            assert_eq!(options(&raw), Options { mss: Some(1460), ..Options::default() });
        }
    }
}

#[test]
fn after_an_impossible_length_the_rest_is_not_read() {
    // RFC 9293 §3.2, MUST-7: zero, less than the two bytes of kind and length, more than is left, truncated.
    for broken in [&[30, 0][..], &[30, 1], &[30, 200], &[8, 0], &[2, 1], &[5, 255]] {
        let raw = [&[3, 3, 7], broken, &[2, 4, 5, 0xb4]].concat();
        assert_eq!(options(&raw), Options { window_scale: Some(7), ..Options::default() }, "{broken:?}");
    }
    assert_eq!(options(&[3, 3, 7, 2]), Options { window_scale: Some(7), ..Options::default() });
}

#[test]
fn nothing_is_read_after_the_end_of_the_list() {
    assert_eq!(options(&[1, 1, 0, 2, 4, 5, 0xb4]), Options::default());
    assert_eq!(options(&[1; 40]), Options::default());
}

#[test]
fn options_of_any_kind_and_length_break_nothing() {
    for kind in 0..=u8::MAX {
        for len in 0..=u8::MAX {
            let mut raw = [len; 40];
            raw[0] = kind;
            options(&raw);
        }
    }
}

#[test]
fn a_wrong_checksum_is_named() {
    for v6 in [false, true] {
        let header = if v6 { 40 } else { 20 };
        for at in [header + 16, header + 4, header + 20] {
            let mut damaged = packet(v6, 3);
            damaged[at] ^= 1;
            assert_eq!(Decoded::read(&damaged), Err(DecodeError::Checksum("TCP")), "byte {at}");
        }
    }
    let mut damaged = packet(false, 3);
    damaged[10] ^= 1;
    assert_eq!(Decoded::read(&damaged), Err(DecodeError::Checksum("IPv4")));
}

#[test]
fn a_segment_that_reached_another_host_is_detected() {
    // RFC 9293 §3.1: the checksum covers the addresses.
    for at in 8..40 {
        let mut damaged = packet(true, 3);
        damaged[at] ^= 1;
        assert_eq!(Decoded::read(&damaged), Err(DecodeError::Checksum("TCP")), "byte {at}");
    }
}

#[test]
fn the_checksums_are_as_rfc_1071_specifies() {
    for v6 in [false, true] {
        for n in 0..samples().len() {
            assert_eq!(altered(packet(v6, n), 0, &[]), packet(v6, n));
        }
    }
}

#[test]
fn a_truncated_packet_is_malformed() {
    for v6 in [false, true] {
        for n in 0..samples().len() {
            let whole = packet(v6, n);
            for len in 0..whole.len() {
                assert!(Decoded::read(&whole[..len]).is_err(), "{len} bytes");
            }
        }
    }
}

#[test]
fn bytes_after_the_packet_are_ignored() {
    // A frame may be longer than its packet, as with short packets on an Ethernet.
    for v6 in [false, true] {
        let mut padded = packet(v6, 3);
        padded.extend([0; 7]);
        assert_eq!(Decoded::read(&padded).unwrap().payload, b"hello");
    }
}

#[test]
fn a_header_longer_than_the_segment_or_shorter_than_itself_is_malformed() {
    for v6 in [false, true] {
        let offset = if v6 { 52 } else { 32 };
        for words in [0, 4, 7, 15] {
            let odd = altered(packet(v6, 3), offset, &[words << 4]);
            assert!(matches!(Decoded::read(&odd), Err(DecodeError::Malformed(_))), "{words} words");
        }
    }
}

#[test]
fn a_longer_header_includes_what_looked_like_payload() {
    let mut packet = Vec::new();
    encode(endpoints(false), &Segment::default(), &[2, 4, 5, 0xb4, 7], &mut packet);
    let decoded = altered(packet, 32, &[6 << 4]);
    let decoded = Decoded::read(&decoded).unwrap();
    assert_eq!((decoded.segment.options.mss, decoded.segment.len, decoded.payload), (Some(1460), 1, &[7][..]));
}

#[test]
fn a_header_with_ip_options_is_read() {
    let plain = packet(false, 3);
    let mut longer = [&plain[..20], &[1, 1, 1, 0], &plain[20..]].concat();
    longer[0] = 0x46;
    longer[3] += 4;
    longer[10..12].fill(0);
    let checksum = internet_checksum(&longer[..24]);
    longer[10..12].copy_from_slice(&checksum);
    assert_eq!(Decoded::read(&longer).unwrap(), Decoded::read(&plain).unwrap());
}

#[test]
fn a_fragment_is_not_a_segment() {
    for fragment in [[0x20, 0], [0, 1], [0x20, 1]] {
        assert_eq!(Decoded::read(&altered(packet(false, 3), 6, &fragment)), Err(DecodeError::NotTcp));
    }
}

#[test]
fn another_protocol_is_not_a_segment() {
    for (v6, protocol) in [(false, 9), (true, 6)] {
        for number in [1, 17, 253] {
            assert!(Decoded::read(&altered(packet(v6, 3), protocol, &[number])).is_err(), "protocol {number}");
        }
        assert_eq!(Decoded::read(&altered(packet(v6, 3), protocol, &[253])), Err(DecodeError::NotTcp));
    }
}

#[test]
fn no_byte_of_a_header_can_crash_the_parser() {
    for v6 in [false, true] {
        for n in 0..samples().len() {
            let whole = packet(v6, n);
            for at in 0..whole.len() {
                for byte in 0..=u8::MAX {
                    let mut odd = whole.clone();
                    odd[at] = byte;
                    let _ = Decoded::read(&odd);
                    let _ = Decoded::read(&altered(whole.clone(), at, &[byte]));
                    set_congested(&mut odd);
                }
            }
        }
    }
}

#[test]
fn bytes_that_are_not_a_packet_are_not_marked() {
    for bytes in [&[][..], &[0x45, 2], &[0x60, 0x20], &[0x15; 60]] {
        let mut marked = bytes.to_vec();
        assert!(!set_congested(&mut marked));
        assert_eq!(marked, bytes);
    }
}

#[test]
fn every_corrupted_byte_is_detected() {
    let mut packet = Vec::new();
    let (segment, payload) = samples()[3];
    encode(endpoints(false), &segment, payload, &mut packet);
    for i in 0..packet.len() {
        let mut damaged = packet.clone();
        damaged[i] ^= 0x40;
        assert!(Decoded::read(&damaged).is_err(), "byte {i}");
    }
    for len in 0..packet.len() {
        assert!(Decoded::read(&packet[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn a_router_marks_ecn_capable_packets() {
    let mut packet = Vec::new();
    for v6 in [false, true] {
        for (segment, payload) in samples() {
            encode(endpoints(v6), &segment, payload, &mut packet);
            let capable = segment.ecn != Ecn::NotCapable;
            assert_eq!(set_congested(&mut packet), capable);
            let expected = if capable { Ecn::Congested } else { Ecn::NotCapable };
            assert_eq!(Decoded::read(&packet).unwrap().segment.ecn, expected);
        }
    }
}

#[test]
fn both_forms_of_zero_are_the_same_checksum() {
    let segment = Segment { flags: Flags::ACK, len: 2, ..Segment::default() };
    for v6 in [false, true] {
        let mut packet = Vec::new();
        encode(endpoints(v6), &segment, &[0, 0], &mut packet);
        let at = packet.len() - 2 - 4; // followed by the urgent pointer and the payload
        let sum = [packet[at], packet[at + 1]];
        encode(endpoints(v6), &segment, &sum, &mut packet); // the payload makes the sum zero
        assert_eq!(packet[at..at + 2], [0, 0]);
        for zero in [0, u8::MAX] {
            packet[at..at + 2].fill(zero);
            assert!(Decoded::read(&packet).is_ok(), "IPv6 {v6}: {zero}");
        }
        packet[at + 1] = 1;
        assert!(Decoded::read(&packet).is_err(), "IPv6 {v6}");
    }
}
