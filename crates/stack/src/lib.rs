//! Many TCP connections without I/O: the TCP of a host, on top of the engine, which is a single connection. The caller
//! carries the packets.
//!
//! # Layout
//!
//! * [`Stack`] has sockets and listeners; `input`, `output` and `api` are what networks and applications call. `ahead` loads
//!   the state of many connections at once.
//! * `table` finds a socket by its flow, with a keyed hash; `wheel` has the timers of all sockets.
//! * `opening` and `cookie` answer SYNs, `time_wait` what comes after the end, `icmp` what routers say.
//!
//! # A host by hand
//!
//! ```text
//! stack.on_packet(now, &packet);                                      // a packet arrives
//! stack.on_timer(now);                                                // or stack.deadline() has come
//! while stack.poll_packet(now, &mut packet) { network.send(&packet); }
//! while let Some(event) = stack.next_event() { ... stack.read(..), stack.write(..), stack.accept(..) ... }
//! ```

mod ahead;
mod api;
mod busy;
mod cookie;
mod error;
mod flow;
mod icmp;
mod input;
mod limit;
mod listener;
mod opening;
mod options;
mod output;
mod paths;
mod ports;
mod size_search;
mod socket;
mod stack;
mod table;
mod time_wait;
mod wheel;

pub use api::{Shutdown, SocketInfo};
pub use busy::BusyTimes;
pub use error::Error;
pub use listener::ListenerId;
pub use options::{Linger, ListenOptions, Options, SocketOptions};
pub use stack::{Counters, Event, Stack, Transmit};
pub use table::SocketId;
