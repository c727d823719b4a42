//! Why a capture cannot be read, or only in part.

use std::io;

/// Why nothing could be read. The message does not name the file; the caller knows it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reader failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a capture in another format, with this name.
    #[error("is a capture of {0}; convert it: editcap -F pcapng FILE FILE.pcapng")]
    OtherFormat(&'static str),
    /// It is not a capture that can be read.
    #[error("{0}")]
    Format(String),
}

/// Why reading ended before the end of the capture. The packets before that were read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("packet {packet} at byte {offset}: {message}")]
pub struct Damage {
    /// The number of the packet that could not be read, from 1.
    pub packet: u64,
    /// Where it begins: bytes from the beginning of the uncompressed capture.
    pub offset: u64,
    /// What is wrong.
    pub message: String,
}
