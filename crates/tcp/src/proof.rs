//! Proof that a short way changes exactly what the long way does. In builds with debug assertions, after [`begin`], a clone of
//! the connection takes the long way for each segment, and if the connection itself takes a short one (`connection/expected.rs`,
//! `sender/expected.rs`), both must have the same state afterwards: all of it, with plug-ins and pending segments.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// Zero before [`begin`].
static INTERVAL: AtomicU64 = AtomicU64::new(0);
static PROCESSED: AtomicU64 = AtomicU64::new(0);
static COMPARED: AtomicU64 = AtomicU64::new(0);

/// Which ways the connection of this thread may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Any,
    /// A short one was taken.
    Short,
    LongOnly,
}

thread_local! {
    static WAY: Cell<Way> = const { Cell::new(Way::Any) };
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

/// How many segments have taken a short way with the same result as the long one.
pub fn segments() -> u64 {
    COMPARED.load(Ordering::Relaxed)
}

/// True if the connection must take the long way now. Called before a short way is taken.
pub(crate) fn takes_long_way() -> bool {
    cfg!(debug_assertions) && WAY.get() == Way::LongOnly
}

/// A short way is taken.
pub(crate) fn note_short_way() {
    if cfg!(debug_assertions) {
        WAY.set(Way::Short);
    }
}

/// Lets `connection` process a segment, and a clone of it on the long way.
pub(crate) fn compare<C, R>(connection: &mut C, process: impl Fn(&mut C) -> R) -> R
where
    C: Clone + PartialEq + Debug,
    R: PartialEq,
{
    if !cfg!(debug_assertions) || !is_due() {
        return process(connection);
    }
    let mut long = connection.clone();
    WAY.set(Way::LongOnly);
    let result_of_long = process(&mut long);
    WAY.set(Way::Any);
    let result = process(connection);
    if WAY.get() == Way::Short {
        let is_same = result == result_of_long && *connection == long;
        assert!(is_same, "the short way differs from the long one: {}", difference(connection, &long));
        COMPARED.fetch_add(1, Ordering::Relaxed);
    }
    result
}

/// The first line in which the states differ, and the lines before it.
fn difference<C: Debug>(short: &C, long: &C) -> String {
    let (short, long) = (format!("{short:#?}"), format!("{long:#?}"));
    let same = short.lines().zip(long.lines()).take_while(|(short, long)| short == long).count();
    let lines = |text: &str| text.lines().skip(same.saturating_sub(8)).take(10).collect::<Vec<_>>().join("\n");
    format!("\n{}\n--- long:\n{}", lines(&short), lines(&long))
}
