//! The data of a transfer: bytes from a file or of a pattern, and their digest.

use std::fmt::Write;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use reknit_units::{Bytes, Instant};
use sha2::{Digest, Sha256};

/// The data to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// This many bytes of a pattern.
    Pattern(Bytes),
    /// A file.
    File(PathBuf),
    /// An infinite pattern; the transfer ends after its duration.
    Endless,
}

/// The bytes of a payload, and the digest of those that were taken.
pub(crate) struct Source {
    bytes: Box<dyn Read + Send>,
    stop_at: Instant,
    digest: Sha256,
    taken: u64,
}

impl Source {
    /// No more bytes are taken after `stop_at`.
    pub(crate) fn new(payload: &Payload, stop_at: Instant) -> std::io::Result<Source> {
        let bytes: Box<dyn Read + Send> = match payload {
            Payload::Pattern(size) => Box::new(Pattern::default().take(size.0)),
            Payload::File(path) => Box::new(BufReader::new(open(path)?)),
            Payload::Endless => Box::new(Pattern::default()),
        };
        Ok(Source { bytes, stop_at, digest: Sha256::new(), taken: 0 })
    }

    /// The next bytes, at most as many as `into` holds; 0 at the end.
    pub(crate) fn take(&mut self, now: Instant, into: &mut [u8]) -> std::io::Result<usize> {
        if now >= self.stop_at {
            return Ok(0);
        }
        let n = self.bytes.read(into)?;
        self.digest.update(&into[..n]);
        self.taken += n as u64;
        Ok(n)
    }

    pub(crate) fn tally(self) -> PayloadDigest {
        PayloadDigest { bytes: Bytes(self.taken), digest: hex(&self.digest.finalize()) }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    File::open(path).map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Receives bytes.
#[derive(Default)]
pub(crate) struct Sink {
    digest: Sha256,
    taken: u64,
}

impl Sink {
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        self.taken += bytes.len() as u64;
    }

    pub(crate) fn tally(self) -> PayloadDigest {
        PayloadDigest { bytes: Bytes(self.taken), digest: hex(&self.digest.finalize()) }
    }
}

/// The number of bytes, and their SHA-256.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PayloadDigest {
    /// Bytes.
    pub bytes: Bytes,
    /// SHA-256 in hexadecimal.
    pub digest: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
        text
    })
}

/// A pattern with a long period, so that a misplaced segment changes the digest.
#[derive(Default)]
struct Pattern {
    position: u64,
}

impl Read for Pattern {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        for byte in into.iter_mut() {
            // splitmix64's finaliser applied to the position of each group of eight bytes.
            let mut z = (self.position >> 3).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            *byte = (z >> (8 * (self.position & 7))) as u8;
            self.position += 1;
        }
        Ok(into.len())
    }
}
