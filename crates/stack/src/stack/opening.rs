//! Passive opens: a SYN, or the answer to a SYN cookie, reaches a listener. Called by `input.rs` for segments without a
//! connection, and by `forwarding.rs` when the program takes a connection.

use std::sync::Arc;

use reknit_tcp::segment::{Flags, Options, Segment, Timestamps};
use reknit_tcp::{Identity, SeqNum, Stream};
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Decoded, HOP_LIMIT};

use super::Stack;
use crate::answers::Transmit;
use crate::flow::FourTuple;
use crate::listeners::{Admission, ListenerId};
use crate::options::{Prepared, mss_for};
use crate::owner::Owner;
use crate::socket::Socket;
use crate::socket_id::SocketId;

impl Stack {
    /// A SYN for a listener. Our sequence numbers begin after `above`, those of an earlier connection on this flow.
    pub(super) fn on_syn(
        &mut self,
        now: Instant,
        id: ListenerId,
        flow: FourTuple,
        arrived: &Decoded<'_>,
        above: Option<SeqNum>,
    ) {
        let has_room = self.can_make_room();
        let Some(listener) = self.listeners.get_mut(id) else { return };
        let prepared = listener.prepared().clone();
        match listener.admission(arrived.hop_limit, has_room) {
            Admission::Open => listener.add_half_open(),
            Admission::Cookie => {
                listener.expect_cookie(now);
                return self.answer_with_cookie(now, &prepared, flow, &arrived.segment);
            }
            Admission::Ignore => {
                self.counters.queue_overflows += 1;
                return;
            }
        }
        self.open_passively(now, flow, &prepared, Owner::HalfOpen(id), arrived, above);
    }

    /// Answers a SYN with a connection. Its sequence numbers begin after `above`. Called after the SYN was admitted.
    pub(super) fn open_passively(
        &mut self,
        now: Instant,
        flow: FourTuple,
        prepared: &Arc<Prepared>,
        owner: Owner,
        arrived: &Decoded<'_>,
        above: Option<SeqNum>,
    ) -> SocketId {
        self.make_room();
        let config = prepared.config(flow.local.is_ipv6());
        let mut identity = self.secrets.identity(now, &flow);
        if let Some(above) = above.filter(|above| !above.before(identity.isn)) {
            identity.isn = above.plus(1 << 16);
        }
        let send_buffer = prepared.options().send_buffer;
        let plugins = prepared.options().variant.build();
        let mut stream = Stream::listen(now, config, plugins, identity, send_buffer);
        self.start(now, &mut stream, &flow);
        stream.connection_mut().limit_receive_window(prepared.options().receive_window);
        stream.on_segment(now, &arrived.segment, arrived.payload);
        self.sockets.insert(Socket::new(now, stream, flow, owner, prepared.clone()))
    }

    /// Gives a new connection the path MTU, if it is known, and secret bits. Called before its first segment.
    pub(super) fn start(&mut self, now: Instant, stream: &mut Stream, flow: &FourTuple) {
        stream.set_secret(self.secrets.of_connection(flow));
        if let Some(mtu) = self.path_mtus.get(now, flow.remote.ip()) {
            stream.connection_mut().limit_segment_size(now, mss_for(mtu, flow.remote.is_ipv6()));
        }
    }

    /// The answer to a SYN keeps what is needed later, so that nothing is stored.
    pub(super) fn answer_with_cookie(&mut self, now: Instant, prepared: &Prepared, flow: FourTuple, syn: &Segment) {
        let config = prepared.config(flow.local.is_ipv6());
        let sack = syn.options.sack_permitted && config.sack;
        let clock = (now.as_nanos() / Duration::from_millis(1).as_nanos()) as u32;
        let clock = clock.wrapping_add(self.secrets.identity(now, &flow).timestamp_offset);
        let stamped = syn.options.timestamps.filter(|_| config.timestamps);
        let options = Options {
            mss: Some(config.mss),
            window_scale: syn.options.window_scale.map(|_| config.window_shift()),
            sack_permitted: sack,
            timestamps: stamped.map(|theirs| Timestamps { val: clock, ecr: theirs.val }),
            ..Options::default()
        };
        let segment = Segment {
            seq: self.secrets.make_cookie(now, &flow, syn, sack),
            ack: syn.seq.plus(1),
            window: prepared.options().receive_window.0.min(u64::from(u16::MAX)) as u16,
            flags: Flags::SYN | Flags::ACK,
            options,
            ..Segment::default()
        };
        self.counters.cookies_sent += 1;
        self.answers.push(Transmit { endpoints: flow.endpoints(), hop_limit: HOP_LIMIT, segment });
    }

    /// A segment without a connection may answer a cookie. True if it does; it is then processed.
    pub(super) fn on_cookie(&mut self, now: Instant, id: ListenerId, flow: FourTuple, arrived: &Decoded<'_>) -> bool {
        let Some(listener) = self.listeners.get(id).filter(|listener| listener.expects_cookies(now)) else {
            return false;
        };
        let Some(syn) = self.secrets.check_cookie(now, &flow, &arrived.segment) else { return false };
        if listener.is_full() || !self.can_make_room() {
            // The peer believes that it is connected, and will retransmit what is ignored now.
            self.counters.queue_overflows += 1;
            return true;
        }
        let Some(listener) = self.listeners.get_mut(id) else { return false };
        listener.add_half_open(); // until the socket is settled
        let prepared = listener.prepared().clone();
        self.counters.cookies_accepted += 1;
        self.resume(now, flow, &prepared, Owner::HalfOpen(id), &syn, arrived);
        true
    }

    /// A connection whose handshake began with `syn` and is completed by what has arrived. Called after the cookie was checked.
    pub(super) fn resume(
        &mut self,
        now: Instant,
        flow: FourTuple,
        prepared: &Arc<Prepared>,
        owner: Owner,
        syn: &Segment,
        arrived: &Decoded<'_>,
    ) -> SocketId {
        self.make_room();
        let config = prepared.config(flow.local.is_ipv6());
        let identity =
            Identity { isn: SeqNum(arrived.segment.ack.0.wrapping_sub(1)), ..self.secrets.identity(now, &flow) };
        let (plugins, send_buffer) = (prepared.options().variant.build(), prepared.options().send_buffer);
        let mut stream = Stream::resume(now, config, plugins, identity, syn, send_buffer);
        self.start(now, &mut stream, &flow);
        stream
            .connection_mut()
            .limit_receive_window(prepared.options().receive_window.max(Bytes(u64::from(config.mss))));
        stream.on_segment(now, &arrived.segment, arrived.payload);
        self.sockets.insert(Socket::new(now, stream, flow, owner, prepared.clone()))
    }
}
