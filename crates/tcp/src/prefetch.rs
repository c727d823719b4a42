//! A hint to the processor to load state into its cache, for owners of many connections
//! ([`crate::Stream::prefetch_plugins`]).

/// The size of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks for the cache lines of `value`, and does not wait for them. Does nothing on other processors than x86-64.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no stable intrinsic"))]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of_val(value)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = std::ptr::from_ref(value).cast::<i8>().wrapping_add(offset);
        #[expect(unsafe_code, reason = "a prefetch is a hint: it reads and changes nothing")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line);
        }
    }
}
