//! The events while the command runs: passes signals on, reports the meter, and notices the end. [`super::bridge`] calls it after
//! each wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::eventfd::EventFd;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use reknit_units::{Duration, Instant};

use super::bridge::{Bridge, Events, Next};
use super::meter::Counts;

/// How long the last packets of the command may take after everything inside has ended.
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// Signals that are passed on to the command.
const PASSED_ON: [Signal; 6] =
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2];
/// `si_code` of a signal that the kernel sent, as the terminal does for Ctrl-C.
const SI_KERNEL: i32 = 0x80;

/// The meter's reading for an interval.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Since the command started.
    pub elapsed: Duration,
    /// The length of the interval.
    pub interval: Duration,
    /// What was counted in it, up and down.
    pub counts: [Counts; 2],
    /// Packets on the path at its end, up and down: in queues and in transit.
    pub inside: [usize; 2],
}

/// Signals that arrive from now on are read instead of ending the program, until this is dropped.
pub(super) struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Must be called before other threads are started, which inherit the mask.
    pub(super) fn take() -> io::Result<Signals> {
        let mask: SigSet = PASSED_ON.into_iter().collect();
        let before = SigSet::thread_get_mask()?;
        mask.thread_block()?;
        Ok(Signals { descriptor: SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?, before })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

/// The running command.
pub(super) struct Session<'s, 'm> {
    pub(super) signals: &'s Signals,
    pub(super) command: Pid,
    /// Readable when everything inside has ended.
    pub(super) ended: Arc<EventFd>,
    /// The command has ended, but connections are still closing.
    pub(super) idle: Arc<AtomicBool>,
    /// Do not wait for them.
    pub(super) hurry: Arc<AtomicBool>,
    pub(super) began: Instant,
    /// How often the meter is reported, and to what.
    pub(super) meter: Option<(Duration, &'m mut dyn FnMut(Reading))>,
    /// The last reading: when, and the counts.
    pub(super) last: (Instant, [Counts; 2]),
    pub(super) stop_at: Instant,
}

impl Session<'_, '_> {
    /// Passes signals on, except for Ctrl-C from the terminal, which sends it to the command as well as to this process.
    fn pass_on_signals(&mut self) -> io::Result<()> {
        while let Some(info) = self.signals.descriptor.read_signal()? {
            if self.idle.load(Ordering::Relaxed) {
                self.hurry.store(true, Ordering::Relaxed);
            } else if info.ssi_code != SI_KERNEL
                && let Ok(signal) = Signal::try_from(info.ssi_signo.cast_signed())
            {
                let _ = kill(self.command, signal); // it may have ended
            }
        }
        Ok(())
    }

    fn read_meter(&mut self, now: Instant, bridge: &Bridge) {
        let Some((every, tell)) = &mut self.meter else { return };
        let (before, earlier) = self.last;
        let interval = now.since(before);
        if interval < *every {
            return;
        }
        let counts = bridge.counts();
        self.last = (now, counts);
        tell(Reading {
            elapsed: now.since(self.began),
            interval,
            counts: [counts[0].since(&earlier[0]), counts[1].since(&earlier[1])],
            inside: [bridge.up.inside(), bridge.down.inside()],
        });
    }
}

impl Events for Session<'_, '_> {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.signals.descriptor.as_fd(), self.ended.as_fd()]
    }

    fn deadline(&self) -> Instant {
        let meter = self.meter.as_ref().map_or(Instant::NEVER, |(every, _)| self.last.0 + *every);
        meter.min(self.stop_at)
    }

    fn handle(&mut self, now: Instant, bridge: &mut Bridge) -> io::Result<Next> {
        self.pass_on_signals()?;
        self.read_meter(now, bridge);
        if !self.stop_at.is_set() && self.ended.read().is_ok() {
            self.stop_at = now + DRAIN_TIME;
        }
        let over = self.stop_at.is_set() && (bridge.up.inside() == 0 || now >= self.stop_at);
        Ok(if over { Next::Stop } else { Next::Continue })
    }
}
