//! What every function does: check its arguments, keep panics inside, remember why it failed.
#![expect(unsafe_code, reason = "arguments from C are pointers")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use reknit_stack::{Error, ListenOptions, SocketOptions, Stack};

/// The codes of the header.
pub(crate) const OK: i32 = 0;
pub(crate) const WOULD_BLOCK: i32 = -1;
pub(crate) const ENDED: i32 = -2;
pub(crate) const SHUT_DOWN: i32 = -3;
pub(crate) const INVALID: i32 = -4;
pub(crate) const PANIC: i32 = -5;

/// A stack, and the options of sockets to come.
pub struct Host {
    pub(crate) stack: Stack,
    pub(crate) options: SocketOptions,
    pub(crate) packet: Vec<u8>,
    /// A function has panicked on it: its state may be inconsistent.
    pub(crate) is_broken: bool,
}

impl Host {
    pub(crate) fn listen_options(&self, backlog: usize) -> ListenOptions {
        ListenOptions { socket: self.options.clone(), backlog, ..ListenOptions::default() }
    }
}

/// Why a function failed: its code, and a line for `reknit_error`.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) i32, pub(crate) String);

impl Failure {
    pub(crate) fn invalid(text: impl Into<String>) -> Failure {
        Failure(INVALID, text.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::WouldBlock => WOULD_BLOCK,
            Error::Ended(_) | Error::Unreachable | Error::Refused => ENDED,
            Error::ShutDown => SHUT_DOWN,
            _ => INVALID,
        };
        Failure(code, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn remember(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = text);
}

/// The call has succeeded: no earlier error counts any more.
fn forget() {
    LAST.with(|last| {
        if !last.borrow().is_empty() {
            last.take();
        }
    });
}

/// Why the last call of this thread failed; empty if it did not.
#[unsafe(no_mangle)]
pub extern "C" fn reknit_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// Runs `act`. If it fails or panics, keeps the reason for `reknit_error`, and returns `fail` of the code.
pub(crate) fn guarded<R>(fail: impl Fn(i32) -> R, act: impl FnOnce() -> Result<R, Failure>) -> R {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(result)) => {
            forget();
            result
        }
        Ok(Err(Failure(code, text))) => {
            remember(&text);
            fail(code)
        }
        Err(_) => {
            remember("internal error in reknit; free the stack");
            fail(PANIC)
        }
    }
}

/// Runs `act` on a stack from C.
pub(crate) fn on_host<R>(
    host: *mut Host,
    fail: impl Fn(i32) -> R,
    act: impl FnOnce(&mut Host) -> Result<R, Failure>,
) -> R {
    guarded(fail, || {
        // SAFETY: the caller passes a stack from `reknit_stack_new` that was not freed, and uses it in one thread.
        let host = unsafe { host.as_mut() }.ok_or_else(|| Failure::invalid("the stack is NULL"))?;
        if std::mem::replace(&mut host.is_broken, true) {
            return Err(Failure(PANIC, "an earlier call has failed within reknit; free the stack".to_owned()));
        }
        let result = act(host);
        host.is_broken = false; // not reached after a panic
        result
    })
}

/// The same for a function that returns only a code.
pub(crate) fn run(host: *mut Host, act: impl FnOnce(&mut Host) -> Result<(), Failure>) -> i32 {
    on_host(host, |code| code, |host| act(host).map(|()| OK))
}

/// A text from C.
pub(crate) fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::invalid(format!("the {name} is NULL")));
    }
    // SAFETY: the caller passes a string that ends with NUL and lives during the call.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::invalid(format!("the {name} is not UTF-8")))
}

/// Refuses a length that no object in memory has, such as a negative one.
fn check_len(what: &str, count: usize, each: usize) -> Result<(), Failure> {
    let most = isize::MAX.cast_unsigned() / each;
    if count > most {
        return Err(Failure::invalid(format!("length = {count} of the {what}: must be at most {most}")));
    }
    Ok(())
}

/// Bytes from C.
pub(crate) fn bytes<'a>(pointer: *const u8, len: usize) -> Result<&'a [u8], Failure> {
    check_len("bytes", len, 1)?;
    match (pointer.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failure::invalid("the bytes are NULL")),
        // SAFETY: the caller passes `len` bytes that live during the call.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer, len) }),
    }
}

/// Pointers from C; there is at least one.
pub(crate) fn list<'a, T>(pointer: *const T, count: usize) -> Result<&'a [T], Failure> {
    check_len("list", count, size_of::<T>())?;
    // SAFETY: the caller passes `count` values that live during the call; the pointer is not null.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Frees a stack or a detector that C owned.
pub(crate) fn free<T>(owned: *mut T) {
    // SAFETY: the caller passes what `reknit_stack_new` or `reknit_recovery_new` returned, and does not use it again.
    drop(unsafe { Box::from_raw(owned) });
}

/// A buffer from C.
pub(crate) fn buffer<'a>(pointer: *mut u8, len: usize) -> Result<&'a mut [u8], Failure> {
    check_len("buffer", len, 1)?;
    match (pointer.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Failure::invalid("the buffer is NULL")),
        // SAFETY: the caller passes room for `len` bytes, initialised or not; they are only written.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len) }),
    }
}

/// Stores a result where C wants it.
pub(crate) fn store<T>(into: *mut T, value: T) -> Result<(), Failure> {
    if into.is_null() {
        return Err(Failure::invalid("the place for the result is NULL"));
    }
    // SAFETY: the caller passes room for one value.
    unsafe { into.write(value) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use reknit_stack::Options;
    use reknit_units::Instant;

    use super::*;

    fn last() -> String {
        LAST.with(|last| last.borrow().to_string_lossy().into_owned())
    }

    #[test]
    fn a_panic_becomes_an_error_and_ends_the_use_of_the_stack() {
        let stack = Stack::new(Instant::ZERO, Options::default(), [1; 32]);
        let mut host = Host { stack, options: SocketOptions::default(), packet: Vec::new(), is_broken: false };
        assert_eq!(on_host(&raw mut host, |code| code, |_| Ok(OK)), OK);
        assert_eq!(on_host(&raw mut host, |code| code, |_| panic!("of the test")), PANIC);
        assert_eq!(last(), "internal error in reknit; free the stack");
        assert_eq!(on_host(&raw mut host, |code| code, |_| Ok(OK)), PANIC);
        assert_eq!(last(), "an earlier call has failed within reknit; free the stack");
    }
}
