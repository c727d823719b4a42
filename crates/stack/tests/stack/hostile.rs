//! Segments from an attacker: anything may arrive at any time.

use proptest::prelude::*;
use reknit_stack::{ListenOptions, SocketOptions};
use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Ecn, Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
use reknit_units::Duration;
use reknit_wire::{Decoded, Endpoints, encode};

use crate::pair::{CALM, CLIENT, Pair, SERVER, Verdict, bytes};

/// Numbers near those of the connection, which only an attacker on the path knows.
fn hostile() -> impl Strategy<Value = (Segment, Vec<u8>, bool)> {
    let near = || prop_oneof![(-3000..3000i32).prop_map(i32::cast_unsigned), any::<u32>()];
    let options = (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>(), any::<Option<u32>>(), near(), near());
    let header = (near(), near(), any::<u16>(), any::<u8>(), options);
    (header, prop::collection::vec(any::<u8>(), 0..1460), any::<bool>()).prop_map(|(header, payload, to_client)| {
        let (seq, ack, window, flags, (mss, scale, sack_permitted, val, left, right)) = header;
        let mut sack = SackBlocks::EMPTY;
        sack.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
        let options = Options {
            mss,
            window_scale: scale,
            sack_permitted,
            timestamps: val.map(|val| Timestamps { val, ecr: val }),
            sack,
            ..Options::default()
        };
        let (seq, ack, flags) = (SeqNum(seq), SeqNum(ack), Flags::from_bits(flags));
        let segment = Segment { seq, ack, window, len: payload.len() as u16, flags, ecn: Ecn::Congested, options };
        (segment, payload, to_client)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_nothing_grows(segments in prop::collection::vec(hostile(), 1..120), seed in any::<u64>()) {
        let mut pair = Pair::new(CALM, seed);
        let (client, server) = pair.connected(&SocketOptions::default());
        let (local, remote) = pair.client().addresses(client).unwrap();
        let last = std::rc::Rc::new(std::cell::Cell::new([(SeqNum(0), SeqNum(0)); 2]));
        let seen = last.clone();
        pair.filter = Box::new(move |from, packet| {
            let segment = Decoded::read(packet).unwrap().segment;
            let mut both = seen.get();
            both[from] = (segment.seq, segment.ack);
            seen.set(both);
            Verdict::Pass
        });
        pair.listen(&ListenOptions { syn_backlog: 16, ..ListenOptions::default() });
        for (i, (segment, payload, to_client)) in segments.into_iter().enumerate() {
            let _ = pair.client().write(client, &bytes(0, 0..500));
            let _ = pair.server().write(server, &bytes(0, 0..500));
            pair.run_for(Duration::from_millis(7));
            let (end, endpoints) = if to_client {
                (CLIENT, Endpoints { source: remote, destination: local })
            } else {
                (SERVER, Endpoints { source: local, destination: remote })
            };
            let (seq, ack) = last.get()[1 - end];
            let segment = Segment { seq: SeqNum(segment.seq.0.wrapping_add(seq.0)), ack: SeqNum(segment.ack.0.wrapping_add(ack.0)), ..segment };
            let mut packet = Vec::new();
            encode(endpoints, &segment, &payload, &mut packet);
            let now = pair.now;
            pair.stacks[end].on_packet(now, &packet);
            if i % 3 == 0 {
                let elsewhere = Endpoints { source: (endpoints.source.ip(), i as u16).into(), ..endpoints };
                encode(elsewhere, &segment, &payload, &mut packet);
                pair.stacks[end].on_packet(now, &packet);
            }
            packet.truncate(i % 90);
            pair.stacks[end].on_packet(now, &packet);
        }
        pair.run_for(Duration::from_secs(700));
        prop_assert!(pair.stacks.iter().all(|stack| stack.sockets() <= 60));
    }
}

/// RFC 1122 §3.2.1.3: no host has these addresses, or this one has.
#[test]
fn segments_from_impossible_addresses_are_not_answered() {
    let mut pair = Pair::new(CALM, 1);
    pair.listen(&ListenOptions::default());
    let syn = Segment { seq: SeqNum(7), window: 1000, flags: Flags::SYN, ..Segment::default() };
    let mut reply = |source: &str, port: u16| {
        let is_v6 = source.contains(':');
        let source = std::net::SocketAddr::new(source.parse().unwrap(), 4000);
        let destination = (crate::pair::addresses(SERVER, is_v6), port).into();
        let mut packet = Vec::new();
        encode(Endpoints { source, destination }, &syn, &[], &mut packet);
        let now = pair.now;
        pair.server().on_packet(now, &packet);
        let mut answer = Vec::new();
        pair.server().poll_packet(now, &mut answer)
    };
    for port in [80, 81] {
        for source in ["127.0.0.1", "127.1.2.3", "0.1.2.3", "224.0.0.1", "240.0.0.1", "255.255.255.255", "10.0.0.2"] {
            assert!(!reply(source, port), "{source}");
        }
        for source in ["::1", "::", "ff02::1", "::ffff:127.0.0.1", "fd00::2"] {
            assert!(!reply(source, port), "{source}");
        }
        assert!(reply("10.9.9.9", port) && (port == 80 || reply("fd00::9", port)));
    }
}
