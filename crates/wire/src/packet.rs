//! An IP packet with a TCP segment.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use etherparse::checksum::Sum16BitWords;
use etherparse::{
    IpEcn, IpNumber, Ipv4Header, Ipv6Header, NetSlice, SlicedPacket, TcpHeader, TcpOptionElement, TcpOptionsIterator,
    TransportSlice,
};
use reknit_tcp::experiment::KIND;
use reknit_tcp::segment::{Ecn, Flags, Options, SackBlock, SackBlocks, Timestamps};
use reknit_tcp::{Segment, SeqNum};

use crate::{Endpoints, experiment};

/// The initial TTL or hop limit (RFC 1700).
pub const HOP_LIMIT: u8 = 64;

/// Writes the IP packet with `segment` and `payload` to `into`, which is cleared first.
///
/// If `segment` has another length than `payload`, the length of the payload is used.
///
/// # Panics
/// If the two addresses are of different families, or if the options do not fit a header; options of the engine always
/// do.
pub fn encode(endpoints: Endpoints, segment: &Segment, payload: &[u8], into: &mut Vec<u8>) {
    encode_with(endpoints, HOP_LIMIT, segment, payload, into);
}

/// As [`encode`], with this TTL or hop limit.
///
/// # Panics
/// As [`encode`].
pub fn encode_with(endpoints: Endpoints, hop_limit: u8, segment: &Segment, payload: &[u8], into: &mut Vec<u8>) {
    encode_headers(endpoints, hop_limit, segment, payload, into);
    into.extend_from_slice(payload);
}

/// Writes the headers of the IP packet with `segment` and `payload` to `into`, which is cleared first, so that a payload that
/// is already in its place need not be copied.
///
/// # Panics
/// As [`encode`].
pub fn encode_headers(endpoints: Endpoints, hop_limit: u8, segment: &Segment, payload: &[u8], into: &mut Vec<u8>) {
    into.clear();
    let mut tcp = tcp_header(endpoints, segment);
    let len = tcp.header_len() + payload.len();
    match (endpoints.source.ip(), endpoints.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ip = ipv4_header(source, destination, hop_limit, segment.ecn, len);
            tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload).expect("a segment fits a packet");
            into.extend_from_slice(&ip.to_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = ipv6_header(source, destination, hop_limit, segment.ecn, len);
            tcp.checksum = tcp.calc_checksum_ipv6(&ip, payload).expect("a segment fits a packet");
            into.extend_from_slice(&ip.to_bytes());
        }
        _ => panic!("addresses of different families"),
    }
    into.extend_from_slice(&tcp.to_bytes());
}

/// Writes the headers of the IP packet with `segment` and a payload of `payload_len` bytes to `into`, which is cleared
/// first. Its TCP checksum is that of the pseudo-header only: the device that sends the packet adds the rest, as virtio
/// calls it. Returns the length of the IP header.
///
/// # Panics
/// As [`encode`].
pub fn encode_headers_for_offload(
    endpoints: Endpoints,
    hop_limit: u8,
    segment: &Segment,
    payload_len: usize,
    into: &mut Vec<u8>,
) -> usize {
    into.clear();
    let mut tcp = tcp_header(endpoints, segment);
    let len = tcp.header_len() + payload_len;
    let pseudo = match (endpoints.source.ip(), endpoints.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ip = ipv4_header(source, destination, hop_limit, segment.ecn, len);
            into.extend_from_slice(&ip.to_bytes());
            Sum16BitWords::new().add_4bytes(source.octets()).add_4bytes(destination.octets())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = ipv6_header(source, destination, hop_limit, segment.ecn, len);
            into.extend_from_slice(&ip.to_bytes());
            Sum16BitWords::new().add_16bytes(source.octets()).add_16bytes(destination.octets())
        }
        _ => panic!("addresses of different families"),
    };
    let pseudo = pseudo.add_2bytes([0, IpNumber::TCP.0]).add_2bytes((len as u16).to_be_bytes());
    tcp.checksum = !pseudo.ones_complement().to_be();
    let ip_len = into.len();
    into.extend_from_slice(&tcp.to_bytes());
    ip_len
}

