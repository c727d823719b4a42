//! Reassembles fragments in bounded memory. Only the beginning of a packet is kept, with its headers, and which of the other
//! bytes have passed.

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
            self.partial.push(Partial { key, since: now, head: Vec::new(), pieces: Vec::new(), len: None });
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
    fn add(&mut self, piece: Fragment, rest: Cursor<'_>) {
        let (from, to) = (piece.offset, piece.offset + rest.original_len);
        // A fragment may be captured twice. Of overlapping fragments at the same offset, the first counts.
        if to > MAX_BYTES || self.pieces.len() == MAX_PIECES || self.pieces.iter().any(|known| known.0 == from) {
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

    /// The length, if nothing is missing.
    fn complete(&self) -> Option<usize> {
        let len = self.len?;
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
