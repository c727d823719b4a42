//! Link layers by their number in the LINKTYPE registry of pcap.

use super::layer::{Layer, Next};
use super::rest::Cursor;
use super::{Skipped, wlan};

pub(super) const ETHERNET: u16 = 1;
pub(super) const RAW: u16 = 101;

/// A frame.
pub(super) fn read(link: u16, frame: Cursor<'_>) -> Next<'_> {
    let inside = |layer, len| Ok((layer, frame.after(len)?));
    let typed = |at, len| cooked(frame.u16(at)?, frame.after(len)?);
    match link {
        ETHERNET => Ok((Layer::Ethernet, frame)),
        // Raw IP: the number of the registry, those that some systems write, and those of one version.
        RAW | 12 | 14 | 228 | 229 => Ok((Layer::Ip, frame)),
        0 | 108 => inside(Layer::Ip, 4), // the address family, whose numbers differ; the IP version is reliable
        6 => token_ring(frame),
        8 => inside(Layer::Ip, 16), // SLIP: the direction, and space for compressed headers
        9 | 50 => serial(frame),
        10 => fddi(frame),
        51 => Ok((Layer::EtherType(0x8864), frame)), // PPPoE
        100 => Ok((if frame.u8(0)? >> 4 == 4 { Layer::Ip } else { Layer::Llc }, frame)), // ATM, RFC 2684
        104 => hdlc(frame),
        105 => Ok((Layer::Wlan, frame)),
        107 => frame_relay(frame),
        109 => inside(Layer::Ip, 12),                                      // enc of OpenBSD
        113 => cooked_by(frame.u16(2)?, frame.u16(14)?, frame.after(16)?), // Linux cooked
        117 => inside(Layer::Ip, usize::from(frame.u8(0)?).next_multiple_of(4)), // PFLOG
        119 => wlan::prism(frame),
        122 => inside(Layer::Llc, 16), // IP over Fibre Channel
        127 => wlan::radiotap(frame),
        163 => wlan::avs(frame),
        166 | 204 => inside(Layer::Ppp, 1), // PPP with the direction
        178 => juniper(frame),
        192 => by_header(frame, frame.u16_le(2)?.into(), frame.u32_le(4)?), // PPI
        205 => hdlc(frame.after(1)?),
        206 => frame_relay(frame.after(1)?),
        219 => Ok((Layer::Mpls, frame)),
        226 => inside(Layer::Ip, 24), // IPNET of Solaris
        239 => nflog(frame),
        241 => inside(Layer::Ethernet, 12),
        242 => typed(40, 44), // IP over InfiniBand
        149 | 258 => by_header(frame, frame.u32_le(0)? as usize, frame.u32_le(8)?), // PKTAP of macOS
        259 | 290 => inside(Layer::Ethernet, 8), // with a preamble
        276 => cooked_by(frame.u16(8)?, frame.u16(0)?, frame.after(20)?), // Linux cooked, version 2
        // IP over IEEE 1394, and tags of switches between addresses and type.
        138 | 281 | 284 => typed(16, 18),
        // netANALYZER, and tags of switches before the addresses.
        240 | 282 => inside(Layer::Ethernet, 4),
        285 => typed(20, 22),
        other => Err(Skipped::UnknownLink(other)),
    }
}

/// A header of `len` bytes that names the link layer of what follows.
fn by_header(frame: Cursor<'_>, len: usize, link: u32) -> Next<'_> {
    let link = u16::try_from(link).map_err(|_| Skipped::Malformed)?;
    Ok((Layer::Link(link), frame.after(len.max(8))?))
}

/// What Linux captures without link-layer headers, by the type of the device and the protocol.
fn cooked_by(device: u16, protocol: u16, rest: Cursor<'_>) -> Next<'_> {
    match device {
        801 => Ok((Layer::Wlan, rest)),
        802 => wlan::prism(rest),
        803 => wlan::radiotap(rest),
        824 => Err(Skipped::Protocol("netlink")),
        _ => cooked(protocol, rest),
    }
}

/// What follows an `EtherType`, or a number below that Linux or an old driver writes instead of one.
fn cooked(protocol: u16, rest: Cursor<'_>) -> Next<'_> {
    match protocol {
        0 if matches!(rest.u8(0)? >> 4, 4 | 6) => Ok((Layer::Ip, rest)),
        4 => Ok((Layer::Llc, rest)),
        0x0c..=0x0e => Err(Skipped::Protocol("CAN")),
        other => Ok((Layer::EtherType(other), rest)),
    }
}

/// PPP, or the HDLC of Cisco, on a serial line.
fn serial(frame: Cursor<'_>) -> Next<'_> {
    match frame.u8(0)? {
        0x0f | 0x8f => hdlc(frame),
        _ => Ok((Layer::Ppp, frame)),
    }
}

fn hdlc(frame: Cursor<'_>) -> Next<'_> {
    match frame.u16(2)? {
        0x8035 => Err(Skipped::Protocol("Cisco SLARP")),
        ethertype => Ok((Layer::EtherType(ethertype), frame.after(4)?)),
    }
}

fn token_ring(frame: Cursor<'_>) -> Next<'_> {
    const LLC: u8 = 0x40;
    const IS_ROUTED: u8 = 0x80;
    if frame.u8(1)? & 0xc0 != LLC {
        return Err(Skipped::Protocol("Token Ring control"));
    }
    let route = if frame.u8(8)? & IS_ROUTED == 0 { 0 } else { usize::from(frame.u8(14)? & 0x1f) };
    Ok((Layer::Llc, frame.after(14 + route)?))
}

fn fddi(frame: Cursor<'_>) -> Next<'_> {
    const LLC: u8 = 0x50;
    if frame.u8(0)? & 0xf0 != LLC {
        return Err(Skipped::Protocol("FDDI control"));
    }
    Ok((Layer::Llc, frame.after(13)?))
}

/// RFC 2427, and what Cisco writes instead.
fn frame_relay(frame: Cursor<'_>) -> Next<'_> {
    // The last byte of the address is odd.
    let len = frame.bytes.iter().take(4).position(|byte| byte & 1 == 1).map_or(2, |last| last + 1);
    let rest = frame.after(len)?;
    match [rest.u8(0)?, rest.u8(1)?] {
        [0x03, 0xcc | 0x8e] => Ok((Layer::Ip, rest.after(2)?)),
        [0x03, 0x80] => Ok((Layer::EtherType(rest.u16(5)?), rest.after(7)?)),
        [0x03, 0x00] => Ok((Layer::EtherType(rest.u16(6)?), rest.after(8)?)),
        [0x08, 0x00] | [0x86, 0xdd] | [0x88, 0x47] => Ok((Layer::EtherType(rest.u16(0)?), rest.after(2)?)),
        _ => Err(Skipped::Protocol("Frame Relay control")),
    }
}

/// What routers of Juniper capture: a header, extensions, and Ethernet.
fn juniper(frame: Cursor<'_>) -> Next<'_> {
    const MAGIC: [u8; 3] = [0x4d, 0x47, 0x43];
    const HAS_EXTENSIONS: u8 = 0x80;
    if frame.array(0)? != MAGIC {
        return Err(Skipped::Malformed);
    }
    let extensions = if frame.u8(3)? & HAS_EXTENSIONS == 0 { 0 } else { 2 + usize::from(frame.u16(4)?) };
    Ok((Layer::Ethernet, frame.after(4 + extensions)?))
}

/// The log of the Linux firewall (NFLOG): attributes, one of which is the packet.
fn nflog(frame: Cursor<'_>) -> Next<'_> {
    const MAX_ATTRIBUTES: usize = 32;
    const HEAD: usize = 4;
    const PAYLOAD: u16 = 9;
    let mut rest = frame.after(4)?;
    for _ in 0..MAX_ATTRIBUTES {
        // In the byte order of the host that captured.
        let little = [rest.u16_le(0)?, rest.u16_le(2)?];
        let is_big = usize::from(little[0]) > rest.original_len.max(rest.bytes.len());
        let [len, kind] = if is_big { little.map(u16::swap_bytes) } else { little };
        if kind == PAYLOAD {
            return Ok((Layer::Ip, rest.after(HEAD)?.with_len(usize::from(len).saturating_sub(HEAD))));
        }
        rest = rest.after(usize::from(len).max(HEAD).next_multiple_of(4))?;
    }
    Err(Skipped::Protocol("NFLOG without a packet"))
}

/// What the registry calls a link layer that is not read, if captures of networks have it.
pub(crate) fn name(link: u16) -> &'static str {
    match link {
        7 => "ARCNET",
        120 => "Aironet",
        123 => "SunATM",
        129 => "ARCNET of Linux",
        140 => "MTP2",
        141 => "MTP3",
        142 => "SCCP",
        143 => "DOCSIS",
        144 => "IrDA",
        147..=162 => "private",
        177 => "Linux LAPD",
        179..=181 | 194 | 200 | 222 => "Juniper",
        186 | 189 | 220 | 249 | 266 | 288 | 292 | 293 | 294 | 295 => "USB",
        187 | 201 | 251 | 254..=256 | 272 => "Bluetooth",
        195 | 215 | 230 | 283 => "IEEE 802.15.4",
        197 => "ERF",
        199 | 209 => "IPMB",
        203 => "LAPD",
        210 => "FlexRay",
        212 => "LIN",
        224 | 225 => "Fibre Channel",
        227 => "CAN",
        231 => "D-Bus",
        247 => "InfiniBand",
        248 => "SCTP",
        252 => "Wireshark's upper layers",
        253 => "netlink",
        265 | 268 => "NFC",
        269 => "Z-Wave",
        _ => "unknown",
    }
}
