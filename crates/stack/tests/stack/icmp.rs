//! ICMP, real and forged, and paths that carry less than the interface.

use reknit_stack::{Error, ListenOptions, SocketOptions};
use reknit_tcp::SeqNum;
use reknit_units::Duration;
use reknit_wire::{Decoded, Endpoints, Icmp, IcmpKind};

use crate::pair::{CALM, CLIENT, Pair, SERVER, Verdict, bytes};

const LEN: usize = 300_000;

/// What the path reports for packets that are too large.
#[derive(Clone, Copy, PartialEq)]
enum Reports {
    Truth,
    /// An old router: without the MTU.
    NoMtu,
    Nothing,
}

/// A transfer over a path that carries 1300 bytes; the segment size at its end, and how long it took.
fn transfer(reports: Reports, is_v6: bool) -> (u16, Duration) {
    let mut pair = Pair::new(CALM, 1);
    let options = SocketOptions::default();
    let all = if is_v6 { "[::]:80" } else { "0.0.0.0:80" }.parse().unwrap();
    let listener = pair.server().listen(all, &ListenOptions::default()).unwrap();
    let now = pair.now;
    let remote = (crate::pair::addresses(SERVER, is_v6), 80).into();
    let client = pair.client().connect(now, None, remote, &options).unwrap();
    pair.run_for(Duration::from_millis(50));
    let server = pair.server().accept(listener).unwrap();
    let found = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let too_big = found.clone();
    pair.filter = Box::new(move |from, packet| {
        if from == SERVER || packet.len() <= 1300 {
            return Verdict::Pass;
        }
        let decoded = Decoded::read(packet).unwrap();
        let mtu = if reports == Reports::NoMtu { 0 } else { 1300 };
        let kind = IcmpKind::TooBig { mtu };
        too_big.borrow_mut().push(Icmp {
            kind,
            quoted: decoded.endpoints,
            seq: decoded.segment.seq,
            len: packet.len(),
        });
        Verdict::Drop
    });
    let (data, began) = (bytes(0, 0..LEN), pair.now);
    let (mut written, mut read) = (0, Vec::new());
    while read.len() < LEN {
        written += pair.client().write(client, &data[written..]).unwrap_or(0);
        assert!(pair.step(began + Duration::from_secs(60)), "{} of {LEN} bytes", read.len());
        if reports != Reports::Nothing {
            let now = pair.now;
            for icmp in found.borrow_mut().drain(..) {
                pair.stacks[CLIENT].on_icmp(now, &icmp);
            }
        }
        read.extend(pair.read_all(SERVER, server).0);
    }
    assert!(read == data);
    let now = pair.now;
    let time = now.since(began);
    let size = pair.client().info(now, client).unwrap().segment_size;
    // The next connection to the same peer begins with what was found.
    let next = pair.client().connect(now, None, remote, &options).unwrap();
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.client().info(now, next).unwrap().segment_size, size);
    (size, time)
}

#[test]
fn a_smaller_mtu_is_learned_from_icmp() {
    for is_v6 in [false, true] {
        let (size, time) = transfer(Reports::Truth, is_v6);
        assert_eq!(size, if is_v6 { 1240 } else { 1260 });
        assert!(time < Duration::from_millis(800), "{time}: nothing waits for a timeout");
    }
    assert_eq!(transfer(Reports::NoMtu, false).0, 1160);
}

#[test]
fn a_smaller_mtu_is_found_without_icmp() {
    let (size, time) = transfer(Reports::Nothing, false);
    assert_eq!(size, 1160);
    assert!(time < Duration::from_secs(10), "{time}");
    assert_eq!(transfer(Reports::Nothing, true).0, 1220);
}

