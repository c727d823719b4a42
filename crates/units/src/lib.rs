//! The quantities that all other crates use, each with its own type.
//!
//! * [`Instant`] and [`Duration`]: integer nanoseconds. An `Instant` counts from an origin that the caller has chosen
//!   (the start of a simulation, the boot of a host); nothing here reads a clock.
//! * [`Bytes`] and [`Segments`]: the two ways to count data. They do not mix.
//! * [`Capacity`]: the capacity of a queue, in either.
//! * [`Rate`]: bits per second. [`Share`]: a number from 0 to 1, such as a loss rate.
//!
//! Each type parses and formats values with their unit (`25 ms`, `10 Mbit/s`, `50 packets`, `1 %`). Invalid text
//! gives a [`UnitError`] that states what is allowed.

mod capacity;
mod grouped;
mod quantity;
mod rate;
#[cfg(feature = "schemars")]
mod schema;
mod share;
mod size;
mod time;

pub use capacity::Capacity;
pub use grouped::grouped;
pub use quantity::UnitError;
pub use rate::Rate;
pub use share::Share;
pub use size::{Bytes, Segments};
pub use time::{Duration, Instant};
