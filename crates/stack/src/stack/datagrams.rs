//! UDP, ICMP echo and fragments: packets other than TCP segments. `Stack::on_packet` calls `on_other` for each.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use reknit_tcp::segment::{self, Segment};
use reknit_units::Instant;
use reknit_wire::{
    Datagram, DatagramError, Decoded, EchoRequest, Endpoints, Fragment, Icmp, IcmpError, IcmpKind, datagram_packet_len,
    encode_with,
};

use super::Stack;
use crate::error::Error;
use crate::flow::{FourTuple, is_host};
use crate::fragments::Reassembly;
use crate::requests::RequestId;
use crate::udp::{Bound, Received, UdpId, UdpOptions};

/// Arriving packets, packets to send, and time.
impl Stack {
    /// Processes an IP packet that is not a whole TCP segment: a UDP datagram, an ICMP message, or a fragment.
    pub fn on_other(&mut self, now: Instant, packet: &[u8]) {
        match Fragment::read(packet) {
            Some(fragment) => self.on_fragment(now, packet, &fragment),
            None => self.on_whole(now, packet),
        }
    }

    fn on_whole(&mut self, now: Instant, packet: &[u8]) {
        if let Some(datagram) = Datagram::read(packet) {
            self.on_datagram(now, &datagram);
        } else if let Some(echo) = EchoRequest::read(packet) {
            self.on_echo(now, &echo);
        } else if let Some(icmp) = Icmp::read(packet) {
            self.on_icmp(now, &icmp);
        } else if let Some(error) = DatagramError::read(packet) {
            self.on_datagram_error(&error);
        }
    }

    fn on_fragment(&mut self, now: Instant, packet: &[u8], fragment: &Fragment<'_>) {
        let (source, destination) = (fragment.key.source, fragment.key.destination);
        if !self.takes(destination) || self.is_local(source) || !is_host(source) {
            return;
        }
        self.counters.fragments_in += 1;
        match self.fragments.add(now, packet, fragment) {
            Reassembly::Waits => {}
            Reassembly::Dropped => self.counters.fragments_dropped += 1,
            Reassembly::Complete(whole) => {
                self.counters.packets_reassembled += 1;
                // A packet in fragments may contain a fragment, and so on; those are not read.
                match Decoded::read(&whole) {
                    Ok(segment) => self.on_segment(now, &segment),
                    Err(_) => self.on_whole(now, &whole),
                }
            }
        }
    }

    /// Processes a datagram.
    pub fn on_datagram(&mut self, now: Instant, datagram: &Datagram<'_>) {
        let flow = FourTuple::of_arrival(datagram.endpoints);
        if !self.takes(flow.local.ip()) || self.is_local(flow.remote.ip()) || !flow.is_between_hosts() {
            return;
        }
        self.counters.datagrams_in += 1;
        if let Some(id) = self.udp.socket_for(datagram.endpoints) {
            if !self.udp.deliver(id, datagram, &mut self.events) {
                self.counters.datagrams_dropped += 1;
            }
            return;
        }
        let addresses = (flow.local.ip(), flow.remote.ip());
        self.send_error(now, addresses, IcmpError::PortUnreachable, datagram.packet);
    }

    /// An ICMP message about a datagram: a connected socket reports it (RFC 1122 §4.1.3.3). That a datagram is too big, and that
    /// its hop limit was reached, is not an error of its destination.
    fn on_datagram_error(&mut self, message: &DatagramError) {
        let error = match message.kind {
            IcmpKind::PortUnreachable => Some(Error::Refused),
            IcmpKind::HostUnreachable => Some(Error::Unreachable),
            IcmpKind::TooBig { .. } | IcmpKind::TimeExceeded => None,
        };
        let is_accepted = error.is_some_and(|error| self.udp.on_unreachable(message.quoted, error, &mut self.events));
        let counters = &mut self.counters;
        *(if is_accepted { &mut counters.icmp_accepted } else { &mut counters.icmp_ignored }) += 1;
    }

