//! The TCP of a host without I/O: many connections on top of the engine, which is a single connection. It also has UDP, ICMP
//! echo and reassembly of fragments. The caller transports the packets.
//!
//! # Layout
//!
//! The fields of every part are private:
//!
//! * `table` finds a socket by its flow, with a keyed hash; `wheel` has the timers of all sockets, `send_queue` the order in
//!   which they send. `sockets` combines the three.
//! * `socket` is one connection with its owner (`owner`), receive window (`window`) and segment size (`segment_size`);
//!   `time_wait` is what remains of it in TIME-WAIT.
//! * `deficit` gives each socket its share of time; `ingress` has the segments that wait for it.
//! * `memory` counts what all sockets hold, and limits it.
//! * `listeners` has the queues before `accept`; `secrets`, `cookie` and `ports` the values that others must not guess;
//!   `path_mtus` the MTU of the path to each peer; `requests` the SYNs that wait for the program to decide; `answers` the
//!   segments that belong to no socket.
//! * `udp` has the UDP sockets, `messages` the ICMP messages to send, `fragments` packets that have arrived in part;
//!   `bindings` shows which socket listens where.
//! * [`Stack`] combines them, in `stack/`.
//!
//! # Example: two hosts
//!
//! A packet takes 10 ms. If none arrives, a host must be called at [`Stack::deadline`].
//!
//! ```
//! use reknit_stack::{Event, ListenOptions, Options, SocketOptions, Stack};
//! use reknit_units::{Duration, Instant};
//!
//! let mut now = Instant::ZERO;
//! let host = |address: &str, secret| {
//!     let options = Options { addresses: vec![address.parse().unwrap()], ..Options::default() };
//!     Stack::new(now, options, [secret; 32]) // from the system's generator, for a real host
//! };
//! let (mut client, mut server) = (host("10.0.0.1", 1), host("10.0.0.2", 2));
//! let address = "10.0.0.2:7000".parse()?;
//! let listener = server.listen(address, &ListenOptions::default())?;
//! let socket = client.connect(now, None, address, &SocketOptions::default())?;
//! let (mut packet, mut received) = (Vec::new(), Vec::<u8>::new());
//! while received.len() < 5 {
//!     now = now + Duration::from_millis(10);
//!     client.on_timer(now);
//!     server.on_timer(now);
//!     while client.poll_packet(now, &mut packet) {
//!         server.on_packet(now, &packet);
//!     }
//!     while server.poll_packet(now, &mut packet) {
//!         client.on_packet(now, &packet);
//!     }
//!     while let Some(event) = client.next_event() {
//!         if event == Event::Connected(socket) {
//!             client.write(socket, b"hello")?;
//!         }
//!     }
//!     while let Some(event) = server.next_event() {
//!         match event {
//!             Event::Acceptable(_) => assert!(server.accept(listener).is_some()),
//!             Event::Readable(id) => {
//!                 let mut bytes = [0; 100];
//!                 let n = server.read(now, id, &mut bytes)?;
//!                 received.extend_from_slice(&bytes[..n]);
//!             }
//!             _ => {}
//!         }
//!     }
//! }
//! assert_eq!(received, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod bindings;
mod busy;
mod cookie;
mod counters;
mod deficit;
mod error;
mod events;
mod flow;
mod fragments;
mod info;
mod ingress;
mod listeners;
mod memory;
mod messages;
mod options;
mod owner;
mod path_mtus;
mod ports;
mod rate_limit;
mod requests;
mod secrets;
mod segment_size;
mod send_queue;
mod socket;
mod socket_id;
mod sockets;
mod spare;
mod stack;
mod table;
mod time_wait;
mod udp;
mod undelivered;
mod waiters;
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
pub use reknit_wire::IcmpError;
pub use requests::{Request, RequestId};
pub use socket_id::SocketId;
pub use stack::{Shutdown, Stack};
pub use udp::{Received, UdpId, UdpOptions};
pub use undelivered::Undelivered;
