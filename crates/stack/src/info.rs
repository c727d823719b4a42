//! A snapshot of a socket, made by [`crate::Stack::info`].

use std::net::SocketAddr;

use reknit_tcp::Info;
use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_units::Bytes;

use crate::busy::BusyTimes;

/// The variables and counters of a socket, similar to Linux's `tcp_info`.
#[derive(Clone, Debug)]
pub struct SocketInfo {
    /// This end.
    pub local: SocketAddr,
    /// The peer.
    pub remote: SocketAddr,
    /// The engine's variables.
    pub tcp: Info,
    /// Counters of the sending side.
    pub sent: SendStats,
    /// Counters of the receiving side.
    pub received: ReceiveStats,
    /// How long there was something to send, and what limited the rate.
    pub times: BusyTimes,
    /// Bytes that can be read.
    pub readable: Bytes,
    /// Bytes that were written and are not acknowledged.
    pub unacknowledged: Bytes,
    /// The receive window as it has grown so far.
    pub receive_window: Bytes,
    /// The largest segment that is sent, options included.
    pub segment_size: u16,
}
