//! Ethernet, what its types carry, IEEE 802.2, and MPLS.

use super::Skipped;
use super::layer::{Layer, Next};
use super::rest::{Cursor, u16_at};
use super::{ip, tunnel};

pub(super) const LEN: usize = 14;
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const TRANSPARENT_ETHERNET: u16 = 0x6558;
/// Below this, the type is a length.
const MIN_TYPE: u16 = 0x0600;
/// IEEE 802.1Q, 802.1ad, and the older numbers of the latter.
const VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
const MPLS: [u16; 2] = [0x8847, 0x8848];
/// The first bytes of the destination in frames of Cisco's ISL, which precede the Ethernet header by 26 bytes.
const ISL: [&[u8]; 2] = [&[0x01, 0x00, 0x0c, 0x00, 0x00], &[0x03, 0x00, 0x0c, 0x00, 0x00]];
const ISL_LEN: usize = 26;
/// The most labels of MPLS.
const MAX_LABELS: usize = 16;

/// An Ethernet frame.
pub(super) fn read(frame: Cursor<'_>) -> Next<'_> {
    if ISL.iter().any(|isl| frame.bytes.starts_with(isl)) {
        return Ok((Layer::Ethernet, frame.after(ISL_LEN)?));
    }
    Ok((by_type_or_len(frame.u16(12)?), frame.after(LEN)?))
}

/// The field holds a type, or in frames of IEEE 802.3 the length.
const fn by_type_or_len(field: u16) -> Layer {
    if field >= MIN_TYPE { Layer::EtherType(field) } else { Layer::Llc }
}

/// What follows an `EtherType`.
pub(super) fn typed(ethertype: u16, rest: Cursor<'_>) -> Next<'_> {
    let next = |at, len| Ok((by_type_or_len(rest.u16(at)?), rest.after(len)?));
    match ethertype {
        IPV4 | IPV6 => Ok((Layer::Ip, rest)),
        _ if VLAN.contains(&ethertype) => next(2, 4),
        _ if MPLS.contains(&ethertype) => Ok((Layer::Mpls, rest)),
        0x893f | 0x8909 => next(6, 8), // E-tag of IEEE 802.1BR, Cisco MetaData
        0x8926 => next(4, 6),          // VN-tag
        0x88e7 => Ok((Layer::Ethernet, rest.after(4)?)), // the I-tag of provider backbone bridges, IEEE 802.1ah
        0x8903 => Ok((Layer::Ethernet, rest.after(2)?)), // Cisco FabricPath
        0x22f3 => Ok((Layer::Ethernet, rest.after(6 + 4 * usize::from(rest.u16(0)? >> 6 & 0x1f))?)), // TRILL
        0x894f => tunnel::nsh(rest),
        0x88e5 => macsec(rest),
        0x8864 => Ok((Layer::Ppp, rest.after(6)?)), // PPPoE
        0x880b => Ok((Layer::Ppp, rest)),
        TRANSPARENT_ETHERNET => Ok((Layer::Ethernet, rest)),
        other => Err(named(other)),
    }
}

fn named(ethertype: u16) -> Skipped {
    Skipped::Protocol(match ethertype {
        0x0806 => "ARP",
        0x8035 => "RARP",
        0x8863 => "PPPoE discovery",
        0x888e => "EAPOL",
        0x88cc => "LLDP",
        0x8808 => "Ethernet flow control",
        0x8809 => "LACP",
        0x88f7 => "PTP",
        0x88a2 => "ATA over Ethernet",
        0x8906 | 0x8914 => "FCoE",
        0x8902 => "Ethernet CFM",
        0x8137 => "IPX",
        0x9000 => "Ethernet loopback tests",
        0x8892 => "PROFINET",
        0x88a4 => "EtherCAT",
        0x88b8 => "GOOSE",
        0x0842 => "Wake-on-LAN",
        0x8915 => "RoCE",
        0x809b | 0x80f3 => "AppleTalk",
        other => return Skipped::EtherType(other),
    })
}

/// IEEE 802.1AE, if it does not encrypt.
fn macsec(rest: Cursor<'_>) -> Next<'_> {
    const HAS_CHANNEL: u8 = 0x20;
    const IS_CHANGED: u8 = 0x0c;
    let flags = rest.u8(0)?;
    if flags & IS_CHANGED != 0 {
        return Err(Skipped::Protocol("MACsec with encryption"));
    }
    let len = if flags & HAS_CHANNEL == 0 { 6 } else { 14 };
    Ok((by_type_or_len(rest.u16(len)?), rest.after(len + 2)?))
}

/// IEEE 802.2, perhaps with SNAP.
pub(super) fn llc(rest: Cursor<'_>) -> Next<'_> {
    const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
    const ETHERTYPES: [[u8; 3]; 2] = [[0; 3], [0, 0, 0xf8]];
    const CISCO: [u8; 3] = [0, 0, 0x0c];
    const BRIDGED: [u8; 3] = [0, 0x80, 0xc2];
    const BRIDGED_ETHERNET: [u16; 2] = [1, 7];
    if rest.bytes.starts_with(&SNAP) {
        let (organisation, kind) = (rest.array(3)?, rest.u16(6)?);
        return match organisation {
            _ if ETHERTYPES.contains(&organisation) => Ok((Layer::EtherType(kind), rest.after(8)?)),
            // With a padding of two bytes (RFC 2684).
            BRIDGED if BRIDGED_ETHERNET.contains(&kind) => Ok((Layer::Ethernet, rest.after(10)?)),
            CISCO => Err(Skipped::Protocol("Cisco CDP and its like")),
            _ => Err(Skipped::Protocol("SNAP of another organisation")),
        };
    }
    match [rest.u8(0)?, rest.u8(1)?] {
        [0x06, 0x06] => Ok((Layer::Ip, rest.after(3)?)),
        [0x42, 0x42] => Err(Skipped::Protocol("STP")),
        [0xfe, 0xfe] => Err(Skipped::Protocol("OSI network protocols")),
        [0xe0, 0xe0] | [0xff, 0xff] => Err(Skipped::Protocol("IPX")),
        [0xf0, 0xf0] => Err(Skipped::Protocol("NetBIOS without IP")),
        _ => Err(Skipped::Protocol("IEEE 802.2")),
    }
}

/// A stack of labels (RFC 3032). It does not say what it carries: IP, or Ethernet with or without a control word (RFC 4448).
pub(super) fn mpls(mut rest: Cursor<'_>) -> Next<'_> {
    const BOTTOM: u8 = 1;
    const CONTROL_WORD: usize = 4;
    for _ in 0..MAX_LABELS {
        let is_bottom = rest.u8(2)? & BOTTOM != 0;
        rest = rest.after(4)?;
        if !is_bottom {
            continue;
        }
        let first = rest.u8(0)? >> 4;
        return match first {
            4 | 6 if ip::is_likely(rest) || !is_likely(rest, 0) => Ok((Layer::Ip, rest)),
            // The first bytes of a MAC address may look like a control word, and the other way round.
            0 if is_likely(rest, CONTROL_WORD) => Ok((Layer::Ethernet, rest.after(CONTROL_WORD)?)),
            _ if is_likely(rest, 0) => Ok((Layer::Ethernet, rest)),
            0 => Ok((Layer::Ethernet, rest.after(CONTROL_WORD)?)),
            _ => Err(Skipped::Protocol("MPLS with another payload")),
        };
    }
    Err(Skipped::TooDeep)
}

/// True if an Ethernet frame that can be read seems to begin at `at`.
pub(super) fn is_likely(rest: Cursor<'_>, at: usize) -> bool {
    let Some(frame) = rest.bytes.get(at..).filter(|frame| frame.len() > LEN) else { return false };
    let (ethertype, inside) = (u16_at(frame, 12), frame[LEN]);
    match ethertype {
        IPV4 => inside >> 4 == 4,
        IPV6 => inside >> 4 == 6,
        _ if VLAN.contains(&ethertype) || MPLS.contains(&ethertype) => true,
        0x0806 | 0x8864 | 0x8863 | 0x88cc | 0x893f => true,
        46..=1500 => inside == 0xaa || inside == 0x42,
        _ => false,
    }
}
