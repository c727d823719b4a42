//! Connections that peers ask for in forwarding mode: the program decides before anything is answered. `add` is called as a
//! SYN without a socket or listener arrives, or the answer to a cookie, `cancel` as a RST does, `next` and `take` by the
//! application.
//! Owned by [`crate::Stack`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;

use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Options, Segment};
use reknit_units::{Duration, Instant};

use crate::cookie;
use crate::flow::FourTuple;

/// A SYN that is not answered for this long is forgotten when the next one arrives. Its peer has sent it again by then, or has given up.
const LIFETIME: Duration = Duration::from_secs(60);

/// Identifies a request; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(u64);

/// A connection that a peer asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// The peer.
    pub remote: SocketAddr,
    /// The address that the peer wants to reach.
    pub local: SocketAddr,
    /// The options of its SYN; after a cookie, those that it keeps.
    pub options: Options,
    /// It has answered a cookie ([`crate::Stack::answer_request_with_cookie`]): its address is not forged, and it believes that
    /// it is connected.
    pub answers_cookie: bool,
}

/// A SYN, or the answer to a cookie, that waits for the program's decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) flow: FourTuple,
    pub(crate) hop_limit: u8,
    pub(crate) syn: Segment,
    /// What has answered a cookie.
    pub(crate) ack: Option<Segment>,
    /// Our sequence numbers begin after this one, of an earlier connection on the flow.
    pub(crate) above: Option<SeqNum>,
    pub(crate) arrived: Instant,
}

/// The result of queueing a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Added {
    /// The program must be notified.
    New,
    /// The program has been notified of this request, or of others that it has not looked at yet.
    Told,
    /// Too many requests wait; this one is ignored.
    Full,
}

/// Requests that wait.
#[derive(Debug)]
pub(crate) struct Requests {
    /// In the order in which they have arrived.
    pending: BTreeMap<RequestId, Pending>,
    by_flow: BTreeMap<(SocketAddr, SocketAddr), RequestId>,
    most: usize,
    /// The last request that has arrived, and the last that the program has seen.
    count: u64,
    seen: RequestId,
    /// The program has found no request, and must be notified of the next one.
    wants_request: bool,
    /// Until when the answer to a cookie may arrive.
    cookies_until: Instant,
}

impl Requests {
    /// At most `most` wait at the same time; zero refuses all.
    pub(crate) fn new(most: usize) -> Requests {
        let (pending, by_flow) = (BTreeMap::new(), BTreeMap::new());
        let cookies_until = Instant::ZERO;
        Requests { pending, by_flow, most, count: 0, seen: RequestId(0), wants_request: true, cookies_until }
    }

    /// A SYN or the answer to a cookie has arrived.
    pub(crate) fn add(&mut self, pending: &Pending) -> Added {
        self.forget_old(pending.arrived);
        let key = (pending.flow.remote, pending.flow.local);
        if let Some(known) = self.by_flow.get(&key).and_then(|id| self.pending.get_mut(id)) {
            // Another sequence number: the peer has begun again.
            (known.syn, known.ack) = (pending.syn, pending.ack);
            return Added::Told;
        }
        if self.pending.len() >= self.most {
            return Added::Full;
        }
        self.count += 1;
        let id = RequestId(self.count);
        self.by_flow.insert(key, id);
        self.pending.insert(id, *pending);
        if std::mem::take(&mut self.wants_request) { Added::New } else { Added::Told }
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((id, _)) = self.pending.first_key_value().filter(|(_, old)| old.arrived + LIFETIME <= now) {
            let id = *id;
            self.take(id);
        }
    }

    /// A cookie is sent: its answer may arrive for a while.
    pub(crate) fn expect_cookie(&mut self, now: Instant) {
        self.cookies_until = now + cookie::LIFETIME;
    }

    /// True if a segment may be the answer to a cookie.
    pub(crate) fn expects_cookies(&self, now: Instant) -> bool {
        now < self.cookies_until
    }

    /// True if the peer has answered a cookie, and waits.
    pub(crate) fn has_answer(&self, flow: &FourTuple) -> bool {
        let id = self.by_flow.get(&(flow.remote, flow.local));
        id.and_then(|id| self.pending.get(id)).is_some_and(|pending| pending.ack.is_some())
    }

    /// The peer has given up: a RST has arrived.
    pub(crate) fn cancel(&mut self, flow: &FourTuple) {
        if let Some(id) = self.by_flow.get(&(flow.remote, flow.local)).copied() {
            self.take(id);
        }
    }

    /// The next request that the program has not seen.
    pub(crate) fn next(&mut self) -> Option<Request> {
        let next = self.pending.range((Bound::Excluded(self.seen), Bound::Unbounded)).next();
        let Some((&id, Pending { flow, syn, ack, .. })) = next else {
            self.wants_request = true;
            return None;
        };
        self.seen = id;
        let (remote, local) = (flow.remote, flow.local);
        Some(Request { id, remote, local, options: syn.options, answers_cookie: ack.is_some() })
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<Pending> {
        self.pending.get(&id).copied()
    }

    /// The program has decided.
    pub(crate) fn take(&mut self, id: RequestId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.by_flow.remove(&(pending.flow.remote, pending.flow.local));
        Some(pending)
    }
}
