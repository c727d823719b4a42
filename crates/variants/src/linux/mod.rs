//! The mechanisms of the Linux kernel, one file each.
//!
//! Sources: the kernel's documentation (`ip-sysctl`), the RFCs that each file names, and traces of Linux 6.18, with
//! which this model is compared. "Observed" means that a running kernel of that version was seen to behave in this way.

pub mod acks;
pub(crate) mod before_rack;
pub mod cubic;
pub mod fack;
pub mod frto;
mod probe;
pub mod prr;
pub mod rack;
pub mod receive_buffer;
pub mod reduction;
pub mod reordering;
pub mod rto;
pub mod send_buffer;
mod ticks;
pub mod transmit;
pub mod undo;
pub(crate) mod variant;

use crate::variant::Variant;

/// The variants, in the order of lists.
pub const VARIANTS: &[Variant] = &[variant::VARIANT, before_rack::VARIANT];
