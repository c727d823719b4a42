//! Where the packets come from.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use reknit_host::PacketSocket;
use reknit_trace::{Frame, Frames};

use super::{Shared, locked};
use crate::capture::unreadable;

/// How often a file is looked at for more.
const LOOK: Duration = Duration::from_millis(50);
/// LINKTYPE of packets that begin with their IP header.
const RAW: u16 = 101;

/// A source of packets.
pub(super) enum Source {
    Interface(PacketSocket),
    Capture { name: PathBuf, reader: Box<dyn Read + Send> },
}

/// Opens a file that exists, or else an interface.
pub(super) fn open(source: &Path) -> Result<Source, String> {
    let name = source.display().to_string();
    if name == "-" {
        return Ok(Source::Capture { name: source.to_owned(), reader: Box::new(io::stdin()) });
    }
    if source.exists() {
        let file = reknit_config::open(source).map_err(|error| format!("{name}: {error}"))?;
        return Ok(Source::Capture { name: source.to_owned(), reader: Box::new(file) });
    }
    PacketSocket::open(&name).map(Source::Interface)
}

impl Source {
    /// Passes on all packets until `stop`, or until the source ends.
    pub(super) fn run(self, shared: &Shared, stop: &Arc<AtomicBool>) -> Result<(), String> {
        match self {
            Source::Interface(socket) => listen(&socket, shared, stop).map_err(|error| error.to_string()),
            Source::Capture { name, reader } => {
                let followed = if name.as_os_str() == "-" {
                    follow(&name, reader, shared)
                } else {
                    follow(&name, Growing { reader, stop: stop.clone() }, shared)
                };
                // If the user has stopped it, the last packet may be cut off.
                if stop.load(Ordering::Relaxed) { Ok(()) } else { followed }
            }
        }
    }
}

fn listen(socket: &PacketSocket, shared: &Shared, stop: &AtomicBool) -> io::Result<()> {
    let mut number = 0;
    let mut failed = None;
    socket.run(&mut |packets| {
        let mut state = locked(shared);
        for packet in packets {
            number += 1;
            state.watcher.on_frame(&Frame {
                number,
                at: packet.at,
                interface: 0,
                link: RAW,
                bytes: packet.bytes,
                original_len: packet.original_len,
            });
        }
        state.has_new_packets |= !packets.is_empty();
        match socket.drops() {
            Ok(drops) => state.drops += drops,
            Err(error) => failed = Some(error),
        }
        !stop.load(Ordering::Relaxed) && failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// Takes the frames of a capture as they come.
fn follow(name: &Path, reader: impl Read, shared: &Shared) -> Result<(), String> {
    let mut frames = Frames::new(reader).map_err(|error| unreadable(name, &error))?;
    // A frame may take long to come, so the state is not locked meanwhile.
    while let Some(frame) = frames.next_frame() {
        let mut state = locked(shared);
        state.watcher.on_frame(&frame);
        state.has_new_packets = true;
    }
    frames.damage().map_or(Ok(()), |damage| Err(format!("{}: {damage}", name.display())))
}

/// A file that grows: its end is not the end.
struct Growing {
    reader: Box<dyn Read + Send>,
    stop: Arc<AtomicBool>,
}

impl Read for Growing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.reader.read(into)?;
            if read > 0 || self.stop.load(Ordering::Relaxed) {
                return Ok(read);
            }
            thread::sleep(LOOK);
        }
    }
}
