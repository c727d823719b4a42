//! Network paths that delay, reorder, drop and duplicate packets, as objects without a clock.
//!
//! A [`Profile`] describes a path: a list of stages for each direction, read from TOML. A [`Pipe`] is one direction of
//! a path: push packets in, and pop them out at their time. It works with the clock of a simulator and with a real one,
//! and with the same seed it makes the same decisions for the same packets.
//!
//! ```
//! use reknit_path::{Direction, Packet, Phases, Pipe, Profile};
//! use reknit_units::{Bytes, Duration, Instant};
//!
//! struct Ping(u32);
//!
//! impl Packet for Ping {
//!     fn size(&self) -> Bytes {
//!         Bytes(100)
//!     }
//!     fn copy(&self) -> Ping {
//!         Ping(self.0)
//!     }
//!     fn flow(&self) -> u32 {
//!         0
//!     }
//! }
//!
//! let profile = Profile::load("two-paths-50ms", &[])?; // every other packet takes 50 ms more
//! let mut pipe = Pipe::new(&profile, Direction::Forward, 1, Phases::Fixed);
//! for n in 0..4 {
//!     pipe.push(Instant::ZERO + Duration::from_millis(n), Ping(n as u32));
//! }
//! let mut order = Vec::new();
//! while let Some((_, Ping(n))) = pipe.pop(Instant::ZERO + Duration::from_secs(1)) {
//!     order.push(n);
//! }
//! assert_eq!(order, [0, 2, 1, 3]);
//! # Ok::<(), reknit_config::InputError>(())
//! ```
//!
//! Each kind of stage is a file in `stages/`. To add one, add a file and a line in the list of stages.

mod builtin;
pub mod causes;
mod density;
pub mod equaliser;
pub mod error;
mod flow;
mod pipe;
mod population;
mod profile;
mod queue;
mod random;
mod reordering;
pub mod resequencer;
mod router;
mod run_length;
mod schedule;
mod schema;
pub mod stages;
mod train;

pub use builtin::{NAMES, builtin};
pub use density::Density;
pub use flow::flow_hash;
pub use pipe::{Lost, Packet, Pipe};
pub use population::RandomPath;
pub use profile::{Direction, Profile, StageEntry, is_file_name, literal, set};
pub use queue::QueueSize;
pub use random::{Phases, Stream, StreamId, Variate};
pub use reordering::{FreeRuns, Late, Reordering};
pub use router::{DropNotice, DropRange};
pub use run_length::RunLengths;
pub use schema::schema;
pub use stages::SegmentTag;
pub use train::{Arrival, Train, TrainResult};
