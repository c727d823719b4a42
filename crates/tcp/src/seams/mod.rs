//! The seams: small traits that take facts and return decisions, one for each decision that published algorithms make
//! differently.
//!
//! The engine calls them in a fixed order on every ACK (see `sender/ack.rs`). A plug-in never writes the scoreboard or the
//! window. Detecting a loss, responding to it and undoing the response are separate decisions, so algorithms for each can be
//! combined freely. Methods named `on_…` notify; the others return a decision. A method has a default body only if doing
//! nothing is right for most algorithms. `table.rs` lists all seams.

mod detection;
mod memory;
mod plugin;
mod receiver;
mod response;
mod send_buffer;
mod table;

pub use self::detection::*;
pub use self::memory::Memory;
pub(crate) use self::plugin::PluginSet;
pub use self::plugin::{Plugin, ShownName};
pub use self::receiver::*;
pub use self::response::*;
pub use self::send_buffer::*;
pub(crate) use self::table::SenderTraits;
pub use self::table::{Plugins, ReceiverPlugins, Seam, SenderPlugins};
