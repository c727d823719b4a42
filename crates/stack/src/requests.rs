//! Connections that peers ask for in forwarding mode: the program decides before anything is answered. `add` is called as a
//! SYN without a socket or listener arrives, `cancel` as a RST does, `next` and `take` by the application.
//! Owned by [`crate::Stack`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;

use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Options, Segment};
use reknit_units::{Duration, Instant};

use crate::flow::FourTuple;

/// A SYN that is not answered for this long is forgotten when the next one arrives. Its peer has sent it again by then, or has given up.
const LIFETIME: Duration = Duration::from_secs(60);

/// Identifies a request; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(u64);

/// A connection that a peer asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// The peer.
    pub remote: SocketAddr,
    /// The address that the peer wants to reach.
    pub local: SocketAddr,
    /// The options of its SYN.
    pub options: Options,
}

/// A SYN that waits for the program's decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) flow: FourTuple,
    pub(crate) hop_limit: u8,
    pub(crate) syn: Segment,
    /// Our sequence numbers begin after this one, of an earlier connection on the flow.
    pub(crate) above: Option<SeqNum>,
    pub(crate) arrived: Instant,
}

/// The result of queueing a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Added {
    /// The program must be notified.
    New,
    /// The program has been notified of this request, or of others that it has not looked at yet.
    Told,
    /// Too many requests wait; the SYN is ignored.
    Full,
}

/// SYNs that wait.
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
}

impl Requests {
    /// At most `most` wait at the same time; zero refuses all.
    pub(crate) fn new(most: usize) -> Requests {
        let (pending, by_flow) = (BTreeMap::new(), BTreeMap::new());
        Requests { pending, by_flow, most, count: 0, seen: RequestId(0), wants_request: true }
    }

    /// A SYN has arrived.
    pub(crate) fn add(&mut self, now: Instant, pending: Pending) -> Added {
        self.forget_old(now);
        let key = (pending.flow.remote, pending.flow.local);
        if let Some(known) = self.by_flow.get(&key).and_then(|id| self.pending.get_mut(id)) {
            // Another sequence number: the peer has begun again.
            known.syn = pending.syn;
            return Added::Told;
        }
        if self.pending.len() >= self.most {
            return Added::Full;
        }
        self.count += 1;
        let id = RequestId(self.count);
        self.by_flow.insert(key, id);
        self.pending.insert(id, pending);
        if std::mem::take(&mut self.wants_request) { Added::New } else { Added::Told }
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((id, _)) = self.pending.first_key_value().filter(|(_, old)| old.arrived + LIFETIME <= now) {
            let id = *id;
            self.take(id);
        }
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
        let Some((&id, Pending { flow, syn, .. })) = next else {
            self.wants_request = true;
            return None;
        };
        self.seen = id;
        Some(Request { id, remote: flow.remote, local: flow.local, options: syn.options })
    }

    /// The program has decided.
    pub(crate) fn take(&mut self, id: RequestId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.by_flow.remove(&(pending.flow.remote, pending.flow.local));
        Some(pending)
    }
}
