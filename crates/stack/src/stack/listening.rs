//! The calls of applications to listen and accept.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use reknit_units::Instant;

use super::Stack;
use crate::error::Error;
use crate::flow::FourTuple;
use crate::listeners::{Listener, ListenerId};
use crate::options::ListenOptions;
use crate::socket_id::SocketId;

impl Stack {
    /// Listens on `local`: an address of this host, `0.0.0.0` for all of IPv4, or `[::]` for all of both families. A listener on
    /// `0.0.0.0` may exist together with one on `[::]`, which then gets IPv6 only. The addresses of IPv4 connections are IPv4.
    ///
    /// # Errors
    /// If the address is in use or not one of this host, or an option is invalid.
    pub fn listen(&mut self, local: SocketAddr, options: &ListenOptions) -> Result<ListenerId, Error> {
        let port = if local.port() == 0 { self.free_port(local)? } else { local.port() };
        self.listen_ports(local.ip(), port..=port, options)
    }

    /// Listens on several ports: on `1..=65535` for all. Listeners on single ports must be on other addresses.
    ///
    /// # Errors
    /// As [`Stack::listen`], and if there is no port.
    pub fn listen_ports(
        &mut self,
        ip: IpAddr,
        ports: RangeInclusive<u16>,
        options: &ListenOptions,
    ) -> Result<ListenerId, Error> {
        options.socket.config.check()?;
        self.check_ports(ip, &ports)?;
        if !self.listeners.is_free(ip, &ports) {
            return Err(Error::InUse(SocketAddr::new(ip, *ports.start())));
        }
        let prepared = self.prepare(&options.socket);
        Ok(self.listeners.add(ip, ports, prepared, options))
    }

    fn free_port(&mut self, local: SocketAddr) -> Result<u16, Error> {
        self.check_local(local)?;
        let nobody = FourTuple { local, remote: local };
        let listeners = &self.listeners;
        let is_free = |flow: &FourTuple| listeners.is_free(local.ip(), &(flow.local.port()..=flow.local.port()));
        self.ports.choose(&self.secrets.hash(), nobody, is_free).ok_or(Error::NoPort(local))
    }

    /// The address on which it listens, with the first of its ports.
    pub fn listening_on(&self, id: ListenerId) -> Option<SocketAddr> {
        self.listeners.get(id).map(Listener::local)
    }

    /// Takes the next established connection. None if there is none: [`crate::Event::Acceptable`] signals the next.
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
