//! The stack itself: its parts, time, and events.
//!
//! The fields of the parts are private. The files of this folder combine the parts, each for one kind of call: `input`, `icmp`
//! and `datagrams` for packets, `opening` for SYNs, `output` for segments to send and time, `settle` for a socket that has
//! sent all it can, `listening`, `using`, `forwarding` and `draining` for applications.

mod datagrams;
mod draining;
mod forwarding;
mod icmp;
mod input;
mod listening;
mod opening;
mod output;
mod settle;
mod using;

pub use using::Shutdown;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reknit_units::{Bytes, Instant};

use crate::answers::Replies;
use crate::counters::Counters;
use crate::error::Error;
use crate::events::{Event, Events};
use crate::flow::is_host;
use crate::fragments::Fragments;
use crate::listeners::Listeners;
use crate::messages::Messages;
use crate::options::{Options, Prepared, SocketOptions};
use crate::path_mtus::PathMtus;
use crate::ports::Ports;
use crate::requests::Requests;
use crate::secrets::Secrets;
use crate::segment_size::PathMtu;
use crate::sockets::Sockets;
use crate::udp::UdpSockets;

/// Many TCP connections and UDP sockets, without I/O, clock or randomness.
///
/// Pass packets to [`Stack::on_packet`], or segments to [`Stack::on_segment`], datagrams to [`Stack::on_datagram`] and other
/// packets to [`Stack::on_other`]. After every call that changes something, poll [`Stack::poll_packet`] until there are no more
/// packets (or [`Stack::poll`] for segments and [`Stack::poll_other`] for other packets), then [`Stack::next_event`] until there
/// are no more events, and call [`Stack::on_timer`] at [`Stack::deadline`].
#[derive(Debug)]
pub struct Stack {
    options: Options,
    secrets: Secrets,
    sockets: Sockets,
    listeners: Listeners,
    requests: Requests,
    udp: UdpSockets,
    fragments: Fragments,
    messages: Messages,
    ports: Ports,
    path_mtus: PathMtus,
    answers: Replies,
    events: Events,
    counters: Counters,
    /// [`Stack::poll_packet`] last began with [`Stack::poll_other`].
    was_other: bool,
    /// The options that were prepared last: most sockets use the same.
    last_prepared: Option<Arc<Prepared>>,
    /// The buffer of [`Stack::on_timer`].
    due: Vec<u32>,
    /// The buffer of [`Stack::poll_packet`].
    payload: Vec<u8>,
}

impl Stack {
    /// A stack without sockets. `secret` must be random and kept secret; it protects sequence numbers, ports, cookies
    /// and the table of flows.
    pub fn new(now: Instant, options: Options, secret: [u8; 32]) -> Stack {
        let secrets = Secrets::new(secret);
        Stack {
            sockets: Sockets::new(now, secrets.hash(), &options),
            secrets,
            listeners: Listeners::default(),
            requests: Requests::new(options.max_requests),
            udp: UdpSockets::default(),
            fragments: Fragments::default(),
            messages: Messages::new(options.icmp_per_second),
            ports: Ports::new(),
            path_mtus: PathMtus::default(),
            answers: Replies::new(options.resets_per_second),
            events: Events::default(),
            counters: Counters::default(),
            was_other: false,
            last_prepared: None,
            due: Vec::new(),
            payload: Vec::new(),
            options,
        }
    }

    /// When [`Stack::on_timer`] must be called. The time is in the past if there are segments to send.
    pub fn deadline(&self) -> Instant {
        if !self.answers.is_empty() || self.has_other() {
            return Instant::ZERO;
        }
        self.sockets.deadline().min(self.fragments.deadline())
    }

    /// The next event; none if there is none now.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            let event = self.events.pop()?;
            let is_current = match event {
                Event::Acceptable(id) => self.listeners.get(id).is_some(),
                Event::Requested => true,
                Event::Connected(id)
                | Event::Readable(id)
                | Event::Writable(id)
                | Event::Delivered(id)
                | Event::Closed(id) => self.sockets.get(id).is_some(),
                Event::UdpReadable(id) | Event::UdpWritable(id) => self.udp.has(id),
            };
            if is_current {
                return Some(event);
            }
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number of sockets of all kinds: open, half-open, closing, and in TIME-WAIT.
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// What the buffers of all connections take, and the records of what they have in flight: see [`Options::max_memory`].
    pub fn memory(&self) -> Bytes {
        Bytes(self.sockets.memory() as u64)
    }

    /// True if nothing has to be sent, and only the ends of TIME-WAIT are waited for.
    pub fn is_finished(&self) -> bool {
        self.answers.is_empty() && !self.has_other() && self.sockets.is_idle()
    }

    /// True if `address` is one of this host.
    fn is_local(&self, address: IpAddr) -> bool {
        self.options.addresses.contains(&address)
    }

    /// True if packets to `address` are for this stack.
    fn takes(&self, address: IpAddr) -> bool {
        self.is_local(address) || self.forwards() && is_host(address)
    }

    /// True if peers may connect to any address.
    fn forwards(&self) -> bool {
        self.options.max_requests > 0
    }

    fn not_local(&self, address: SocketAddr) -> Error {
        let known: Vec<String> = self.options.addresses.iter().map(ToString::to_string).collect();
        Error::NotLocal(address, if known.is_empty() { "none".to_owned() } else { known.join(", ") })
    }

    /// True if [`Stack::make_room`] would make room for one more socket.
    fn can_make_room(&mut self) -> bool {
        self.sockets.len() < self.options.max_sockets || self.sockets.has_spare()
    }

    /// True if there may be one more socket. At the limit, removes one in TIME-WAIT or FIN-WAIT-2 that is no longer needed.
    /// Called just before a socket is inserted.
    fn make_room(&mut self) -> bool {
        self.sockets.len() < self.options.max_sockets || self.sockets.evict_one()
    }

    /// Options for this interface. Many sockets with the same options share them.
    fn prepare(&mut self, options: &SocketOptions) -> Arc<Prepared> {
        if let Some(prepared) = self.last_prepared.as_ref().filter(|prepared| prepared.is_of(options)) {
            return prepared.clone();
        }
        let prepared = Prepared::new(options, self.options.mtu);
        self.last_prepared = Some(prepared.clone());
        prepared
    }

    /// Remembers what a connection has learned about the path to its peer.
    fn remember(&mut self, now: Instant, peer: IpAddr, learned: PathMtu) {
        self.path_mtus.set(now, peer, learned.mtu);
        self.counters.black_holes += u64::from(learned.is_black_hole);
    }
}
