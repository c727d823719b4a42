//! A TCP engine without I/O, without a clock and without randomness, whose loss detection, response and undo are
//! plug-ins.
//!
//! # Layout
//!
//! * [`Connection`] is the state machine of RFC 9293 around two halves, the sender and the receiver. It takes
//!   [`Segment`]s and moments, and gives [`Output`]s.
//! * [`Stream`] puts buffers around a connection: write bytes, read bytes. A simulator leaves it away.
//! * [`scoreboard`] is what the sender knows of each outstanding segment, with the packet algebra at its top.
//! * [`facts`] is what one event told; [`seams`] are the questions that plug-ins answer from facts. The engine itself
//!   names no algorithm.
//! * [`Config`] holds what is no algorithm: sizes, clocks, features. [`stats`] counts by cause.
//!
//! # A connection by hand
//!
//! ```text
//! let mut client = Connection::connect(now, config, plugins, identity);
//! loop {
//!     match client.poll(now) {
//!         Output::Send(segment) => network.send(segment),
//!         Output::WakeAt(at) => wait for a segment (client.on_segment) or for that moment (client.on_timer),
//!         Output::Idle => wait for a segment or the application,
//!     }
//! }
//! ```

pub mod config;
mod connection;
pub mod experiment;
pub mod facts;
mod isn;
mod receiver;
pub mod scoreboard;
pub mod seams;
pub mod segment;
mod sender;
pub mod seq;
pub mod stats;
mod stream;

pub use config::Config;
pub use connection::{CloseReason, Connection, Identity, Info, Output, State, reset_for};
pub use isn::IsnKey;
pub use receiver::Delivery;
pub use segment::Segment;
pub use seq::{Offset, SeqNum};
pub use stream::Stream;
