//! The C interface of reknit's stack: `include/reknit.h`, which describes it.
//!
//! Every function checks its pointers, and turns a panic into an error code. What it cannot check is that a pointer which
//! is not null points to what the header says.
//!
//! The crate `reknit-recovery-capi` has the loss detector for other transports.

mod address;
mod call;
mod datagrams;
mod options;
mod sockets;
mod stack;

pub use call::reknit_error;
pub use datagrams::*;
pub use options::*;
pub use sockets::*;
pub use stack::*;
