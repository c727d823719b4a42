//! The packets that an analysis skips, by name.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::rest::Cursor;
use super::udp::Flows;
use super::{Packet, Skipped, ip, link};

/// Skipped packets of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Their protocol, or why they cannot be read.
    pub what: String,
    /// How many.
    pub packets: u64,
    /// They are packets of IP.
    #[serde(skip)]
    pub(crate) is_ip: bool,
}

/// Counts the skipped packets.
#[derive(Debug, Default)]
pub(super) struct SkippedCounts {
    skipped: BTreeMap<Skipped, u64>,
    udp: Flows,
}

impl SkippedCounts {
    pub(super) fn add(&mut self, skipped: Skipped, packets: u64) {
        *self.skipped.entry(skipped).or_default() += packets;
    }

    /// UDP that is not a tunnel. What it carries shows only in several packets of a flow.
    pub(super) fn add_udp(&mut self, ends: &Packet, rest: Cursor<'_>, packets: u64) {
        self.udp.add(ends, rest, packets);
    }

    /// Packets that were counted as fragments belong to a packet that is complete.
    pub(super) fn take_fragments(&mut self, packets: u64) {
        if let Some(count) = self.skipped.get_mut(&Skipped::Fragment) {
            *count = count.saturating_sub(packets);
        }
    }

    /// How many packets cannot be read for this reason.
    pub(super) fn count(&self, skipped: Skipped) -> u64 {
        self.skipped.get(&skipped).copied().unwrap_or(0)
    }

    pub(super) fn unknown_links(&self) -> impl Iterator<Item = (u16, u64)> {
        self.skipped.iter().filter_map(|(skipped, count)| match skipped {
            Skipped::UnknownLink(link) => Some((*link, *count)),
            _ => None,
        })
    }

    /// All kinds, the most frequent first.
    pub(super) fn all(&self) -> Vec<LeftOut> {
        let mut counts: BTreeMap<String, (u64, bool)> = BTreeMap::new();
        let skipped = self.skipped.iter().map(|(skipped, count)| (skipped.what(), *count, skipped.is_ip()));
        for (what, count, is_ip) in skipped.chain(self.udp.counts().map(|(what, count)| (what, count, true))) {
            let sum = counts.entry(what).or_default();
            *sum = (sum.0 + count, sum.1 || is_ip);
        }
        let of = |(what, (packets, is_ip))| LeftOut { what, packets, is_ip };
        let mut all: Vec<LeftOut> = counts.into_iter().map(of).collect();
        all.retain(|left_out| left_out.packets > 0);
        all.sort_by(|a, b| b.packets.cmp(&a.packets).then(a.what.cmp(&b.what)));
        all
    }
}

impl Skipped {
    /// True if the packet has an IP header.
    fn is_ip(self) -> bool {
        matches!(self, Skipped::IpProtocol(_) | Skipped::Fragment | Skipped::TooDeep)
    }

    /// In words, after "packets of".
    fn what(self) -> String {
        match self {
            Skipped::Protocol(name) => name.to_owned(),
            Skipped::EtherType(ethertype) => format!("EtherType 0x{ethertype:04x}"),
            Skipped::IpProtocol(protocol) => protocol_name(protocol),
            Skipped::UnknownLink(link) => format!("link type {link} ({})", link::name(link)),
            Skipped::TooShort => "truncated headers".to_owned(),
            Skipped::Fragment => "incomplete fragments".to_owned(),
            Skipped::Malformed => "contradictory lengths".to_owned(),
            Skipped::TooDeep => "too many headers".to_owned(),
        }
    }
}

/// The name of a protocol of IP, or its number.
pub(crate) fn protocol_name(protocol: u8) -> String {
    known_protocol(protocol).map_or_else(|| format!("IP protocol {protocol}"), str::to_owned)
}

fn known_protocol(protocol: u8) -> Option<&'static str> {
    Some(match protocol {
        ip::TCP => "TCP",
        ip::ICMP => "ICMP",
        2 => "IGMP",
        ip::UDP => "UDP",
        33 => "DCCP",
        46 => "RSVP",
        47 => "GRE",
        50 => "IPsec (ESP)",
        55 => "Mobile IP",
        58 => "ICMPv6",
        59 => "IPv6 without a payload",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        ip::COMPRESSED => "IP with compression",
        112 => "VRRP or CARP",
        115 => "L2TPv3",
        124 => "IS-IS over IPv4",
        132 => "SCTP",
        136 => "UDP-Lite",
        _ => return None,
    })
}
