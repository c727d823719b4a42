//! Capture files of simulated connections, the names of several capture files, and why one cannot be read.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use reknit_sim::{Datagram, Role, TraceEvent, Tracer};
use reknit_trace::Error;
use reknit_units::Instant;
use reknit_wire::{Capture, Endpoints, Interface, encode};

/// The name of one of several files: `file-label.pcapng`, or `file` itself if the label is empty. A colon, as in
/// `kernel:cubic`, becomes a hyphen.
pub(crate) fn labelled(file: &Path, label: &str) -> PathBuf {
    if label.is_empty() {
        return file.to_owned();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let extension = file.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    file.with_file_name(format!("{stem}-{}{extension}", label.replace(':', "-")))
}

/// Why the capture `file` cannot be read, in one line. A capture in another format comes with the command that converts it.
pub(crate) fn unreadable(file: &Path, error: &Error) -> String {
    let name = if file.as_os_str() == "-" { "standard input".into() } else { file.display().to_string() };
    match error {
        Error::OtherFormat(format) => {
            let to = file.with_extension("pcapng");
            let to = if to == file { file.with_extension("converted.pcapng") } else { to };
            let [from, to] = [file, &to].map(quoted);
            format!("{name}: is a capture of {format}; convert it: editcap -F pcapng {from} {to}")
        }
        other => format!("{name}: {other}"),
    }
}

/// A file's name as a word of a shell.
fn quoted(file: &Path) -> String {
    let name = file.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if name.chars().all(is_plain) { name } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// Writes the packets that one end sees, with complete headers. A simulation has no payloads, so they are zeros of the
/// right length.
pub(crate) struct CaptureTracer {
    side: Role,
    capture: Capture<BufWriter<File>>,
    interface: Interface,
    packet: Vec<u8>,
    /// Zeros to take the payloads from.
    zeros: Vec<u8>,
    error: Option<io::Error>,
}

impl CaptureTracer {
    pub(crate) fn create(path: &Path, side: Role) -> io::Result<CaptureTracer> {
        let mut capture = Capture::new(BufWriter::new(File::create(path)?))?;
        let name = if side == Role::Sender { "sender" } else { "receiver" };
        let interface = capture.interface(name)?;
        Ok(CaptureTracer { side, capture, interface, packet: Vec::new(), zeros: vec![0; u16::MAX.into()], error: None })
    }

    /// Closes the file. Returns the first error, if there was one.
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
