//! Many TCP connections without I/O: the TCP of a host, on top of the engine, which is a single connection. The caller
//! carries the packets.
//!
//! # Layout
//!
//! Every part keeps its fields to itself:
//!
//! * `table` finds a socket by its flow, with a keyed hash; `wheel` has the timers of all sockets, `send_queue` whose turn it
//!   is to send. `sockets` holds the three together.
//! * `socket` is one connection with its owner (`owner`), receive window (`window`) and segment size (`segment_size`);
//!   `time_wait` is what remains of one.
//! * `listeners` has the queues before `accept`; `secrets`, `cookie` and `ports` what others must not guess; `path_mtus` what is
//!   known of the path to each peer; `answers` the segments that belong to no socket.
//! * [`Stack`] lets them work together, in `stack/`.
//!
//! # A host by hand
//!
//! ```text
//! stack.on_packet(now, &packet);                                      // a packet arrives
//! stack.on_timer(now);                                                // or stack.deadline() has come
//! while stack.poll_packet(now, &mut packet) { network.send(&packet); }
//! while let Some(event) = stack.next_event() { ... stack.read(..), stack.write(..), stack.accept(..) ... }
//! ```

mod answers;
mod busy;
mod cookie;
mod counters;
mod error;
mod events;
mod flow;
mod info;
mod listeners;
mod options;
mod owner;
mod path_mtus;
mod ports;
mod rate_limit;
mod secrets;
mod segment_size;
mod send_queue;
mod socket;
mod socket_id;
mod sockets;
mod stack;
mod table;
mod time_wait;
mod wheel;
mod window;

pub use answers::Transmit;
pub use busy::BusyTimes;
pub use counters::Counters;
pub use error::Error;
pub use events::Event;
pub use info::SocketInfo;
pub use listeners::ListenerId;
pub use options::{Linger, ListenOptions, Options, SocketOptions};
pub use socket_id::SocketId;
pub use stack::{Shutdown, Stack};
