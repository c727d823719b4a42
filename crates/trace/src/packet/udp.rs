//! What UDP carries, by the packets of each flow, or else by its port.

use std::collections::BTreeMap;

use super::rest::Cursor;
use super::{Endpoint, Packet};

/// Flows that are distinguished. Packets of further flows are counted one by one.
const MAX_FLOWS: usize = 4096;
/// Packets in a row that are needed to recognize RTP: any two bits may look like its version.
const RTP_PACKETS: u32 = 3;
/// Steps of RTP's sequence numbers.
const RTP_STEP: u16 = 16;
const HEADER: usize = 8;

const QUIC: &str = "QUIC";
const WIREGUARD: &str = "WireGuard";
const RTP: &str = "RTP";

/// The flows of UDP.
#[derive(Debug, Default)]
pub(super) struct Flows {
    flows: BTreeMap<(Endpoint, Endpoint), Flow>,
    /// Packets of flows beyond the limit.
    beyond: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Flow {
    packets: u64,
    name: Option<&'static str>,
    /// The last packet, read as RTP: its source and number, and how many came in a row.
    rtp: Option<(u32, u16)>,
    in_a_row: u32,
    /// A packet was not QUIC.
    is_unlike_quic: bool,
}

impl Flows {
    /// Counts a packet of UDP, from its header on.
    pub(super) fn add(&mut self, ends: &Packet, rest: Cursor<'_>, packets: u64) {
        let Ok([s0, s1, d0, d1]) = rest.array(0) else {
            *self.beyond.entry("UDP".to_owned()).or_default() += packets;
            return;
        };
        let [source, destination] = [u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])];
        let [mut a, mut b] = [(ends.source, source), (ends.destination, destination)]
            .map(|(end, port)| Endpoint { port, address: end.address });
        if a > b {
            (a, b) = (b, a);
        }
        let payload = rest.bytes.get(HEADER..).unwrap_or_default();
        let len = rest.original_len.saturating_sub(HEADER);
        let is_full = self.flows.len() == MAX_FLOWS;
        let flow = match self.flows.get_mut(&(a, b)) {
            Some(flow) => flow,
            None if is_full => {
                let mut flow = Flow::default();
                flow.add(payload, len, packets);
                *self.beyond.entry(flow.what([a.port, b.port])).or_default() += packets;
                return;
            }
            None => self.flows.entry((a, b)).or_default(),
        };
        flow.add(payload, len, packets);
    }

    /// Packets by what they carry.
    pub(super) fn counts(&self) -> impl Iterator<Item = (String, u64)> {
        let flows = self.flows.iter().map(|((a, b), flow)| (flow.what([a.port, b.port]), flow.packets));
        flows.chain(self.beyond.iter().map(|(what, packets)| (what.clone(), *packets)))
    }
}

impl Flow {
    fn add(&mut self, payload: &[u8], len: usize, packets: u64) {
        self.packets += packets;
        self.is_unlike_quic |= payload.first().is_some_and(|first| first & 0x40 == 0);
        if self.name.is_none() {
            self.name = recognized(payload, len);
            self.on_rtp(payload);
        }
    }

    fn on_rtp(&mut self, payload: &[u8]) {
        const VERSION: u8 = 0x80;
        let Some(header) = payload.first_chunk::<12>().filter(|header| header[0] & 0xc0 == VERSION) else {
            self.rtp = None;
            return;
        };
        if (192..=223).contains(&header[1]) {
            return; // RTCP
        }
        let source = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let number = u16::from_be_bytes([header[2], header[3]]);
        let follows = self
            .rtp
            .is_some_and(|(last, before)| last == source && (1..=RTP_STEP).contains(&number.wrapping_sub(before)));
        self.in_a_row = if follows { self.in_a_row + 1 } else { 1 };
        self.rtp = Some((source, number));
        if self.in_a_row >= RTP_PACKETS {
            self.name = Some(RTP);
        }
    }

    /// What the flow between these ports carries.
    fn what(&self, ports: [u16; 2]) -> String {
        let by_port = ports.into_iter().find_map(|port| match port {
            443 | 80 | 8443 | 4433 => (!self.is_unlike_quic).then_some(QUIC),
            port => service(port),
        });
        self.name.or(by_port).map_or_else(|| "UDP".to_owned(), str::to_owned)
    }
}

/// The protocol of a packet that is recognized with certainty.
fn recognized(payload: &[u8], len: usize) -> Option<&'static str> {
    const STUN_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
    match payload {
        [first, v0, v1, v2, v3, ..] if first & 0xc0 == 0xc0 && is_quic([*v0, *v1, *v2, *v3]) => Some(QUIC),
        [1, 0, 0, 0, ..] if len == 148 => Some(WIREGUARD),
        [2, 0, 0, 0, ..] if len == 92 => Some(WIREGUARD),
        [3, 0, 0, 0, ..] if len == 64 => Some(WIREGUARD),
        [4, 0, 0, 0, ..] if len >= 32 && len.is_multiple_of(16) => Some(WIREGUARD),
        [_, _, _, _, cookie @ ..] if cookie.starts_with(&STUN_COOKIE) => Some("STUN"),
        [20..=25, 0xfe, 0xff | 0xfd | 0xfc, ..] => Some("DTLS"),
        _ => None,
    }
}

/// True for the versions of QUIC (RFC 9000 §15): 1, 2, drafts, and those of Google and Facebook.
fn is_quic(version: [u8; 4]) -> bool {
    matches!(
        version,
        [0, 0, 0, 1] | [0x6b, 0x33, 0x43, 0xcf] | [0xff, 0, 0, _] | [b'Q' | b'T', b'0', _, _] | [0xfa, 0xce, 0xb0, _]
    )
}

/// What a port is for.
fn service(port: u16) -> Option<&'static str> {
    Some(match port {
        53 => "DNS",
        67 | 68 => "DHCP",
        69 => "TFTP",
        88 => "Kerberos",
        111 | 2049 => "NFS",
        123 => "NTP",
        137 | 138 => "NetBIOS",
        161 | 162 => "SNMP",
        319 | 320 => "PTP",
        389 => "LDAP",
        500 | 4500 => "IPsec (IKE or ESP over UDP)",
        514 => "syslog",
        520 | 521 => "RIP",
        546 | 547 => "DHCPv6",
        853 => "DNS over QUIC or DTLS",
        1194 => "OpenVPN",
        1701 => "L2TP",
        1812 | 1813 | 1645 | 1646 => "RADIUS",
        1900 => "SSDP",
        1985 => "HSRP",
        2055 | 9995 | 4739 => "NetFlow",
        2123 => "GTP-C",
        2152 => "GTP-U",
        3478 => "STUN",
        3544 => "Teredo",
        3784 | 4784 => "BFD",
        4789 | 4790 | 8472 => "VXLAN",
        5060 => "SIP",
        5201 => "iperf3 over UDP",
        5246 | 5247 => "CAPWAP",
        5353 => "mDNS",
        5355 => "LLMNR",
        6081 => "GENEVE",
        6343 => "sFlow",
        51820 => WIREGUARD,
        _ => return None,
    })
}
