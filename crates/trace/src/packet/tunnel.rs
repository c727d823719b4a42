//! Tunnels over IP, and those over UDP.

use super::Skipped;
use super::ip::{ESP, ETHER_IP, GRE, MPLS};
use super::layer::{Fragment, Layer, Next, Whole};
use super::rest::Cursor;
use super::{ethernet, ip};

const UDP_LEN: usize = 8;

/// The layer inside a tunnel; none if it is not a tunnel.
type Inside<'a> = Result<Option<(Layer, Cursor<'a>)>, Skipped>;

/// What the tunnel in an IP packet of this protocol carries.
pub(super) fn read(protocol: u8, rest: Cursor<'_>) -> Inside<'_> {
    let inside = match protocol {
        ip::IPV4 | ip::IPV6 => Ok((Layer::Ip, rest)),
        GRE => gre(rest),
        ETHER_IP => Ok((Layer::Ethernet, rest.after(2)?)),
        MPLS => Ok((Layer::Mpls, rest)),
        ip::UDP => return over_udp(rest),
        ESP => return Ok(null_esp(rest)),
        _ => return Ok(None),
    };
    inside.map(Some)
}

/// ESP that does not encrypt (RFC 2410), if it carries IPv4: its header has a checksum, so that is certain.
fn null_esp(rest: Cursor<'_>) -> Option<(Layer, Cursor<'_>)> {
    let inside = rest.after(8).ok()?;
    let has_checksum = inside.bytes.get(10..12).is_some_and(|sum| sum != [0, 0]);
    let is_plain = inside.bytes.first() == Some(&0x45) && has_checksum && ip::is_likely(inside);
    is_plain.then_some((Layer::Ip, inside))
}

/// GRE (RFC 2784, RFC 2890), also that of PPTP (RFC 2637), NVGRE (RFC 7637) and ERSPAN.
fn gre(packet: Cursor<'_>) -> Next<'_> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    /// An acknowledgment, in version 1.
    const ACK: u16 = 0x0080;
    let (flags, protocol) = (packet.u16(0)?, packet.u16(2)?);
    let has = |flag: u16| usize::from(flags & flag != 0) * 4;
    if flags & 7 == 1 {
        if flags & SEQUENCE == 0 {
            return Err(Skipped::Protocol("PPTP"));
        }
        return Ok((Layer::Ppp, packet.after(8 + has(SEQUENCE) + has(ACK))?));
    }
    if flags & (ROUTING | 7) != 0 {
        return Err(Skipped::Protocol("GRE with routing or of another version"));
    }
    let rest = packet.after(4 + has(CHECKSUM) + has(KEY) + has(SEQUENCE))?;
    match protocol {
        0 => Err(Skipped::Protocol("GRE keepalives")),
        0x88be if flags & SEQUENCE == 0 => Ok((Layer::Ethernet, rest)), // ERSPAN, type I
        0x88be | 0x22eb => erspan(rest),
        0x883e if rest.u8(0)? >> 4 == 4 => Ok((Layer::Ip, rest)), // WCCP
        0x883e => Ok((Layer::Ip, rest.after(4)?)),
        0x8200..=0x82ff => Ok((Layer::Wlan, rest)), // what Aruba's access points send on
        0x2001 => Err(Skipped::Protocol("NHRP")),
        ethertype => Ok((Layer::EtherType(ethertype), rest)),
    }
}

/// ERSPAN of type II or III.
fn erspan(rest: Cursor<'_>) -> Next<'_> {
    const HAS_MORE: u8 = 1;
    match rest.u8(0)? >> 4 {
        1 => Ok((Layer::Ethernet, rest.after(8)?)),
        2 => {
            let more = if rest.u8(11)? & HAS_MORE == 0 { 0 } else { 8 };
            let inside = rest.after(12 + more)?;
            let kind = rest.u8(10)? >> 2 & 0x1f;
            Ok((if kind == 2 { Layer::Ip } else { Layer::Ethernet }, inside))
        }
        _ => Err(Skipped::Protocol("ERSPAN of another version")),
    }
}

/// A tunnel over UDP. Its port alone does not make it one: any program may use that port.
fn over_udp(rest: Cursor<'_>) -> Inside<'_> {
    let [source, destination] = [rest.u16(0)?, rest.u16(2)?];
    let Ok(inside) = rest.after(UDP_LEN) else { return Ok(None) };
    Ok(by_port(destination, inside).or_else(|| by_port(source, inside)))
}

/// The tunnel that uses this port, if the packet is one of its packets.
fn by_port(port: u16, rest: Cursor<'_>) -> Option<(Layer, Cursor<'_>)> {
    let found = match port {
        4789 | 8472 => vxlan(rest),
        4790 => vxlan_gpe(rest),
        6081 => geneve(rest),
        2152 => gtp(rest),
        5247 => capwap(rest),
        6635 => Ok((Layer::Mpls, rest)),
        4754 => Ok((Layer::Protocol(GRE), rest)),
        3544 => teredo(rest),
        5072 => ayiya(rest),
        1701 => l2tp(rest),
        4341 => likely_ip(rest, 8), // LISP
        37008 => tzsp(rest),
        6080 => gue(rest),
        4500 => return null_esp(rest),
        _ => return None,
    };
    found.ok()
}

const OTHER: Skipped = Skipped::Malformed;

fn likely_ip(rest: Cursor<'_>, len: usize) -> Next<'_> {
    let inside = rest.after(len)?;
    if ip::is_likely(inside) { Ok((Layer::Ip, inside)) } else { Err(OTHER) }
}

/// RFC 7348; some of the reserved bits are used for policies.
fn vxlan(rest: Cursor<'_>) -> Next<'_> {
    const HAS_NETWORK: u8 = 0x08;
    if rest.u8(0)? & HAS_NETWORK == 0 {
        return Err(OTHER);
    }
    Ok((Layer::Ethernet, rest.after(8)?))
}

fn vxlan_gpe(rest: Cursor<'_>) -> Next<'_> {
    const NAMES_PROTOCOL: u8 = 0x04;
    let inside = rest.after(8)?;
    if rest.u8(0)? & NAMES_PROTOCOL == 0 {
        return Ok((Layer::Ethernet, inside));
    }
    next_protocol(rest.u8(3)?, inside)
}

/// The network service header (RFC 8300).
pub(super) fn nsh(rest: Cursor<'_>) -> Next<'_> {
    let len = usize::from(rest.u8(1)? & 0x3f) * 4;
    if len < 8 {
        return Err(OTHER);
    }
    next_protocol(rest.u8(3)?, rest.after(len)?)
}

/// The numbers that NSH and VXLAN-GPE share.
fn next_protocol(protocol: u8, rest: Cursor<'_>) -> Next<'_> {
    match protocol {
        1 | 2 => Ok((Layer::Ip, rest)),
        3 => Ok((Layer::Ethernet, rest)),
        4 => Ok((Layer::EtherType(0x894f), rest)),
        5 => Ok((Layer::Mpls, rest)),
        _ => Err(OTHER),
    }
}

/// RFC 8926.
fn geneve(rest: Cursor<'_>) -> Next<'_> {
    let first = rest.u8(0)?;
    if first >> 6 != 0 {
        return Err(OTHER);
    }
    Ok((Layer::EtherType(rest.u16(2)?), rest.after(8 + usize::from(first & 0x3f) * 4)?))
}

/// GTP-U (3GPP TS 29.281): user data, after extension headers.
fn gtp(rest: Cursor<'_>) -> Next<'_> {
    const USER_DATA: u8 = 255;
    const HAS_MORE: u8 = 0x07;
    const HAS_EXTENSIONS: u8 = 0x04;
    const MAX_EXTENSIONS: usize = 16;
    let [flags, kind] = rest.array(0)?;
    if flags & 0xf0 != 0x30 || kind != USER_DATA {
        return Err(OTHER);
    }
    let mut inside = rest.after(8)?;
    if flags & HAS_MORE != 0 {
        let mut next = inside.u8(3)?;
        inside = inside.after(4)?;
        for _ in 0..MAX_EXTENSIONS {
            if flags & HAS_EXTENSIONS == 0 || next == 0 {
                break;
            }
            let len = usize::from(inside.u8(0)?.max(1)) * 4;
            next = inside.u8(len - 1)?;
            inside = inside.after(len)?;
        }
    }
    let layer = match inside.u8(0)? >> 4 {
        4 | 6 if ip::is_likely(inside) || !ethernet::is_likely(inside, 0) => Layer::Ip,
        _ if ethernet::is_likely(inside, 0) => Layer::Ethernet,
        _ => Layer::Ppp,
    };
    Ok((layer, inside))
}

/// The data channel of CAPWAP (RFC 5415), if it is not encrypted.
fn capwap(rest: Cursor<'_>) -> Next<'_> {
    const PLAIN: u8 = 0;
    const IS_WLAN: u8 = 0x01;
    const IS_FRAGMENT: u8 = 0x80;
    const IS_LAST: u8 = 0x40;
    const KEEP_ALIVE: u8 = 0x08;
    let [preamble, len, kind, flags] = rest.array(0)?;
    if preamble != PLAIN || flags & KEEP_ALIVE != 0 {
        return Err(OTHER);
    }
    let inside = rest.after(usize::from(len >> 3) * 4)?;
    let of = if kind & IS_WLAN == 0 { Whole::Ethernet } else { Whole::Wlan };
    if flags & IS_FRAGMENT != 0 {
        let offset = usize::from(rest.u16(6)? >> 3) * 8;
        let piece = Fragment { id: rest.u16(4)?.into(), of, offset, is_last: flags & IS_LAST != 0 };
        return Ok((Layer::Fragment(piece), inside));
    }
    Ok((if of == Whole::Wlan { Layer::Wlan } else { Layer::Ethernet }, inside))
}

/// RFC 4380: IPv6, perhaps after an indication of the origin or of authentication.
fn teredo(rest: Cursor<'_>) -> Next<'_> {
    match rest.u16(0)? {
        0 => likely_ip(rest, 8),
        1 => likely_ip(rest, 13 + usize::from(rest.u8(2)?) + usize::from(rest.u8(3)?)),
        _ => likely_ip(rest, 0),
    }
}

/// AYIYA: IPv6, after an identity and a signature.
fn ayiya(rest: Cursor<'_>) -> Next<'_> {
    let [identity, signature] = rest.array(0)?;
    likely_ip(rest, 8 + (1 << (identity >> 4)) + usize::from(signature >> 4) * 4)
}

/// Data of L2TP (RFC 2661).
fn l2tp(rest: Cursor<'_>) -> Next<'_> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = rest.u16(0)?;
    if flags & CONTROL != 0 || flags & 0xf != 2 {
        return Err(OTHER);
    }
    let has = |flag: u16, len: usize| if flags & flag == 0 { 0 } else { len };
    let len = 6 + has(LENGTH, 2) + has(SEQUENCE, 4);
    let offset = if flags & OFFSET == 0 { 0 } else { 2 + usize::from(rest.u16(len)?) };
    Ok((Layer::Ppp, rest.after(len + offset)?))
}

/// Frames that wireless sniffers send on.
fn tzsp(rest: Cursor<'_>) -> Next<'_> {
    const MAX_TAGS: usize = 64;
    const END: u8 = 1;
    let layer = match (rest.u8(0)?, rest.u16(2)?) {
        (1, 1) => Layer::Ethernet,
        (1, 18) => Layer::Wlan,
        (1, 119) => Layer::Link(119),
        (1, 127) => Layer::Link(127),
        _ => return Err(OTHER),
    };
    let mut inside = rest.after(4)?;
    for _ in 0..MAX_TAGS {
        let tag = inside.u8(0)?;
        inside = inside.after(if tag > END { 2 + usize::from(inside.u8(1)?) } else { 1 })?;
        if tag == END {
            return Ok((layer, inside));
        }
    }
    Err(OTHER)
}

/// Generic UDP encapsulation of Linux: a protocol of IP.
fn gue(rest: Cursor<'_>) -> Next<'_> {
    const CONTROL: u8 = 0x20;
    let first = rest.u8(0)?;
    match first >> 6 {
        0 if first & CONTROL == 0 => {
            let len = 4 + usize::from(first & 0x1f) * 4;
            Ok((Layer::Protocol(rest.u8(1)?), rest.after(len)?))
        }
        1 => likely_ip(rest, 0),
        _ => Err(OTHER),
    }
}
