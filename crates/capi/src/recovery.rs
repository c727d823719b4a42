//! The loss detector for other transports.
#![expect(unsafe_code, reason = "functions for C need fixed symbol names, and their arguments are pointers")]

use reknit_recovery::{Nanos, Recovery, Rtt};

use crate::call::{Failure, INVALID, OK, free, guarded, store};

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

/// Runs `act` on a detector from C.
fn on<R: Copy>(recovery: *mut Recovery, fail: R, act: impl FnOnce(&mut Recovery) -> Result<R, Failure>) -> R {
    guarded(
        |_| fail,
        || {
            // SAFETY: the caller passes a detector from `reknit_recovery_new` that was not freed, and uses it in one thread.
            let recovery = unsafe { recovery.as_mut() }.ok_or_else(|| Failure::invalid("the detector is NULL"))?;
            act(recovery)
        },
    )
}

fn tell(recovery: *mut Recovery, act: impl FnOnce(&mut Recovery)) -> i32 {
    on(recovery, INVALID, |recovery| {
        act(recovery);
        Ok(OK)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_new(granularity: u64) -> *mut Recovery {
    Box::into_raw(Box::new(Recovery::with_granularity(Nanos(granularity))))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_free(recovery: *mut Recovery) {
    if !recovery.is_null() {
        free(recovery);
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_sent(recovery: *mut Recovery, number: u64) -> i32 {
    tell(recovery, |recovery| recovery.on_sent(number))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_acked(recovery: *mut Recovery, now: u64, number: u64) -> i32 {
    tell(recovery, |recovery| recovery.on_acked(Nanos(now), number))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_acked_range(recovery: *mut Recovery, now: u64, first: u64, last: u64) -> i32 {
    tell(recovery, |recovery| recovery.on_acked_range(Nanos(now), first, last))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_rtt(recovery: *mut Recovery, smoothed: u64, latest: u64) -> i32 {
    tell(recovery, |recovery| recovery.on_rtt(Rtt { smoothed: Nanos(smoothed), latest: Nanos(latest) }))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_loss_time(recovery: *mut Recovery, number: u64, sent: u64) -> u64 {
    on(recovery, u64::MAX, |recovery| Ok(recovery.loss_time(number, Nanos(sent)).0))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_on_lost(recovery: *mut Recovery, now: u64, number: u64) -> i32 {
    tell(recovery, |recovery| recovery.on_lost(Nanos(now), number))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_decide(recovery: *mut Recovery, now: u64, into: *mut CDecision) -> i32 {
    on(recovery, INVALID, |recovery| {
        if into.is_null() {
            return Err(Failure::invalid("the decision is NULL"));
        }
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
        store(into, result).map(|()| OK)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_recovery_wait(recovery: *mut Recovery) -> u64 {
    on(recovery, u64::MAX, |recovery| Ok(recovery.wait().unwrap_or(Nanos::NEVER).0))
}
