//! IPv4, IPv6 with extension headers, and tunnels whose headers are simple: IP in IP, GRE, VXLAN.

use super::{Packet, Rest, Skipped, link, mapped, tcp, u16_at};

const HOP_BY_HOP: u8 = 0;
const IPV4: u8 = 4;
pub(super) const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const GRE: u8 = 47;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;

/// Bytes of an IPv4 header without options.
pub(super) const IPV4_LEN: usize = 20;
const VXLAN_PORT: u16 = 4789;
/// The most tunnels inside each other.
const MOST_TUNNELS: u32 = 4;
/// The most IPv6 extension headers.
const MOST_EXTENSIONS: usize = 8;

/// Reads the TCP packet in an IP packet.
#[inline]
pub(super) fn read(packet: Rest<'_>, into: &mut Packet) -> Result<(), Skipped> {
    read_in(packet, 0, into)
}

/// The same inside `tunnels` tunnels.
#[inline]
fn read_in(packet: Rest<'_>, tunnels: u32, into: &mut Packet) -> Result<(), Skipped> {
    let (protocol, rest) = match packet.u8(0)? >> 4 {
        4 => ipv4(packet, into)?,
        6 => ipv6(packet, into)?,
        _ => return Err(Skipped::OtherProtocol),
    };
    if protocol != TCP {
        return tunnelled(protocol, rest, tunnels + 1, into);
    }
    [into.source.port, into.destination.port] = tcp::read(rest, &mut into.segment)?;
    Ok(())
}

fn tunnelled(protocol: u8, rest: Rest<'_>, tunnels: u32, into: &mut Packet) -> Result<(), Skipped> {
    let packet = match protocol {
        IPV4 | IPV6 => rest,
        GRE => gre(rest)?,
        UDP if rest.u16(2)? == VXLAN_PORT => link::ethernet(rest.after(16)?)?,
        _ => return Err(Skipped::OtherProtocol),
    };
    if tunnels > MOST_TUNNELS { Err(Skipped::OtherProtocol) } else { read_in(packet, tunnels, into) }
}

/// The protocol inside, and what follows the header.
#[inline]
fn ipv4<'a>(packet: Rest<'a>, into: &mut Packet) -> Result<(u8, Rest<'a>), Skipped> {
    let header: [u8; IPV4_LEN] = packet.head(IPV4_LEN)?;
    let len = usize::from(header[0] & 0xf) * 4;
    let total = total_len(&header, packet.original_len);
    if len < IPV4_LEN || total < len {
        return Err(Skipped::Malformed);
    }
    if is_fragment(&header) {
        return Err(Skipped::Fragment);
    }
    ipv4_fields(&header, into);
    Ok((header[9], packet.limited(total).after(len)?))
}

/// The length that the header says. A network card that segments the packet fills it in; the capture then has zero, and the
/// packet is as long as the frame allows.
#[inline]
pub(super) fn total_len(header: &[u8; IPV4_LEN], most: usize) -> usize {
    match u16_at(header, 2) {
        0 => most,
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

/// The protocol inside, and what follows all headers.
fn ipv6<'a>(packet: Rest<'a>, into: &mut Packet) -> Result<(u8, Rest<'a>), Skipped> {
    const LEN: usize = 40;
    // Zero: a jumbogram, or a packet that the network card segments.
    let payload = match packet.u16(4)? {
        0 => packet.original_len.saturating_sub(LEN),
        payload => usize::from(payload),
    };
    into.source.address = packet.array(8)?;
    into.destination.address = packet.array(24)?;
    into.ip_id = None;
    into.ttl = packet.u8(7)?;
    let mut protocol = packet.u8(6)?;
    let mut rest = packet.limited(LEN + payload).after(LEN)?;
    for _ in 0..MOST_EXTENSIONS {
        let len = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY => (usize::from(rest.u8(1)?) + 1) * 8,
            AUTHENTICATION => (usize::from(rest.u8(1)?) + 2) * 4,
            FRAGMENT if rest.u16(2)? & 0xfff9 != 0 => return Err(Skipped::Fragment),
            FRAGMENT => 8,
            _ => break,
        };
        protocol = rest.u8(0)?;
        rest = rest.after(len)?;
    }
    Ok((protocol, rest))
}

/// The IP packet in a GRE packet (RFC 2784, RFC 2890).
fn gre(packet: Rest<'_>) -> Result<Rest<'_>, Skipped> {
    const TRANSPARENT_ETHERNET: u16 = 0x6558;
    let flags = packet.u16(0)?;
    if flags & 0x4007 != 0 {
        return Err(Skipped::OtherProtocol); // routing, or another version
    }
    let optional = [0x8000, 0x2000, 0x1000].iter().filter(|flag| flags & **flag != 0).count();
    let rest = packet.after(4 + 4 * optional)?;
    match packet.u16(2)? {
        TRANSPARENT_ETHERNET => link::ethernet(rest),
        ethertype => link::typed(ethertype, rest),
    }
}
