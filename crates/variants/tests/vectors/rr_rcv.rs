//! Worked examples of a receiver that measures reordering and advises the sender: `rr-rcv`.

use reknit_tcp::experiment::ExperimentalOption;
use reknit_tcp::{Config, Segment};
use reknit_testkit::peer::{Peer, data, plain};
use reknit_testkit::{Ack, TestSender, config, variant, vector};
use reknit_units::Segments;

const SMSS: u32 = 1000;

fn segment(n: u32) -> Segment {
    data(1 + (n - 1) * SMSS, 1, SMSS as u16)
}

/// A receiver of `rr-rcv` that acknowledges every segment.
fn adviser() -> Peer {
    let mut peer = Peer::established_as(&variant("rr-rcv"), Config { ack_every: Segments(1), ..plain() });
    peer.at(1000);
    peer
}

/// Segment `n` arrives after the `late` segments that follow it. Returns the number of the next segment.
fn delay(peer: &mut Peer, n: u32, late: u32) -> u32 {
    for other in (n + 1..=n + late).chain([n]) {
        peer.send(segment(other));
    }
    n + late + 1
}

/// The advice in the ACKs since the last call.
fn advice(peer: &mut Peer) -> Vec<Option<u8>> {
    peer.take().iter().map(|ack| ack.options.experiment.dup_thresh).collect()
}

#[test]
fn ten_lengths_give_an_advice_of_nine() {
    let mut peer = adviser();
    let mut next = 1;
    for late in [1, 1, 2, 2, 3, 3, 4, 4, 8, 20] {
        next = delay(&mut peer, next, late);
    }
    let advice: Vec<u8> = advice(&mut peer).into_iter().flatten().collect();
    assert_eq!(advice.last(), Some(&9));
}

#[test]
fn lost_advice_is_repeated_within_32_acks() {
    let mut peer = adviser();
    let next = delay(&mut peer, 1, 5);
    assert_eq!(advice(&mut peer).pop().unwrap(), Some(6));
    for n in next..next + 32 {
        peer.send(segment(n));
    }
    let mut expected = vec![None; 31];
    expected.push(Some(6));
    assert_eq!(advice(&mut peer), expected);
}

#[test]
fn a_retransmission_is_not_an_event() {
    let mut peer = adviser();
    for n in [2, 3, 4, 5, 6] {
        peer.send(segment(n));
    }
    peer.at(1011).send(segment(1)); // the round trip is 10 ms
    assert_eq!(advice(&mut peer), [None; 6]);
}

#[test]
fn the_original_counts_if_it_comes_after_its_copy() {
    let mut peer = adviser();
    for n in [2, 3, 4, 5, 6] {
        peer.send(segment(n));
    }
    peer.at(1011).send(segment(1)); // the copy: the round trip is 10 ms
    for n in [7, 8, 9] {
        peer.send(segment(n));
    }
    peer.take();
    peer.send(segment(1));
    assert_eq!(advice(&mut peer), [Some(9)]);
}

fn advised(dup_thresh: u8) -> Ack {
    Ack {
        experiment: ExperimentalOption { dup_thresh: Some(dup_thresh), ..ExperimentalOption::default() },
        ..Ack::default()
    }
}

vector!(the_sender_follows_the_advice, |isn| {
    let mut s = TestSender::new(isn, &variant("rr-rcv"), config(8), 100);
    s.sent();
    for (advice, dup_thresh) in [(9, 9), (2, 3), (200, 64), (5, 5)] {
        s.deliver(&advised(advice));
        assert_eq!(s.info().dup_thresh, Segments(dup_thresh));
    }
    assert!(!s.pass_all([2, 3, 4, 5]).contains(&1));
    assert!(s.pass(6).contains(&1));
});

vector!(a_timeout_keeps_the_advice, |isn| {
    let mut s = TestSender::new(isn, &variant("rr-rcv"), config(8), 100);
    s.sent();
    s.deliver(&advised(9));
    s.at(2000).sent();
    s.pass_all(1..=8);
    assert_eq!(s.info().dup_thresh, Segments(9));
});

vector!(advice_without_an_agreement_is_ignored, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(8), 100);
    s.sent();
    s.deliver(&advised(9));
    assert_eq!(s.info().dup_thresh, Segments(3));
});
