//! What a stack counts.

use crate::undelivered::Undelivered;

/// What the stack has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments that arrived.
    pub segments_in: u64,
    /// Segments that were sent.
    pub segments_out: u64,
    /// RSTs in answer to segments that belonged to nothing.
    pub resets_sent: u64,
    /// Such segments that were not answered, because of the limit.
    pub resets_withheld: u64,
    /// SYNs that were answered with a cookie.
    pub cookies_sent: u64,
    /// Connections that were opened by a cookie.
    pub cookies_accepted: u64,
    /// SYNs and last segments of handshakes that were ignored because a queue was full.
    pub queue_overflows: u64,
    /// SYNs that have replaced a connection in TIME-WAIT (RFC 6191).
    pub time_wait_reused: u64,
    /// ICMP messages that changed something.
    pub icmp_accepted: u64,
    /// ICMP messages that fit no connection, or claimed what cannot be.
    pub icmp_ignored: u64,
    /// Of connections whose application had closed them, or that nobody used: what the peer never acknowledged.
    pub undelivered: Undelivered,
    /// Times that the segment size was reduced because full-sized segments did not get through.
    pub black_holes: u64,
}
