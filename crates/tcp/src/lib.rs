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
//! # Two connections by hand
//!
//! The network takes 10 ms. `examples/by_hand.rs` has one that loses packets, so that timers matter.
//!
//! ```
//! use std::sync::Arc;
//!
//! use reknit_tcp::{Config, Connection, Identity, Output, SeqNum};
//! use reknit_units::{Bytes, Duration, Instant};
//!
//! let rack = reknit_variants::find("rack")?;
//! let plugins = || (rack.compose)().build();
//! let identity = |isn| Identity { isn: SeqNum(isn), timestamp_offset: 0 };
//! let (mut now, config) = (Instant::ZERO, Arc::new(Config::default()));
//! let mut server = Connection::listen(now, config.clone(), plugins(), identity(70_000));
//! let mut client = Connection::connect(now, config, plugins(), identity(1));
//! client.write(Bytes(100_000));
//! while client.acknowledged() < 100_000 {
//!     now = now + Duration::from_millis(10);
//!     client.on_timer(now);
//!     server.on_timer(now); // a delayed acknowledgment may be due
//!     while let Output::Send(segment) = client.poll(now) {
//!         server.on_segment(now, &segment);
//!     }
//!     server.read(now, server.readable());
//!     while let Output::Send(segment) = server.poll(now) {
//!         client.on_segment(now, &segment);
//!     }
//! }
//! assert_eq!(server.received(), 100_000);
//! # Ok::<(), reknit_variants::UnknownVariant>(())
//! ```

pub mod config;
mod connection;
#[cfg(test)]
mod diagram;
pub mod experiment;
pub mod facts;
mod isn;
mod pool;
mod prefetch;
pub mod proof;
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
