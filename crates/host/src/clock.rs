//! The only module that reads a clock.

use std::io;
use std::os::fd::BorrowedFd;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use reknit_units::Instant;

/// The clock of a path: that of the machine, or a recorded one.
pub(crate) trait TimeSource {
    /// The current time.
    fn now(&self) -> Instant;

    /// Returns at `until`, or as soon as any of `readable` is readable.
    fn wait(&self, until: Instant, readable: &[BorrowedFd<'_>]) -> io::Result<()>;
}

impl TimeSource for Clock {
    fn now(&self) -> Instant {
        Clock::now(*self)
    }

    fn wait(&self, until: Instant, readable: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut descriptors: Vec<PollFd<'_>> =
            readable.iter().map(|descriptor| PollFd::new(*descriptor, PollFlags::POLLIN)).collect();
        let timeout = std::time::Duration::from_nanos(until.since(Clock::now(*self)).as_nanos());
        match ppoll(&mut descriptors, Some(TimeSpec::from(timeout)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A monotonic clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "real time enters here and nowhere else")]
    pub(crate) fn start() -> Clock {
        Clock { origin: std::time::Instant::now() }
    }

    /// The time of day at which this clock was zero, in nanoseconds since 1970.
    #[expect(clippy::disallowed_methods, reason = "captures carry the time of day")]
    pub(crate) fn time_of_day(self) -> Instant {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let elapsed = self.origin.elapsed();
        Instant::from_nanos(since_1970.saturating_sub(elapsed).as_nanos() as u64)
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }
}
