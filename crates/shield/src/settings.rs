//! What a user asks for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use reknit_path::resequencer::Limits;
use reknit_units::Duration;

/// Where metrics are served if nothing else is given.
pub const METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9437);

/// All settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// What happens to packets.
    pub mode: Mode,
    /// The interfaces on which the packets arrive.
    pub interfaces: Vec<String>,
    /// The longest time that a packet is held.
    pub limit: Duration,
    /// The number of the first queue.
    pub first_queue: u16,
    /// The number of queues, each with a thread.
    pub queues: u16,
    /// Where metrics are served.
    pub metrics: SocketAddr,
}

/// What happens to packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nothing: flows are only watched.
    Observe,
    /// Early ones are held.
    Resequence,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mode: Mode::Observe,
            interfaces: Vec::new(),
            limit: Limits::default().time,
            first_queue: 29_290,
            queues: 2,
            metrics: METRICS,
        }
    }
}

impl Settings {
    /// The numbers of the queues.
    pub fn queue_numbers(&self) -> impl Iterator<Item = u16> {
        self.first_queue..self.first_queue.saturating_add(self.queues)
    }
}
