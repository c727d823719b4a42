//! Reads and decompresses in another thread.

use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::compressed::plain;

/// Bytes in a chunk, and how many chunks may wait to be analysed.
const CHUNK: usize = 256 << 10;
const CHUNKS: usize = 4;

/// The bytes of a capture or log without compression. A thread reads and decompresses them while the caller analyses what came
/// before. It ends with the input, or after this was dropped.
#[derive(Debug)]
pub struct ReadAhead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
    is_over: bool,
}

impl ReadAhead {
    /// Starts the thread. An error of `reader` is one of this reader, after the bytes before it.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(reader: impl Read + Send + 'static) -> io::Result<ReadAhead> {
        let (to, chunks) = sync_channel(CHUNKS);
        thread::Builder::new().name("read ahead".to_owned()).spawn(move || send(reader, &to))?;
        Ok(ReadAhead { chunks, chunk: Cursor::default(), is_over: false })
    }
}

impl Read for ReadAhead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.chunk.position() == self.chunk.get_ref().len() as u64 && !self.is_over {
            // The thread ends without an empty chunk only if it panics.
            let chunk =
                self.chunks.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that reads it panicked")));
            self.is_over = chunk.as_ref().map_or(true, Vec::is_empty);
            self.chunk = Cursor::new(chunk?);
        }
        self.chunk.read(into)
    }
}

/// Sends chunks, the last of which is empty or an error. Stops early if nobody waits for them.
fn send(reader: impl Read, to: &SyncSender<io::Result<Vec<u8>>>) {
    let mut reader = match plain(reader) {
        Ok(reader) => reader,
        Err(error) => {
            let _ = to.send(Err(error));
            return;
        }
    };
    loop {
        let chunk = next(&mut reader);
        let is_last = chunk.as_ref().map_or(true, Vec::is_empty);
        if to.send(chunk).is_err() || is_last {
            return;
        }
    }
}

/// What one call of the reader gives: a live capture must not wait until a chunk is full.
fn next(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match reader.read(&mut chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => {
                chunk.truncate(read?);
                return Ok(chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use flate2::write::GzEncoder;

    use super::*;

    /// More than the chunks that may wait.
    fn bytes() -> Vec<u8> {
        (0..(CHUNKS * CHUNK * 2) as u32).map(|i| (i % 251) as u8).collect()
    }

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_bytes_are_those_without_compression() {
        for input in [bytes(), compressed(&bytes())] {
            let mut read = Vec::new();
            ReadAhead::new(Cursor::new(input)).unwrap().read_to_end(&mut read).unwrap();
            assert!(read == bytes());
        }
    }

    #[test]
    fn an_error_comes_after_the_bytes_before_it() {
        let mut damaged = compressed(&bytes());
        damaged.truncate(damaged.len() - 1);
        let (mut reader, mut read) = (ReadAhead::new(Cursor::new(damaged)).unwrap(), Vec::new());
        assert_eq!(reader.read_to_end(&mut read).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert!(read == bytes());
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    }

    /// Endless, and says when it is dropped.
    struct Endless(SyncSender<()>);

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            into.fill(0);
            Ok(into.len())
        }
    }

    impl Drop for Endless {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }

    #[test]
    fn the_thread_ends_when_nobody_reads_any_more() {
        let (dropped, ended) = sync_channel(1);
        let mut reader = ReadAhead::new(Endless(dropped)).unwrap();
        reader.read_exact(&mut [0; 10]).unwrap();
        drop(reader);
        ended.recv_timeout(Duration::from_mins(1)).unwrap();
    }

    #[test]
    fn a_part_of_a_chunk_is_passed_on_at_once() {
        let (live, mut capture) = io::pipe().unwrap();
        capture.write_all(b"four").unwrap();
        // The pipe stays open, so more than these bytes never come.
        ReadAhead::new(live).unwrap().read_exact(&mut [0; 4]).unwrap();
        drop(capture);
    }

    #[test]
    fn a_panic_of_the_thread_is_an_error_and_no_end() {
        struct Panics;
        impl Read for Panics {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("as the test wants");
            }
        }
        let error = ReadAhead::new(Panics).unwrap().read(&mut [0]).unwrap_err();
        assert_eq!(error.to_string(), "the thread that reads it panicked");
    }
}
