//! `reknit proxy`: connections are terminated here, so that the leg that reorders uses reknit's TCP, and the other leg the
//! kernel's.
//!
//! Packets are steered to a TUN device by marks and a routing table, not by NAT: however the process ends, the device and its
//! routes are gone, and new connections go the ordinary way.
//!
//! | module | responsibility |
//! |---|---|
//! | [`settings`] | what a user asks for, from a file or from options |
//! | [`steering`] | the rules that bring packets to the device, as a list of commands, and how they are removed |
//! | `marks` | marks of packets and connections |
//! | [`leftovers`] | one instance for each network namespace, and what a killed one has left |
//! | `dial` | the connection to the server |
//! | `refusals` | clients that were refused a moment ago get the same answer |
//! | `relay` | data in both directions, with half-close and resets |
//! | `service` | requests, signals, the end |
//! | `goodput`, `observe` | what the kernel's senders reach, and what ours reach |
//! | `metrics` | counters for Prometheus |

mod dial;
mod goodput;
pub mod leftovers;
mod marks;
mod metrics;
mod observe;
mod refusals;
mod relay;
mod service;
pub mod settings;
pub mod steering;

pub use service::{dry_run, run};
pub use settings::Settings;
