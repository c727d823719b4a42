//! Worked examples of Paxson's receiver, which delays the second duplicate ACK.

use reknit_tcp::Segment;
use reknit_testkit::peer::{Peer, SILENCE, data, plain};
use reknit_testkit::variant;
use reknit_units::Duration;
use reknit_variants::{Composition, receiver::paxson_rcv};

const SMSS: u32 = 1000;
/// When the examples begin, after the handshake, whose round trip is 10 ms.
const BEGIN: u64 = 1000;

fn receiver() -> Peer {
    Peer::established_as(&variant("paxson-rcv"), plain())
}

fn segment(n: u32) -> Segment {
    data(1 + (n - 1) * SMSS, 1, SMSS as u16)
}

/// The answer of the receiver to segment `n` at `ms`.
fn tell(peer: &mut Peer, ms: u64, n: u32) -> Vec<String> {
    peer.at(BEGIN + ms);
    peer.exchange(segment(n))
}

#[test]
fn the_second_duplicate_is_dropped_when_the_gap_closes() {
    let mut peer = receiver();
    assert_eq!(tell(&mut peer, 0, 2), [". 1:1(0) ack 1 sack 1001:2001"]);
    assert_eq!(tell(&mut peer, 5, 3), SILENCE);
    assert_eq!(tell(&mut peer, 15, 1), [". 1:1(0) ack 3001"]);
    assert_eq!(peer.at(BEGIN + 1000).take_sent(), SILENCE);
}

#[test]
fn the_second_duplicate_is_sent_after_the_wait() {
    let mut peer = receiver();
    tell(&mut peer, 0, 2);
    assert_eq!(tell(&mut peer, 5, 3), SILENCE);
    assert_eq!(peer.at(BEGIN + 19).take_sent(), SILENCE);
    assert_eq!(peer.at(BEGIN + 20).take_sent(), [". 1:1(0) ack 1 sack 1001:3001"]);
    assert_eq!(tell(&mut peer, 25, 4), [". 1:1(0) ack 1 sack 1001:4001"]);
}

#[test]
fn without_a_wait_nothing_changes() {
    let without = paxson_rcv::HeldDuplicatesConfig { wait: Duration::ZERO }.into();
    let without = Composition { ack_policy: without, ..variant("paxson-rcv") };
    let mut streams = Vec::new();
    for composition in [without, variant("sack")] {
        let mut peer = Peer::established_as(&composition, plain());
        for (ms, n) in [1, 2, 4, 5, 5, 3, 8, 7, 6, 9].into_iter().enumerate() {
            peer.at(BEGIN + 3 * ms as u64).send(segment(n));
        }
        peer.at(BEGIN + 2000);
        streams.push(peer.take_sent_timed());
    }
    assert_eq!(streams[0], streams[1]);
}

#[test]
fn all_withheld_duplicates_are_sent() {
    let mut peer = receiver();
    for n in 2..=5 {
        tell(&mut peer, u64::from(n), n);
    }
    assert_eq!(peer.at(BEGIN + 22).take_sent(), [". 1:1(0) ack 1 sack 1001:5001"; 3]);
}

#[test]
fn data_does_not_report_what_is_withheld() {
    let mut peer = receiver();
    tell(&mut peer, 0, 2);
    tell(&mut peer, 5, 3);
    peer.write(500);
    assert_eq!(peer.take_sent(), ["P. 1:501(500) ack 1"]);
}

#[test]
fn what_is_still_missing_is_a_new_gap() {
    let mut peer = receiver();
    tell(&mut peer, 0, 2);
    tell(&mut peer, 5, 4);
    assert_eq!(tell(&mut peer, 10, 1), [". 1:1(0) ack 2001 sack 3001:4001"]);
    assert_eq!(tell(&mut peer, 25, 5), SILENCE);
    assert_eq!(peer.at(BEGIN + 30).take_sent(), [". 1:1(0) ack 2001 sack 3001:5001"]);
}

#[test]
fn the_dsack_of_a_duplicate_is_never_delayed() {
    let mut peer = receiver();
    tell(&mut peer, 0, 2);
    assert_eq!(tell(&mut peer, 5, 2), [". 1:1(0) ack 1 sack 1001:2001 1001:2001"]);
}
