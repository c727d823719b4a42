//! Bytes from a network: nothing panics, and a segment that was read is written and read again unchanged.

use reknit_tcp::experiment::Dropped;
use reknit_tcp::segment::MAX_OPTIONS_LEN;
use reknit_trace::Frame;
use reknit_trace::packet::Reader;
use reknit_wire::{DatagramError, Decoded, Icmp, encode_with, endpoints, set_congested, set_dropped};

use crate::checksums;

/// LINKTYPE numbers: raw IP, Ethernet, those with headers of their own, and one that is not known.
const LINKS: [u16; 20] = [101, 1, 113, 276, 0, 9, 10, 6, 104, 105, 107, 117, 119, 127, 192, 204, 219, 239, 258, 9999];

pub(crate) fn run(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else { return };
    let mut packet = bytes.to_vec();
    if how & 1 == 0 {
        checksums::fix(&mut packet);
    }
    if let Ok(decoded) = Decoded::read_verified(&packet) {
        assert_eq!(endpoints(&packet), Some(decoded.endpoints));
        write_again(&decoded);
    }
    let _ = Decoded::read(&packet);
    assert!(Icmp::read(&packet).is_none() || DatagramError::read(&packet).is_none());
    let link = LINKS[usize::from(how >> 1) % LINKS.len()];
    let frame = Frame {
        number: 1,
        at: None,
        interface: 0,
        link,
        bytes: &packet,
        original_len: packet.len() + usize::from(how >> 7),
    };
    let mut reader = Reader::default();
    let _ = reader.read(&frame);
    // The same frame again: fragments and flows are remembered.
    let _ = reader.read(&frame);
    let _ = reader.left_out();
    let mut changed = packet.clone();
    set_congested(&mut changed);
    let _ = Decoded::read_verified(&changed);
    let mut changed = packet.clone();
    if set_dropped(&mut changed, Dropped::NOTHING) {
        let decoded = Decoded::read(&changed).expect("a notice leaves a packet valid");
        assert_eq!(decoded.segment.options.experiment.dropped, Some(Dropped::NOTHING));
    } else {
        assert_eq!(changed, packet);
    }
}

fn write_again(decoded: &Decoded<'_>) {
    if decoded.segment.options.wire_len() > MAX_OPTIONS_LEN {
        return; // options that were packed more tightly than the engine packs them
    }
    let mut packet = Vec::new();
    encode_with(decoded.endpoints, decoded.hop_limit, &decoded.segment, decoded.payload, &mut packet);
    let again = Decoded::read(&packet).expect("what was written can be read");
    assert_eq!(again, *decoded);
}
