//! The layers of a frame, one inside the other, in any order: a tunnel may carry any layer. Called for each frame that `plain.rs`
//! cannot read in one step.

use super::layer::{Fragment, Layer};
use super::rest::Cursor;
use super::{Packet, Skipped, ethernet, ip, link, ppp, tunnel, wlan};

/// The most headers of a frame.
const MAX_LAYERS: usize = 32;

/// The innermost layer, after all headers and tunnels.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'a> {
    /// The payload of an IP packet, not a tunnel.
    Packet(u8, Cursor<'a>),
    Fragment(Fragment, Cursor<'a>),
    /// Several frames of IEEE 802.11.
    Amsdu(Cursor<'a>),
}

/// Decapsulates a frame layer by layer. `into` gets the addresses and the other fields of the last IP header.
pub(super) fn decapsulate<'a>(mut layer: Layer, mut rest: Cursor<'a>, into: &mut Packet) -> Result<Found<'a>, Skipped> {
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
            Layer::Fragment(piece) => return Ok(Found::Fragment(piece, rest)),
            Layer::Amsdu => return Ok(Found::Amsdu(rest)),
        };
    }
    Err(Skipped::TooDeep)
}
