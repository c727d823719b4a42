//! Recognizes gzip and zstd. Both are decoded as a stream, so a small file that would expand to a huge one costs time,
//! but little memory: 32 KiB with gzip, and the window of the file with zstd, at most 100 MiB.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder, StreamingDecoder};

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
    /// The file ends inside a frame: what was decoded of it and is not read yet.
    Cut(io::Cursor<Vec<u8>>),
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
                    self.state = match decoder.read(into) {
                        Ok(0) => State::Between(decoder.into_inner()),
                        Ok(read) => {
                            self.state = State::Inside(decoder);
                            return Ok(read);
                        }
                        Err(error) => {
                            let rest = rest_of_cut(*decoder)?.ok_or_else(|| broken(&error))?;
                            State::Cut(io::Cursor::new(rest))
                        }
                    }
                }
                State::Cut(mut rest) => {
                    let read = rest.read(into)?;
                    if read == 0 {
                        return Err(broken(&"unexpected end of file"));
                    }
                    self.state = State::Cut(rest);
                    return Ok(read);
                }
            }
        }
    }
}

/// If the file ends inside a frame: what was decoded of it, but kept because later blocks could copy it. None if the file goes on:
/// then a block is damaged, and part of it may have been decoded.
fn rest_of_cut(decoder: StreamingDecoder<impl BufRead, FrameDecoder>) -> io::Result<Option<Vec<u8>>> {
    const EMPTY_LAST_BLOCK_AND_CHECKSUM: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
    let (mut reader, mut frame) = decoder.into_parts();
    if !reader.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let ended = frame.decode_blocks(&EMPTY_LAST_BLOCK_AND_CHECKSUM[..], BlockDecodingStrategy::All);
    Ok(ended.ok().and_then(|_| frame.collect()))
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

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    /// A block of zstd.
    const BLOCK: usize = 128 << 10;

    /// What can be read, and the error if there is one.
    fn read(compressed: &[u8]) -> (Vec<u8>, Option<String>) {
        let mut bytes = Vec::new();
        let error = plain(compressed).unwrap().read_to_end(&mut bytes).err();
        (bytes, error.map(|error| error.to_string()))
    }

    /// Numbers of which each occurs once, so that blocks are stored or have literals, and the frame is larger than a block.
    fn bytes() -> Vec<u8> {
        (0..BLOCK as u32).flat_map(|i| i.wrapping_mul(0x9e37_79b1).to_be_bytes()).collect()
    }

    #[test]
    fn a_zstd_file_cut_inside_a_block_has_the_blocks_before_it() {
        let (bytes, text) = (bytes(), b"the same text ".repeat(40_000));
        for plain in [bytes, text] {
            let whole = compress_to_vec(&plain[..], CompressionLevel::Fastest);
            assert_eq!(read(&whole), (plain.clone(), None));
            // The checksum, and one byte of the last block.
            let (cut, error) = read(&whole[..whole.len() - 5]);
            assert!(plain.starts_with(&cut) && plain.len() - cut.len() <= BLOCK, "{} of {}", cut.len(), plain.len());
            assert_eq!(error.as_deref(), Some("zstd: unexpected end of file"));
        }
    }

    #[test]
    fn a_zstd_file_cut_in_its_first_block_has_nothing() {
        let whole = compress_to_vec(&bytes()[..], CompressionLevel::Fastest);
        let (cut, error) = read(&whole[..BLOCK / 2]);
        assert!(cut.is_empty() && error.is_some());
    }
}