/// A connection on which data was acknowledged, and more is outstanding: its client, its flow and the first number.
fn busy() -> (Pair, reknit_stack::SocketId, Endpoints, SeqNum) {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    pair.client().write(client, &bytes(0, 0..10_000)).unwrap();
    pair.run_for(Duration::from_millis(200));
    assert_eq!(pair.read_all(SERVER, server).0.len(), 10_000);
    let seen = std::rc::Rc::new(std::cell::Cell::new(None));
    let first = seen.clone();
    pair.filter = Box::new(move |from, packet| {
        if from == CLIENT && first.get().is_none() {
            let decoded = Decoded::read(packet).unwrap();
            first.set(Some((decoded.endpoints, decoded.segment.seq)));
        }
        Verdict::Pass
    });
    pair.client().write(client, &bytes(0, 10_000..20_000)).unwrap();
    pair.flush();
    let (endpoints, seq) = seen.get().unwrap();
    (pair, client, endpoints, seq)
}

#[test]
fn forged_messages_change_nothing() {
    let (mut pair, client, quoted, seq) = busy();
    let now = pair.now;
    let before = pair.client().info(now, client).unwrap().segment_size;
    let other = Endpoints { source: "10.0.0.1:9".parse().unwrap(), ..quoted };
    for (kind, quoted, seq, len) in [
        (IcmpKind::TooBig { mtu: 600 }, quoted, SeqNum(seq.0.wrapping_sub(1)), 1500),
        (IcmpKind::TooBig { mtu: 600 }, quoted, seq.plus(1 << 20), 1500),
        (IcmpKind::TooBig { mtu: 600 }, other, seq, 1500),
        (IcmpKind::TooBig { mtu: 1500 }, quoted, seq, 1500),
        (IcmpKind::TooBig { mtu: 9000 }, quoted, seq, 9001),
        (IcmpKind::TooBig { mtu: 600 }, quoted, seq, 500),
        (IcmpKind::PortUnreachable, quoted, seq.plus(1 << 20), 1500),
    ] {
        pair.client().on_icmp(now, &Icmp { kind, quoted, seq, len });
    }
    assert_eq!((pair.client().counters().icmp_accepted, pair.client().counters().icmp_ignored), (0, 7));
    // These could be true, but the connection makes progress with segments of that size (RFC 5927), so they wait.
    for kind in [IcmpKind::TooBig { mtu: 600 }, IcmpKind::HostUnreachable, IcmpKind::PortUnreachable] {
        pair.client().on_icmp(now, &Icmp { kind, quoted, seq, len: 1500 });
    }
    pair.run_for(Duration::from_secs(5));
    let now = pair.now;
    let info = pair.client().info(now, client).unwrap();
    assert_eq!((info.segment_size, info.tcp.acknowledged), (before, 20_000));
    assert_eq!(pair.client().failure(client), None);
}

#[test]
fn a_path_that_shrinks_is_believed_when_segments_are_lost() {
    let (mut pair, client, quoted, seq) = busy();
    pair.filter = Box::new(|_, packet| if packet.len() > 1000 { Verdict::Drop } else { Verdict::Pass });
    pair.run_for(Duration::from_millis(50));
    pair.client().write(client, &bytes(0, 20_000..60_000)).unwrap();
    pair.flush();
    let now = pair.now;
    let icmp = Icmp { kind: IcmpKind::TooBig { mtu: 1000 }, quoted, seq: seq.plus(10_000), len: 1500 };
    pair.client().on_icmp(now, &icmp);
    assert_eq!(pair.client().counters().icmp_accepted, 1);
    pair.run_for(Duration::from_secs(10));
    let now = pair.now;
    let info = pair.client().info(now, client).unwrap();
    assert_eq!((info.segment_size, info.tcp.acknowledged), (960, 60_000));
}

#[test]
fn an_unreachable_host_fails_the_opening_at_once() {
    let mut pair = Pair::new(CALM, 1);
    let now = pair.now;
    let remote = "10.0.0.77:80".parse().unwrap();
    let client = pair.client().connect(now, None, remote, &SocketOptions::default()).unwrap();
    let syn = std::rc::Rc::new(std::cell::Cell::new(SeqNum(0)));
    let seq = syn.clone();
    pair.filter = Box::new(move |_, packet| {
        seq.set(Decoded::read(packet).unwrap().segment.seq);
        Verdict::Drop
    });
    pair.flush();
    let (local, _) = pair.client().addresses(client).unwrap();
    let quoted = Endpoints { source: local, destination: remote };
    let icmp = |seq| Icmp { kind: IcmpKind::HostUnreachable, quoted, seq, len: 60 };
    pair.client().on_icmp(now, &icmp(syn.get().plus(1)));
    pair.flush();
    assert_eq!(pair.client().failure(client), None);
    pair.client().on_icmp(now, &icmp(syn.get()));
    pair.flush();
    assert_eq!(pair.client().failure(client), Some(Error::Unreachable));
}

