//! Handles Ctrl-C during a computation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::pool::pool;
use crate::raise;

/// How often Python is asked for pending signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs `work` in another thread, without the GIL. If a signal handler raises an exception, `work` is told to stop and
/// the exception propagates.
pub(crate) fn while_running<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, reknit_compare::Error> + Send,
) -> PyResult<T> {
    let pool = pool()?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (done, mut wait) = channel();
        let stop = &stop;
        scope.spawn(move || {
            let _ = done.send(pool.install(|| work(stop))); // there is no receiver after an interrupt
        });
        loop {
            let answer;
            (wait, answer) = py.detach(move || {
                let answer = wait.recv_timeout(LOOK_EVERY);
                (wait, answer)
            });
            match answer {
                Ok(result) => return result.map_err(raise),
                Err(RecvTimeoutError::Disconnected) => return Err(raise("the simulation ended unexpectedly")),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                }
            }
        }
    })
}
