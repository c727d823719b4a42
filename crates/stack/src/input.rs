//! Arriving segments: which socket they belong to, and what happens to those that belong to none.

use reknit_tcp::segment::Flags;
use reknit_tcp::{Segment, SeqNum, State, reset_for};
use reknit_units::{Bytes, Instant};
use reknit_wire::{Decoded, HOP_LIMIT, Icmp};

use crate::flow::Flow;
use crate::socket::Owner;
use crate::stack::{Stack, Transmit};
use crate::table::Slot;

impl Stack {
    /// Processes an IP packet. What is neither TCP nor ICMP, or is damaged, is ignored.
    pub fn on_packet(&mut self, now: Instant, packet: &[u8]) {
        match Decoded::read(packet) {
            Ok(decoded) => self.on_segment(now, &decoded),
            Err(_) => {
                if let Some(icmp) = Icmp::read(packet) {
                    self.on_icmp(now, &icmp);
                }
            }
        }
    }

    /// Processes several segments that follow each other as one. `joined` has the header that they would have as one, and
    /// `payloads` are theirs.
    pub fn on_joined<'a>(
        &mut self,
        now: Instant,
        joined: &Decoded<'_>,
        payloads: impl Iterator<Item = &'a [u8]> + Clone,
    ) {
        let index = self.table.find(&Flow::of_arrival(joined.endpoints));
        if let Some(index) = index.filter(|index| self.table.live(*index).is_some()) {
            self.counters.segments_in += 1;
            self.deliver(now, index, joined, payloads);
        } else {
            let payload: Vec<u8> = payloads.flatten().copied().collect();
            self.on_segment(now, &Decoded { payload: &payload, ..*joined });
        }
    }

    /// Processes a segment. Several that a device has joined count as one.
    pub fn on_segment(&mut self, now: Instant, arrived: &Decoded<'_>) {
        let flow = Flow::of_arrival(arrived.endpoints);
        if !self.is_local(flow.local.ip()) || !is_host(&flow) {
            return;
        }
        self.counters.segments_in += 1;
        let Some(index) = self.table.find(&flow) else {
            self.on_stray(now, flow, arrived, None);
            return;
        };
        if let Some(above) = self.end_for_syn(index, &flow, &arrived.segment) {
            self.on_stray(now, flow, arrived, Some(above));
            return;
        }
        match self.table.slot(index) {
            Slot::Live(_) => self.deliver(now, index, arrived, std::iter::once(arrived.payload)),
            Slot::TimeWait(_) => self.on_segment_in_time_wait(now, index, &arrived.segment),
            Slot::Vacant => {}
        }
    }

    /// The segment belongs to this socket.
    fn deliver<'a>(
        &mut self,
        now: Instant,
        index: u32,
        arrived: &Decoded<'_>,
        payloads: impl Iterator<Item = &'a [u8]> + Clone,
    ) {
        let Some(socket) = self.table.live(index) else { return };
        if arrived.hop_limit < socket.least_hop_limit {
            return;
        }
        let received = socket.stream.connection().received();
        socket.stream.lend(&mut self.buffers);
        socket.stream.on_joined(now, &arrived.segment, payloads);
        socket.stream.give_back_pages(&mut self.buffers);
        let is_new = socket.stream.connection().received() > received;
        if is_new && matches!(socket.owner, Owner::Nobody { .. }) {
            // Nobody will ever read it (RFC 9293 §3.6.1, RFC 2525 §2.17).
            socket.stream.abort(now);
        }
        if socket.size_search.is_some() {
            self.search_size(now, index);
        }
        self.wake(index);
    }

    /// The segment belongs to no connection: it opens one, whose sequence numbers begin after `above`, or is refused.
    pub(crate) fn on_stray(&mut self, now: Instant, flow: Flow, arrived: &Decoded<'_>, above: Option<SeqNum>) {
        let segment = &arrived.segment;
        if segment.flags.has(Flags::RST) {
            return;
        }
        if let Some(listener) = self.listener_at(flow.local) {
            if segment.flags.has(Flags::SYN) && !segment.flags.has_any(Flags::ACK | Flags::FIN) {
                self.on_syn(now, listener, flow, arrived, above);
                return;
            }
            if segment.flags.has(Flags::ACK)
                && !segment.flags.has(Flags::SYN)
                && self.on_cookie(now, listener, flow, arrived)
            {
                return;
            }
        }
        self.refuse(now, flow, segment);
    }

    /// RFC 9293 §3.10.7.1, at a limited rate.
    fn refuse(&mut self, now: Instant, flow: Flow, segment: &Segment) {
        if self.resets.allows(now) {
            self.counters.resets_sent += 1;
            self.answer(Transmit { endpoints: flow.endpoints(), hop_limit: HOP_LIMIT, segment: reset_for(segment) });
        } else {
            self.counters.resets_withheld += 1;
        }
    }

    /// A timer of a socket fires.
    pub(crate) fn fire(&mut self, now: Instant, index: u32) {
        let Some(socket) = self.table.live(index) else { return };
        if let Owner::Nobody { until } = socket.owner
            && until <= now
        {
            socket.stream.abort(now);
        }
        if socket.stream.connection().deadline() <= now {
            socket.stream.lend(&mut self.buffers);
            socket.stream.on_timer(now);
            self.suspect_path(now, index);
        } else if socket.shrink_at <= now {
            socket.stream.shrink(now);
            socket.shrink_at = now + crate::output::LAST_GHOSTS;
        }
        self.wake(index);
    }

    /// Throws away what has arrived for an application that reads no more.
    pub(crate) fn discard(&mut self, now: Instant, index: u32) {
        let Some(socket) = self.table.live(index) else { return };
        let mut rest = [0; 2048];
        while socket.stream.connection().readable() > Bytes::ZERO && socket.state() != State::Closed {
            socket.stream.read(now, &mut rest);
        }
    }
}

/// True if both ends are single hosts: nothing is sent to a group or to the unspecified address (RFC 9293 §3.9.2.3).
pub(crate) fn is_host(flow: &Flow) -> bool {
    use std::net::IpAddr;
    let remote_is_host = match flow.remote.ip() {
        IpAddr::V4(ip) => !(ip.is_multicast() || ip.is_broadcast() || ip.is_unspecified()),
        IpAddr::V6(ip) => !(ip.is_multicast() || ip.is_unspecified()),
    };
    remote_is_host && flow.remote.port() != 0 && flow.local != flow.remote
}
