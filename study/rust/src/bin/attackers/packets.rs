//! The attacker's TUN device, and the packets that it writes. The kernel forwards them to the server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use reknit_tcp::Segment;
use reknit_wire::{Decoded, Endpoints, IcmpError, encode, encode_icmp_error};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::server::SERVER;

/// The router on the path, and the attacker's network.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// Where the checksum of an ICMP message is, after an IPv4 header.
const ICMP: usize = 20;

pub(crate) struct Wire(SyncDevice);

impl Wire {
    /// Creates the device in this thread's namespace, which forwards packets from it, even with the kernel's own source addresses.
    pub(crate) fn create() -> io::Result<Wire> {
        let device = DeviceBuilder::new().name("attack0").mtu(1500).ipv4(ROUTER, 16, None).build_sync()?;
        device.set_nonblocking(true)?;
        for (key, value) in [
            ("ip_forward", "1"),
            ("conf/all/rp_filter", "0"),
            ("conf/attack0/rp_filter", "0"),
            ("conf/attack0/accept_local", "1"),
        ] {
            std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value)?;
        }
        Ok(Wire(device))
    }

    /// Sends a packet. The kernel drops it if it has no room, as any network.
    pub(crate) fn send(&self, packet: &[u8]) {
        let _ = self.0.send(packet);
    }

    /// The next packet from the server.
    pub(crate) fn receive<'a>(&self, into: &'a mut [u8]) -> Option<Decoded<'a>> {
        loop {
            let len = self.0.recv(into).ok()?;
            if Decoded::read(&into[..len]).is_ok() {
                return Decoded::read(&into[..len]).ok();
            }
        }
    }
}

/// An address of the attacker's network.
pub(crate) fn client(n: u32) -> SocketAddr {
    let [_, _, third, fourth] = (n / 50_000 + 2).to_be_bytes();
    SocketAddr::new(IpAddr::from([10, 78, third, fourth]), 1024 + (n % 50_000) as u16)
}

/// A segment to the server.
pub(crate) fn segment(from: SocketAddr, segment: &Segment) -> Vec<u8> {
    let mut packet = Vec::new();
    let payload = vec![b'x'; segment.len.into()];
    encode(Endpoints { source: from, destination: SERVER }, segment, &payload, &mut packet);
    packet
}

/// A segment to the server with this data.
pub(crate) fn data(from: SocketAddr, segment: &Segment, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let segment = Segment { len: payload.len() as u16, ..*segment };
    encode(Endpoints { source: from, destination: SERVER }, &segment, payload, &mut packet);
    packet
}

/// An ICMP message that a router has dropped this segment from the server to `to`, because it carries only `mtu`.
pub(crate) fn too_big(to: SocketAddr, quoted: &Segment, mtu: u16) -> Vec<u8> {
    let mut dropped = Vec::new();
    let payload = vec![b'x'; quoted.len.into()];
    encode(Endpoints { source: SERVER, destination: to }, quoted, &payload, &mut dropped);
    let mut packet = Vec::new();
    encode_icmp_error(ROUTER.into(), SERVER.ip(), IcmpError::PortUnreachable, &dropped, &mut packet);
    let [high, low] = mtu.to_be_bytes();
    (packet[ICMP + 1], packet[ICMP + 6], packet[ICMP + 7]) = (4, high, low);
    (packet[ICMP + 2], packet[ICMP + 3]) = (0, 0);
    let words = packet[ICMP..].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    [packet[ICMP + 2], packet[ICMP + 3]] = checksum.to_be_bytes();
    packet
}
