//! Proof that a fast path (`connection/expected.rs`, `sender/expected.rs`) changes exactly what the slow path does. Tests call
//! [`begin`]. From then on, in builds with debug assertions, one segment of so many is also processed by a clone of the
//! connection, on the slow path; if the connection itself took a fast path, both must have the same state afterwards: all of
//! it, with plug-ins and pending segments.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// A fast path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FastPath {
    /// Of a connection, for data.
    Data,
    /// Of a connection, for an ACK without data.
    Ack,
    /// Of a sender, for an ACK of segments that were sent once.
    SentOnce,
}

/// Zero before [`begin`].
static INTERVAL: AtomicU64 = AtomicU64::new(0);
static PROCESSED: AtomicU64 = AtomicU64::new(0);
/// By [`FastPath`].
static COMPARED: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

thread_local! {
    static SLOW_ONLY: Cell<bool> = const { Cell::new(false) };
    /// The fast paths that the segment has taken.
    static TAKEN: Cell<[bool; 3]> = const { Cell::new([false; 3]) };
    /// What plug-ins were told about the segment. None if it is not compared.
    static TOLD: RefCell<Option<String>> = const { RefCell::new(None) };
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

/// How many segments have taken `path` with the same result as the slow one.
pub fn segments(path: FastPath) -> u64 {
    COMPARED[path as usize].load(Ordering::Relaxed)
}

/// True if the connection must take the slow path now. Called before a fast path is taken.
pub(crate) fn takes_slow_path() -> bool {
    cfg!(debug_assertions) && SLOW_ONLY.get()
}

/// A fast path is taken.
pub(crate) fn note_fast_path(path: FastPath) {
    if cfg!(debug_assertions) {
        let mut taken = TAKEN.get();
        taken[path as usize] = true;
        TAKEN.set(taken);
    }
}

/// Plug-ins were told `facts`, of which they may keep anything.
pub(crate) fn note_facts(facts: &impl Debug) {
    if cfg!(debug_assertions) {
        TOLD.with_borrow_mut(|told| told.iter_mut().for_each(|told| *told = format!("{facts:?}")));
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
    SLOW_ONLY.set(true);
    TOLD.set(Some(String::new()));
    let result_of_slow = process(&mut slow);
    SLOW_ONLY.set(false);
    TAKEN.set([false; 3]);
    let told_on_slow_path = TOLD.replace(Some(String::new()));
    let result = process(connection);
    let (taken, told) = (TAKEN.get(), TOLD.take());
    if taken != [false; 3] {
        let is_same = result == result_of_slow && *connection == slow;
        assert!(is_same, "the fast path differs from the slow one: {}", difference(connection, &slow));
        assert_eq!(told, told_on_slow_path, "plug-ins are told otherwise on the fast path");
        for (count, taken) in COMPARED.iter().zip(taken) {
            count.fetch_add(taken.into(), Ordering::Relaxed);
        }
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
