//! The part of a frame that has not been parsed yet.

use super::Skipped;

/// The bytes from a header on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    /// Bytes on the wire.
    pub(super) original_len: usize,
}

impl<'a> Cursor<'a> {
    /// Without the first `n` bytes.
    #[inline]
    pub(super) fn after(self, n: usize) -> Result<Cursor<'a>, Skipped> {
        let bytes = self.bytes.get(n..).ok_or(Skipped::TooShort)?;
        Ok(Cursor { bytes, original_len: self.original_len.saturating_sub(n) })
    }

    /// `n` bytes on the wire, by a length in a header. What follows is padding or a checksum; what is missing was not captured,
    /// even if the record does not say so: programs that slice packets write the length that they kept.
    #[inline]
    pub(super) fn with_len(self, n: usize) -> Cursor<'a> {
        Cursor { bytes: &self.bytes[..self.bytes.len().min(n)], original_len: n }
    }

    #[inline]
    pub(super) fn u8(self, at: usize) -> Result<u8, Skipped> {
        self.bytes.get(at).copied().ok_or(Skipped::TooShort)
    }

    #[inline]
    pub(super) fn u16(self, at: usize) -> Result<u16, Skipped> {
        self.array(at).map(u16::from_be_bytes)
    }

    pub(super) fn u32(self, at: usize) -> Result<u32, Skipped> {
        self.array(at).map(u32::from_be_bytes)
    }

    /// Numbers of headers that a program writes in the byte order of its host, which is nearly always this one.
    pub(super) fn u16_le(self, at: usize) -> Result<u16, Skipped> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub(super) fn u32_le(self, at: usize) -> Result<u32, Skipped> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// The first `N` bytes, if at least `least` of them were captured; the others are zero.
    #[inline]
    pub(super) fn head<const N: usize>(self, least: usize) -> Result<[u8; N], Skipped> {
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
    pub(super) fn array<const N: usize>(self, at: usize) -> Result<[u8; N], Skipped> {
        self.bytes.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).ok_or(Skipped::TooShort)
    }
}

/// A number in a header.
#[inline]
pub(super) fn u16_at(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// A number in a header.
#[inline]
pub(super) fn u32_at(header: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}
