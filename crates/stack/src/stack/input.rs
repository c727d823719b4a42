//! Arriving segments: which socket they belong to, and what happens to those that belong to none. The first step of every
//! segment: then the socket processes it, or `opening.rs`, `forwarding.rs` or a RST answers it.

use reknit_tcp::segment::Flags;
use reknit_tcp::{Segment, SeqNum, reset_for};
use reknit_units::Instant;
use reknit_wire::{Decoded, HOP_LIMIT};

use super::Stack;
use crate::answers::Transmit;
use crate::flow::FourTuple;
use crate::table::Slot;
use crate::time_wait::{Answer, may_reuse};

impl Stack {
    /// Prefetches the state of the connections of `segments`, of which the first 32 count. Changes nothing.
    ///
    /// With thousands of connections, a batch of segments is processed faster if it is passed to this method before
    /// [`Stack::on_segment`] is called for each of them.
    pub fn prefetch<'a>(&self, segments: impl IntoIterator<Item = &'a Decoded<'a>>) {
        self.sockets.prefetch(segments);
    }

    /// Whether segments that arrive from now on wait for the turn of their connection: [`Stack::poll`] then processes them, in
    /// fair shares. For an owner that has more packets to read than it can process: it reads all, so that those of busy
    /// connections do not keep out those of others. Of each connection, as much waits as its window allows; further segments are
    /// dropped.
    pub fn delay_arrivals(&mut self, delays: bool) {
        self.sockets.delay_arrivals(delays);
    }

    /// Processes an IP packet. Damaged packets and protocols other than TCP, UDP and ICMP are ignored.
    pub fn on_packet(&mut self, now: Instant, packet: &[u8]) {
        match Decoded::read(packet) {
            Ok(decoded) => self.on_segment(now, &decoded),
            Err(_) => self.on_other(now, packet),
        }
    }

    /// Processes several consecutive segments as one, like GRO. `joined` has the header of the coalesced segment, and `payloads`
    /// are the payloads of the single ones.
    pub fn on_joined<'a>(
        &mut self,
        now: Instant,
        joined: &Decoded<'_>,
        payloads: impl Iterator<Item = &'a [u8]> + Clone,
    ) {
        let index = self.sockets.find(&FourTuple::of_arrival(joined.endpoints));
        if let Some(index) = index.filter(|index| self.sockets.live(*index).is_some()) {
            self.counters.segments_in += 1;
            self.deliver(now, index, joined, payloads);
        } else {
            let payload: Vec<u8> = payloads.flatten().copied().collect();
            self.on_segment(now, &Decoded { payload: &payload, ..*joined });
        }
    }

    /// Processes a segment. A segment that a device has coalesced from several (GRO) counts as one.
    pub fn on_segment(&mut self, now: Instant, arrived: &Decoded<'_>) {
        let flow = FourTuple::of_arrival(arrived.endpoints);
        let is_from_outside = !self.is_local(flow.remote.ip()) && flow.is_between_hosts();
        if !self.takes(flow.local.ip()) || !is_from_outside {
            return;
        }
        self.counters.segments_in += 1;
        let Some(index) = self.sockets.find(&flow) else {
            self.on_stray(now, flow, arrived, None);
            return;
        };
        if let Some(above) = self.end_for_syn(index, &flow, &arrived.segment) {
            self.on_stray(now, flow, arrived, Some(above));
            return;
        }
        match self.sockets.slot(index) {
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
        if let Some(learned) = self.sockets.on_segment(now, index, arrived, payloads, &mut self.counters) {
            self.remember(now, arrived.endpoints.source.ip(), learned);
        }
    }

    /// It is the turn of a socket for which a segment has waited.
    pub(super) fn on_waiting_segment(&mut self, now: Instant, index: u32) {
        let Some(peer) = self.sockets.live(index).map(|socket| socket.flow().remote.ip()) else { return };
        if let Some(learned) = self.sockets.on_waiting_segment(now, index, &mut self.counters) {
            self.remember(now, peer, learned);
        }
    }

    /// If the segment is the SYN of a new connection on the flow of one in TIME-WAIT (RFC 6191 §2), ends the old one, whose
    /// application may still hold its socket. Returns the number after which the new one's sequence numbers begin. Called
    /// before the segment is delivered to the socket of its flow.
    fn end_for_syn(&mut self, index: u32, flow: &FourTuple, segment: &Segment) -> Option<SeqNum> {
        if !segment.flags.has(Flags::SYN) || segment.flags.has(Flags::ACK) {
            return None;
        }
        let old = match self.sockets.slot(index) {
            Slot::TimeWait(waiting) if waiting.expects_fin() => return None,
            Slot::TimeWait(waiting) => *waiting.state(),
            Slot::Live(socket) => socket.time_wait()?,
            Slot::Vacant => return None,
        };
        if !may_reuse(&old, segment) || !self.forwards() && self.listeners.at(flow.local).is_none() {
            return None;
        }
        self.counters.time_wait_reused += 1;
        match self.sockets.live(index) {
            Some(socket) => {
                socket.end_time_wait();
                self.on_closed(index);
            }
            None => self.sockets.remove(index),
        }
        Some(old.snd_nxt)
    }

    fn on_segment_in_time_wait(&mut self, now: Instant, index: u32, segment: &Segment) {
        let Slot::TimeWait(waiting) = self.sockets.slot(index) else { return };
        match waiting.on_segment(now, segment) {
            Some(Answer::Fin(answer)) => self.answers.push(answer),
            Some(Answer::Limited(answer)) if self.answers.is_allowed(now) => self.answers.push(answer),
            Some(Answer::Reset(answer)) => {
                self.answers.push(answer);
                self.sockets.remove(index);
            }
            Some(Answer::End) => self.sockets.remove(index),
            Some(Answer::Limited(_)) | None => {}
        }
    }

    /// The segment belongs to no connection: it opens one, whose sequence numbers begin after `above`, or is refused. Called
    /// after the socket was looked for.
    fn on_stray(&mut self, now: Instant, flow: FourTuple, arrived: &Decoded<'_>, above: Option<SeqNum>) {
        let segment = &arrived.segment;
        if segment.flags.has(Flags::RST) {
            self.requests.cancel(&flow);
            return;
        }
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.has_any(Flags::ACK | Flags::FIN);
        if let Some(listener) = self.listeners.at(flow.local) {
            if opens {
                self.on_syn(now, listener, flow, arrived, above);
                return;
            }
            if segment.flags.has(Flags::ACK)
                && !segment.flags.has(Flags::SYN)
                && self.on_cookie(now, listener, flow, arrived)
            {
                return;
            }
        } else if self.forwards() {
            if opens {
                return self.on_request(now, flow, arrived, above);
            }
            let may_answer = segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN);
            if may_answer && self.on_request_by_cookie(now, flow, arrived) {
                return;
            }
        }
        self.refuse(now, flow, segment);
    }

    /// RFC 9293 §3.10.7.1, at a limited rate.
    fn refuse(&mut self, now: Instant, flow: FourTuple, segment: &Segment) {
        if self.answers.is_allowed(now) {
            self.counters.resets_sent += 1;
            self.answers.push(Transmit {
                endpoints: flow.endpoints(),
                hop_limit: HOP_LIMIT,
                segment: reset_for(segment),
            });
        } else {
            self.counters.resets_withheld += 1;
        }
    }
}
