//! The TCP segment in a captured frame. Frames may be cut off after the headers, and checksums are not checked: the host
//! that captures often leaves them to its network card.

mod ip;
mod link;
mod plain;
mod tcp;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};
pub use tcp::{Flags, Segment};

use crate::Frame;

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

/// The address of an IPv4 packet. It is made as one number, because it is read in larger pieces than it has in the header.
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

/// Why a frame is not a TCP packet that can be analysed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Skipped {
    /// It has another protocol.
    OtherProtocol,
    /// Its link layer is not known.
    UnknownLink(u16),
    /// It is cut off inside a header that is needed.
    TooShort,
    /// It is a fragment of an IP packet.
    Fragment,
    /// A length in a header contradicts another.
    Malformed,
}

/// Where the headers continue.
#[derive(Clone, Copy, Debug)]
struct Rest<'a> {
    bytes: &'a [u8],
    /// Bytes on the wire.
    original_len: usize,
}

impl<'a> Rest<'a> {
    /// Without the first `n` bytes.
    #[inline]
    fn after(self, n: usize) -> Result<Rest<'a>, Skipped> {
        let bytes = self.bytes.get(n..).ok_or(Skipped::TooShort)?;
        Ok(Rest { bytes, original_len: self.original_len.saturating_sub(n) })
    }

    /// Only the first `n` bytes on the wire; the rest is padding.
    #[inline]
    fn limited(self, n: usize) -> Rest<'a> {
        Rest { bytes: &self.bytes[..self.bytes.len().min(n)], original_len: self.original_len.min(n) }
    }

    fn u8(self, at: usize) -> Result<u8, Skipped> {
        self.bytes.get(at).copied().ok_or(Skipped::TooShort)
    }

    fn u16(self, at: usize) -> Result<u16, Skipped> {
        self.array(at).map(u16::from_be_bytes)
    }

    /// The first `N` bytes, if at least `least` of them were captured; the others are zero.
    #[inline]
    fn head<const N: usize>(self, least: usize) -> Result<[u8; N], Skipped> {
        if let Some(whole) = self.bytes.first_chunk() {
            return Ok(*whole);
        }
        if self.bytes.len() < least {
            return Err(Skipped::TooShort);
        }
        let mut head = [0; N];
        head[..self.bytes.len()].copy_from_slice(self.bytes);
        Ok(head)
    }

    #[inline]
    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], Skipped> {
        self.bytes.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).ok_or(Skipped::TooShort)
    }
}

/// A number in a header.
#[inline]
fn u16_at(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// A number in a header.
#[inline]
fn u32_at(header: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

pub(crate) use link::name as link_name;

/// Reads the TCP packet in `frame`.
///
/// # Errors
/// If there is none.
pub fn read(frame: &Frame<'_>) -> Result<Packet, Skipped> {
    let mut packet = Packet::default();
    read_into(frame, &mut packet)?;
    Ok(packet)
}

/// The same without a copy of the packet. What `into` had before is overwritten, except SACK blocks that do not count.
#[inline]
pub(crate) fn read_into(frame: &Frame<'_>, into: &mut Packet) -> Result<(), Skipped> {
    into.interface = frame.interface;
    if plain::read(frame, into) { Ok(()) } else { read_any(frame, into) }
}

/// Reads a packet with any headers that are supported.
fn read_any(frame: &Frame<'_>, into: &mut Packet) -> Result<(), Skipped> {
    let rest = Rest { bytes: frame.bytes, original_len: frame.original_len };
    ip::read(link::network_layer(frame.link, rest)?, into)
}

#[cfg(test)]
mod tests;
