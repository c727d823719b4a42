//! A buffer over a reader that holds as many bytes as one record needs.

use std::io::{self, ErrorKind, Read};

/// Bytes that are read at a time.
const CHUNK: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Buffer<R> {
    reader: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes that were consumed before `start`.
    offset: u64,
    is_over: bool,
}

impl<R: Read> Buffer<R> {
    pub(super) fn new(reader: R) -> Buffer<R> {
        Buffer { reader, bytes: vec![0; CHUNK], start: 0, end: 0, offset: 0, is_over: false }
    }

    /// The next `n` bytes; none if the input ends before.
    #[inline]
    pub(super) fn next(&mut self, n: usize) -> io::Result<Option<&[u8]>> {
        Ok(if self.fill(n)? { self.bytes.get(self.start..self.start + n) } else { None })
    }

    /// Makes at least `n` bytes available. False if the input ends before.
    #[inline]
    pub(super) fn fill(&mut self, n: usize) -> io::Result<bool> {
        if self.end - self.start >= n { Ok(true) } else { self.read(n) }
    }

    #[cold]
    fn read(&mut self, n: usize) -> io::Result<bool> {
        while self.end - self.start < n {
            if self.is_over {
                return Ok(false);
            }
            if self.start > 0 && self.start + n > self.bytes.len() {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.bytes.len() < n {
                self.bytes.resize(n.next_multiple_of(CHUNK), 0);
            }
            match self.reader.read(&mut self.bytes[self.end..]) {
                Ok(0) => self.is_over = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// What is available.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Drops `n` available bytes.
    #[inline]
    pub(super) fn consume(&mut self, n: usize) {
        self.start += n;
        self.offset += n as u64;
    }

    /// Drops the next `n` bytes, available or not. False if the input ends before.
    pub(super) fn skip(&mut self, mut n: usize) -> io::Result<bool> {
        loop {
            let now = n.min(self.end - self.start);
            self.consume(now);
            n -= now;
            if n == 0 {
                return Ok(true);
            }
            if !self.fill(1)? {
                return Ok(false);
            }
        }
    }

    /// The position of the first available byte in the input.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
}
