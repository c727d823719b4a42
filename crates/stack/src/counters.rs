//! The counters of a stack. The files of `stack/` count as they process packets. Owned by [`crate::Stack`].

use crate::undelivered::Undelivered;

/// The counters of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments that arrived.
    pub segments_in: u64,
    /// Segments that were sent.
    pub segments_out: u64,
    /// Segments that arrived and had to wait for the turn of their connection, because there was more to do than time.
    pub segments_delayed: u64,
    /// Of these, those that were dropped because too many waited.
    pub segments_dropped: u64,
    /// RSTs in answer to segments without a socket or listener.
    pub resets_sent: u64,
    /// Such segments that were not answered, because of the limit.
    pub resets_withheld: u64,
    /// SYNs that were answered with a cookie.
    pub cookies_sent: u64,
    /// Connections that were opened with a cookie.
    pub cookies_accepted: u64,
    /// SYNs and last segments of handshakes that were ignored because a queue was full.
    pub queue_overflows: u64,
    /// SYNs that have replaced a connection in TIME-WAIT (RFC 6191).
    pub time_wait_reused: u64,
    /// ICMP messages that had an effect.
    pub icmp_accepted: u64,
    /// ICMP messages that matched no connection, or whose claim was not plausible.
    pub icmp_ignored: u64,
    /// ICMP errors that were sent, for example about ports without a socket.
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
    /// Packets that were reassembled from fragments.
    pub packets_reassembled: u64,
    /// Fragments that were dropped: they overlapped others, or there were too many.
    pub fragments_dropped: u64,
    /// Packets whose fragments did not all arrive in time.
    pub reassembly_timeouts: u64,
    /// Data that the peer never acknowledged on connections that the application had closed.
    pub undelivered: Undelivered,
    /// Connections that were reset because there was little memory: they were closed, or had waited longest for their peers.
    pub memory_resets: u64,
    /// Closed connections that were reset because their peer had acknowledged nothing for [`crate::Options::orphan_timeout`].
    pub orphan_timeouts: u64,
    /// Segments whose data was not accepted because there was no memory. Peers send it again.
    pub memory_drops: u64,
    /// Times that the segment size was reduced because full-sized segments did not get through.
    pub black_holes: u64,
}
