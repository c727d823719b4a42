//! Link layers, by their numbers in the LINKTYPE registry of pcap.

use super::{Rest, Skipped};

const NULL: u16 = 0;
pub(super) const ETHERNET: u16 = 1;
const PPP: u16 = 9;
const PPP_HDLC: u16 = 50;
const RAW: u16 = 101;
/// What some systems write for raw IP.
const RAW_OLD: [u16; 2] = [12, 14];
const C_HDLC: u16 = 104;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const NFLOG: u16 = 239;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_SLL2: u16 = 276;

pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q, 802.1ad, and the older numbers of the latter.
const ETHERTYPE_VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
const ETHERTYPE_PPPOE: u16 = 0x8864;
/// The most VLAN tags.
const MOST_TAGS: usize = 4;

/// The IP packet in a frame.
#[inline]
pub(super) fn network_layer(link: u16, frame: Rest<'_>) -> Result<Rest<'_>, Skipped> {
    match link {
        ETHERNET => ethernet(frame),
        RAW | IPV4 | IPV6 => Ok(frame),
        link if RAW_OLD.contains(&link) => Ok(frame),
        NULL | LOOP => frame.after(4), // the address family, whose numbers differ; IP's version tells more
        LINUX_SLL => typed(frame.u16(14)?, frame.after(16)?),
        LINUX_SLL2 => typed(frame.u16(0)?, frame.after(20)?),
        PPP | PPP_HDLC if frame.bytes.starts_with(&[0xff, 0x03]) => point_to_point(frame.after(2)?),
        PPP => point_to_point(frame),
        C_HDLC | PPP_HDLC => typed(frame.u16(2)?, frame.after(4)?),
        NFLOG => nflog(frame),
        other => Err(Skipped::UnknownLink(other)),
    }
}

/// An Ethernet frame, also inside a tunnel.
#[inline]
pub(super) fn ethernet(frame: Rest<'_>) -> Result<Rest<'_>, Skipped> {
    typed(frame.u16(12)?, frame.after(14)?)
}

/// What follows an `EtherType`.
#[inline]
pub(super) fn typed(ethertype: u16, rest: Rest<'_>) -> Result<Rest<'_>, Skipped> {
    if ethertype == ETHERTYPE_IPV4 { Ok(rest) } else { tagged(ethertype, rest) }
}

/// The same behind VLAN tags.
fn tagged(mut ethertype: u16, mut rest: Rest<'_>) -> Result<Rest<'_>, Skipped> {
    for _ in 0..MOST_TAGS {
        if !ETHERTYPE_VLAN.contains(&ethertype) {
            break;
        }
        ethertype = rest.u16(2)?;
        rest = rest.after(4)?;
    }
    match ethertype {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Ok(rest),
        ETHERTYPE_PPPOE => point_to_point(rest.after(6)?),
        _ => Err(Skipped::OtherProtocol),
    }
}

/// What the firewall of Linux logs: attributes, of which one is the packet.
fn nflog(frame: Rest<'_>) -> Result<Rest<'_>, Skipped> {
    const MOST_ATTRIBUTES: usize = 32;
    const HEAD: usize = 4;
    const PAYLOAD: u16 = 9;
    let mut rest = frame.after(4)?;
    for _ in 0..MOST_ATTRIBUTES {
        // In the byte order of the host that captured, nearly always little-endian.
        let [len, kind] = [rest.u16(0)?, rest.u16(2)?].map(u16::swap_bytes);
        if kind == PAYLOAD {
            return rest.after(HEAD);
        }
        rest = rest.after(usize::from(len).max(HEAD).next_multiple_of(4))?;
    }
    Err(Skipped::OtherProtocol)
}

/// What the registry calls a link layer that is not read, if captures of networks have it.
pub(crate) fn name(link: u16) -> &'static str {
    match link {
        6 => "Token Ring",
        8 => "SLIP",
        10 => "FDDI",
        105 => "IEEE 802.11",
        107 => "Frame Relay",
        117 => "PFLOG",
        119 => "IEEE 802.11 with a Prism header",
        123 => "SunATM",
        127 => "IEEE 802.11 with radiotap",
        177 => "Linux LAPD",
        189 | 220 | 249 => "USB",
        187 | 201 => "Bluetooth",
        192 => "PPI",
        195 | 230 => "IEEE 802.15.4",
        197 => "ERF",
        227 => "CAN",
        253 => "Netlink",
        _ => "unknown",
    }
}

fn point_to_point(rest: Rest<'_>) -> Result<Rest<'_>, Skipped> {
    const IPV4: u16 = 0x0021;
    const IPV6: u16 = 0x0057;
    match rest.u16(0)? {
        IPV4 | IPV6 => rest.after(2),
        _ => Err(Skipped::OtherProtocol),
    }
}
