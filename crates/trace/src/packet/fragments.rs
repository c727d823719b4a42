//! Reassembles fragments in bounded memory. Only the beginning of a packet is kept, with its headers, and which of the other
//! bytes have passed.
//!
//! Fragments that overlap without being copies contradict each other, and hosts do not agree on which bytes count. Such a packet
//! is discarded, as RFC 5722 requires for IPv6 and Linux does for IPv4 too.

use super::layer::{Fragment, Whole};
use super::rest::Cursor;

/// The most packets that are reassembled at a time.
const MAX_PARTIAL: usize = 64;
/// The most fragments of a packet.
const MAX_PIECES: usize = 256;
/// How many bytes of the beginning are kept: enough for the headers of several tunnels.
const HEAD: usize = 512;
/// The reassembly timeout, nanoseconds (60 s to 120 s in RFC 1122 §3.3.2, 30 s in Linux).
const REASSEMBLY_TIMEOUT: u64 = 30_000_000_000;
/// The longest packet.
const MAX_BYTES: usize = 1 << 16;

/// Both addresses, what the packet carries, and its identification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key([u8; 16], [u8; 16], Whole, u32);

/// An incomplete packet.
#[derive(Debug)]
struct Partial {
    key: Key,
    since: u64,
    head: Vec<u8>,
    /// The pieces: from, to, and to where they were captured.
    pieces: Vec<(usize, usize, usize)>,
    /// The end, once the last fragment has passed.
    len: Option<usize>,
    /// Fragments overlap: it is never complete.
    is_contradictory: bool,
}

/// A packet that is complete.
#[derive(Debug)]
pub(super) struct Complete {
    /// The bytes that were captured, from the beginning on.
    pub(super) head: Vec<u8>,
    pub(super) len: usize,
    pub(super) pieces: u64,
}

/// The incomplete packets, oldest first.
#[derive(Debug, Default)]
pub(super) struct Reassembler {
    partial: Vec<Partial>,
}

impl Reassembler {
    /// Adds a fragment that passes at `now`. Returns the packet if this was the last missing fragment.
    pub(super) fn add(&mut self, piece: Fragment, ends: [[u8; 16]; 2], rest: Cursor<'_>, now: u64) -> Option<Complete> {
        self.partial.retain(|partial| now.saturating_sub(partial.since) <= REASSEMBLY_TIMEOUT);
        let key = Key(ends[0], ends[1], piece.of, piece.id);
        let at = self.partial.iter().position(|partial| partial.key == key).unwrap_or_else(|| {
            if self.partial.len() == MAX_PARTIAL {
                self.partial.remove(0);
            }
            self.partial.push(Partial::new(key, now));
            self.partial.len() - 1
        });
        let partial = &mut self.partial[at];
        partial.add(piece, rest);
        let len = partial.complete()?;
        let Partial { mut head, pieces, .. } = self.partial.remove(at);
        head.truncate(captured(&pieces).min(HEAD));
        Some(Complete { head, len, pieces: pieces.len() as u64 })
    }
}

impl Partial {
    fn new(key: Key, since: u64) -> Partial {
        Partial { key, since, head: Vec::new(), pieces: Vec::new(), len: None, is_contradictory: false }
    }

    fn add(&mut self, piece: Fragment, rest: Cursor<'_>) {
        let (from, to) = (piece.offset, piece.offset + rest.original_len);
        if to > MAX_BYTES || self.pieces.len() == MAX_PIECES || self.is_contradictory || self.is_copy(piece, (from, to))
        {
            return;
        }
        let is_beyond = self.len.is_some_and(|len| piece.is_last || to > len);
        let is_short = piece.is_last && self.pieces.iter().any(|known| known.1 > to);
        let overlaps = self.pieces.iter().any(|known| from < known.1 && known.0 < to);
        if is_beyond || is_short || overlaps {
            self.is_contradictory = true;
            return;
        }
        if piece.is_last {
            self.len = Some(to);
        }
        let until = (from + rest.bytes.len()).min(HEAD);
        if from < until {
            self.head.resize(self.head.len().max(until), 0);
            self.head[from..until].copy_from_slice(&rest.bytes[..until - from]);
        }
        self.pieces.push((from, to, from + rest.bytes.len()));
        self.pieces.sort_unstable();
    }

    /// True if the bytes have passed, with the same end of the packet: it was captured or sent twice, perhaps in pieces of another
    /// size.
    fn is_copy(&self, piece: Fragment, (from, to): (usize, usize)) -> bool {
        let has_end = !piece.is_last || self.len == Some(to);
        has_end && self.pieces.iter().any(|known| known.0 <= from && to <= known.1)
    }

    /// The length, if nothing is missing.
    fn complete(&self) -> Option<usize> {
        let len = self.len.filter(|_| !self.is_contradictory)?;
        let mut until = 0;
        for (from, to, _) in &self.pieces {
            if *from > until {
                return None;
            }
            until = until.max(*to);
        }
        (until >= len).then_some(len)
    }
}

/// How many bytes were captured from the beginning on.
fn captured(pieces: &[(usize, usize, usize)]) -> usize {
    let mut until = 0;
    for (from, to, captured) in pieces {
        if *from > until {
            break;
        }
        until = until.max(*captured);
        if captured < to {
            break;
        }
    }
    until
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is complete after fragments: from, to, whether it is the last, and what it is filled with.
    fn reassembled(fragments: &[(usize, usize, bool, u8)]) -> Option<(Vec<u8>, usize)> {
        let mut reassembler = Reassembler::default();
        let add = |(from, to, is_last, byte): &(usize, usize, bool, u8)| {
            let piece = Fragment { id: 7, of: Whole::Protocol(6), offset: *from, is_last: *is_last };
            let bytes = vec![*byte; to - from];
            let rest = Cursor { bytes: &bytes, original_len: bytes.len() };
            reassembler.add(piece, [[0; 16]; 2], rest, 0).map(|complete| (complete.head, complete.len))
        };
        fragments.iter().filter_map(add).last()
    }

    #[test]
    fn fragments_that_are_captured_twice_are_copies() {
        let whole = Some(([vec![1; 16], vec![2; 16]].concat(), 32));
        assert_eq!(reassembled(&[(0, 16, false, 1), (0, 16, false, 1), (16, 32, true, 2)]), whole);
        assert_eq!(reassembled(&[(16, 32, true, 2), (16, 32, true, 2), (0, 16, false, 1)]), whole);
        // Before and behind a router that divides it further.
        assert_eq!(reassembled(&[(0, 16, false, 1), (0, 8, false, 1), (8, 16, false, 1), (16, 32, true, 2)]), whole);
    }

    #[test]
    fn a_packet_with_contradictory_fragments_is_discarded() {
        for fragments in [
            [(0, 16, false, 1), (8, 24, false, 9), (24, 32, true, 2)], // overlap
            [(8, 16, false, 1), (0, 16, false, 9), (16, 32, true, 2)], // cover another
            [(16, 32, true, 2), (16, 24, true, 9), (0, 16, false, 1)], // two ends
            [(16, 32, true, 2), (32, 40, false, 9), (0, 16, false, 1)], // data behind the end
            [(16, 24, false, 1), (8, 16, true, 9), (0, 8, false, 1)],  // an end before data
        ] {
            assert_eq!(reassembled(&fragments), None, "{fragments:?}");
        }
    }
}
