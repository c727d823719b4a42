//! Reassembly of fragments (RFC 1122 §3.3.2, RFC 8200 §4.5). Called by `stack/datagrams.rs` for each arriving fragment, and by
//! timers for packets that stay incomplete. Owned by [`crate::Stack`].
//!
//! Any host can send fragments that never become packets, so everything is bounded: the time, the bytes, the fragments of a
//! packet. A packet whose fragments overlap is dropped (RFC 5722): an attacker could use overlaps to hide what a packet contains.

use std::collections::BTreeMap;
use std::net::IpAddr;

use reknit_units::{Duration, Instant};
use reknit_wire::{Fragment, FragmentKey};

/// The rest of a packet must arrive within this time of its first fragment (RFC 8200 §4.5).
const LIFETIME: Duration = Duration::from_secs(60);
/// The most bytes of all fragments. Beyond it, the packet that has waited longest is dropped.
const MAX_BYTES: usize = 1 << 20;
/// The memory of a packet and of a fragment, in addition to their bytes.
const OVERHEAD: usize = 200;
/// The most fragments of a packet: enough for one of 64 KiB over any link of IPv6.
const MAX_PIECES: usize = 64;
/// Bytes of the first fragment that are kept for an ICMP message.
const QUOTED: usize = 548;

/// An incomplete packet.
#[derive(Debug)]
struct Partial {
    key: FragmentKey,
    expires: Instant,
    /// By offset.
    pieces: BTreeMap<usize, Vec<u8>>,
    /// The length of the packet's payload, once the last fragment has arrived.
    len: Option<usize>,
    /// The packet with the first fragment.
    first: Option<Vec<u8>>,
    /// Fragments overlapped, or were too many: all further ones are dropped too.
    is_refused: bool,
    /// Its memory, as it is counted.
    bytes: usize,
}

/// The result of adding a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reassembly {
    /// Other fragments are missing.
    Waits,
    /// The packet is complete.
    Complete(Vec<u8>),
    /// The fragment is dropped.
    Dropped,
}

/// A packet that did not become complete in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Expired {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// The packet with its first fragment, if that has arrived.
    pub(crate) first: Option<Vec<u8>>,
}

/// The incomplete packets.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    /// In the order in which their first fragments arrived, which is the order in which they expire.
    partial: BTreeMap<u64, Partial>,
    by_key: BTreeMap<FragmentKey, u64>,
    bytes: usize,
    count: u64,
}

impl Fragments {
    /// A fragment has arrived, in `packet`.
    pub(crate) fn add(&mut self, now: Instant, packet: &[u8], fragment: &Fragment<'_>) -> Reassembly {
        let number = self.number_of(now, fragment.key);
        let Some(partial) = self.partial.get_mut(&number) else { return Reassembly::Dropped };
        if partial.has(fragment) {
            return Reassembly::Waits; // a duplicate
        }
        if !partial.takes(fragment) {
            partial.refuse();
        }
        if partial.is_refused {
            self.settle(number);
            return Reassembly::Dropped;
        }
        partial.put(packet, fragment);
        if let Some(whole) = partial.whole() {
            self.remove(number);
            return Reassembly::Complete(whole);
        }
        self.settle(number);
        Reassembly::Waits
    }

    fn number_of(&mut self, now: Instant, key: FragmentKey) -> u64 {
        if let Some(number) = self.by_key.get(&key) {
            return *number;
        }
        self.count += 1;
        self.by_key.insert(key, self.count);
        let (pieces, expires) = (BTreeMap::new(), now + LIFETIME);
        let partial = Partial { key, expires, pieces, len: None, first: None, is_refused: false, bytes: 0 };
        self.partial.insert(self.count, partial);
        self.count
    }

    /// The packet has changed: drops others if there are too many bytes now.
    fn settle(&mut self, number: u64) {
        if let Some(partial) = self.partial.get_mut(&number) {
            self.bytes = self.bytes + partial.cost() - partial.bytes;
            partial.bytes = partial.cost();
        }
        while self.bytes > MAX_BYTES
            && let Some((oldest, _)) = self.partial.first_key_value()
        {
            self.remove(*oldest);
        }
    }

