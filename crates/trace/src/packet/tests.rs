use std::net::SocketAddr;

use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Flags as EngineFlags, Options, SackBlock, SackBlocks, Timestamps};
use reknit_wire::{Endpoints, encode};

use super::*;

const ETHERNET: u16 = 1;
const RAW: u16 = 101;

fn endpoints(source: &str, destination: &str) -> Endpoints {
    let parse = |text: &str| text.parse::<SocketAddr>().unwrap();
    Endpoints { source: parse(source), destination: parse(destination) }
}

/// An IP packet with 1000 bytes of data, timestamps and two SACK blocks.
fn packet(endpoints: Endpoints) -> Vec<u8> {
    let block = |left, right| SackBlock { left: SeqNum(left), right: SeqNum(right) };
    let mut sack = SackBlocks::default();
    sack.push(block(100, 200));
    sack.push(block(300, 400));
    let segment = reknit_tcp::Segment {
        seq: SeqNum(u32::MAX - 3),
        ack: SeqNum(77),
        flags: EngineFlags::ACK | EngineFlags::PSH,
        window: 501,
        len: 1000,
        options: Options { timestamps: Some(Timestamps { val: 11, ecr: 22 }), sack, ..Options::default() },
        ..reknit_tcp::Segment::default()
    };
    let mut bytes = Vec::new();
    encode(endpoints, &segment, &[0; 1000], &mut bytes);
    bytes
}

fn read(frame: &Frame<'_>) -> Result<Packet, String> {
    let mut reader = Reader::default();
    match reader.read(frame) {
        [packet] => Ok(*packet),
        [] => Err(reader.left_out()[0].what.clone()),
        several => panic!("{several:?}"),
    }
}

fn read_bytes(link: u16, bytes: &[u8], original_len: usize) -> Result<Packet, String> {
    read(&Frame { number: 1, at: Some(0), interface: 0, link, bytes, original_len })
}

fn left_out(skipped: &str) -> Result<Packet, String> {
    Err(skipped.to_owned())
}

const CUT: &str = "truncated headers";
const CONTRADICTING: &str = "contradictory lengths";

fn v4() -> Vec<u8> {
    packet(endpoints("10.0.0.1:40000", "10.0.0.2:443"))
}

fn with(header: &[u8], packet: &[u8]) -> Vec<u8> {
    [header, packet].concat()
}

#[test]
fn headers_and_options_are_read() {
    for (source, destination) in [("10.0.0.1:40000", "10.0.0.2:443"), ("[fd00::1]:40000", "[fd00::2]:443")] {
        let bytes = packet(endpoints(source, destination));
        let read = read_bytes(RAW, &bytes, bytes.len()).unwrap();
        assert_eq!(read.source.socket().to_string(), source);
        assert_eq!(read.destination.socket().to_string(), destination);
        let segment = read.segment;
        assert_eq!((segment.seq, segment.ack, segment.len, segment.window), (u32::MAX - 3, 77, 1000, 501));
        assert_eq!((segment.timestamps, segment.blocks()), (Some((11, 22)), [(100, 200), (300, 400)].as_slice()));
        assert!(segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN) && !segment.is_cut);
    }
}

#[test]
fn every_link_layer_leads_to_the_packet() {
    let v4 = v4();
    let plain = read_bytes(RAW, &v4, v4.len()).unwrap();
    let macs = [0; 12];
    let ethernet = with(&macs, &with(&[8, 0], &v4));
    let tagged = with(&macs, &with(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], &v4));
    let pppoe = with(&macs, &with(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, 0x21], &v4));
    let cooked = with(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], &v4);
    let cooked2 = with(&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0], &v4);
    let loopback = with(&[2, 0, 0, 0], &v4);
    let gre = with(&v4[..20], &with(&[0, 0, 8, 0], &v4));
    let mut gre = gre;
    (gre[2], gre[3], gre[9]) = (0, 0, 47); // the length is left to the network card
    let hdlc = with(&[0x0f, 0, 8, 0], &v4);
    let ppp = with(&[0xff, 3, 0, 0x21], &v4);
    // Attributes of 5 bytes, padded, and the packet.
    let nflog = with(&[2, 0, 0, 0, 5, 0, 10, 0, 0, 0, 0, 0, 200, 0, 9, 0], &v4);
    let logged = [(104, hdlc.clone()), (50, hdlc), (50, ppp), (239, nflog)];
    let cases = [(1, ethernet), (1, tagged), (1, pppoe), (113, cooked), (276, cooked2), (0, loopback), (101, gre)];
    for (link, bytes) in cases.into_iter().chain(logged) {
        assert_eq!(read_bytes(link, &bytes, bytes.len()), Ok(plain), "link type {link}");
    }
    assert_eq!(read_bytes(147, &v4, v4.len()), left_out("link type 147 (private)"));
}