    fn on_echo(&mut self, now: Instant, request: &EchoRequest<'_>) {
        let is_for_us = self.is_local(request.destination) && !self.is_local(request.source) && is_host(request.source);
        if !is_for_us || request.reply_len() > usize::from(self.options.mtu) {
            return;
        }
        let counters = &mut self.counters;
        *(if self.messages.echo(now, request) { &mut counters.echo_replies } else { &mut counters.icmp_withheld }) += 1;
    }

    fn send_error(&mut self, now: Instant, addresses: (IpAddr, IpAddr), error: IcmpError, packet: &[u8]) {
        let is_sent = self.messages.error(now, addresses, error, packet);
        let counters = &mut self.counters;
        *(if is_sent { &mut counters.icmp_sent } else { &mut counters.icmp_withheld }) += 1;
    }

    /// Drops packets whose fragments have not all arrived in time (RFC 1122 §3.3.2). The first step of `Stack::on_timer`.
    pub(super) fn expire_fragments(&mut self, now: Instant) {
        while let Some(expired) = self.fragments.expire(now) {
            self.counters.reassembly_timeouts += 1;
            if let Some(first) = expired.first {
                let addresses = (expired.destination, expired.source);
                self.send_error(now, addresses, IcmpError::ReassemblyTimeExceeded, &first);
            }
        }
    }

    /// Refuses a connection by an ICMP message: the peer learns that the destination cannot be reached, and why. If it has
    /// answered a cookie, it gets a RST.
    pub fn refuse_request_by_icmp(&mut self, now: Instant, id: RequestId, error: IcmpError) {
        if self.requests.get(id).is_some_and(|pending| pending.ack.is_some()) {
            return self.refuse_request(id); // TCP ignores such messages once it is connected
        }
        let Some(pending) = self.requests.take(id) else { return };
        let mut packet = Vec::new();
        // Its options may take more room than before when they are aligned. ICMP needs only the first eight bytes.
        let syn = Segment { options: segment::Options::default(), ..pending.syn };
        encode_with(pending.flow.endpoints().reversed(), pending.hop_limit, &syn, &[], &mut packet);
        self.send_error(now, (pending.flow.local.ip(), pending.flow.remote.ip()), error, &packet);
    }

    /// The next UDP datagram or ICMP message to send, as a whole packet. False if there is none.
    pub fn poll_other(&mut self, packet: &mut Vec<u8>) -> bool {
        let next = self.messages.poll().or_else(|| {
            self.counters.datagrams_out += u64::from(!self.udp.is_idle());
            self.udp.poll(&mut self.events)
        });
        match next {
            Some(next) => *packet = next,
            None => return false,
        }
        true
    }

    /// True if [`Stack::poll_other`] has something to send.
    pub(super) fn has_other(&self) -> bool {
        !self.messages.is_empty() || !self.udp.is_idle()
    }
}

/// Calls of applications.
impl Stack {
    /// Binds a UDP socket to an address of this host, to `0.0.0.0` for all of IPv4, or to `[::]` for all of both families; port 0
    /// is any free one.
    ///
    /// # Errors
    /// If the address is in use or not one of this host.
    pub fn bind_udp(&mut self, local: SocketAddr, options: &UdpOptions) -> Result<UdpId, Error> {
        if local.port() != 0 {
            return self.bind_udp_ports(local.ip(), local.port()..=local.port(), options);
        }
        self.check_local(local)?;
        let udp = &self.udp;
        let is_free = |flow: &FourTuple| {
            let port = flow.local.port();
            udp.is_free(&Bound::Ports(local.ip(), port..=port))
        };
        let nobody = FourTuple { local, remote: local };
        let port = self.ports.choose(&self.secrets.hash(), nobody, is_free).ok_or(Error::NoPort(local))?;
        self.bind_udp_ports(local.ip(), port..=port, options)
    }

