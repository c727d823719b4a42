//! The C interface of reknit's stack (`include/reknit.h`), and of its loss detector for other transports
//! (`include/reknit_recovery.h`). The headers describe them; this crate is the implementation.
//!
//! Every function checks its pointers, and turns a panic into an error code. What it cannot check is that a pointer which
//! is not null points to what the header says.

mod address;
mod call;
mod datagrams;
mod options;
mod recovery;
mod sockets;
mod stack;

pub use call::reknit_error;
pub use datagrams::*;
pub use options::*;
pub use recovery::*;
pub use sockets::*;
pub use stack::*;
