//! The answer does not depend on what the packets are wrapped in, nor on what else a capture holds; that is named.

#[expect(dead_code, reason = "here only the captures are needed, and not what happened to each packet")]
mod truth;
mod wrapping;

use reknit_trace::{Analysis, Analyzer, Options};
use truth::log::{RECEIVER, SENDER};
use truth::world::{Transfer, run};
use wrapping::{Bytes, WRAPPINGS, with_checksum};

fn analyze(file: &[u8]) -> Analysis {
    let mut analyzer = Analyzer::new(Options::default());
    analyzer.read(file, &mut |_| {}).expect("a good capture");
    analyzer.finish(&mut |_| {})
}

/// What the analysis says about the connections, and what is odd.
fn answer(analysis: &Analysis) -> String {
    let answer = (&analysis.directions, &analysis.warnings, analysis.tcp_packets, analysis.streams);
    serde_json::to_string_pretty(&answer).expect("an analysis can be written")
}

/// The packets of a capture of raw IP: the first half of the record header, and the packet.
fn packets(file: &[u8]) -> Vec<([u8; 8], Bytes)> {
    let (mut packets, mut rest) = (Vec::new(), &file[24..]);
    while let Some((header, after)) = rest.split_first_chunk::<16>() {
        let number = |at| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes")) as usize;
        let (captured, after) = after.split_at(number(8));
        let captured = with_checksum(captured);
        let at = header[..8].try_into().expect("eight bytes");
        packets.push((at, Bytes { captured, len: number(12) }));
        rest = after;
    }
    packets
}

fn file(link: u16, frames: impl IntoIterator<Item = ([u8; 8], Bytes)>) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, u32::from(link)].map(u32::to_le_bytes).concat();
    for (at, frame) in frames {
        file.extend(at);
        file.extend([frame.captured.len() as u32, frame.len as u32].map(u32::to_le_bytes).concat());
        file.extend(frame.captured);
    }
    file
}

fn wrap(packets: &[([u8; 8], Bytes)], link: u16, how: impl Fn(&Bytes) -> Vec<Bytes>) -> Vec<u8> {
    file(link, packets.iter().flat_map(|(at, packet)| how(packet).into_iter().map(|frame| (*at, frame))))
}

/// Captures of transfers to which much happens.
fn captures() -> Vec<Vec<u8>> {
    let cases = [("reordered-and-lossy", "linux", SENDER), ("two-paths-50ms", "sack", RECEIVER)];
    let run = |(path, variant, tap): (&str, _, usize)| {
        let transfer = Transfer { parts: &[path], variant, segments: 700, seconds: 20, seed: 5, has_ip_ids: true };
        run(&transfer).files[tap].clone()
    };
    cases.into_iter().map(run).collect()
}

#[test]
fn the_answer_does_not_depend_on_the_wrapping() {
    for capture in captures() {
        let plain = analyze(&capture);
        assert!(plain.directions.iter().any(|direction| direction.verdicts.all() > 20), "too little happens");
        let packets = packets(&capture);
        for (name, link, how) in WRAPPINGS {
            let wrapped = analyze(&wrap(&packets, *link, how));
            assert_eq!(answer(&wrapped), answer(&plain), "{name}");
            assert!(wrapped.left_out.is_empty() || *name == "A-MSDU", "{name}: {:?}", wrapped.left_out);
        }
    }
}

#[test]
fn sliced_packets_are_as_long_as_their_ip_header_says() {
    for capture in captures() {
        let plain = answer(&analyze(&capture));
        // The record says that the packet was as long as what was kept.
        let slice = |packet: &Bytes| Bytes { captured: packet.captured.clone(), len: packet.captured.len() };
        for (name, link, how) in WRAPPINGS.iter().filter(|(name, ..)| !name.contains("fragments") && *name != "A-MSDU")
        {
            let sliced = wrap(&packets(&capture), *link, |packet| how(packet).iter().map(slice).collect());
            assert_eq!(answer(&analyze(&sliced)), plain, "{name}");
        }
    }
}

#[test]
fn what_is_left_out_is_named() {
    let ends = |port: u16, payload: &[u8]| {
        let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[2..4].copy_from_slice(&((28 + payload.len()) as u16).to_be_bytes());
        packet.extend([0xc0, 0, port.to_be_bytes()[0], port.to_be_bytes()[1]]);
        packet.extend(((8 + payload.len()) as u16).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        Bytes { len: packet.len(), captured: packet }.ethernet()
    };
    let raw = |ethertype: u16| {
        let captured = [&[0; 12], &ethertype.to_be_bytes()[..], &[0; 46]].concat();
        Bytes { len: captured.len(), captured }
    };
    let rtp = |number: u8| [&[0x80, 96, 0, number, 0, 0, 0, 0, 1, 2, 3, 4][..], &[0; 100]].concat();
    let quic = [&[0xc3, 0, 0, 0, 1, 8][..], &[7; 60]].concat();
    let wireguard = [&[4, 0, 0, 0, 9, 9, 9, 9][..], &[1; 56]].concat();
    let mut fragment = ends(9, &[0; 64]);
    fragment.captured[20] = 0x20;
    let mut frames = vec![raw(0x0806), raw(0x88cc), raw(0x1234), fragment];
    frames.extend((0..5).map(|number| ends(4000, &rtp(number))));
    frames.extend([ends(4433, &quic), ends(4433, &[0x40; 50]), ends(7777, &quic), ends(7777, &[0x45; 50])]);
    frames.extend([ends(1234, &wireguard), ends(53, &[0; 30]), ends(40_001, &[1; 30])]);
    let all = frames.len() as u64;
    let only_quic = analyze(&file(1, [([0; 8], ends(4433, &quic))])).refuse_without_tcp().unwrap_err();
    assert!(only_quic.contains("qlog, `reknit analyze FILE.qlog` tells which packets it declared lost"), "{only_quic}");
    let analysis = analyze(&file(1, frames.into_iter().map(|frame| ([0; 8], frame))));
    let named: Vec<String> = analysis.left_out.iter().map(ToString::to_string).collect();
    let expected = [
        "5 of RTP",
        "4 of QUIC",
        "1 of ARP",
        "1 of DNS",
        "1 of EtherType 0x1234",
        "1 of LLDP",
        "1 of UDP",
        "1 of WireGuard",
        "1 of incomplete fragments",
    ];
    assert_eq!(named, expected);
    assert_eq!(analysis.left_out.iter().map(|left_out| left_out.packets).sum::<u64>(), all);
    let refusal = analysis.refuse_without_tcp().unwrap_err();
    assert!(refusal.contains("none of its 16 packets is TCP: 5 of RTP, 4 of QUIC, "), "{refusal}");
    assert!(refusal.contains("with a capture from each end"), "{refusal}");
}
