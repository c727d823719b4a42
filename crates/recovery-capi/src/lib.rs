//! The loss detector [`reknit-recovery`](https://docs.rs/reknit-recovery) for C: `include/reknit_recovery.h`, which describes it.
//! The library has the detector alone, without TCP; it allocates nothing.
//!
//! ```sh
//! cargo build --release -p reknit-recovery-capi
//! cc -o program program.c -I crates/recovery-capi/include target/release/libreknit_recovery_c.a -lpthread -ldl -lm
//! ```
//!
//! Every function checks its pointers. What it cannot check is that a pointer which is not null points to what the header says.
//!
//! The crate `reknit-capi` has the TCP stack for C.
#![expect(unsafe_code, reason = "functions for C need fixed symbol names, and their arguments are pointers")]

use reknit_recovery::{Config, Nanos, Recovery, Rtt};

/// A pointer was NULL.
const INVALID: i32 = -1;

/// `reknit_recovery` of the header: memory of the caller, with a detector in it.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct Memory([u64; 128]);

const _: () = assert!(size_of::<Recovery>() <= size_of::<Memory>() && align_of::<Recovery>() <= align_of::<Memory>());

/// `reknit_decision` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CDecision {
    next: u64,
    reduce: u64,
    undone: [u64; 4],
    undone_count: u32,
    reduces: i32,
}

/// Calls `act` with a detector from C, or returns `fail` if there is none.
fn on<R>(memory: *mut Memory, fail: R, act: impl FnOnce(&mut Recovery) -> R) -> R {
    // SAFETY: the caller passes NULL or memory that `reknit_recovery_init` has filled, or a copy, and uses it in one thread.
    // `Memory` is large and aligned enough.
    match unsafe { memory.cast::<Recovery>().as_mut() } {
        Some(recovery) => act(recovery),
        None => fail,
    }
}

fn tell(memory: *mut Memory, act: impl FnOnce(&mut Recovery)) -> i32 {
    on(memory, INVALID, |recovery| {
        act(recovery);
        0
    })
}

/// Writes to memory from C.
fn store<T>(into: *mut T, value: T) -> i32 {
    if into.is_null() {
        return INVALID;
    }
    // SAFETY: the caller passes memory of this type, which need not be initialized.
    unsafe { into.write(value) };
    0
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_init(memory: *mut Memory, granularity: u64, max_wait: u32) -> i32 {
    store(memory.cast(), Recovery::with(Config { granularity: Nanos(granularity), max_wait }))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_new_path(memory: *mut Memory) -> i32 {
    tell(memory, |recovery| *recovery = recovery.on_new_path())
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_sent(memory: *mut Memory, number: u64) -> i32 {
    tell(memory, |recovery| recovery.on_sent(number))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_acked(memory: *mut Memory, now: u64, number: u64) -> i32 {
    tell(memory, |recovery| recovery.on_acked(Nanos(now), number))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_acked_range(memory: *mut Memory, now: u64, first: u64, last: u64) -> i32 {
    tell(memory, |recovery| recovery.on_acked_range(Nanos(now), first, last))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_rtt(memory: *mut Memory, smoothed: u64, latest: u64) -> i32 {
    tell(memory, |recovery| recovery.on_rtt(Rtt { smoothed: Nanos(smoothed), latest: Nanos(latest) }))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_marked(memory: *mut Memory, largest: u64) -> i32 {
    on(memory, INVALID, |recovery| i32::from(recovery.on_marked(largest)))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_loss_time(memory: *mut Memory, number: u64, sent: u64) -> u64 {
    on(memory, u64::MAX, |recovery| recovery.loss_time(number, Nanos(sent)).0)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_lost(memory: *mut Memory, now: u64, number: u64) -> i32 {
    tell(memory, |recovery| recovery.on_lost(Nanos(now), number))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_settle(memory: *mut Memory) -> i32 {
    tell(memory, Recovery::settle)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_decide(memory: *mut Memory, now: u64, into: *mut CDecision) -> i32 {
    if into.is_null() {
        return INVALID;
    }
    on(memory, INVALID, |recovery| {
        let decision = recovery.decide(Nanos(now));
        let mut undone = [0; 4];
        undone[..decision.undone().len()].copy_from_slice(decision.undone());
        let result = CDecision {
            next: decision.next.0,
            reduce: decision.reduce.unwrap_or_default(),
            undone,
            undone_count: decision.undone().len() as u32,
            reduces: i32::from(decision.reduce.is_some()),
        };
        store(into, result)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_wait(memory: *mut Memory) -> u64 {
    on(memory, u64::MAX, |recovery| recovery.wait().unwrap_or(Nanos::NEVER).0)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_is_undecided(memory: *mut Memory) -> i32 {
    on(memory, INVALID, |recovery| i32::from(recovery.is_undecided()))
}