    /// Binds a UDP socket to several ports: to `1..=65535` for all. Sockets on single ports must be bound to other addresses.
    ///
    /// # Errors
    /// If one of the ports is in use, there is none, or the address is not one of this host.
    pub fn bind_udp_ports(
        &mut self,
        ip: IpAddr,
        ports: RangeInclusive<u16>,
        options: &UdpOptions,
    ) -> Result<UdpId, Error> {
        self.check_ports(ip, &ports)?;
        let local = SocketAddr::new(ip, *ports.start());
        let bound = Bound::Ports(ip, ports);
        if self.udp.is_free(&bound) { Ok(self.udp.add(bound, options)) } else { Err(Error::InUse(local)) }
    }

    /// A UDP socket that gets all datagrams, to any address and port, for which no other is bound. Only with
    /// [`crate::Options::max_requests`].
    ///
    /// # Errors
    /// If there is one, or the stack does not forward.
    pub fn forward_udp(&mut self, options: &UdpOptions) -> Result<UdpId, Error> {
        if !self.forwards() {
            return Err(Error::NoForwarding);
        }
        let nowhere = SocketAddr::from(([0; 4], 0));
        if self.udp.is_free(&Bound::Rest) { Ok(self.udp.add(Bound::Rest, options)) } else { Err(Error::InUse(nowhere)) }
    }

    /// Checks what a socket is to be bound to, except for whether it is free.
    pub(super) fn check_ports(&self, ip: IpAddr, ports: &RangeInclusive<u16>) -> Result<(), Error> {
        if ports.is_empty() || *ports.start() == 0 {
            return Err(Error::NoPorts(*ports.start(), *ports.end()));
        }
        self.check_local(SocketAddr::new(ip, *ports.start()))
    }

    pub(super) fn check_local(&self, local: SocketAddr) -> Result<(), Error> {
        if local.ip().is_unspecified() || self.is_local(local.ip()) { Ok(()) } else { Err(self.not_local(local)) }
    }

    /// The address and the first port to which a UDP socket is bound; none if it gets the rest of all datagrams.
    pub fn udp_address(&self, id: UdpId) -> Option<SocketAddr> {
        match self.udp.bound(id)? {
            Bound::Ports(ip, ports) => Some(SocketAddr::new(*ip, *ports.start())),
            Bound::Rest => None,
        }
    }

    /// Connects a socket that is bound to a single port: from now on it gets only datagrams from `remote`, sends to it with
    /// [`Stack::send_udp_to_peer`], and reports ICMP messages about what it has sent. Datagrams of others find nobody. It can be
    /// connected again, to another address.
    ///
    /// # Errors
    /// If the socket is bound to several ports, or an address is not possible.
    pub fn connect_udp(&mut self, id: UdpId, remote: SocketAddr) -> Result<(), Error> {
        match self.udp.bound(id) {
            None => return Err(Error::NoSocket),
            Some(Bound::Ports(_, ports)) if ports.start() == ports.end() => {}
            Some(_) => return Err(Error::ManyPorts),
        }
        let endpoints = self.udp_endpoints(id, None, remote)?;
        self.udp.connect(id, endpoints);
        Ok(())
    }

    /// Where a connected UDP socket sends to.
    pub fn udp_peer(&self, id: UdpId) -> Option<SocketAddr> {
        self.udp.connection(id).map(|endpoints| endpoints.destination)
    }

    /// Receives a datagram. If it is longer than `into`, the rest is lost.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if there is none: [`crate::Event::UdpReadable`] follows. [`Error::Refused`] or [`Error::Unreachable`],
    /// once, if an ICMP message has said so about what a connected socket has sent.
    pub fn receive_udp(&mut self, id: UdpId, into: &mut [u8]) -> Result<Received, Error> {
        if !self.udp.has(id) {
            return Err(Error::NoSocket);
        }
        if let Some(error) = self.udp.take_error(id) {
            return Err(error);
        }
        self.udp.receive(id, into).ok_or(Error::WouldBlock)
    }

