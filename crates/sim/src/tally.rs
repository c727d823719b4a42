//! What all connections of a flow have shown, as far as it adds up.

use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_units::Bytes;

use crate::waits::Waits;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Octets that arrived in order.
    pub(crate) delivered: Bytes,
    /// Of connections that are gone.
    pub(crate) send: SendStats,
    pub(crate) receive: ReceiveStats,
    pub(crate) lost: u64,
    pub(crate) spurious_retransmissions: u64,
    pub(crate) false_cuts: u64,
    pub(crate) waits: Waits,
}