fn ipv4_header(source: Ipv4Addr, destination: Ipv4Addr, hop_limit: u8, ecn: Ecn, len: usize) -> Ipv4Header {
    let mut ip = Ipv4Header::new(len as u16, hop_limit, IpNumber::TCP, source.octets(), destination.octets())
        .expect("a segment fits a packet");
    ip.dont_fragment = true;
    ip.ecn = ecn_to_wire(ecn);
    ip.header_checksum = ip.calc_header_checksum();
    ip
}

fn ipv6_header(source: Ipv6Addr, destination: Ipv6Addr, hop_limit: u8, ecn: Ecn, len: usize) -> Ipv6Header {
    Ipv6Header {
        traffic_class: ecn_to_wire(ecn).value(),
        payload_length: len as u16,
        next_header: IpNumber::TCP,
        hop_limit,
        source: source.octets(),
        destination: destination.octets(),
        ..Ipv6Header::default()
    }
}

fn tcp_header(endpoints: Endpoints, segment: &Segment) -> TcpHeader {
    let flags = segment.flags;
    let mut tcp = TcpHeader::new(endpoints.source.port(), endpoints.destination.port(), segment.seq.0, segment.window);
    tcp.acknowledgment_number = segment.ack.0;
    tcp.fin = flags.has(Flags::FIN);
    tcp.syn = flags.has(Flags::SYN);
    tcp.rst = flags.has(Flags::RST);
    tcp.psh = flags.has(Flags::PSH);
    tcp.ack = flags.has(Flags::ACK);
    tcp.urg = flags.has(Flags::URG);
    tcp.ece = flags.has(Flags::ECE);
    tcp.cwr = flags.has(Flags::CWR);
    tcp.set_options(&options_to_wire(&segment.options)).expect("the engine's options fit a header");
    if !segment.options.experiment.is_empty() {
        let mut raw = tcp.options.as_slice().to_vec();
        experiment::append(&segment.options.experiment, &mut raw);
        tcp.set_options_raw(&raw).expect("the engine's options fit a header");
    }
    tcp
}

/// The standard options, in the order and with the padding that [`Options::wire_len`] assumes. The experimental option,
/// which etherparse does not know, follows them.
fn options_to_wire(options: &Options) -> Vec<TcpOptionElement> {
    use TcpOptionElement as E;
    let mut elements = Vec::new();
    if let Some(mss) = options.mss {
        elements.push(E::MaximumSegmentSize(mss));
    }
    if options.sack_permitted {
        elements.push(E::SelectiveAcknowledgementPermitted);
    }
    if let Some(timestamps) = options.timestamps {
        if !options.sack_permitted {
            elements.extend([E::Noop, E::Noop]);
        }
        elements.push(E::Timestamp(timestamps.val, timestamps.ecr));
    } else if options.sack_permitted {
        elements.extend([E::Noop, E::Noop]);
    }
    if let Some(shift) = options.window_scale {
        elements.extend([E::Noop, E::WindowScale(shift)]);
    }
    if let [first, rest @ ..] = options.sack.as_slice() {
        let pair = |block: &SackBlock| (block.left.0, block.right.0);
        let others = std::array::from_fn(|i| rest.get(i).map(pair));
        elements.extend([E::Noop, E::Noop, E::SelectiveAcknowledgement(pair(first), others)]);
    }
    elements
}

fn ecn_to_wire(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotCapable => IpEcn::ZERO,
        Ecn::Capable1 => IpEcn::ONE,
        Ecn::Capable0 => IpEcn::TWO,
        Ecn::Congested => IpEcn::THREE,
    }
}

fn ecn_from_wire(bits: u8) -> Ecn {
    match bits & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Capable1,
        2 => Ecn::Capable0,
        _ => Ecn::Congested,
    }
}

