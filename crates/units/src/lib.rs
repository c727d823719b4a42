//! The quantities that every other crate speaks in, each a type of its own.
//!
//! * [`Instant`] and [`Duration`]: integer nanoseconds. An `Instant` counts from an origin that the caller chose (the
//!   start of a simulation, the boot of a host); nothing here reads a clock.
//! * [`Bytes`] and [`Segments`]: the two ways to count data. They do not mix.
//! * [`Capacity`]: what a queue holds, in either.
//! * [`Rate`]: bits per second. [`Share`]: a number from 0 to 1, such as a loss rate.
//!
//! Each of them reads and prints itself with its unit (`25 ms`, `10 Mbit/s`, `50 packets`, `1 %`), and a text that does
//! not fit gets an [`UnitError`] that says what is allowed.

mod capacity;
mod quantity;
mod rate;
#[cfg(feature = "schemars")]
mod schema;
mod share;
mod size;
mod time;

pub use capacity::Capacity;
pub use quantity::UnitError;
pub use rate::Rate;
pub use share::Share;
pub use size::{Bytes, Segments};
pub use time::{Duration, Instant};
