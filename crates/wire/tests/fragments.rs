//! Fragments of packets.

use reknit_testkit::fragments::fragments;
use reknit_wire::{Datagram, Endpoints, Fragment, encode_datagram};

const ENDS: [(&str, &str); 2] = [("10.0.0.1:80", "10.0.0.2:4000"), ("[fd00::1]:80", "[fd00::2]:4000")];

fn datagram((source, destination): (&str, &str)) -> Vec<u8> {
    let endpoints = Endpoints { source: source.parse().unwrap(), destination: destination.parse().unwrap() };
    let mut packet = Vec::new();
    let payload: Vec<u8> = (0..3000u32).map(|n| (n % 251) as u8).collect();
    encode_datagram(endpoints, 64, &payload, &mut packet);
    packet
}

#[test]
fn fragments_together_are_the_packet() {
    for ends in ENDS {
        let packet = datagram(ends);
        assert!(Fragment::read(&packet).is_none());
        let pieces = fragments(&packet, 1000, 77);
        assert_eq!(pieces.len(), 4);
        let read: Vec<Fragment<'_>> = pieces.iter().map(|piece| Fragment::read(piece).unwrap()).collect();
        assert!(read.iter().all(|fragment| fragment.key == read[0].key));
        let len = read.iter().map(|fragment| fragment.payload.len()).sum();
        let mut whole = read[0].whole(len);
        let header = whole.len() - len;
        for fragment in &read {
            let at = header + fragment.offset;
            whole[at..at + fragment.payload.len()].copy_from_slice(fragment.payload);
        }
        assert_eq!(Datagram::read(&whole).unwrap().payload, Datagram::read(&packet).unwrap().payload);
        assert!(Fragment::read(&whole).is_none());
    }
}

#[test]
fn invalid_fragments_are_not_read() {
    for (is_v6, ends) in [false, true].into_iter().zip(ENDS) {
        let piece = fragments(&datagram(ends), 1000, 77).remove(0);
        for len in 0..piece.len() {
            assert!(Fragment::read(&piece[..len]).is_none(), "{len} bytes");
        }
        if is_v6 {
            let mut odd = piece[..piece.len() - 3].to_vec();
            odd[4..6].copy_from_slice(&(8 + 1000u16 - 3).to_be_bytes());
            assert!(Fragment::read(&odd).is_none(), "only the last may have any length");
            let mut far = piece.clone();
            far[42..44].copy_from_slice(&0xfff9u16.to_be_bytes());
            assert!(Fragment::read(&far).is_none(), "the packet would be too long");
        }
    }
}