    /// Sends a datagram to `remote`. It comes from `local`, which must be an address and port that the socket is bound to; without
    /// it from the first that fits. Datagrams are not fragmented.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the send buffer is full: [`crate::Event::UdpWritable`] follows. If an address is not possible, or
    /// the datagram is too long for the interface.
    pub fn send_udp(
        &mut self,
        id: UdpId,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        payload: &[u8],
    ) -> Result<(), Error> {
        let endpoints = self.udp_endpoints(id, local, remote)?;
        let headers = datagram_packet_len(0, endpoints.destination.is_ipv6());
        let most = usize::from(self.options.mtu).saturating_sub(headers);
        if payload.len() > most {
            return Err(Error::TooLong(payload.len(), most));
        }
        if self.udp.send(id, endpoints, payload) { Ok(()) } else { Err(Error::WouldBlock) }
    }

    /// Sends a datagram to the peer of a connected socket.
    ///
    /// # Errors
    /// As [`Stack::send_udp`]; if the socket is not connected; and, as [`Stack::receive_udp`], what an ICMP message has reported.
    pub fn send_udp_to_peer(&mut self, id: UdpId, payload: &[u8]) -> Result<(), Error> {
        if !self.udp.has(id) {
            return Err(Error::NoSocket);
        }
        let Endpoints { source, destination } = self.udp.connection(id).ok_or(Error::NotConnected)?;
        match self.udp.take_error(id) {
            Some(error) => Err(error),
            None => self.send_udp(id, Some(source), destination, payload),
        }
    }

    /// The addresses of datagrams that a socket sends to `remote`.
    fn udp_endpoints(&self, id: UdpId, local: Option<SocketAddr>, remote: SocketAddr) -> Result<Endpoints, Error> {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let local = self.udp_source(id, local, remote)?;
        if self.is_local(remote.ip()) {
            return Err(Error::Own(remote));
        }
        if !(FourTuple { local, remote }).is_between_hosts() {
            return Err(Error::NoDestination(remote));
        }
        Ok(Endpoints { source: local, destination: remote })
    }

    /// The address from which a socket sends to `remote`.
    fn udp_source(&self, id: UdpId, wanted: Option<SocketAddr>, remote: SocketAddr) -> Result<SocketAddr, Error> {
        let bound = self.udp.bound(id).ok_or(Error::NoSocket)?;
        let fits = |address: &IpAddr| address.is_ipv4() == remote.is_ipv4();
        let source = match (bound, wanted) {
            (_, Some(wanted)) => SocketAddr::new(wanted.ip().to_canonical(), wanted.port()),
            (Bound::Rest, None) => return Err(Error::NoSource),
            (Bound::Ports(ip, ports), None) => {
                let mut own = self.options.addresses.iter().copied();
                let ip = if ip.is_unspecified() { own.find(fits) } else { Some(*ip) };
                SocketAddr::new(ip.ok_or(Error::NoFamily(remote))?, *ports.start())
            }
        };
        let is_bound = match bound {
            Bound::Ports(ip, ports) => {
                let has_address = if ip.is_unspecified() { self.is_local(source.ip()) } else { *ip == source.ip() };
                has_address && ports.contains(&source.port())
            }
            Bound::Rest => is_host(source.ip()) && source.port() != 0,
        };
        match (is_bound, fits(&source.ip())) {
            (false, _) => Err(Error::NotBound(source)),
            (true, false) => Err(Error::NoFamily(remote)),
            (true, true) => Ok(source),
        }
    }

    /// Closes a UDP socket. Datagrams in its send queue are still sent; those that have arrived are dropped.
    pub fn close_udp(&mut self, id: UdpId) {
        self.udp.remove(id);
    }
}