/// The segment size after data was sent for `time`, and how often the window was reduced.
fn size_after(pair: &mut Pair, [client, server]: [reknit_stack::SocketId; 2], time: Duration) -> (u16, u64) {
    let until = pair.now + time;
    while pair.now < until {
        let _ = pair.client().write(client, &[7; 15_000]);
        pair.run_for(Duration::from_millis(100));
        let _ = pair.read_all(SERVER, server);
    }
    let now = pair.now;
    let info = pair.client().info(now, client).unwrap();
    (info.segment_size, info.sent.cuts.total())
}

#[test]
fn segments_are_large_again_after_an_outage() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let second = Duration::from_secs(1);
    assert_eq!(size_after(&mut pair, [client, server], second).0, 1460);
    pair.filter = Box::new(|_, _| Verdict::Drop);
    assert_eq!(size_after(&mut pair, [client, server], second * 30).0, 1160);
    pair.filter = Box::new(|_, _| Verdict::Pass);
    assert_eq!(size_after(&mut pair, [client, server], second * 40).0, 1460);
    // The next connection begins with the full size.
    pair.listen(&ListenOptions::default());
    let next = pair.connect();
    pair.run_for(second);
    let now = pair.now;
    assert_eq!(pair.client().info(now, next).unwrap().segment_size, 1460);
}

#[test]
fn the_largest_size_that_a_silent_path_carries_is_searched_for() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    pair.filter =
        Box::new(|from, packet| if from == CLIENT && packet.len() > 1400 { Verdict::Drop } else { Verdict::Pass });
    let second = Duration::from_secs(1);
    let (size, cuts) = size_after(&mut pair, [client, server], second * 9);
    assert_eq!(size, 1160);
    let (size, more) = size_after(&mut pair, [client, server], second * 200);
    assert!((1360 - 32..=1360).contains(&size), "{size}");
    assert!(more - cuts <= 3, "{} reductions", more - cuts);
    // Then it is left alone for ten minutes, until the path carries more.
    assert_eq!(size_after(&mut pair, [client, server], second * 200), (size, more));
    pair.filter = Box::new(|_, _| Verdict::Pass);
    assert_eq!(size_after(&mut pair, [client, server], second * 600), (1460, more));
}

/// RFC 5927 §7.2: the data that the message quotes has arrived, so it was forged, and later losses have other causes.
#[test]
fn a_claim_ends_when_what_it_quotes_is_acknowledged() {
    let (mut pair, client, quoted, seq) = busy();
    let now = pair.now;
    let before = pair.client().info(now, client).unwrap().segment_size;
    pair.client().on_icmp(now, &Icmp { kind: IcmpKind::TooBig { mtu: 600 }, quoted, seq, len: 1500 });
    pair.client().on_icmp(now, &Icmp { kind: IcmpKind::HostUnreachable, quoted, seq, len: 1500 });
    assert_eq!(pair.client().counters().icmp_accepted, 2);
    pair.run_for(Duration::from_secs(1));
    pair.filter = Box::new(|_, _| Verdict::Drop);
    pair.client().write(client, &bytes(0, 20_000..30_000)).unwrap();
    pair.run_for(Duration::from_millis(1500));
    let now = pair.now;
    let info = pair.client().info(now, client).unwrap();
    assert!(info.tcp.retransmitted.0 > 0, "{info:?}");
    assert_eq!(info.segment_size, before);
    pair.run_for(Duration::from_secs(3600));
    assert_eq!(pair.client().failure(client), Some(Error::Ended(reknit_tcp::CloseReason::TimedOut)));
}
