//! The TCP packets in captured frames. Frames may be cut off after the headers, and checksums are not checked: the capturing host
//! often offloads them to its network card.
//!
//! Nearly all frames are read by `plain.rs`. Others are read layer by layer (`layer.rs`): link layers (`link.rs`, `ethernet.rs`,
//! `wlan.rs`, `ppp.rs`), IP (`ip.rs`), and tunnels (`tunnel.rs`), in any order. Fragments are reassembled (`fragments.rs`),
//! and skipped packets are counted by name (`left_out.rs`, `udp.rs`).

mod decapsulate;
mod ethernet;
mod fragments;
mod icmp;
mod ip;
mod layer;
mod left_out;
mod link;
mod plain;
mod ppp;
mod rest;
mod tcp;
mod tunnel;
mod udp;
mod wlan;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use decapsulate::{Found, decapsulate};
use fragments::Reassembler;
pub(crate) use icmp::TooBig;
use layer::{Layer, Whole};
pub use left_out::LeftOut;
use left_out::SkippedCounts;
pub(crate) use left_out::protocol_name;
pub(crate) use link::name as link_name;
use ppp::COMPRESSED;
use rest::Cursor;
use serde::{Deserialize, Serialize};
pub use tcp::{Flags, Segment};
use wlan::Retries;

use crate::Frame;

const SCTP: u8 = 132;
const UDP_LEN: usize = 8;
const IP_LEN: usize = 20;
/// The deepest nesting of fragments and of frames in a frame.
const MAX_NESTED: u32 = 4;
/// The most frames in one.
const MAX_SUBFRAMES: usize = 64;

/// An IP address, and the port. IPv4 addresses are stored as IPv4-mapped IPv6 addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Endpoint {
    /// Address.
    pub address: [u8; 16],
    /// Port.
    pub port: u16,
}

impl Endpoint {
    /// The address as two numbers.
    #[inline]
    pub(crate) fn halves(&self) -> [u64; 2] {
        let address = u128::from_be_bytes(self.address);
        [(address >> 64) as u64, address as u64]
    }

    /// As the standard library writes it.
    pub fn socket(&self) -> SocketAddr {
        let v6 = Ipv6Addr::from(self.address);
        let ip = v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4);
        SocketAddr::new(ip, self.port)
    }
}

/// The address of an IPv4 packet. It is built as one number because it is read in larger pieces than the header has.
#[inline]
fn mapped(address: [u8; 4]) -> [u8; 16] {
    (0xffff << 32 | u128::from(u32::from_be_bytes(address))).to_be_bytes()
}

/// A TCP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// Its sender.
    pub source: Endpoint,
    /// Its receiver.
    pub destination: Endpoint,
    /// The identification of an IPv4 packet.
    pub ip_id: Option<u16>,
    /// TTL or hop limit.
    pub ttl: u8,
    /// The interface on which it was captured, as in [`Frame`].
    pub interface: u32,
    /// The segment.
    pub segment: Segment,
}

/// Why a frame has no TCP packet that can be analysed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Skipped {
    /// It has a protocol of this name.
    Protocol(&'static str),
    /// It has a protocol of Ethernet with this number.
    EtherType(u16),
    /// It has a protocol of IP with this number.
    IpProtocol(u8),
    /// Its link layer is not known.
    UnknownLink(u16),
    /// It is cut off inside a header that is needed.
    TooShort,
    /// It is a fragment of an IP packet, and others are missing.
    Fragment,
    /// A length in a header contradicts another.
    Malformed,
    /// It has more headers than the limit.
    TooDeep,
}

/// Reads TCP packets from frames. It remembers fragments and counts the packets that it skips.
#[derive(Debug, Default)]
pub struct Reader {
    packet: Packet,
    /// All packets of a frame that has several.
    several: Vec<Packet>,
    fragments: Reassembler,
    left_out: SkippedCounts,
    /// What the last frame says about a packet that was too big.
    too_big: Option<TooBig>,
    retries: Retries,
    /// The time of the last frame that has one, nanoseconds.
    now: u64,
}

impl Reader {
    /// The TCP packets in `frame`: nearly always one or none. A fragmented packet is returned with its last fragment.
    #[inline]
    pub fn read(&mut self, frame: &Frame<'_>) -> &[Packet] {
        self.packet.interface = frame.interface;
        if plain::read(frame, &mut self.packet) { std::slice::from_ref(&self.packet) } else { self.read_any(frame) }
    }

    /// Reads a packet with any headers that are supported.
    #[inline(never)]
    pub(crate) fn read_any(&mut self, frame: &Frame<'_>) -> &[Packet] {
        match self.decapsulate(frame) {
            Ok(Found::Packet(ip::TCP, rest)) => {
                if let Err(skipped) = tcp::read(rest, &mut self.packet) {
                    self.left_out.add(skipped, 1);
                    return &[];
                }
                std::slice::from_ref(&self.packet)
            }
            found => {
                let mut several = std::mem::take(&mut self.several);
                several.clear();
                let mut too_big = None;
                self.follow(found, 1, 0, &mut |packet, protocol, rest| {
                    if protocol != ip::TCP {
                        too_big = icmp::too_big(protocol, rest).or(too_big);
                        return Err(Skipped::IpProtocol(protocol));
                    }
                    tcp::read(rest, packet)?;
                    several.push(*packet);
                    Ok(())
                });
                (self.several, self.too_big) = (several, too_big);
                &self.several
            }
        }
    }

