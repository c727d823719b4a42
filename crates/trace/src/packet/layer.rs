//! The layers of a frame, one inside the other, in any order: a tunnel may carry any layer.

use super::rest::Rest;
use super::{Packet, Skipped, ethernet, ip, link, ppp, tunnel, wlan};

/// The most headers of a frame.
const MAX_LAYERS: usize = 32;

/// The type of the bytes that follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layer {
    /// A frame of a LINKTYPE of the pcap registry.
    Link(u16),
    Ethernet,
    /// What follows an `EtherType`.
    EtherType(u16),
    /// IEEE 802.2.
    Llc,
    Ppp,
    Mpls,
    /// IEEE 802.11.
    Wlan,
    /// IEEE 802.11: several frames in one.
    Amsdu,
    /// IPv4 or IPv6.
    Ip,
    /// What an IP packet of this protocol carries.
    Protocol(u8),
    /// A part of a packet.
    Piece(Piece),
}

/// A fragment: its packet is identified by both addresses, what it carries, and `id`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) id: u32,
    pub(super) of: Whole,
    /// Bytes of the packet before this fragment.
    pub(super) offset: usize,
    pub(super) is_last: bool,
}

/// What the fragments are parts of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Whole {
    Protocol(u8),
    Wlan,
    Ethernet,
}

/// The layer after a header, or why it is not read.
pub(super) type Next<'a> = Result<(Layer, Rest<'a>), Skipped>;

/// The innermost layer, after all headers and tunnels.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'a> {
    /// What an IP packet of this protocol carries, which is no tunnel.
    Packet(u8, Rest<'a>),
    Piece(Piece, Rest<'a>),
    /// Several frames of IEEE 802.11.
    Amsdu(Rest<'a>),
}

/// Decapsulates a frame layer by layer. `into` gets the addresses and the other fields of the last IP header.
pub(super) fn descend<'a>(mut layer: Layer, mut rest: Rest<'a>, into: &mut Packet) -> Result<Found<'a>, Skipped> {
    for _ in 0..MAX_LAYERS {
        (layer, rest) = match layer {
            Layer::Link(link) => link::read(link, rest)?,
            Layer::Ethernet => ethernet::read(rest)?,
            Layer::EtherType(ethertype) => ethernet::typed(ethertype, rest)?,
            Layer::Llc => ethernet::llc(rest)?,
            Layer::Ppp => ppp::read(rest)?,
            Layer::Mpls => ethernet::mpls(rest)?,
            Layer::Wlan => wlan::read(rest)?,
            Layer::Ip => ip::read(rest, into)?,
            Layer::Protocol(ip::TCP) => return Ok(Found::Packet(ip::TCP, rest)),
            Layer::Protocol(protocol) => match tunnel::read(protocol, rest)? {
                Some(inside) => inside,
                None => return Ok(Found::Packet(protocol, rest)),
            },
            Layer::Piece(piece) => return Ok(Found::Piece(piece, rest)),
            Layer::Amsdu => return Ok(Found::Amsdu(rest)),
        };
    }
    Err(Skipped::TooDeep)
}
