//! Network paths that delay, reorder, drop and duplicate packets, as objects without a clock.
//!
//! A [`Profile`] describes a path: for each direction a list of stages, read from TOML. [`Pipe`] is one direction at
//! work: push packets in, pop them out when their time has come. The same object runs under the clock of a simulator and
//! under a real one, and the same seed makes the same decisions for the same packets.
//!
//! Each kind of stage is one file in `stages/`; adding one is a file and a line in its list.

mod builtin;
pub mod error;
mod flow;
mod pipe;
mod population;
mod profile;
mod random;
mod router;
mod run_length;
mod schema;
pub mod stages;
mod train;

pub use builtin::{NAMES, builtin};
pub use flow::flow_hash;
pub use pipe::{Lost, Packet, Pipe};
pub use population::RandomPath;
pub use profile::{Direction, Named, Profile, is_file_name, set};
pub use random::{Phases, Stream, StreamId, Variate};
pub use router::{DropRange, Notice};
pub use run_length::RunLengths;
pub use schema::schema;
pub use stages::Label;
pub use train::{Arrival, Train, TrainResult};
