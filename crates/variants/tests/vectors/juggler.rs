//! Worked examples of JUGGLER.

use reknit_tcp::Segment;
use reknit_testkit::peer::{Peer, SILENCE, data, plain};
use reknit_testkit::variant;
use reknit_units::Duration;
use reknit_variants::Composition;
use reknit_variants::receiver::juggler::JugglerConfig;

const SMSS: u32 = 1000;
/// When the examples begin, after the handshake, whose round trip is 10 ms.
const BEGIN: u64 = 1000;

/// A receiver that holds segments for 20 ms.
fn receiver() -> Peer {
    let ack_policy = JugglerConfig { ofo_timeout: Duration::from_millis(20) }.into();
    Peer::established_as(&Composition { ack_policy, ..variant("juggler") }, plain())
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
fn nobody_learns_of_a_gap_that_closes_in_time() {
    let mut peer = receiver();
    for (ms, n) in [(0, 2), (5, 3), (10, 5)] {
        assert_eq!(tell(&mut peer, ms, n), SILENCE);
    }
    assert_eq!(tell(&mut peer, 15, 1), [". 1:1(0) ack 3001"]);
    assert_eq!(tell(&mut peer, 25, 4), [". 1:1(0) ack 5001"]);
    assert_eq!(peer.at(BEGIN + 1000).take_sent(), SILENCE);
}

#[test]
fn each_run_causes_a_duplicate_ack_when_the_time_is_over() {
    let mut peer = receiver();
    for (ms, n) in [(0, 2), (1, 3), (2, 5), (3, 7), (4, 6)] {
        assert_eq!(tell(&mut peer, ms, n), SILENCE);
    }
    assert_eq!(peer.at(BEGIN + 19).take_sent(), SILENCE);
    let ack = ". 1:1(0) ack 1 sack 4001:7001 1001:3001";
    assert_eq!(peer.at(BEGIN + 20).take_sent(), [ack, ack]);
}

#[test]
fn after_that_segments_in_sequence_are_passed_on_at_once() {
    let mut peer = receiver();
    tell(&mut peer, 0, 2);
    assert_eq!(peer.at(BEGIN + 20).take_sent(), [". 1:1(0) ack 1 sack 1001:2001"]);
    assert_eq!(tell(&mut peer, 21, 3), [". 1:1(0) ack 1 sack 1001:3001"]); // rule 2
    assert_eq!(tell(&mut peer, 22, 5), SILENCE);
    assert_eq!(tell(&mut peer, 23, 1), [". 1:1(0) ack 3001"]); // rule 1
    assert_eq!(tell(&mut peer, 24, 4), [". 1:1(0) ack 5001"]);
}

#[test]
fn the_time_counts_from_what_was_last_passed_on() {
    let mut peer = receiver();
    tell(&mut peer, 0, 2);
    tell(&mut peer, 1, 4);
    assert_eq!(tell(&mut peer, 15, 1), [". 1:1(0) ack 2001"]);
    assert_eq!(peer.at(BEGIN + 34).take_sent(), SILENCE);
    assert_eq!(peer.at(BEGIN + 35).take_sent(), [". 1:1(0) ack 2001 sack 3001:4001"]);
}
