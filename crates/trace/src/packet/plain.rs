//! The fast path for nearly all packets: Ethernet without tags or no link layer, IPv4 without options or fragments, TCP with a
//! completely captured header. Every field is then at a fixed offset, and two comparisons of lengths are enough for all of them.

use super::ip::{self, IPV4_LEN};
use super::link::{ETHERNET, RAW};
use super::rest::u16_at;
use super::{Packet, ethernet, tcp};
use crate::Frame;

/// Version 4, and a header of 20 bytes.
const VERSION_AND_LEN: u8 = 0x45;

/// Reads the packet in `frame`. False if it is not plain; `into` is then unchanged.
#[inline]
pub(super) fn read(frame: &Frame<'_>, into: &mut Packet) -> bool {
    match frame.link {
        ETHERNET => read_behind::<{ ethernet::LEN }>(frame, into),
        RAW => read_behind::<0>(frame, into),
        _ => false,
    }
}

/// The same after a link-layer header of this length.
#[inline]
fn read_behind<const LINK_LEN: usize>(frame: &Frame<'_>, into: &mut Packet) -> bool {
    let Some((link, bytes)) = frame.bytes.split_first_chunk::<LINK_LEN>() else { return false };
    let Some((ipv4, bytes)) = bytes.split_first_chunk::<IPV4_LEN>() else { return false };
    let Some((header, bytes)) = bytes.split_first_chunk::<{ tcp::LEN }>() else { return false };
    let is_plain = (LINK_LEN == 0 || u16_at(link, 12) == ethernet::IPV4)
        && ipv4[0] == VERSION_AND_LEN
        && ipv4[9] == ip::TCP
        && !ip::is_fragment(ipv4);
    let len = ip::total_len(ipv4, frame.original_len.saturating_sub(LINK_LEN));
    let header_len = tcp::header_len(header);
    let Some(options) = header_len.checked_sub(tcp::LEN).and_then(|len| bytes.get(..len)) else { return false };
    if !is_plain || len < IPV4_LEN + header_len {
        return false;
    }
    ip::ipv4_fields(ipv4, into);
    [into.source.port, into.destination.port] = [u16_at(header, 0), u16_at(header, 2)];
    tcp::fields(header, options, len - IPV4_LEN - header_len, &mut into.segment);
    true
}
