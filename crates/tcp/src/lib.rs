//! A TCP engine without I/O, without a clock and without randomness, whose loss detection, response and undo are
//! plug-ins.
//!
//! # Layout
//!
//! * [`Connection`] is the state machine of RFC 9293 around two halves, the sender and the receiver. Its inputs are
//!   [`Segment`]s and the current time; its results are [`Output`]s.
//! * [`Stream`] adds buffers to a connection, to write and read bytes. A simulator does not need it. An owner of many streams
//!   has [`Buffers`] that they use in turn.
//! * [`scoreboard`] has the state of each outstanding segment. Packet accounting is explained at the top of that module.
//! * [`facts`] describes one event; [`seams`](mod@seams) are the traits whose implementations make decisions from facts. The
//!   engine itself does not refer to any algorithm.
//! * [`Config`] has everything that is not an algorithm: sizes, clocks, features. [`stats`] counts events by cause.
//!
//! # A connection by hand
//!
//! ```text
//! let mut client = Connection::connect(now, config, plugins, identity);
//! loop {
//!     match client.poll(now) {
//!         Output::Send(segment) => network.send(segment),
//!         Output::WakeAt(at) => wait for a segment (client.on_segment) or until that time (client.on_timer),
//!         Output::Idle => wait for a segment or the application,
//!     }
//! }
//! ```

pub mod config;
mod connection;
#[cfg(test)]
mod diagram;
pub mod experiment;
pub mod facts;
mod isn;
mod pool;
mod receiver;
pub mod scoreboard;
pub mod seams;
pub mod segment;
mod sender;
pub mod seq;
pub mod stats;
mod stream;

pub use config::Config;
pub use connection::{CloseReason, Connection, Identity, Info, Output, SendLimit, State, TimeWait, reset_for};
pub use isn::IsnKey;
pub use receiver::Delivery;
pub use segment::Segment;
pub use seq::{Offset, SeqNum};
pub use stream::{Buffers, Stream};