#[test]
fn ipv6_extension_headers_are_skipped() {
    let v6 = packet(endpoints("[fd00::1]:40000", "[fd00::2]:443"));
    let mut skip_extension_headers = v6[..40].to_vec();
    skip_extension_headers.extend([60, 0, 0, 0, 0, 0, 0, 0, 6, 1]); // hop-by-hop, then destination options of 16 bytes
    skip_extension_headers.extend([0; 14]);
    skip_extension_headers.extend(&v6[40..]);
    skip_extension_headers[6] = 0;
    let len = u16::try_from(v6.len() - 40 + 24).unwrap().to_be_bytes();
    skip_extension_headers[4..6].copy_from_slice(&len);
    assert_eq!(read_bytes(RAW, &skip_extension_headers, skip_extension_headers.len()), read_bytes(RAW, &v6, v6.len()));
}

#[test]
fn padding_is_no_data_and_missing_lengths_come_from_the_frame() {
    let v4 = v4();
    let padded = with(&v4, &[0; 6]);
    assert_eq!(read_bytes(RAW, &padded, padded.len()).unwrap().segment.len, 1000);
    let mut offloaded = v4.clone();
    (offloaded[2], offloaded[3]) = (0, 0);
    assert_eq!(read_bytes(RAW, &offloaded[..80], 65_052).unwrap().segment.len, 65_052 - 52 - 20);
}

#[test]
fn a_packet_that_is_cut_anywhere_gives_what_is_there_or_an_error() {
    let v4 = v4();
    let ethernet = with(&with(&[0; 12], &[8, 0]), &v4);
    for cut in 0..ethernet.len() {
        match read_bytes(ETHERNET, &ethernet[..cut], ethernet.len()) {
            Ok(packet) => {
                assert_eq!((packet.segment.seq, packet.segment.len), (u32::MAX - 3, 1000), "{cut}");
                assert_eq!(packet.segment.is_cut, cut < 14 + 20 + 52, "{cut}");
                let blocks = packet.segment.sack_len + packet.segment.hidden_sack;
                assert!(blocks == 2 || cut < 14 + 20 + 20 + 3 && blocks > 2, "{cut}: {blocks}");
            }
            Err(error) => assert!(error == CUT && cut < 14 + 20 + 20, "{cut}: {error:?}"),
        }
    }
}

#[test]
fn a_length_that_the_record_does_not_have_is_that_of_ip() {
    let v4 = v4();
    let ethernet = with(&with(&[0; 12], &[8, 0]), &v4);
    for cut in 14 + 20 + 52..ethernet.len() {
        assert_eq!(read_bytes(ETHERNET, &ethernet[..cut], cut).unwrap().segment.len, 1000, "{cut}");
    }
    let v6 = packet(endpoints("[fd00::1]:40000", "[fd00::2]:443"));
    assert_eq!(read_bytes(RAW, &v6[..100], 100).unwrap().segment.len, 1000);
}

#[test]
fn what_is_no_tcp_packet_is_told() {
    let mut v4 = v4();
    v4[9] = 1;
    assert_eq!(read_bytes(RAW, &v4, v4.len()), left_out("ICMP"));
    v4[9] = 17;
    v4[20..24].copy_from_slice(&[0x12, 0x34, 0, 53]);
    assert_eq!(read_bytes(RAW, &v4, v4.len()), left_out("DNS"));
    v4[9] = 6;
    v4[6] = 0x20;
    assert_eq!(read_bytes(RAW, &v4, v4.len()), left_out("incomplete fragments"));
    v4[6] = 0x40;
    v4[32] = 0x10;
    assert_eq!(read_bytes(RAW, &v4, v4.len()), left_out(CONTRADICTING));
    assert_eq!(read_bytes(RAW, &[0x45], 1), left_out(CUT));
}

#[test]
fn plain_packets_are_read_as_all_others() {
    let whole = with(&with(&[0; 12], &[8, 0]), &v4());
    let mut plain = 0;
    for at in 0..14 + 20 + 52 {
        for bits in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut bytes = whole.clone();
            bytes[at] ^= bits;
            for (cut, original_len) in [(whole.len(), whole.len()), (128, whole.len()), (70, whole.len()), (128, 80)] {
                let bytes = &bytes[..cut];
                let frame = Frame { number: 1, at: None, interface: 3, link: ETHERNET, bytes, original_len };
                let mut one = Packet { interface: 3, ..Packet::default() };
                let mut reader = Reader { packet: one, ..Reader::default() };
                let expected = reader.read_any(&frame);
                if plain::read(&frame, &mut one) {
                    plain += 1;
                    assert_eq!([one], expected, "byte {at}, bits {bits}, {cut} of {original_len} bytes");
                }
            }
        }
    }
    assert!(plain > 1000, "{plain}");
}
