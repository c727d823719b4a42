//! IPv4, IPv6 with extension headers, and tunnels whose headers are simple: IP in IP, GRE, VXLAN.

use super::{Endpoint, Packet, Rest, Skipped, link, mapped, tcp};

const HOP_BY_HOP: u8 = 0;
const IPV4: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const GRE: u8 = 47;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;

const VXLAN_PORT: u16 = 4789;
/// The most tunnels inside each other.
const MOST_TUNNELS: u32 = 4;
/// The most IPv6 extension headers.
const MOST_EXTENSIONS: usize = 8;

/// The fields of an IP header that are needed.
struct Header {
    source: [u8; 16],
    destination: [u8; 16],
    ip_id: Option<u16>,
    ttl: u8,
    protocol: u8,
}

/// The TCP packet in an IP packet inside `tunnels` tunnels.
pub(super) fn read(packet: Rest<'_>, tunnels: u32) -> Result<Packet, Skipped> {
    if tunnels > MOST_TUNNELS {
        return Err(Skipped::OtherProtocol);
    }
    let (header, rest) = match packet.u8(0)? >> 4 {
        4 => ipv4(packet)?,
        6 => ipv6(packet)?,
        _ => return Err(Skipped::OtherProtocol),
    };
    match header.protocol {
        TCP => {
            let (ports, segment) = tcp::read(rest)?;
            let source = Endpoint { address: header.source, port: ports[0] };
            let destination = Endpoint { address: header.destination, port: ports[1] };
            Ok(Packet { source, destination, ip_id: header.ip_id, ttl: header.ttl, segment })
        }
        IPV4 | IPV6 => read(rest, tunnels + 1),
        GRE => read(gre(rest)?, tunnels + 1),
        UDP if rest.u16(2)? == VXLAN_PORT => read(link::ethernet(rest.after(16)?)?, tunnels + 1),
        _ => Err(Skipped::OtherProtocol),
    }
}

fn ipv4(packet: Rest<'_>) -> Result<(Header, Rest<'_>), Skipped> {
    let len = usize::from(packet.u8(0)? & 0xf) * 4;
    if len < 20 {
        return Err(Skipped::Malformed);
    }
    // A network card that segments the packet fills the length in; the capture then has zero.
    let total = match packet.u16(2)? {
        0 => packet.original_len,
        total => usize::from(total),
    };
    if total < len {
        return Err(Skipped::Malformed);
    }
    if packet.u16(6)? & 0x3fff != 0 {
        return Err(Skipped::Fragment);
    }
    let header = Header {
        source: mapped(packet.array(12)?),
        destination: mapped(packet.array(16)?),
        ip_id: Some(packet.u16(4)?),
        ttl: packet.u8(8)?,
        protocol: packet.u8(9)?,
    };
    Ok((header, packet.limited(total).after(len)?))
}

fn ipv6(packet: Rest<'_>) -> Result<(Header, Rest<'_>), Skipped> {
    const LEN: usize = 40;
    // Zero: a jumbogram, or a packet that the network card segments.
    let payload = match packet.u16(4)? {
        0 => packet.original_len.saturating_sub(LEN),
        payload => usize::from(payload),
    };
    let (source, destination, ttl) = (packet.array(8)?, packet.array(24)?, packet.u8(7)?);
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
    Ok((Header { source, destination, ip_id: None, ttl, protocol }, rest))
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