/// A parsed packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoded<'a> {
    /// Its addresses.
    pub endpoints: Endpoints,
    /// The TTL or hop limit with which it arrived.
    pub hop_limit: u8,
    /// Its segment.
    pub segment: Segment,
    /// The segment's payload.
    pub payload: &'a [u8],
}

/// Why a packet cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// Invalid or truncated.
    #[error("malformed packet: {0}")]
    Malformed(String),
    /// It is not a complete TCP segment.
    #[error("no TCP segment")]
    NotTcp,
    /// Corrupted.
    #[error("wrong {0} checksum")]
    Checksum(&'static str),
}

impl Decoded<'_> {
    /// Reads an IPv4 or IPv6 packet, and verifies its checksums.
    ///
    /// # Errors
    /// If the packet is corrupted, or is not a complete TCP segment.
    pub fn read(packet: &[u8]) -> Result<Decoded<'_>, DecodeError> {
        Decoded::read_checking(packet, true)
    }

    /// Reads a packet whose TCP checksum the device has verified, or that never left this machine and has none.
    ///
    /// # Errors
    /// If the packet is corrupted, or is not a complete TCP segment.
    pub fn read_verified(packet: &[u8]) -> Result<Decoded<'_>, DecodeError> {
        Decoded::read_checking(packet, false)
    }

    fn read_checking(packet: &[u8], checks: bool) -> Result<Decoded<'_>, DecodeError> {
        let sliced = SlicedPacket::from_ip(packet).map_err(|error| DecodeError::Malformed(error.to_string()))?;
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return Err(DecodeError::NotTcp) };
        // Computed over the bytes as received, so that reserved bits are included.
        let (source, destination, hop_limit, ecn, checksum) = match &sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                let ip = ip.header();
                if !is_same_sum(ip.header_checksum(), ip.to_header().calc_header_checksum()) {
                    return Err(DecodeError::Checksum("IPv4"));
                }
                let checksum = checks.then(|| tcp.calc_checksum_ipv4(ip.source(), ip.destination()));
                (IpAddr::from(ip.source()), IpAddr::from(ip.destination()), ip.ttl(), ip.ecn().value(), checksum)
            }
            Some(NetSlice::Ipv6(ip)) => {
                let ip = ip.header();
                let checksum = checks.then(|| tcp.calc_checksum_ipv6(ip.source(), ip.destination()));
                (
                    IpAddr::from(ip.source()),
                    IpAddr::from(ip.destination()),
                    ip.hop_limit(),
                    ip.traffic_class(),
                    checksum,
                )
            }
            _ => return Err(DecodeError::NotTcp),
        };
        if checksum.is_some_and(|sum| !sum.is_ok_and(|sum| is_same_sum(sum, tcp.checksum()))) {
            return Err(DecodeError::Checksum("TCP"));
        }
        let payload = tcp.payload();
        let len = u16::try_from(payload.len()).map_err(|_| DecodeError::NotTcp)?;
        Ok(Decoded {
            endpoints: Endpoints {
                source: SocketAddr::new(source, tcp.source_port()),
                destination: SocketAddr::new(destination, tcp.destination_port()),
            },
            hop_limit,
            segment: segment_from_wire(&tcp.to_header(), len, ecn_from_wire(ecn)),
            payload,
        })
    }
}

/// The addresses of an IP packet and the ports of its TCP or UDP header; the ports are 0 if it has none. Checksums are not
/// verified. None if it is not an IP packet.
pub fn endpoints(packet: &[u8]) -> Option<Endpoints> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (source, destination) = match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        Some(NetSlice::Ipv6(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        _ => return None,
    };
    let (from, to) = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => (tcp.source_port(), tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port()),
        _ => (0, 0),
    };
    Some(Endpoints { source: SocketAddr::new(source, from), destination: SocketAddr::new(destination, to) })
}

