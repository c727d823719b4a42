//! IPv4, and IPv6 with extension headers.

use super::layer::{Fragment, Layer, Next, Whole};
use super::rest::{Cursor, u16_at};
use super::{Packet, Skipped, mapped};

const HOP_BY_HOP: u8 = 0;
pub(super) const ICMP: u8 = 1;
pub(super) const IPV4: u8 = 4;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const IPV6: u8 = 41;
pub(super) const GRE: u8 = 47;
pub(super) const ESP: u8 = 50;
pub(super) const ETHER_IP: u8 = 97;
pub(super) const MPLS: u8 = 137;
/// RFC 3173.
pub(super) const COMPRESSED: u8 = 108;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// Bytes of an IPv4 header without options.
pub(super) const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
/// The most extension headers: a longer chain is an attack or garbage.
const MAX_EXTENSIONS: usize = 8;

/// An IP packet.
#[inline]
pub(super) fn read<'a>(packet: Cursor<'a>, into: &mut Packet) -> Next<'a> {
    match packet.u8(0)? >> 4 {
        4 => ipv4(packet, into),
        6 => ipv6(packet, into),
        _ => Err(Skipped::Protocol("neither IPv4 nor IPv6")),
    }
}

#[inline]
fn ipv4<'a>(packet: Cursor<'a>, into: &mut Packet) -> Next<'a> {
    let header: [u8; IPV4_LEN] = packet.head(IPV4_LEN)?;
    let len = usize::from(header[0] & 0xf) * 4;
    let total = total_len(&header, packet.original_len);
    if len < IPV4_LEN || total < len {
        return Err(Skipped::Malformed);
    }
    ipv4_fields(&header, into);
    let rest = packet.with_len(total).after(len)?;
    if is_fragment(&header) {
        let field = u16_at(&header, 6);
        let piece = (u32::from(u16_at(&header, 4)), usize::from(field & 0x1fff) * 8, field & 0x2000 == 0);
        return fragment(piece, header[9], rest);
    }
    skip_extension_headers(header[9], rest)
}

/// The length in the header. With TSO the network card fills it in; the capture then has zero, and the packet is as long as the
/// frame.
#[inline]
pub(super) fn total_len(header: &[u8; IPV4_LEN], frame: usize) -> usize {
    match u16_at(header, 2) {
        0 => frame,
        total => usize::from(total),
    }
}

#[inline]
pub(super) fn is_fragment(header: &[u8; IPV4_LEN]) -> bool {
    u16_at(header, 6) & 0x3fff != 0
}

/// The fields of an IPv4 packet with this header.
#[inline]
pub(super) fn ipv4_fields(header: &[u8; IPV4_LEN], into: &mut Packet) {
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    into.source.address = mapped([s0, s1, s2, s3]);
    into.destination.address = mapped([d0, d1, d2, d3]);
    into.ip_id = Some(u16_at(header, 4));
    into.ttl = header[8];
}

fn ipv6<'a>(packet: Cursor<'a>, into: &mut Packet) -> Next<'a> {
    // Zero: a jumbogram, or a TSO packet.
    let payload = match packet.u16(4)? {
        0 => packet.original_len.saturating_sub(IPV6_LEN),
        payload => usize::from(payload),
    };
    into.source.address = packet.array(8)?;
    into.destination.address = packet.array(24)?;
    into.ip_id = None;
    into.ttl = packet.u8(7)?;
    skip_extension_headers(packet.u8(6)?, packet.with_len(IPV6_LEN + payload).after(IPV6_LEN)?)
}

/// Skips extension headers. IPv4 has one of them, the authentication header.
#[inline]
pub(super) fn skip_extension_headers(mut protocol: u8, mut rest: Cursor<'_>) -> Next<'_> {
    for _ in 0..MAX_EXTENSIONS {
        let len = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HIP | SHIM6 => (usize::from(rest.u8(1)?) + 1) * 8,
            AUTHENTICATION => (usize::from(rest.u8(1)?) + 2) * 4,
            FRAGMENT => {
                let (next, field, id) = (rest.u8(0)?, rest.u16(2)?, rest.u32(4)?);
                let inside = rest.after(8)?;
                if field & 0xfff9 != 0 {
                    return fragment((id, usize::from(field & 0xfff8), field & 1 == 0), next, inside);
                }
                8
            }
            _ => break,
        };
        protocol = rest.u8(0)?;
        rest = rest.after(len)?;
    }
    Ok((Layer::Protocol(protocol), rest))
}

/// True for protocols of IP that are tunnels.
const fn is_tunnel(protocol: u8) -> bool {
    matches!(protocol, IPV4 | IPV6 | GRE | ESP | ETHER_IP | MPLS)
}

/// A fragment, if what it carries may be TCP.
fn fragment((id, offset, is_last): (u32, usize, bool), protocol: u8, rest: Cursor<'_>) -> Next<'_> {
    let is_extension = matches!(protocol, HOP_BY_HOP | ROUTING | DESTINATION | AUTHENTICATION);
    if protocol != TCP && protocol != UDP && !is_extension && !is_tunnel(protocol) {
        return Err(Skipped::IpProtocol(protocol));
    }
    Ok((Layer::Fragment(Fragment { id, of: Whole::Protocol(protocol), offset, is_last }), rest))
}

/// True if the bytes look like an IP header: for IPv4 a plausible length and, without options, a checksum that is right or zero;
/// for IPv6 a known next header. For tunnels that do not say what they carry.
pub(super) fn is_likely(rest: Cursor<'_>) -> bool {
    match rest.bytes {
        [first, ..] if first >> 4 == 4 => rest.head::<IPV4_LEN>(IPV4_LEN).is_ok_and(|header| {
            let total = usize::from(u16_at(&header, 2));
            let has_options = header[0] & 0xf > 5;
            let sum: u32 = (0..10).map(|i| u32::from(u16_at(&header, 2 * i))).sum();
            let is_right = (sum & 0xffff) + (sum >> 16) == 0xffff;
            (has_options || is_right || u16_at(&header, 10) == 0)
                && header[0] & 0xf >= 5
                && (total >= IPV4_LEN || total == 0)
        }),
        [first, ..] if first >> 4 == 6 => {
            let next = [
                HOP_BY_HOP,
                ICMP,
                IPV4,
                TCP,
                UDP,
                IPV6,
                ROUTING,
                FRAGMENT,
                GRE,
                ESP,
                AUTHENTICATION,
                58,
                59,
                DESTINATION,
                89,
                132,
            ];
            rest.bytes.len() >= IPV6_LEN && next.contains(&rest.bytes[6])
        }
        _ => false,
    }
}
