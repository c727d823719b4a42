//! Listeners: who answers a SYN, and the queues before `accept`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use reknit_units::Instant;

use crate::error::Error;
use crate::flow::Flow;
use crate::options::{ListenOptions, Prepared};
use crate::socket::Owner;
use crate::stack::Stack;
use crate::table::SocketId;

/// Names a listener. It is never used for another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListenerId(pub(crate) u64);

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

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) id: ListenerId,
    pub(crate) local: SocketAddr,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) backlog: usize,
    pub(crate) syn_backlog: usize,
    pub(crate) syn_cookies: bool,
    /// Established connections that wait for `accept`.
    pub(crate) queue: VecDeque<SocketId>,
    pub(crate) half_open: usize,
    /// Until when a cookie may come back.
    pub(crate) cookies_until: Instant,
    /// The application has found the queue empty, and must be told of the next connection.
    pub(crate) wants_accept: bool,
}

impl Stack {
    /// Listens on `local`: an address of this host, or the unspecified address for all of one family.
    ///
    /// # Errors
    /// If the address is in use or not one of this host, or an option is invalid.
    pub fn listen(&mut self, local: SocketAddr, options: &ListenOptions) -> Result<ListenerId, Error> {
        options.socket.config.check()?;
        let local = SocketAddr::new(local.ip(), local.port());
        if !local.ip().is_unspecified() && !self.is_local(local.ip()) {
            return Err(self.not_local(local));
        }
        let local = if local.port() == 0 { self.free_port(local)? } else { local };
        if self.listening.contains_key(&local) {
            return Err(Error::InUse(local));
        }
        self.last_listener += 1;
        let id = ListenerId(self.last_listener);
        let listener = Listener {
            id,
            local,
            prepared: self.prepare(&options.socket),
            backlog: options.backlog.max(1),
            syn_backlog: options.syn_backlog,
            syn_cookies: options.syn_cookies,
            queue: VecDeque::new(),
            half_open: 0,
            cookies_until: Instant::ZERO,
            wants_accept: true,
        };
        self.listening.insert(local, id);
        self.listeners.insert(id, listener);
        Ok(id)
    }

    fn free_port(&mut self, local: SocketAddr) -> Result<SocketAddr, Error> {
        let nobody = Flow { local, remote: local };
        let Stack { ports, secret, listening, .. } = self;
        let port = ports.choose(secret, nobody, |flow| !listening.contains_key(&flow.local));
        port.map(|port| SocketAddr::new(local.ip(), port)).ok_or(Error::NoPort(local))
    }

    /// The address on which it listens.
    pub fn listening_on(&self, id: ListenerId) -> Option<SocketAddr> {
        self.listeners.get(&id).map(|listener| listener.local)
    }

    /// Takes the next established connection. None if there is none: [`crate::Event::Acceptable`] tells of the next.
    pub fn accept(&mut self, id: ListenerId) -> Option<SocketId> {
        let listener = self.listeners.get_mut(&id)?;
        let Some(socket) = listener.queue.pop_front() else {
            listener.wants_accept = true;
            return None;
        };
        if let Some(accepted) = self.table.get_mut(socket) {
            accepted.owner = Owner::Application;
        }
        self.wake(socket.index);
        Some(socket)
    }

    /// Stops listening. Connections that were not accepted are reset.
    pub fn unlisten(&mut self, now: Instant, id: ListenerId) {
        let Some(listener) = self.listeners.remove(&id) else { return };
        self.listening.remove(&listener.local);
        for socket in listener.queue {
            self.abort(now, socket);
            self.close(now, socket);
        }
    }
}
