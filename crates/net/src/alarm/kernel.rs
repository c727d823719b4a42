//! A timer of the kernel.

use std::io;
use std::os::fd::OwnedFd;

use reknit_units::{Duration, Instant};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::io::register;

/// The longest time that the kernel is asked to wait.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A timer of the kernel.
pub(crate) struct Alarm {
    fd: AsyncFd<OwnedFd>,
    /// When it expires.
    expires: Instant,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Alarm> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Alarm { fd: register(timer, Interest::READABLE)?, expires: Instant::ZERO })
    }

    /// Returns at `at`, or earlier: most deadlines of TCP are postponed before they are due, and system calls are expensive.
    pub(crate) async fn wait(&mut self, now: Instant, at: Instant) -> io::Result<()> {
        if self.expires <= now || at < self.expires {
            self.expires = at.min(now + DAY);
            let nanos = self.expires.since(now).as_nanos().max(1); // zero would disarm it
            let left = std::time::Duration::from_nanos(nanos).try_into().map_err(io::Error::other)?;
            let once = Itimerspec { it_interval: Timespec::default(), it_value: left };
            timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        }
        self.fd.ready(Interest::READABLE).await?.clear_ready();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[tokio::test]
    async fn it_expires_in_time_and_can_be_set_earlier() {
        let clock = Clock::start();
        let mut alarm = Alarm::new().unwrap();
        let hour = clock.now() + Duration::from_secs(3600);
        let later = tokio::time::timeout(std::time::Duration::from_millis(20), alarm.wait(clock.now(), hour)).await;
        assert!(later.is_err());
        for after in [Duration::from_micros(200), Duration::from_millis(3), Duration::ZERO] {
            let at = clock.now() + after;
            while clock.now() < at {
                let wait = alarm.wait(clock.now(), at);
                tokio::time::timeout(std::time::Duration::from_secs(10), wait).await.expect("it expires").unwrap();
            }
        }
    }
}
