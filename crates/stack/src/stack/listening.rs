//! What applications call to listen and accept.

use std::net::SocketAddr;

use reknit_units::Instant;

use super::Stack;
use crate::error::Error;
use crate::flow::Flow;
use crate::listeners::{Listener, ListenerId};
use crate::options::ListenOptions;
use crate::socket_id::SocketId;

impl Stack {
    /// Listens on `local`: an address of this host, `0.0.0.0` for all of IPv4, or `[::]` for all of both families. A listener on
    /// `0.0.0.0` may stand next to one on `[::]`, which then gets IPv6 only. The addresses of IPv4 connections are IPv4.
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
        if self.listeners.is_bound(&local) {
            return Err(Error::InUse(local));
        }
        let prepared = self.prepare(&options.socket);
        Ok(self.listeners.add(local, prepared, options))
    }

    fn free_port(&mut self, local: SocketAddr) -> Result<SocketAddr, Error> {
        let nobody = Flow { local, remote: local };
        let listeners = &self.listeners;
        let port = self.ports.choose(&self.secrets.hash(), nobody, |flow| !listeners.is_bound(&flow.local));
        port.map(|port| SocketAddr::new(local.ip(), port)).ok_or(Error::NoPort(local))
    }

    /// The address on which it listens.
    pub fn listening_on(&self, id: ListenerId) -> Option<SocketAddr> {
        self.listeners.get(id).map(Listener::local)
    }

    /// Takes the next established connection. None if there is none: [`crate::Event::Acceptable`] tells of the next.
    pub fn accept(&mut self, id: ListenerId) -> Option<SocketId> {
        let socket = self.listeners.get_mut(id)?.accept()?;
        if let Ok(accepted) = self.sockets.get_mut(socket) {
            accepted.accept();
        }
        self.sockets.wake(socket.place());
        Some(socket)
    }

    /// Stops listening. Connections that were not accepted are reset.
    pub fn unlisten(&mut self, now: Instant, id: ListenerId) {
        let Some(listener) = self.listeners.remove(id) else { return };
        for socket in listener.into_queue() {
            self.abort(now, socket);
            self.close(now, socket);
        }
    }
}
