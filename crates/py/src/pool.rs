//! The threads of computations. A process that was forked has none of its parent's threads, so it gets new ones: rayon's
//! global pool would wait for those of the parent for ever.

use std::mem;
use std::sync::{Arc, Mutex, TryLockError};

use pyo3::PyResult;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::raise;

/// The process whose threads these are, and the threads.
type Owned = (u32, Arc<ThreadPool>);

static POOL: Mutex<Option<Owned>> = Mutex::new(None);

/// The threads of this process.
///
/// # Errors
/// If none can be started.
pub(crate) fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut kept = match POOL.try_lock() {
        Ok(kept) => kept,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Another thread is here; or was, when this process was forked, and would never leave.
        Err(TryLockError::WouldBlock) => return start(),
    };
    let process = std::process::id();
    if let Some((_, pool)) = kept.as_ref().filter(|(owner, _)| *owner == process) {
        return Ok(pool.clone());
    }
    let pool = start()?;
    // Dropping the pool of the parent process would wait for its threads.
    mem::forget(kept.replace((process, pool.clone())));
    Ok(pool)
}

fn start() -> PyResult<Arc<ThreadPool>> {
    let pool = ThreadPoolBuilder::new().thread_name(|i| format!("reknit {i}")).build();
    pool.map(Arc::new).map_err(|error| raise(format!("no threads for the simulation: {error}")))
}
