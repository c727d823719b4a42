//! Listeners: whether and how a SYN is answered, and the queues before `accept`. Called in `stack/opening.rs` as a SYN or the
//! answer to a cookie arrives, and in `stack/settle.rs` as a handshake completes or fails. Owned by [`crate::Stack`].

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use reknit_units::Instant;

use crate::bindings::Bindings;
use crate::cookie;
use crate::options::{ListenOptions, Prepared};
use crate::socket_id::SocketId;

/// Names a listener. It is never used for another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListenerId(u64);

impl ListenerId {
    /// As one number, for other languages. It is not 0.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The reverse of [`ListenerId::to_bits`]. Any number is allowed; most name no listener.
    pub fn from_bits(bits: u64) -> ListenerId {
        ListenerId(bits)
    }
}

/// How a SYN is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// With a new half-open connection.
    Open,
    /// With a cookie.
    Cookie,
    /// Not at all: a queue is full.
    Ignore,
}

/// One listener.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Its address and the first of its ports.
    local: SocketAddr,
    prepared: Arc<Prepared>,
    backlog: usize,
    syn_backlog: usize,
    syn_cookies: bool,
    /// Established connections that wait for `accept`.
    queue: VecDeque<SocketId>,
    half_open: usize,
    /// Until when the answer to a cookie may arrive.
    cookies_until: Instant,
    /// The application has found the queue empty, and must be notified of the next connection.
    wants_accept: bool,
}

impl Listener {
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Options of its connections.
    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// What to do with a SYN. `has_room`: the stack may have one more socket; otherwise a cookie would make the client believe
    /// that it is connected.
    pub(crate) fn admission(&self, hop_limit: u8, has_room: bool) -> Admission {
        if !has_room || self.is_full() || hop_limit < self.prepared.options().min_hop_limit {
            Admission::Ignore
        } else if self.half_open < self.syn_backlog {
            Admission::Open
        } else if self.syn_cookies {
            Admission::Cookie
        } else {
            Admission::Ignore
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

    /// True if no more connections may wait for `accept`.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.backlog
    }

    /// There is one more half-open connection. Called before its socket is created.
    pub(crate) fn add_half_open(&mut self) {
        self.half_open += 1;
    }

    /// A half-open connection has failed or was established.
    pub(crate) fn remove_half_open(&mut self) {
        self.half_open = self.half_open.saturating_sub(1);
    }

    /// A half-open connection is established and waits for `accept`. True if the application must be notified.
    pub(crate) fn on_established(&mut self, socket: SocketId) -> bool {
        self.remove_half_open();
        self.queue.push_back(socket);
        std::mem::take(&mut self.wants_accept)
    }

    /// The next established connection. If there is none, the application is notified of the next one.
    pub(crate) fn accept(&mut self) -> Option<SocketId> {
        let socket = self.queue.pop_front();
        self.wants_accept |= socket.is_none();
        socket
    }

    /// The connections that were not accepted.
    pub(crate) fn into_queue(self) -> VecDeque<SocketId> {
        self.queue
    }
}

/// All listeners, by name and by address.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    by_id: BTreeMap<ListenerId, Listener>,
    bindings: Bindings<ListenerId>,
    /// How many listeners there have been.
    count: u64,
}

impl Listeners {
    /// Adds a listener on ports that are free. Called after [`Listeners::is_free`].
    pub(crate) fn add(
        &mut self,
        ip: IpAddr,
        ports: RangeInclusive<u16>,
        prepared: Arc<Prepared>,
        options: &ListenOptions,
    ) -> ListenerId {
        self.count += 1;
        let id = ListenerId(self.count);
        let listener = Listener {
            local: SocketAddr::new(ip, *ports.start()),
            prepared,
            backlog: options.backlog.max(1),
            syn_backlog: options.syn_backlog,
            syn_cookies: options.syn_cookies,
            queue: VecDeque::new(),
            half_open: 0,
            cookies_until: Instant::ZERO,
            wants_accept: true,
        };
        self.bindings.add(ip, ports, id);
        self.by_id.insert(id, listener);
        id
    }

    pub(crate) fn remove(&mut self, id: ListenerId) -> Option<Listener> {
        let listener = self.by_id.remove(&id)?;
        self.bindings.remove(listener.local);
        Some(listener)
    }

    pub(crate) fn get(&self, id: ListenerId) -> Option<&Listener> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        self.by_id.get_mut(&id)
    }

    pub(crate) fn ids(&self) -> Vec<ListenerId> {
        self.by_id.keys().copied().collect()
    }

    /// True if there is a listener on exactly this address and port, and on no others.
    pub(crate) fn is_bound(&self, local: &SocketAddr) -> bool {
        self.bindings.has_only(local)
    }

    /// True if there is no listener on any of these.
    pub(crate) fn is_free(&self, ip: IpAddr, ports: &RangeInclusive<u16>) -> bool {
        self.bindings.is_free(ip, ports)
    }

    /// The listener for segments to `local`: one on this address, else one on all addresses of the family, else one on `[::]`,
    /// which is for both families.
    pub(crate) fn at(&self, local: SocketAddr) -> Option<ListenerId> {
        self.bindings.at(local)
    }
}
