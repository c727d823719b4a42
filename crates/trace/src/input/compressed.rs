//! Recognizes gzip and zstd. Both are decoded as a stream, so a small file that would expand to a huge one costs time,
//! but little memory: 32 KiB with gzip, and the window of the file with zstd, at most 100 MiB.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The input without compression.
pub(crate) fn plain<'r>(reader: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut start = [0; 4];
    let mut reader = reader;
    let mut len = 0;
    while len < start.len() {
        match reader.read(&mut start[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let whole = io::Cursor::new(start).take(len as u64).chain(reader);
    if start[..len].starts_with(&GZIP) {
        return Ok(Box::new(MultiGzDecoder::new(BufReader::new(whole))));
    }
    if start[..len] == ZSTD {
        return Ok(Box::new(Zstd { state: State::Between(BufReader::new(whole)) }));
    }
    Ok(Box::new(whole))
}

enum State<R: Read> {
    /// At the beginning of a frame, or at the end.
    Between(R),
    Inside(Box<StreamingDecoder<R, FrameDecoder>>),
    Over,
}

/// All frames of a zstd file, one after the other.
struct Zstd<R: BufRead> {
    state: State<R>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return Ok(0),
                State::Between(mut reader) => {
                    if reader.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let decoder = StreamingDecoder::new_with_decoder(reader, limited_decoder()?);
                    let decoder = decoder.map_err(|error| broken(&error))?;
                    self.state = State::Inside(Box::new(decoder));
                }
                State::Inside(mut decoder) => {
                    let read = decoder.read(into).map_err(|error| broken(&error))?;
                    if read > 0 {
                        self.state = State::Inside(decoder);
                        return Ok(read);
                    }
                    self.state = State::Between(decoder.into_inner());
                }
            }
        }
    }
}

/// A decoder that refuses large windows. Only one that has decoded a frame before does that.
fn limited_decoder() -> io::Result<FrameDecoder> {
    const EMPTY_FRAME: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0];
    let mut decoder = FrameDecoder::new();
    decoder.init(&EMPTY_FRAME[..]).map_err(|error| broken(&error))?;
    Ok(decoder)
}

fn broken(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {error}"))
}
