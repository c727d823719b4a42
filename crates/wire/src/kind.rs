//! The kinds of the standard options.

/// RFC 9293 §3.2.
pub(crate) const END: u8 = 0;
/// RFC 9293 §3.2.
pub(crate) const NOP: u8 = 1;
/// RFC 9293 §3.7.1.
pub(crate) const MSS: u8 = 2;
/// RFC 7323 §2.2.
pub(crate) const WINDOW_SCALE: u8 = 3;
/// RFC 2018 §2.
pub(crate) const SACK_PERMITTED: u8 = 4;
/// RFC 2018 §3.
pub(crate) const SACK: u8 = 5;
/// RFC 7323 §3.2.
pub(crate) const TIMESTAMPS: u8 = 8;
