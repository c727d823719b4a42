//! Starts programs in the calling thread's namespace, and ends those that are left there. Called by the threads of
//! [`super::ends`].

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use super::leftovers;
use crate::service::clock;

/// The polling interval while waiting.
const STEP: Duration = Duration::from_millis(10);
/// How long programs have to end after they were asked to.
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait until the kernel has sent the data of closed sockets.
const LINGER: Duration = Duration::from_secs(5);

/// States of a TCP socket in `/proc/net/tcp`.
const FIN_WAIT1: &str = "04";
const LAST_ACK: &str = "09";
const LISTEN: &str = "0A";
const CLOSING: &str = "0B";

/// Starts a program. It is killed when the calling thread ends, even if that is killed.
pub(super) fn start(program: &mut Command) -> io::Result<Child> {
    #[expect(unsafe_code, reason = "the standard library has no other way to set these")]
    // SAFETY: the closure only makes system calls, and touches no memory of other threads.
    unsafe {
        program.pre_exec(|| {
            SigSet::empty().thread_set_mask()?; // this process reads its signals; the program gets them as usual
            Ok(set_pdeathsig(Signal::SIGKILL)?)
        });
    }
    program.spawn()
}

/// The command with these arguments.
pub(super) fn command(words: &[OsString], environment: &[(String, String)]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
    command
}

/// The exit code of a shell for this status: that of the program, or 128 and the signal's number.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// States of a closed socket that still has data to send, or its end.
const UNFINISHED: [&str; 3] = [FIN_WAIT1, LAST_ACK, CLOSING];

/// What closed TCP sockets have sent, or should have, without an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unacknowledged {
    /// Bytes of data.
    pub bytes: u64,
    /// Connections: the end of each is not acknowledged either.
    pub connections: u64,
}

/// What is not acknowledged in the calling thread's namespace.
pub(super) fn unacknowledged() -> Unacknowledged {
    let unsent: Vec<u64> = sockets(&["tcp", "tcp6"]).iter().filter_map(|line| unsent(line)).collect();
    Unacknowledged { bytes: unsent.iter().sum(), connections: unsent.len() as u64 }
}

/// The bytes that the closed socket in this line of `/proc/net/tcp` has not been able to deliver.
fn unsent(line: &str) -> Option<u64> {
    let mut fields = line.split_whitespace().skip(3);
    let state = fields.next()?;
    let (queue, _) = fields.next()?.split_once(':')?;
    let queue = u64::from_str_radix(queue, 16).ok()?;
    UNFINISHED.contains(&state).then(|| queue.saturating_sub(1)) // the FIN counts as a byte
}

/// Waits until closed sockets of the calling thread's namespace have sent their data and it has been acknowledged, or
/// until `hurry`, or for 5 s.
pub(super) fn linger(hurry: impl Fn() -> bool) {
    wait_until(LINGER, clock::now, || hurry() || unacknowledged().connections == 0);
}

/// Polls until `is_done`, for at most `limit`. False if it was not. Time is measured, because a busy machine makes each poll slow.
pub(super) fn wait_until(limit: Duration, now: impl Fn() -> Instant, mut is_done: impl FnMut() -> bool) -> bool {
    let end = now() + limit;
    loop {
        if is_done() {
            return true;
        }
        if now() >= end {
            return false;
        }
        thread::sleep(STEP);
    }
}

/// True if a program in the calling thread's namespace accepts connections or datagrams.
pub(super) fn has_server() -> bool {
    any_socket(&["tcp", "tcp6"], |state| state == LISTEN) || any_socket(&["udp", "udp6"], |_| true)
}

/// True if the state of a socket in these files of `/proc/net` satisfies `is`.
fn any_socket(files: &[&str], is: impl Fn(&str) -> bool) -> bool {
    sockets(files).iter().any(|line| line.split_whitespace().nth(3).is_some_and(&is))
}

/// The lines of the sockets in these files of `/proc/net`, for the calling thread's namespace.
fn sockets(files: &[&str]) -> Vec<String> {
    let text = |file| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    let lines = |file| text(file).lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    files.iter().flat_map(lines).collect()
}

/// Ends all processes in the calling thread's namespace: asks them to, and kills those that are left after a second.
pub(super) fn end_all() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        for process in in_namespace() {
            let _ = kill(process, signal);
            let _ = kill(process, Signal::SIGCONT); // a stopped one does not end
        }
        if wait_until(GRACE, clock::now, || in_namespace().is_empty()) {
            return;
        }
    }
}

/// Running processes in the calling thread's network namespace.
fn in_namespace() -> Vec<Pid> {
    let Ok(here) = fs::read_link("/proc/thread-self/ns/net") else { return Vec::new() };
    let own = std::process::id();
    let is_here = |process: &u32| {
        *process != own && fs::read_link(format!("/proc/{process}/ns/net")).is_ok_and(|there| there == here)
    };
    leftovers::processes().filter(is_here).map(|process| Pid::from_raw(process.cast_signed())).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn only_closed_sockets_have_unacknowledged_data() {
        let line = |state, queue| {
            format!(
                "   1: 02004D0A:9C40 01004D0A:1F90 {state} {queue}:00000000 01:00000019 00000000     0 0 0 2 0 20 4"
            )
        };
        assert_eq!(unsent(&line("04", "000003E9")), Some(1000));
        assert_eq!(unsent(&line("09", "00000001")), Some(0));
        assert_eq!(unsent(&line("01", "000003E9")), None); // established
        assert_eq!(unsent("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"), None);
    }

    #[test]
    fn slow_polls_do_not_make_a_wait_longer() {
        let (begin, passed, polls) = (clock::now(), Cell::new(Duration::ZERO), Cell::new(0));
        let slow = |done_after: u32| {
            passed.set(Duration::ZERO);
            polls.set(0);
            let poll = || {
                passed.set(passed.get() + Duration::from_secs(2));
                polls.set(polls.get() + 1);
                polls.get() == done_after
            };
            wait_until(Duration::from_secs(5), || begin + passed.get(), poll)
        };
        assert!(slow(3) && !slow(4));
        assert_eq!(polls.get(), 3);
    }
}
