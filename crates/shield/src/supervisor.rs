//! Starts the process that reads the queues, ends it if it hangs, and starts it again. While none reads them, packets pass.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use reknit_host::RealTime;
use reknit_host::service::{Line, clock};

use crate::leftovers::{self, Lock};
use crate::rules;
use crate::settings::{Mode, Settings};
use crate::worker;

/// The variable that makes a process the worker.
const WORKER: &str = "REKNIT_SHIELD_WORKER";
/// How long a worker may take to start, and to end.
const START: Duration = Duration::from_secs(5);
const END: Duration = Duration::from_secs(1);
/// The time until a worker is started again; it doubles each time.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// After a worker that has run for this long, the time is the first one again.
const RAN_WELL: Duration = LONGEST_PAUSE;

/// The commands that [`run`] would execute.
pub fn dry_run(settings: &Settings) -> String {
    if settings.mode == Mode::Observe {
        return "# nothing is changed: packets are only watched\n".to_owned();
    }
    rules::plan(settings).to_string()
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// One line: what could not be set up.
pub fn run(settings: &Settings) -> Result<(), String> {
    if std::env::var_os(WORKER).is_some() {
        return worker::work(settings);
    }
    let lock = Lock::take()?;
    if leftovers::clean(&lock) {
        Line::new("cleaned").with("what", "rules of a killed instance").write();
    }
    let signals = signals().map_err(|error| text(&error))?;
    let mut worker = Worker::start(settings.mode)?;
    let plan = rules::plan(settings);
    let applied = plan.apply()?;
    Line::new("started").with("mode", settings.mode.name()).with("interfaces", settings.interfaces.join(",")).write();
    let _punctual = RealTime::begin();
    let mut pauses = Pauses::default();
    loop {
        let event = match worker.next(&signals).map_err(|error| text(&error))? {
            Event::Beat => continue,
            Event::Asked => break,
            Event::Ended => "ended-early",
            Event::Silent => "hung",
        };
        let pause = pauses.after(worker.began.elapsed());
        Line::new(event).with("restart_in", format_args!("{pause:?}")).write();
        worker.kill();
        match restart(settings.mode, &signals, &mut pauses, pause)? {
            Some(started) => worker = started,
            None => return Ok(()),
        }
        Line::new("restarted").write();
    }
    drop(applied);
    worker.end();
    Line::new("ended").write();
    Ok(())
}

fn text(error: &io::Error) -> String {
    reknit_config::without_numbers(&error.to_string()).into_owned()
}

/// The signals that end it; they are only read from here.
pub(crate) fn signals() -> io::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGINT);
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// Starts a worker after the pause, until one runs. None if a signal comes first.
fn restart(mode: Mode, signals: &SignalFd, pauses: &mut Pauses, mut pause: Duration) -> Result<Option<Worker>, String> {
    loop {
        let longest = PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX);
        let asked = poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], longest);
        if asked.map_err(|error| text(&error.into()))? > 0 {
            return Ok(None);
        }
        match Worker::start(mode) {
            Ok(worker) => return Ok(Some(worker)),
            Err(error) => Line::new("not-restarted").with("error", error).write(),
        }
        pause = pauses.after(Duration::ZERO);
    }
}

/// The times until workers are started again.
struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses { next: PAUSE }
    }
}

impl Pauses {
    /// The time until the next start, after a worker that ran for so long.
    fn after(&mut self, ran: Duration) -> Duration {
        let pause = if ran >= RAN_WELL { PAUSE } else { self.next };
        self.next = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

/// The process that reads the queues.
struct Worker {
    child: Child,
    heartbeat: UnixStream,
    began: Instant,
    /// If it is silent for longer than this, it hangs.
    silence: PollTimeout,
}

/// What a worker does.
enum Event {
    /// It runs.
    Beat,
    /// It says nothing.
    Silent,
    /// It has ended.
    Ended,
    /// The supervisor must end.
    Asked,
}

impl Worker {
    fn new(child: Child, heartbeat: UnixStream, mode: Mode) -> Worker {
        let silence = PollTimeout::try_from(mode.longest_silence()).unwrap_or(PollTimeout::MAX);
        Worker { child, heartbeat, began: clock::now(), silence }
    }

    /// Starts this program once more, and waits until it reads the queues.
    fn start(mode: Mode) -> Result<Worker, String> {
        let failed = |error: io::Error| format!("the worker: {}", text(&error));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let child = Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(WORKER, "1")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .map_err(failed)?;
        let mut worker = Worker::new(child, ours, mode);
        worker.heartbeat.set_read_timeout(Some(START)).map_err(failed)?;
        if worker.heartbeat.read_exact(&mut [0]).is_err() {
            worker.kill();
            return Err("packets cannot be seen or held, for the reason above".to_owned());
        }
        Ok(worker)
    }

    fn next(&mut self, signals: &SignalFd) -> io::Result<Event> {
        let mut fds = [signals.as_fd(), self.heartbeat.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut fds, self.silence) {
            Ok(0) => return Ok(Event::Silent),
            Ok(_) => {}
            Err(nix::Error::EINTR) => return Ok(Event::Beat),
            Err(error) => return Err(error.into()),
        }
        if fds[0].any() == Some(true) {
            return Ok(Event::Asked);
        }
        match self.heartbeat.read(&mut [0; 64]) {
            Ok(0) | Err(_) => Ok(Event::Ended),
            Ok(_) => Ok(Event::Beat),
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Lets everything that is held go on.
    fn end(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        let until = clock::now() + END;
        while clock::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use super::*;

    /// What becomes of a worker that says something after `delay`, or never.
    fn after(mode: Mode, delay: Option<Duration>) -> Event {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut worker = Worker::new(Command::new("true").spawn().unwrap(), ours, mode);
        let signals = signals().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(delay?);
                theirs.write_all(b".").ok()
            });
            worker.next(&signals).unwrap()
        })
    }

    #[test]
    fn only_a_worker_that_holds_packets_must_be_punctual() {
        let late = Some(Duration::from_millis(400));
        assert!(matches!(after(Mode::Observe, late), Event::Beat));
        for mode in [Mode::Resequence, Mode::Equalise { difference: None }] {
            assert!(mode.longest_silence() <= Duration::from_millis(200));
            assert!(matches!(after(mode, None), Event::Silent));
        }
    }

    #[test]
    fn pauses_double_until_a_worker_has_run_well() {
        let mut pauses = Pauses::default();
        let mut after = |seconds| pauses.after(Duration::from_secs(seconds)).as_millis();
        let got: Vec<u128> = (0..9).map(|_| after(3)).collect();
        assert_eq!(got, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!([after(59), after(60), after(3)], [60_000, 500, 1000]);
    }
}