    /// What the last frame says about a packet that was too big for a link. Called after `read`, if the frame has no TCP packet.
    pub(crate) fn take_too_big(&mut self) -> Option<TooBig> {
        self.too_big.take()
    }

    /// Calls `each` with every innermost packet of IP in `frame`, whatever its protocol.
    pub(crate) fn datagrams(&mut self, frame: &Frame<'_>, each: &mut dyn FnMut(&Datagram<'_>)) {
        self.packet.interface = frame.interface;
        let found = self.decapsulate(frame);
        self.follow(found, 1, 0, &mut |packet, protocol, rest| {
            let ports = match protocol {
                ip::TCP | ip::UDP | SCTP => [rest.u16(0)?, rest.u16(2)?],
                _ => [0; 2],
            };
            [packet.source.port, packet.destination.port] = ports;
            let segment = if protocol == ip::TCP {
                tcp::read(rest, packet)?;
                Some(packet.segment)
            } else {
                None
            };
            let payload = if protocol == ip::UDP { rest.after(UDP_LEN)? } else { rest };
            each(&Datagram {
                source: packet.source,
                destination: packet.destination,
                protocol,
                ip_id: packet.ip_id,
                ttl: packet.ttl,
                segment,
                payload: payload.bytes,
                len: payload.original_len,
                size: rest.original_len + IP_LEN,
            });
            Ok(())
        });
    }

    fn decapsulate<'a>(&mut self, frame: &Frame<'a>) -> Result<Found<'a>, Skipped> {
        self.now = frame.at.unwrap_or(self.now);
        let rest = Cursor { bytes: frame.bytes, original_len: frame.original_len };
        if wlan::is_link(frame.link) && self.retries.has(frame.link, rest) {
            return Err(Skipped::Protocol("retries of IEEE 802.11"));
        }
        decapsulate(Layer::Link(frame.link), rest, &mut self.packet)
    }

    /// Processes the innermost layer of a packet that `frames` frames carried: calls `each` for every packet of IP in it and
    /// counts what is skipped.
    fn follow(&mut self, found: Result<Found<'_>, Skipped>, frames: u64, depth: u32, each: &mut Each<'_>) {
        match found {
            _ if depth > MAX_NESTED => self.left_out.add(Skipped::TooDeep, frames),
            Ok(Found::Packet(protocol, rest)) => match each(&mut self.packet, protocol, rest) {
                Err(Skipped::IpProtocol(ip::UDP)) => self.left_out.add_udp(&self.packet, rest, frames),
                Err(skipped) => self.left_out.add(skipped, frames),
                Ok(()) => {}
            },
            Ok(Found::Fragment(piece, rest)) => {
                let ends = [self.packet.source.address, self.packet.destination.address];
                let Some(complete) = self.fragments.add(piece, ends, rest, self.now) else {
                    return self.left_out.add(Skipped::Fragment, frames);
                };
                self.left_out.take_fragments(complete.pieces - 1);
                let rest = Cursor { bytes: &complete.head, original_len: complete.len };
                let whole = match piece.of {
                    Whole::Protocol(protocol) => ip::skip_extension_headers(protocol, rest),
                    Whole::Wlan => Ok((Layer::Wlan, rest)),
                    Whole::Ethernet => Ok((Layer::Ethernet, rest)),
                };
                let found = whole.and_then(|(layer, rest)| decapsulate(layer, rest, &mut self.packet));
                self.follow(found, frames + complete.pieces - 1, depth + 1, each);
            }
            Ok(Found::Amsdu(rest)) => {
                for frame in wlan::subframes(rest).take(MAX_SUBFRAMES) {
                    let found = decapsulate(Layer::Llc, frame, &mut self.packet);
                    self.follow(found, frames, depth + 1, each);
                }
            }
            Err(skipped) => self.left_out.add(skipped, frames),
        }
    }

    /// The skipped packets by kind, the most frequent first.
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.left_out.all()
    }

    /// How many packets could not be read for this reason.
    pub(crate) fn count(&self, skipped: Skipped) -> u64 {
        self.left_out.count(skipped)
    }

    /// How many packets may have TCP that cannot be read because it is compressed.
    pub(crate) fn compressed(&self) -> u64 {
        self.count(COMPRESSED) + self.count(Skipped::IpProtocol(ip::COMPRESSED))
    }

    /// The link types that cannot be read, and the number of frames of each.
    pub(crate) fn unknown_links(&self) -> impl Iterator<Item = (u16, u64)> {
        self.left_out.unknown_links()
    }
}

/// A packet of IP, of any protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    /// The ports are zero if the protocol has none.
    pub(crate) source: Endpoint,
    pub(crate) destination: Endpoint,
    pub(crate) protocol: u8,
    pub(crate) ip_id: Option<u16>,
    pub(crate) ttl: u8,
    /// Of TCP.
    pub(crate) segment: Option<Segment>,
    /// The captured payload of UDP or IP, and its length on the wire.
    pub(crate) payload: &'a [u8],
    pub(crate) len: usize,
    /// Bytes of the packet, with an IP header without options.
    pub(crate) size: usize,
}

/// A function that gets the payload of an IP packet: its protocol, and the bytes after the IP header.
type Each<'e> = dyn FnMut(&mut Packet, u8, Cursor<'_>) -> Result<(), Skipped> + 'e;

#[cfg(test)]
mod tests;
