//! The bytes of a qlog as one stream of JSON values: the separators of JSON text sequences (RFC 7464) become spaces.

use std::io::{self, Read};

/// The separator between the records of a JSON text sequence. In a string it would have to be escaped.
const SEPARATOR: u8 = 0x1e;
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
/// The longest string that is read, since strings are held in memory.
const MAX_STRING: usize = 16 << 20;

/// True if a file that begins with these bytes is JSON, so it can only be a qlog.
pub(crate) fn is_json(start: &[u8]) -> bool {
    let start = start.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(start);
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_some_and(|byte| *byte == b'{' || *byte == SEPARATOR)
}

pub(super) struct Source<R> {
    reader: R,
    read: usize,
    /// Bytes since the last quotation mark.
    unquoted: usize,
}

impl<R: Read> Source<R> {
    pub(super) fn new(reader: R) -> Source<R> {
        Source { reader, read: 0, unquoted: 0 }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(into)?;
        for byte in &mut into[..len] {
            let is_mark = BYTE_ORDER_MARK.get(self.read) == Some(byte);
            if *byte == SEPARATOR || is_mark {
                *byte = b' ';
            }
            self.read = self.read.saturating_add(1);
            self.unquoted = if *byte == b'"' { 0 } else { self.unquoted + 1 };
        }
        if self.unquoted > MAX_STRING {
            let message = format!("a string or a list of numbers is longer than {} MiB", MAX_STRING >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(len)
    }
}