/// In one's complement (RFC 1071), all bits clear and all bits set are both zero. Linux writes the second form when a
/// checksum that it computes itself is zero.
fn is_same_sum(a: u16, b: u16) -> bool {
    a == b || [a, b].into_iter().all(|sum| matches!(sum, 0 | u16::MAX))
}

fn segment_from_wire(tcp: &TcpHeader, len: u16, ecn: Ecn) -> Segment {
    let flags = [
        (tcp.fin, Flags::FIN),
        (tcp.syn, Flags::SYN),
        (tcp.rst, Flags::RST),
        (tcp.psh, Flags::PSH),
        (tcp.ack, Flags::ACK),
        (tcp.urg, Flags::URG),
        (tcp.ece, Flags::ECE),
        (tcp.cwr, Flags::CWR),
    ];
    Segment {
        seq: SeqNum(tcp.sequence_number),
        ack: SeqNum(tcp.acknowledgment_number),
        window: tcp.window_size,
        len,
        flags: flags.into_iter().filter(|(set, _)| *set).fold(Flags::NONE, |all, (_, flag)| all | flag),
        ecn,
        options: options_from_wire(tcp),
    }
}

/// The kinds that [`Options`] and etherparse know (RFC 9293 §3.2, RFC 7323, RFC 2018).
const KNOWN_KINDS: [u8; 5] = [2, 3, 4, 5, 8];

/// The options one by one, with kind and length, without NOPs. Unknown ones can be skipped by their length (RFC 9293
/// §3.2, MUST-6 and MUST-7); what follows an invalid one cannot be read.
pub(crate) struct RawOptions<'a> {
    rest: &'a [u8],
}

impl<'a> RawOptions<'a> {
    pub(crate) fn new(raw: &'a [u8]) -> RawOptions<'a> {
        RawOptions { rest: raw }
    }

    /// The number of bytes after the last option that was read.
    pub(crate) fn rest_len(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while let [1, after @ ..] = self.rest {
            self.rest = after;
        }
        match *self.rest {
            [kind, len, ..] if kind != 0 && len >= 2 => {
                let (option, after) = self.rest.split_at_checked(usize::from(len))?;
                self.rest = after;
                Some(option)
            }
            _ => None,
        }
    }
}

fn options_from_wire(tcp: &TcpHeader) -> Options {
    use TcpOptionElement as E;
    let mut options = Options::default();
    for raw in RawOptions::new(tcp.options.as_slice()) {
        if raw[0] == KIND {
            options.experiment = experiment::read(raw).unwrap_or(options.experiment);
        }
        if !KNOWN_KINDS.contains(&raw[0]) {
            continue;
        }
        let Some(Ok(element)) = TcpOptionsIterator::from_slice(raw).next() else { continue };
        match element {
            E::Noop => {}
            E::MaximumSegmentSize(mss) => options.mss = Some(mss),
            E::WindowScale(shift) => options.window_scale = Some(shift),
            E::SelectiveAcknowledgementPermitted => options.sack_permitted = true,
            E::Timestamp(val, ecr) => options.timestamps = Some(Timestamps { val, ecr }),
            E::SelectiveAcknowledgement(first, rest) => {
                let mut blocks = SackBlocks::EMPTY;
                for (left, right) in std::iter::once(first).chain(rest.into_iter().flatten()) {
                    blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
                }
                options.sack = blocks;
            }
        }
    }
    options
}

/// Marks an IPv4 or IPv6 packet as a congested router would. A packet that is not ECN-capable is not changed.
pub fn set_congested(packet: &mut [u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= Ipv4Header::MIN_LEN && packet[1] & 3 != 0 => {
            packet[1] |= 3;
            if let Ok((ip, _)) = Ipv4Header::from_slice(packet) {
                packet[10..12].copy_from_slice(&ip.calc_header_checksum().to_be_bytes());
            }
            true
        }
        Some(6) if packet.len() >= Ipv6Header::LEN && packet[1] >> 4 & 3 != 0 => {
            packet[1] |= 0x30;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
