//! Messages of routers about packets that are larger than the next link carries (RFC 1191, RFC 8201). [`super::Reader`] calls
//! [`too_big`] for each ICMP message; the stream of the packet gets what it says.

use super::ip::{self, IPV4_LEN};
use super::layer::Layer;
use super::rest::{Cursor, u16_at, u32_at};
use super::{Packet, tcp};

pub(super) const ICMPV6: u8 = 58;
const HEADER: usize = 8;
/// Destination unreachable: fragmentation needed.
const NEEDS_FRAGMENTATION: [u8; 2] = [3, 4];
const PACKET_TOO_BIG: u8 = 2;
/// The least that a router quotes of the TCP header: the ports and the sequence number.
const QUOTED: usize = 8;

/// A packet of TCP that a router has dropped because it was too big.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooBig {
    /// The packet, as far as the message quotes it.
    pub(crate) packet: Packet,
    /// The largest packet that fits; none if the router does not say.
    pub(crate) mtu: Option<u32>,
}

/// What an ICMP message of this protocol says, if it is about a packet of TCP that was too big.
pub(super) fn too_big(protocol: u8, message: Cursor<'_>) -> Option<TooBig> {
    let header: [u8; HEADER] = message.array(0).ok()?;
    let mtu = match protocol {
        ip::ICMP if header[..2] == NEEDS_FRAGMENTATION => u16_at(&header, 6).into(),
        ICMPV6 if header[0] == PACKET_TOO_BIG => u32_at(&header, 4),
        _ => return None,
    };
    let mut packet = Packet::default();
    let (transport, len) = quoted(message.after(HEADER).ok()?, &mut packet)?;
    let [ports, seq] = [transport.u32(0).ok()?, transport.u32(4).ok()?];
    [packet.source.port, packet.destination.port] = [(ports >> 16) as u16, ports as u16];
    packet.segment.seq = seq;
    let header = transport.u8(12).map_or(tcp::LEN, |offset| usize::from(offset >> 4) * 4);
    packet.segment.len = len.saturating_sub(header) as u32;
    Some(TooBig { packet, mtu: (mtu > 0).then_some(mtu) })
}

/// The TCP header in a quoted packet, and the length of the segment on the wire. `into` gets the addresses.
fn quoted<'a>(quote: Cursor<'a>, into: &mut Packet) -> Option<(Cursor<'a>, usize)> {
    // The message is shorter than the packet, whose length is in its header.
    let quote = Cursor { original_len: usize::MAX, ..quote };
    let (layer, rest) = match quote.u8(0).ok()? >> 4 {
        4 => {
            let header: [u8; IPV4_LEN] = quote.array(0).ok()?;
            let len = usize::from(header[0] & 0xf) * 4;
            ip::ipv4_fields(&header, into);
            let rest = quote.with_len(ip::total_len(&header, 0)).after(len).ok()?;
            (Layer::Protocol(header[9]), rest)
        }
        _ => ip::read(quote, into).ok()?,
    };
    let is_tcp = layer == Layer::Protocol(ip::TCP) && rest.bytes.len() >= QUOTED;
    is_tcp.then_some((rest, rest.original_len))
}
