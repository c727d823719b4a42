//! Proof that a fast path (`connection/expected.rs`, `sender/expected.rs`) changes exactly what the slow path does. Tests call
//! [`begin`]. From then on, in builds with debug assertions, one segment of so many is also processed by a clone of the
//! connection, on the slow path; if the connection itself took a fast path, both must have the same state afterwards: all of
//! it, with plug-ins and pending segments.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// Zero before [`begin`].
static INTERVAL: AtomicU64 = AtomicU64::new(0);
static PROCESSED: AtomicU64 = AtomicU64::new(0);
static COMPARED: AtomicU64 = AtomicU64::new(0);

/// Which paths the connection of this thread may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Any,
    /// A fast one was taken.
    Fast,
    SlowOnly,
}

thread_local! {
    static TAKEN: Cell<Taken> = const { Cell::new(Taken::Any) };
}

/// From now on, one of `interval` segments is compared, in all connections of this process. Has no effect without debug
/// assertions.
pub fn begin(interval: u64) {
    INTERVAL.store(interval.max(1), Ordering::Relaxed);
}

/// True if the next segment is compared.
fn is_due() -> bool {
    let interval = INTERVAL.load(Ordering::Relaxed);
    interval > 0 && PROCESSED.fetch_add(1, Ordering::Relaxed).is_multiple_of(interval)
}

/// How many segments have taken a fast path with the same result as the slow one.
pub fn segments() -> u64 {
    COMPARED.load(Ordering::Relaxed)
}

/// True if the connection must take the slow path now. Called before a fast path is taken.
pub(crate) fn takes_slow_path() -> bool {
    cfg!(debug_assertions) && TAKEN.get() == Taken::SlowOnly
}

/// A fast path is taken.
pub(crate) fn note_fast_path() {
    if cfg!(debug_assertions) {
        TAKEN.set(Taken::Fast);
    }
}

/// Lets `connection` process a segment, and a clone of it on the slow path.
pub(crate) fn compare<C, R>(connection: &mut C, process: impl Fn(&mut C) -> R) -> R
where
    C: Clone + PartialEq + Debug,
    R: PartialEq,
{
    if !cfg!(debug_assertions) || !is_due() {
        return process(connection);
    }
    let mut slow = connection.clone();
    TAKEN.set(Taken::SlowOnly);
    let result_of_slow = process(&mut slow);
    TAKEN.set(Taken::Any);
    let result = process(connection);
    if TAKEN.get() == Taken::Fast {
        let is_same = result == result_of_slow && *connection == slow;
        assert!(is_same, "the fast path differs from the slow one: {}", difference(connection, &slow));
        COMPARED.fetch_add(1, Ordering::Relaxed);
    }
    result
}

/// The first line in which the states differ, and the lines before it.
fn difference<C: Debug>(fast: &C, slow: &C) -> String {
    let (fast, slow) = (format!("{fast:#?}"), format!("{slow:#?}"));
    let same = fast.lines().zip(slow.lines()).take_while(|(fast, slow)| fast == slow).count();
    let lines = |text: &str| text.lines().skip(same.saturating_sub(8)).take(10).collect::<Vec<_>>().join("\n");
    format!("\n{}\n--- slow:\n{}", lines(&fast), lines(&slow))
}