    fn remove(&mut self, number: u64) -> Option<Partial> {
        let partial = self.partial.remove(&number)?;
        self.by_key.remove(&partial.key);
        self.bytes -= partial.bytes;
        Some(partial)
    }

    /// When the next packet expires.
    pub(crate) fn deadline(&self) -> Instant {
        self.partial.first_key_value().map_or(Instant::NEVER, |(_, partial)| partial.expires)
    }

    /// The next packet that has expired.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Expired> {
        let (number, _) = self.partial.first_key_value().filter(|(_, partial)| partial.expires <= now)?;
        let Partial { key, first, .. } = self.remove(*number)?;
        Some(Expired { source: key.source, destination: key.destination, first })
    }
}

impl Partial {
    fn cost(&self) -> usize {
        let pieces: usize = self.pieces.values().map(|piece| piece.len() + OVERHEAD).sum();
        pieces + self.first.as_ref().map_or(0, Vec::len) + OVERHEAD
    }

    /// True if exactly this fragment has arrived before.
    fn has(&self, fragment: &Fragment<'_>) -> bool {
        self.pieces.get(&fragment.offset).is_some_and(|piece| piece == fragment.payload)
    }

    /// True if the fragment neither overlaps another nor contradicts what is known.
    fn takes(&self, fragment: &Fragment<'_>) -> bool {
        let end = fragment.offset + fragment.payload.len();
        let before = self.pieces.range(..fragment.offset).next_back();
        let after = self.pieces.range(fragment.offset..).next();
        let last_end = self.pieces.last_key_value().map_or(0, |(at, piece)| at + piece.len());
        self.pieces.len() < MAX_PIECES
            && before.is_none_or(|(at, piece)| at + piece.len() <= fragment.offset)
            && after.is_none_or(|(at, _)| end <= *at)
            && self.len.is_none_or(|len| fragment.more && end <= len)
            && (fragment.more || last_end <= end)
    }

    fn refuse(&mut self) {
        self.is_refused = true;
        self.pieces = BTreeMap::new();
        self.first = None;
    }

    fn put(&mut self, packet: &[u8], fragment: &Fragment<'_>) {
        if fragment.offset == 0 {
            self.first = Some(packet[..packet.len().min(QUOTED)].to_vec());
        }
        if !fragment.more {
            self.len = Some(fragment.offset + fragment.payload.len());
        }
        self.pieces.insert(fragment.offset, fragment.payload.to_vec());
    }

    /// The packet, if nothing is missing.
    fn whole(&self) -> Option<Vec<u8>> {
        let len = self.len?;
        // They do not overlap, so the sum of their lengths shows whether there is a gap.
        if self.pieces.values().map(Vec::len).sum::<usize>() < len {
            return None;
        }
        let first = Fragment::read_headers(self.first.as_ref()?)?;
        let mut packet = first.whole(len);
        let header = packet.len() - len;
        for (at, piece) in &self.pieces {
            packet[header + at..header + at + piece.len()].copy_from_slice(piece);
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use reknit_testkit::fragments::{fragment, fragments};
    use reknit_wire::{Datagram, Endpoints, encode_datagram};

    use super::*;

    const ENDS: [(&str, &str); 2] = [("10.0.0.1:80", "10.0.0.2:4000"), ("[fd00::1]:80", "[fd00::2]:4000")];

    fn datagram((source, destination): (&str, &str), len: u32) -> Vec<u8> {
        let endpoints = Endpoints { source: source.parse().unwrap(), destination: destination.parse().unwrap() };
        let mut packet = Vec::new();
        encode_datagram(endpoints, 64, &(0..len).map(|n| (n % 251) as u8).collect::<Vec<u8>>(), &mut packet);
        packet
    }

    fn add(all: &mut Fragments, now: Instant, packet: &[u8]) -> Reassembly {
        all.add(now, packet, &Fragment::read(packet).unwrap())
    }

    #[test]
    fn fragments_in_any_order_and_twice_become_the_packet() {
        for ends in ENDS {
            let packet = datagram(ends, 5000);
            let pieces = fragments(&packet, 1000, 7);
            for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2]] {
                let mut all = Fragments::default();
                for n in &order[..5] {
                    assert_eq!(add(&mut all, Instant::ZERO, &pieces[*n]), Reassembly::Waits);
                    assert_eq!(add(&mut all, Instant::ZERO, &pieces[*n]), Reassembly::Waits);
                }
                let Reassembly::Complete(whole) = add(&mut all, Instant::ZERO, &pieces[order[5]]) else {
                    panic!("it is complete")
                };
                let (found, sent) = (Datagram::read(&whole).unwrap(), Datagram::read(&packet).unwrap());
                assert_eq!((found.endpoints, found.payload), (sent.endpoints, sent.payload));
                assert_eq!((all.bytes, all.partial.len(), all.by_key.len()), (0, 0, 0));
            }
        }
    }

