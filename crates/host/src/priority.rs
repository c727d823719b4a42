//! Real-time priority for threads that must be on time, so that results do not depend on what else the machine does.

use nix::libc::{SCHED_OTHER, SCHED_RESET_ON_FORK, SCHED_RR, sched_getscheduler, sched_param, sched_setscheduler};
use nix::sys::prctl::set_timerslack;

/// From 1 to 99.
const PRIORITY: i32 = 10;

/// Lets the kernel wake the calling thread on time until this is dropped: without delay to save energy, and before others if
/// the kernel permits it. A priority that the user has chosen with `chrt` stays.
#[derive(Debug)]
pub struct RealTime {
    changed: bool,
}

impl RealTime {
    /// Begins, for the calling thread.
    pub fn begin() -> RealTime {
        let _ = set_timerslack(1); // in ns; a thread that may not change it is only less punctual
        RealTime { changed: policy() == SCHED_OTHER && set_policy(SCHED_RR, PRIORITY) }
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        if self.changed {
            set_policy(SCHED_OTHER, 0);
            let _ = set_timerslack(0); // the default
        }
    }
}

fn policy() -> i32 {
    #[expect(unsafe_code, reason = "nix has no functions for the priority of a thread")]
    // SAFETY: the call has no pointers.
    let policy = unsafe { sched_getscheduler(0) };
    policy & !SCHED_RESET_ON_FORK
}

/// True if the kernel permits it.
fn set_policy(policy: i32, priority: i32) -> bool {
    let parameters = sched_param { sched_priority: priority };
    #[expect(unsafe_code, reason = "nix has no functions for the priority of a thread")]
    // SAFETY: the call reads one structure. New threads and processes do not inherit the priority.
    unsafe {
        sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &raw const parameters) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_is_raised_and_given_back() {
        let real_time = RealTime::begin();
        assert_eq!(policy() == SCHED_RR, real_time.changed);
        let inherited = std::thread::spawn(policy).join().unwrap();
        assert_eq!(inherited, SCHED_OTHER);
        drop(real_time);
        assert_eq!(policy(), SCHED_OTHER);
    }
}
