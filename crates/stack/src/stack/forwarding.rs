//! Connections to any address: the program takes, refuses or ignores what peers ask for. `input.rs` calls `on_request` for a
//! SYN without a socket or listener; the rest are calls of the program, later.

use reknit_tcp::segment::Flags;
use reknit_tcp::{Segment, SeqNum, reset_for};
use reknit_units::Instant;
use reknit_wire::{Decoded, HOP_LIMIT};

use super::Stack;
use crate::answers::Transmit;
use crate::error::Error;
use crate::events::Event;
use crate::flow::FourTuple;
use crate::options::SocketOptions;
use crate::owner::Owner;
use crate::requests::{Added, Pending, Request, RequestId};
use crate::socket_id::SocketId;

impl Stack {
    /// A SYN for an address and port without a listener.
    pub(super) fn on_request(&mut self, now: Instant, flow: FourTuple, arrived: &Decoded<'_>, above: Option<SeqNum>) {
        // The peer retransmits the data of a SYN once the connection is open.
        let syn = Segment { len: 0, ..arrived.segment };
        self.add_request(&Pending { flow, hop_limit: arrived.hop_limit, syn, ack: None, above, arrived: now });
    }

    fn add_request(&mut self, pending: &Pending) {
        match self.requests.add(pending) {
            Added::Told => {}
            Added::New => self.events.push(Event::Requested),
            Added::Full => self.counters.queue_overflows += 1,
        }
    }

    /// A segment without a connection or listener may answer a cookie. True if it does, or if its flow waits for the program.
    pub(super) fn on_request_by_cookie(&mut self, now: Instant, flow: FourTuple, arrived: &Decoded<'_>) -> bool {
        if self.requests.has_answer(&flow) {
            return true; // the peer retransmits what is ignored now
        }
        if !self.requests.expects_cookies(now) {
            return false;
        }
        let Some(syn) = self.secrets.check_cookie(now, &flow, &arrived.segment) else { return false };
        self.counters.cookies_accepted += 1;
        // The peer also retransmits the data and the FIN that it may carry.
        let ack = Segment { len: 0, flags: Flags::ACK, ..arrived.segment };
        let hop_limit = arrived.hop_limit;
        self.add_request(&Pending { flow, hop_limit, syn, ack: Some(ack), above: None, arrived: now });
        true
    }

    /// The next connection that a peer asks for, to an address and port without a listener. None if there is none:
    /// [`crate::Event::Requested`] signals the next. Only with [`crate::Options::max_requests`].
    ///
    /// The peer waits until the program decides; after a minute the request is forgotten.
    pub fn next_request(&mut self) -> Option<Request> {
        self.requests.next()
    }

    /// Takes a connection: its SYN is answered now. [`crate::Event::Connected`] or [`crate::Event::Closed`] follows.
    ///
    /// # Errors
    /// [`Error::NoSocket`] if the peer has given up; [`Error::InUse`] if the addresses have a socket by now; [`Error::Full`] if
    /// the stack is at its limit; if an option is not valid.
    pub fn accept_request(&mut self, now: Instant, id: RequestId, options: &SocketOptions) -> Result<SocketId, Error> {
        options.config.check()?;
        if !self.can_make_room() {
            return Err(Error::Full(self.options.max_sockets));
        }
        let pending = self.requests.take(id).ok_or(Error::NoSocket)?;
        if self.sockets.find(&pending.flow).is_some() {
            return Err(Error::InUse(pending.flow.local));
        }
        let prepared = self.prepare(options);
        let arrived = Decoded {
            endpoints: pending.flow.endpoints().reversed(),
            hop_limit: pending.hop_limit,
            segment: pending.ack.unwrap_or(pending.syn),
            payload: &[],
        };
        Ok(if pending.ack.is_some() {
            self.resume(now, pending.flow, &prepared, Owner::Application, &pending.syn, &arrived)
        } else {
            self.open_passively(now, pending.flow, &prepared, Owner::Application, &arrived, pending.above)
        })
    }

    /// Answers a SYN with a cookie (RFC 4987 §3.6) and forgets it: if its address is not forged, the peer answers, and makes
    /// another [`Request`], with `answers_cookie`. For programs that do work for a connection before they accept it, when more
    /// of them than usual wait. What has answered a cookie goes on waiting. `options` must be those with which it is accepted.
    ///
    /// # Errors
    /// [`Error::NoSocket`] if the peer has given up; [`Error::Full`] if the stack is at its limit; if an option is not valid.
    pub fn answer_request_with_cookie(
        &mut self,
        now: Instant,
        id: RequestId,
        options: &SocketOptions,
    ) -> Result<(), Error> {
        options.config.check()?;
        if !self.can_make_room() {
            return Err(Error::Full(self.options.max_sockets)); // the peer would believe that it is connected
        }
        let pending = self.requests.get(id).ok_or(Error::NoSocket)?;
        if pending.ack.is_some() {
            return Ok(());
        }
        self.requests.take(id);
        self.requests.expect_cookie(now);
        let prepared = self.prepare(options);
        self.answer_with_cookie(now, &prepared, pending.flow, &pending.syn);
        Ok(())
    }

    /// Refuses a connection: the peer gets a RST.
    pub fn refuse_request(&mut self, id: RequestId) {
        if let Some(pending) = self.requests.take(id) {
            let segment = reset_for(&pending.ack.unwrap_or(pending.syn));
            self.answers.push(Transmit { endpoints: pending.flow.endpoints(), hop_limit: HOP_LIMIT, segment });
        }
    }

    /// Forgets a request: the peer gets no answer, as from a host that is not there.
    pub fn ignore_request(&mut self, id: RequestId) {
        self.requests.take(id);
    }
}
