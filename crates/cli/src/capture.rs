//! Capture files: those of simulated connections, and the names of several.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use reknit_sim::{Datagram, End, TraceEvent, Tracer};
use reknit_units::Instant;
use reknit_wire::{Capture, Endpoints, Interface, encode};

/// One of several files: `file-label.pcapng`, or `file` itself without a label. A colon, as in `kernel:cubic`, becomes a
/// hyphen.
pub(crate) fn labelled(file: &Path, label: &str) -> PathBuf {
    if label.is_empty() {
        return file.to_owned();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let extension = file.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    file.with_file_name(format!("{stem}-{}{extension}", label.replace(':', "-")))
}

/// Writes what one side sees: headers in full, payloads (which a simulation does not have) as their length.
pub(crate) struct CaptureTracer {
    side: End,
    capture: Capture<BufWriter<File>>,
    interface: Interface,
    packet: Vec<u8>,
    /// The payload of every segment.
    zeros: Vec<u8>,
    error: Option<io::Error>,
}

impl CaptureTracer {
    pub(crate) fn create(path: &Path, side: End) -> io::Result<CaptureTracer> {
        let mut capture = Capture::new(BufWriter::new(File::create(path)?))?;
        let name = if side == End::Sender { "sender" } else { "receiver" };
        let interface = capture.interface(name)?;
        Ok(CaptureTracer { side, capture, interface, packet: Vec::new(), zeros: vec![0; u16::MAX.into()], error: None })
    }

    /// Ends the file; tells of an error on the way.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.capture.finish(),
        }
    }

    fn write(&mut self, now: Instant, datagram: &Datagram) -> io::Result<()> {
        let [source, destination] = datagram.addresses();
        let endpoints = Endpoints { source, destination };
        let len = usize::from(datagram.segment.len);
        encode(endpoints, &datagram.segment, &self.zeros[..len], &mut self.packet);
        let headers = self.packet.len() - len;
        self.capture.packet(self.interface, now, &self.packet[..headers], self.packet.len())
    }
}

impl Tracer for CaptureTracer {
    fn on_packet(&mut self, now: Instant, event: TraceEvent, datagram: &Datagram) {
        let seen = match event {
            TraceEvent::Sent => datagram.from == self.side,
            TraceEvent::Delivered => datagram.from != self.side,
            TraceEvent::Lost => false,
        };
        if seen
            && self.error.is_none()
            && let Err(error) = self.write(now, datagram)
        {
            self.error = Some(error);
        }
    }
}
