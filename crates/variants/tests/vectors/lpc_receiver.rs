//! Worked examples of Lee, Park and Choi's receiver, which acknowledges every second out-of-order segment.

use reknit_tcp::Segment;
use reknit_tcp::experiment::ExperimentalOption;
use reknit_tcp::segment::Options;
use reknit_testkit::peer::{PEER_TSVAL, Peer, SILENCE, START_MS, data, plain, stamped};
use reknit_testkit::variant;

const SMSS: u32 = 1000;
/// When the examples begin, after the handshake, whose round trip is 10 ms.
const BEGIN: u64 = 1000;

fn receiver() -> Peer {
    Peer::established_as(&variant("lpc-receiver"), plain())
}

fn segment(n: u32) -> Segment {
    data(1 + (n - 1) * SMSS, 1, SMSS as u16)
}

/// `segment` with the retransmission bit.
fn marked(segment: Segment, retransmitted: bool) -> Segment {
    let experiment = ExperimentalOption { retransmitted: Some(retransmitted), ..ExperimentalOption::default() };
    Segment { options: Options { experiment, ..segment.options }, ..segment }
}

/// The answer of the receiver to segment `n` at `ms`.
fn tell(peer: &mut Peer, ms: u64, n: u32) -> Vec<String> {
    peer.at(BEGIN + ms);
    peer.exchange(segment(n))
}

#[test]
fn every_second_out_of_order_segment_is_acknowledged() {
    let mut peer = receiver();
    assert_eq!(tell(&mut peer, 0, 2), SILENCE);
    assert_eq!(tell(&mut peer, 5, 3), [". 1:1(0) ack 1 sack 1001:3001"]);
    assert_eq!(tell(&mut peer, 10, 4), SILENCE);
    assert_eq!(tell(&mut peer, 12, 1), [". 1:1(0) ack 4001"]);
    assert_eq!(peer.at(BEGIN + 1000).take_sent(), SILENCE);
}

#[test]
fn a_single_one_waits_for_the_timer() {
    let mut peer = receiver();
    assert_eq!(tell(&mut peer, 0, 2), SILENCE);
    assert_eq!(peer.at(BEGIN + 39).take_sent(), SILENCE);
    assert_eq!(peer.at(BEGIN + 40).take_sent(), [". 1:1(0) ack 1 sack 1001:2001"]);
}

#[test]
fn a_retransmission_is_acknowledged_at_once() {
    // 1 and 3 are missing; the copy of 3 comes first, and 1 is still missing.
    let mut peer = receiver();
    tell(&mut peer, 0, 2);
    tell(&mut peer, 0, 4);
    peer.at(BEGIN + 5);
    assert_eq!(peer.exchange(marked(segment(3), true)), [". 1:1(0) ack 1 sack 1001:4001"]);
    assert_eq!(peer.exchange(marked(segment(1), true)), [". 1:1(0) ack 4001"]);
}

#[test]
fn a_late_original_is_not_acknowledged_at_once() {
    let mut peer = receiver();
    tell(&mut peer, 0, 2);
    tell(&mut peer, 0, 4);
    peer.at(BEGIN + 5);
    assert_eq!(peer.exchange(marked(segment(3), false)), SILENCE);
}

#[test]
fn a_retransmission_is_recognized_by_its_timestamp() {
    for (stamp, answers) in [(PEER_TSVAL + 30, 1), (PEER_TSVAL + 20, 1), (PEER_TSVAL + 10, 0)] {
        let mut peer = Peer::established_as(&variant("lpc-receiver"), reknit_tcp::Config::default());
        peer.at(BEGIN);
        for n in [2, 4] {
            peer.send(stamped(segment(n), PEER_TSVAL + 20, START_MS));
        }
        peer.take_sent();
        assert_eq!(peer.exchange(stamped(segment(3), stamp, START_MS)).len(), answers, "{stamp}");
    }
}

#[test]
fn a_retransmission_is_recognized_by_the_age_of_the_gap() {
    for (ms, answers) in [(11, 1), (10, 0)] {
        let mut peer = receiver();
        tell(&mut peer, 0, 2);
        tell(&mut peer, 0, 4);
        assert_eq!(tell(&mut peer, ms, 3).len(), answers, "{ms}");
    }
}

#[test]
fn six_out_of_order_make_three_duplicates() {
    let mut peer = Peer::established_as(&variant("lpc-receiver"), reknit_tcp::Config { sack: false, ..plain() });
    let mut told = Vec::new();
    for n in 2..=7 {
        for text in tell(&mut peer, u64::from(n), n) {
            assert_eq!(text, ". 1:1(0) ack 1");
            told.push(n);
        }
    }
    assert_eq!(told, [3, 5, 7]);
}

#[test]
fn a_delayed_duplicate_ack_is_sent_although_data_is_sent() {
    let mut peer = receiver();
    peer.at(BEGIN);
    assert_eq!(tell(&mut peer, 0, 2), SILENCE);
    peer.at(BEGIN + 10).write(2920);
    assert_eq!(peer.take_sent(), [". 1:1461(1460) ack 1", "P. 1461:2921(1460) ack 1"]);
    assert_eq!(peer.at(BEGIN + 40).take_sent(), [". 2921:2921(0) ack 1 sack 1001:2001"]);
}
