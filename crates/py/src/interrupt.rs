//! Ctrl-C while something is computed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::raise;

/// How often Python is asked whether a signal has come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own, without the interpreter's lock. If a signal's handler raises, `work` is told to stop
/// and the exception goes on.
pub(crate) fn while_running<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, reknit_compare::Error> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (done, mut wait) = channel();
        let stop = &stop;
        scope.spawn(move || {
            let _ = done.send(work(stop)); // nobody listens after an interrupt
        });
        loop {
            let answer;
            (wait, answer) = py.detach(move || {
                let answer = wait.recv_timeout(LOOK_EVERY);
                (wait, answer)
            });
            match answer {
                Ok(result) => return result.map_err(raise),
                Err(RecvTimeoutError::Disconnected) => return Err(raise("the simulation broke down")),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                }
            }
        }
    })
}
