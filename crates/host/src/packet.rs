//! IP packets on an emulated path.

use std::net::IpAddr;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use reknit_path::resequencer::TcpHeader;
use reknit_path::{DropNotice, DropRange, Packet, flow_hash};
use reknit_tcp::SeqNum;
use reknit_tcp::experiment::Dropped;
use reknit_tcp::segment::Flags;
use reknit_units::Bytes;
use reknit_wire::{Decoded, IcmpError, TcpHeaders, encode_icmp_error, endpoints, set_dropped};

/// Bytes of an IPv6 header without extensions.
const IPV6_HEADER: usize = 40;

/// A packet on the emulated path.
#[derive(Debug)]
pub(crate) struct IpPacket {
    bytes: Vec<u8>,
    copy: bool,
}

impl IpPacket {
    pub(crate) fn new(bytes: Vec<u8>) -> IpPacket {
        IpPacket { bytes, copy: false }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True if the path has made it.
    pub(crate) fn is_copy(&self) -> bool {
        self.copy
    }

    /// True if it is a UDP datagram, or a fragment of one.
    pub(crate) fn is_udp(&self) -> bool {
        const UDP: u8 = 17;
        const FRAGMENT: u8 = 44;
        match (self.bytes.first().map(|first| first >> 4), self.bytes.get(6)) {
            (Some(4), _) => self.bytes.get(9) == Some(&UDP),
            (Some(6), Some(&FRAGMENT)) => self.bytes.get(IPV6_HEADER) == Some(&UDP),
            (Some(6), next) => next == Some(&UDP),
            _ => false,
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// What a router with this MTU tells the sender of the packet. Nothing about ICMP other than pings (RFC 1122 §3.2.2).
    pub(crate) fn too_big(&self, mtu: u16) -> Option<Vec<u8>> {
        let packet = SlicedPacket::from_ip(&self.bytes).ok()?;
        let (source, destination): (IpAddr, IpAddr) = match packet.net? {
            NetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            NetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            NetSlice::Arp(_) => return None,
        };
        let is_answered = match packet.transport? {
            TransportSlice::Icmpv4(icmp) => matches!(icmp.type_u8(), 0 | 8),
            TransportSlice::Icmpv6(icmp) => matches!(icmp.type_u8(), 128 | 129),
            _ => true,
        };
        if !is_answered {
            return None;
        }
        let mut message = Vec::new();
        encode_icmp_error(destination, source, IcmpError::TooBig(mtu), &self.bytes, &mut message);
        Some(message)
    }
}

impl Packet for IpPacket {
    fn size(&self) -> Bytes {
        Bytes(self.bytes.len() as u64)
    }

    fn copy(&self) -> IpPacket {
        IpPacket { bytes: self.bytes.clone(), copy: true }
    }

    fn flow(&self) -> u32 {
        endpoints(&self.bytes).map_or(0, |endpoints| flow_hash(endpoints.source, endpoints.destination))
    }

    /// The IP header is not corrupted: between the two ends that would not matter, but a real router would drop the
    /// packet.
    fn flip(&mut self, bit: u64) -> bool {
        let ip_header = match self.bytes.first() {
            Some(first) if first >> 4 == 4 => usize::from(first & 0xf) * 4,
            _ => IPV6_HEADER,
        };
        if let Some(covered) = self.bytes.get_mut(ip_header..).filter(|bytes| !bytes.is_empty()) {
            let bit = bit % (covered.len() as u64 * 8);
            covered[bit as usize / 8] ^= 1 << (bit % 8);
        }
        true
    }

    fn tcp(&self) -> Option<TcpHeader> {
        TcpHeaders::read(&self.bytes, self.bytes.len()).map(|headers| tcp_header(&headers))
    }

    fn notice(&self) -> Option<DropNotice> {
        let Decoded { endpoints, segment, .. } = Decoded::read(&self.bytes).ok()?;
        let dropped = segment.options.experiment.dropped.filter(|_| segment.len > 0)?;
        let range = DropRange { lowest: dropped.lowest.0, highest: dropped.highest.0 };
        Some(DropNotice {
            // A pipe carries one direction between two hosts, so the ports identify its flows.
            flow: u64::from(endpoints.source.port()) << 16 | u64::from(endpoints.destination.port()),
            number: segment.seq.0,
            dropped: (!dropped.is_empty()).then_some(range),
        })
    }

    fn set_dropped(&mut self, dropped: DropRange) {
        let dropped = Dropped { lowest: SeqNum(dropped.lowest), highest: SeqNum(dropped.highest) };
        set_dropped(&mut self.bytes, dropped);
    }
}

/// What a gateway reads of a packet.
pub fn tcp_header(headers: &TcpHeaders) -> TcpHeader {
    TcpHeader {
        seq: headers.seq,
        len: headers.seq_len(),
        timestamp: headers.timestamp,
        opens: headers.flags.has(Flags::SYN),
        resets: headers.flags.has(Flags::RST),
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::Segment;
    use reknit_tcp::experiment::ExperimentalOption;
    use reknit_tcp::segment::Options;
    use reknit_wire::{Endpoints, encode};

    use super::*;

    fn packet(len: u16, dropped: Option<Dropped>) -> IpPacket {
        let experiment = ExperimentalOption { dropped, ..ExperimentalOption::default() };
        let options = Options { experiment, ..Options::default() };
        let segment = Segment { seq: SeqNum(77), len, options, ..Segment::default() };
        let endpoints = Endpoints { source: "10.0.0.1:2".parse().unwrap(), destination: "10.0.0.2:3".parse().unwrap() };
        let mut bytes = Vec::new();
        encode(endpoints, &segment, &vec![0; usize::from(len)], &mut bytes);
        IpPacket { bytes, copy: false }
    }

    #[test]
    fn routers_write_into_real_packets() {
        let mut packet = packet(100, Some(Dropped::NOTHING));
        let notice = DropNotice { flow: 2 << 16 | 3, number: 77, dropped: None };
        assert_eq!(packet.notice(), Some(notice));
        let dropped = DropRange { lowest: u32::MAX, highest: 5 };
        packet.set_dropped(dropped);
        assert_eq!(packet.notice(), Some(DropNotice { dropped: Some(dropped), ..notice }));
    }

    #[test]
    fn a_flipped_bit_is_detected_at_any_position() {
        let whole = packet(20, None);
        let bits = 8 * (whole.bytes.len() as u64 - 20);
        for bit in 0..bits {
            let mut damaged = whole.copy();
            assert!(damaged.flip(bit + 3 * bits));
            assert!(Decoded::read(&damaged.bytes).is_err(), "bit {bit}");
            assert_eq!(damaged.bytes[..20], whole.bytes[..20]);
            damaged.flip(bit);
            assert_eq!(damaged.bytes, whole.bytes);
        }
    }

    #[test]
    fn a_flow_is_identified_by_addresses_and_ports() {
        let [source, destination] = ["10.0.0.1:2".parse().unwrap(), "10.0.0.2:3".parse().unwrap()];
        assert_eq!(packet(100, None).flow(), flow_hash(source, destination));
        assert_eq!(packet(0, None).flow(), packet(100, None).flow());
        assert_ne!(packet(0, None).flow(), flow_hash(destination, source));
    }

    #[test]
    fn datagrams_and_their_fragments_are_recognized() {
        let udp = |bytes: &[(usize, u8)]| {
            let mut packet = vec![0; 48];
            for (at, byte) in bytes {
                packet[*at] = *byte;
            }
            IpPacket::new(packet).is_udp()
        };
        assert!(udp(&[(0, 0x45), (9, 17)]) && udp(&[(0, 0x60), (6, 17)]) && udp(&[(0, 0x60), (6, 44), (40, 17)]));
        assert!(!udp(&[(0, 0x45), (9, 6)]) && !udp(&[(0, 0x60), (6, 6)]) && !udp(&[(0, 0x60), (6, 44), (40, 6)]));
        assert!(!udp(&[]) && !IpPacket::new(Vec::new()).is_udp());
    }

    #[test]
    fn packets_without_data_or_space_are_not_changed() {
        assert_eq!(packet(0, Some(Dropped::NOTHING)).notice(), None);
        assert_eq!(packet(100, None).notice(), None);
    }
}
