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
    /// ICMP errors that were sent: about ports on which nobody listens, for instance.
    pub icmp_sent: u64,
    /// Echo requests (pings) that were answered.
    pub echo_replies: u64,
    /// ICMP errors and echo replies that were not sent, because of the limit.
    pub icmp_withheld: u64,
    /// UDP datagrams that arrived.
    pub datagrams_in: u64,
    /// UDP datagrams that were sent.
    pub datagrams_out: u64,
    /// UDP datagrams that arrived and were dropped because their socket's receive buffer was full.
    pub datagrams_dropped: u64,
    /// Fragments that arrived.
    pub fragments_in: u64,
    /// Packets that were put together from fragments.
    pub packets_reassembled: u64,
    /// Fragments that were dropped: they overlapped others, or there were too many.
    pub fragments_dropped: u64,
    /// Packets of which not all fragments have arrived in time.
    pub reassembly_timeouts: u64,
    /// Of connections whose application had closed them, or that nobody used: what the peer never acknowledged.
    pub undelivered: Undelivered,
    /// Times that the segment size was reduced because full-sized segments did not get through.
    pub black_holes: u64,
}
