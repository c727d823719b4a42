//! A lock of the machine: while it is held, no other emulation is set up or restores a setting. [`super::Setup`] takes it, and
//! [`super::leftovers`].

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::leftovers::FOLDER;
use super::{EmulateError, set_up};
use crate::service::clock;

/// How long it is waited for without a word.
const SILENT: Duration = Duration::from_secs(1);
/// The polling interval in milliseconds. A lock cannot be waited for together with a signal.
const STEP: u8 = 20;
/// Signals that end the wait. The process has blocked them (`Signals::take`).
const STOP: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];

/// Takes the lock. Says on standard error what it waits for; a signal ends the wait.
pub(super) fn lock() -> Result<Flock<File>, EmulateError> {
    let refuse = set_up("/run/reknit");
    fs::create_dir_all(FOLDER).map_err(&refuse)?;
    let path = Path::new(FOLDER).join("lock");
    let mut file = File::create(&path).map_err(&refuse)?;
    let signals =
        SignalFd::with_flags(&STOP.into_iter().collect::<SigSet>(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .map_err(|error| refuse(error.into()))?;
    let (began, mut said) = (clock::now(), false);
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, error)) => return Err(refuse(error.into())),
        };
        if !said && began.elapsed() >= SILENT {
            said = true;
            let _ = writeln!(io::stderr(), "note: waiting for {}, which {} has locked", path.display(), holder(&file));
        }
        if let Some(signal) = next_signal(&signals).map_err(&refuse)? {
            return Err(EmulateError::Interrupted { signal, file: path });
        }
    }
}

/// A signal that arrives within a step.
fn next_signal(signals: &SignalFd) -> io::Result<Option<Signal>> {
    match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], PollTimeout::from(STEP)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(signals.read_signal()?.and_then(|info| Signal::try_from(info.ssi_signo.cast_signed()).ok()))
}

/// Who has locked the file (`proc_locks(5)`).
fn holder(file: &File) -> String {
    let another = || "another `reknit emulate`".to_owned();
    let Ok(inode) = file.metadata().map(|meta| meta.ino().to_string()) else { return another() };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // 1: FLOCK ADVISORY WRITE 4321 00:1a:567 0 EOF. Those that wait have an arrow in the second column.
        let [_, "FLOCK", _, _, process, place, ..] = fields[..] else { return None };
        (place.rsplit(':').next() == Some(&inode)).then(|| format!("process {process}"))
    };
    locks.lines().find_map(of_line).unwrap_or_else(another)
}