    #[test]
    fn overlaps_end_a_packet_for_good() {
        for ends in ENDS {
            let packet = datagram(ends, 3000);
            let (header, payload) = packet.split_at(if packet[0] >> 4 == 6 { 40 } else { 20 });
            let pieces = fragments(&packet, 1000, 7);
            let overlap = |from: usize, to: usize| fragment(header, &payload[from..to], from as u16, true, 7);
            let mut other = pieces[0].clone();
            *other.last_mut().unwrap() ^= 1;
            for bad in [overlap(992, 1504), overlap(8, 16), overlap(0, 8), overlap(1992, 2008), other] {
                let mut all = Fragments::default();
                assert_eq!(add(&mut all, Instant::ZERO, &pieces[0]), Reassembly::Waits);
                assert_eq!(add(&mut all, Instant::ZERO, &pieces[2]), Reassembly::Waits);
                assert_eq!(add(&mut all, Instant::ZERO, &bad), Reassembly::Dropped);
                for piece in &pieces {
                    assert_eq!(add(&mut all, Instant::ZERO, piece), Reassembly::Dropped);
                }
                assert!(all.bytes <= 2 * OVERHEAD);
            }
        }
    }

    #[test]
    fn a_packet_has_one_end() {
        let packet = datagram(ENDS[0], 3000);
        let (header, payload) = packet.split_at(20);
        let mut all = Fragments::default();
        let end = |from: usize, to: usize| fragment(header, &payload[from..to], from as u16, false, 7);
        assert_eq!(add(&mut all, Instant::ZERO, &end(1000, 1500)), Reassembly::Waits);
        assert_eq!(add(&mut all, Instant::ZERO, &end(2000, 2500)), Reassembly::Dropped);
    }

    #[test]
    fn a_flood_stays_within_the_bounds() {
        let mut all = Fragments::default();
        for n in 0..20_000u16 {
            let packet = datagram((&format!("10.1.{}.{}:9", n / 256, n % 256), ENDS[0].1), 2000);
            add(&mut all, Instant::ZERO, &fragments(&packet, 1000, n)[usize::from(n % 2)]);
            assert!(all.bytes <= MAX_BYTES);
        }
        let honest = datagram(ENDS[0], 2000);
        let pieces = fragments(&honest, 1000, 7);
        assert_eq!(add(&mut all, Instant::ZERO, &pieces[0]), Reassembly::Waits);
        assert_eq!(add(&mut all, Instant::ZERO, &pieces[1]), Reassembly::Waits);
        assert!(matches!(add(&mut all, Instant::ZERO, &pieces[2]), Reassembly::Complete(_)));
        let many = datagram(ENDS[0], 2000);
        let mut results = fragments(&many, 8, 8).into_iter().map(|piece| add(&mut all, Instant::ZERO, &piece));
        assert!(results.any(|result| result == Reassembly::Dropped), "more than {MAX_PIECES} fragments");
    }

    #[test]
    fn what_is_not_complete_in_time_is_forgotten() {
        let mut all = Fragments::default();
        let pieces = fragments(&datagram(ENDS[0], 2000), 1000, 7);
        add(&mut all, Instant::ZERO, &pieces[0]);
        assert_eq!(all.deadline(), Instant::ZERO + LIFETIME);
        assert_eq!(all.expire(Instant::ZERO + LIFETIME - Duration::from_nanos(1)), None);
        let expired = all.expire(all.deadline()).unwrap();
        assert_eq!(expired.first.unwrap(), pieces[0][..QUOTED]);
        assert_eq!((all.deadline(), all.bytes), (Instant::NEVER, 0));
    }
}
