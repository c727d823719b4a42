//! The timer that wakes the driver at its next deadline.

#[cfg(feature = "fd")]
mod kernel;

use std::io;

use reknit_units::Instant;

use crate::clock::to_std;
use crate::io::PacketIo;

/// A timer.
pub(crate) enum Alarm {
    /// Precise to tens of microseconds. The runtime's timers have a resolution of a millisecond, in which a path of 10 Gbit/s
    /// carries 800 segments: too coarse for pacing.
    #[cfg(feature = "fd")]
    Kernel(kernel::Alarm),
    Runtime,
}

impl Alarm {
    /// For a driver that uses `io`.
    #[cfg_attr(not(feature = "fd"), expect(clippy::unnecessary_wraps, reason = "a timer of the kernel can fail"))]
    pub(crate) fn new(io: &impl PacketIo) -> io::Result<Alarm> {
        #[cfg(feature = "fd")]
        if io.has_descriptor() {
            return kernel::Alarm::new().map(Alarm::Kernel);
        }
        let _ = io;
        Ok(Alarm::Runtime)
    }

    /// Returns at `at`, or earlier.
    pub(crate) async fn wait(&mut self, now: Instant, at: Instant) -> io::Result<()> {
        match self {
            #[cfg(feature = "fd")]
            Alarm::Kernel(alarm) => alarm.wait(now, at).await,
            Alarm::Runtime => {
                tokio::time::sleep(to_std(at.since(now))).await;
                Ok(())
            }
        }
    }
}
