//! Capture files of emulated paths.

use std::fs::File;
use std::io::{self, BufWriter};

use reknit_units::Instant;
use reknit_wire::{Capture, Interface};

use crate::clock::Clock;

/// The packets of one side of a path, with the time of day.
pub(crate) struct CaptureFile {
    capture: Capture<BufWriter<File>>,
    interface: Interface,
    time_of_day: Instant,
}

impl CaptureFile {
    pub(crate) fn new(path: &std::path::Path, side: &str, clock: Clock) -> io::Result<CaptureFile> {
        let mut capture = Capture::new(BufWriter::new(File::create(path)?))?;
        let interface = capture.interface(side)?;
        Ok(CaptureFile { capture, interface, time_of_day: clock.time_of_day() })
    }

    pub(crate) fn packet(&mut self, now: Instant, packet: &[u8]) -> io::Result<()> {
        let at = self.time_of_day + now.since(Instant::ZERO);
        self.capture.packet(self.interface, at, packet, packet.len())
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.capture.finish()
    }
}
