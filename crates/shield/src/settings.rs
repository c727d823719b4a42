//! What a user asks for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration as StdDuration;

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
    /// The number of queues, each with a thread. With [`Mode::Equalise`] there is only one, since what it learns from one flow is
    /// for all.
    pub queues: u16,
    /// Where metrics are served.
    pub metrics: SocketAddr,
}

/// What happens to packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nothing: flows are only watched.
    Observe,
    /// Early ones of TCP flows are held.
    Resequence,
    /// Those that arrive on the faster interface are held for the difference, which is given or learned.
    Equalise {
        /// How long packets of the first interface are held.
        difference: Option<Duration>,
    },
}

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Observe => "observe",
            Mode::Resequence => "resequence",
            Mode::Equalise { .. } => "equalise",
        }
    }

    /// A worker that is silent for this long hangs. If it holds packets, traffic waits for this decision; if it only watches,
    /// nothing does, and the worker may be slow on a busy machine.
    pub(crate) fn longest_silence(self) -> StdDuration {
        match self {
            Mode::Observe => StdDuration::from_secs(5),
            Mode::Resequence | Mode::Equalise { .. } => StdDuration::from_millis(200),
        }
    }
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
        let queues = if matches!(self.mode, Mode::Equalise { .. }) { 1 } else { self.queues };
        self.first_queue..self.first_queue.saturating_add(queues)
    }
}
