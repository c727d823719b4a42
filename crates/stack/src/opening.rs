//! Passive opens: a SYN reaches a listener, with the backlog and beyond it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reknit_tcp::segment::{Flags, Options, Segment, Timestamps};
use reknit_tcp::{Identity, SeqNum, Stream};
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Decoded, HOP_LIMIT};

use crate::cookie;
use crate::flow::Flow;
use crate::listener::ListenerId;
use crate::socket::{Owner, Socket};
use crate::stack::{Stack, Transmit};

impl Stack {
    /// The listener for `local`: one for this address, else one for all addresses.
    pub(crate) fn listener_at(&self, local: SocketAddr) -> Option<ListenerId> {
        let all: IpAddr = if local.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let exact = SocketAddr::new(local.ip(), local.port());
        let listening = &self.listening;
        listening.get(&exact).or_else(|| listening.get(&SocketAddr::new(all, local.port()))).copied()
    }

    /// A SYN for a listener. Our sequence numbers begin after `above`, those of an earlier connection on this flow.
    pub(crate) fn on_syn(
        &mut self,
        now: Instant,
        id: ListenerId,
        flow: Flow,
        arrived: &Decoded<'_>,
        above: Option<SeqNum>,
    ) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        if listener.queue.len() >= listener.backlog || arrived.hop_limit < listener.prepared.options.least_hop_limit {
            self.counters.queue_overflows += 1;
            return;
        }
        if listener.half_open >= listener.syn_backlog || self.table.len() >= self.options.most_sockets {
            if listener.syn_cookies {
                listener.cookies_until = now + cookie::LIFETIME;
                self.answer_with_cookie(now, id, flow, &arrived.segment);
            } else {
                self.counters.queue_overflows += 1;
            }
            return;
        }
        listener.half_open += 1;
        let prepared = listener.prepared.clone();
        let config = prepared.config(flow.local.is_ipv6());
        let mut identity = self.identity(now, &flow);
        if let Some(above) = above.filter(|above| !above.before(identity.isn)) {
            identity.isn = above.plus(1 << 16);
        }
        let send_buffer = prepared.options.send_buffer;
        let plugins = prepared.options.variant.build();
        let mut stream = Stream::listen(now, config, plugins, identity, send_buffer);
        self.start(now, &mut stream, &flow);
        stream.connection_mut().limit_receive_window(prepared.options.receive_window);
        stream.on_segment(now, &arrived.segment, arrived.payload);
        let socket = Socket::new(now, stream, flow, Owner::HalfOpen(id), prepared);
        let id = self.table.insert(Box::new(socket));
        self.wake(id.index);
    }

    /// The sequence numbers and timestamps of a new connection.
    pub(crate) fn identity(&self, now: Instant, flow: &Flow) -> Identity {
        Identity {
            isn: self.isn_key.isn(now, flow.local, flow.remote),
            timestamp_offset: self.isn_key.timestamp_offset(flow.local, flow.remote),
        }
    }

    /// Gives a new connection what it must know from outside: what is known of the path, and secret bits.
    pub(crate) fn start(&mut self, now: Instant, stream: &mut Stream, flow: &Flow) {
        stream.set_secret(self.isn_key.secret(flow.local, flow.remote));
        if let Some(mtu) = self.paths.mtu(now, flow.remote.ip()) {
            stream.connection_mut().limit_segment_size(now, crate::options::mss_for(mtu, flow.remote.is_ipv6()));
        }
    }

    fn answer_with_cookie(&mut self, now: Instant, id: ListenerId, flow: Flow, syn: &Segment) {
        let Some(listener) = self.listeners.get(&id) else { return };
        let config = listener.prepared.config(flow.local.is_ipv6());
        let sack = syn.options.sack_permitted && config.sack;
        let clock = (now.as_nanos() / Duration::from_millis(1).as_nanos()) as u32;
        let clock = clock.wrapping_add(self.identity(now, &flow).timestamp_offset);
        let stamped = syn.options.timestamps.filter(|_| config.timestamps);
        let options = Options {
            mss: Some(config.mss),
            window_scale: syn.options.window_scale.map(|_| config.window_shift()),
            sack_permitted: sack,
            timestamps: stamped.map(|theirs| Timestamps { val: clock, ecr: theirs.val }),
            ..Options::default()
        };
        let segment = Segment {
            seq: cookie::make(&self.secret, now, &flow, syn, sack),
            ack: syn.seq.plus(1),
            window: listener.prepared.options.receive_window.0.min(u64::from(u16::MAX)) as u16,
            flags: Flags::SYN | Flags::ACK,
            options,
            ..Segment::default()
        };
        self.counters.cookies_sent += 1;
        self.answer(Transmit { endpoints: flow.endpoints(), hop_limit: HOP_LIMIT, segment });
    }

    /// A segment without a connection may answer a cookie. True if it does; it is then dealt with.
    pub(crate) fn on_cookie(&mut self, now: Instant, id: ListenerId, flow: Flow, arrived: &Decoded<'_>) -> bool {
        let Some(listener) = self.listeners.get(&id).filter(|listener| now < listener.cookies_until) else {
            return false;
        };
        let Some(syn) = cookie::check(&self.secret, now, &flow, &arrived.segment) else { return false };
        if listener.queue.len() >= listener.backlog || self.table.len() >= self.options.most_sockets {
            // The peer believes that it is connected; it sends again what is ignored now.
            self.counters.queue_overflows += 1;
            return true;
        }
        let prepared = listener.prepared.clone();
        let config = prepared.config(flow.local.is_ipv6());
        let identity = Identity { isn: SeqNum(arrived.segment.ack.0.wrapping_sub(1)), ..self.identity(now, &flow) };
        let (plugins, send_buffer) = (prepared.options.variant.build(), prepared.options.send_buffer);
        let mut stream = Stream::resume(now, config, plugins, identity, &syn, send_buffer);
        self.start(now, &mut stream, &flow);
        stream.connection_mut().limit_receive_window(prepared.options.receive_window.max(Bytes(u64::from(config.mss))));
        stream.on_segment(now, &arrived.segment, arrived.payload);
        self.counters.cookies_accepted += 1;
        let owner = Owner::HalfOpen(id);
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.half_open += 1; // until the socket is settled
        }
        let id = self.table.insert(Box::new(Socket::new(now, stream, flow, owner, prepared)));
        self.wake(id.index);
        true
    }
}
