//! Worked examples of `rn`; its routers are tested in `reknit-path`.

use reknit_tcp::experiment::{Dropped, ExperimentalOption, Features};
use reknit_tcp::{Config, Segment, SeqNum};
use reknit_testkit::peer::{PEER_TSVAL, Peer, START_MS, data, plain, stamped};
use reknit_testkit::{Ack, SMSS, TestSender, config, variant, vector};
use reknit_units::Segments;

/// The size of the segments that reach the receiver under test.
const LEN: u16 = 1000;

/// A sender of ten segments whose peer has agreed to the option. Each segment has room for it.
fn sender(isn: u32) -> TestSender {
    let config = Config { mss: SMSS as u16 + Features::DROPS.data_len() as u16, ..config(10) };
    let mut s = TestSender::new(isn, &variant("rn"), config, 100);
    assert_eq!(s.sent().len(), 10);
    s
}

/// Segment `n` arrives; its ACK reports whether the first gap is due to reordering.
fn pass(s: &mut TestSender, n: u32, reordered: bool) -> Vec<u32> {
    let ack = s.arrive(n);
    let experiment = ExperimentalOption { reordered: Some(reordered), ..ExperimentalOption::default() };
    s.deliver(&Ack { experiment, ..ack });
    s.sent()
}

vector!(six_duplicate_acks_if_all_report_reordering, |isn| {
    let mut s = sender(isn);
    s.pass_all(1..=4);
    for n in 6..=10 {
        assert!(!pass(&mut s, n, true).contains(&5), "{n}");
    }
    assert_eq!(s.info().dup_thresh, Segments(6));
    assert!(pass(&mut s, 11, true).contains(&5));
});

vector!(the_first_one_without_the_report_causes_a_retransmission, |isn| {
    let mut s = sender(isn);
    s.pass_all(1..=4);
    for n in 6..=8 {
        assert!(!pass(&mut s, n, true).contains(&5), "{n}");
    }
    assert!(pass(&mut s, 9, false).contains(&5));
});

vector!(three_duplicate_acks_if_something_was_dropped, |isn| {
    let mut s = sender(isn);
    s.pass_all(1..=4);
    for n in 6..=7 {
        assert!(!pass(&mut s, n, false).contains(&5), "{n}");
    }
    assert!(pass(&mut s, 8, false).contains(&5));
});

vector!(only_the_third_counts, |isn| {
    let mut s = sender(isn);
    s.pass_all(1..=4);
    for (n, reordered) in [(6, false), (7, false), (8, true), (9, true)] {
        assert!(!pass(&mut s, n, reordered).contains(&5), "{n}");
    }
});

vector!(the_late_segment_ends_the_wait, |isn| {
    let mut s = sender(isn);
    s.pass_all(1..=4);
    for n in 6..=9 {
        pass(&mut s, n, true);
    }
    s.pass(5);
    assert_eq!((s.info().dup_thresh, s.connection.send_stats().cuts.total()), (Segments(3), 0));
});

vector!(an_ack_that_advances_reports_on_the_next_gap, |isn| {
    let mut s = sender(isn);
    s.pass_all(1..=3);
    for n in [5, 7, 8, 9] {
        assert!(!pass(&mut s, n, true).contains(&4), "{n}");
    }
    // 4 was late, and the ACK that advances reports that 6 is, too.
    for n in [4, 10, 11] {
        assert!(!pass(&mut s, n, true).contains(&6), "{n}");
    }
    assert!(pass(&mut s, 12, true).contains(&6));
});

vector!(a_timeout_ends_the_wait, |isn| {
    let mut s = sender(isn);
    pass(&mut s, 2, true);
    assert_eq!(s.info().dup_thresh, Segments(6));
    s.at(2000);
    s.pass_all(1..=11);
    assert_eq!(s.info().dup_thresh, Segments(3));
});

vector!(reports_without_an_agreement_are_ignored, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(10), 100);
    s.sent();
    pass(&mut s, 2, true);
    pass(&mut s, 3, true);
    assert!(pass(&mut s, 4, true).contains(&1));
});

/// Where segment `n` begins, for the receiver under test.
fn start(n: u32) -> u32 {
    1 + (n - 1) * u32::from(LEN)
}

/// A receiver that has segments 1 to 4. Sequence numbers begin at the peer's initial number.
fn receiver() -> Peer {
    let mut peer = Peer::established_as(&variant("rn"), plain());
    peer.at(1000);
    for n in 1..=4 {
        peer.send(data(start(n), 1, LEN));
    }
    peer.take();
    peer
}

/// Segment `n` arrives with a notice that the segments from the first to the second number were dropped. Returns what
/// the answer reports about the first gap.
fn receive(peer: &mut Peer, n: u32, dropped: Option<(u32, u32)>) -> Option<bool> {
    let mut segment: Segment = data(start(n), 1, LEN);
    let number = |n: u32| SeqNum(start(n));
    segment.options.experiment.dropped =
        Some(dropped.map_or(Dropped::NOTHING, |(l, h)| Dropped { lowest: number(l), highest: number(h) }));
    peer.send(segment);
    peer.take().pop().and_then(|ack| ack.options.experiment.reordered)
}

#[test]
fn without_notices_a_gap_is_due_to_reordering() {
    let mut peer = receiver();
    for n in 6..=11 {
        assert_eq!(receive(&mut peer, n, None), Some(true));
    }
    assert_eq!(receive(&mut peer, 5, None), None);
}

#[test]
fn a_notice_marks_the_gap() {
    let mut peer = receiver();
    assert_eq!(receive(&mut peer, 6, Some((5, 5))), Some(false));
    assert_eq!(receive(&mut peer, 7, None), Some(false));
}

#[test]
fn a_notice_may_arrive_after_the_gap() {
    let mut peer = receiver();
    assert_eq!(receive(&mut peer, 8, None), Some(true));
    assert_eq!(receive(&mut peer, 9, Some((6, 6))), Some(false));
    // 5 and 7 were late, 6 is lost; each gap has its own state.
    assert_eq!(receive(&mut peer, 5, None), Some(false));
    assert_eq!(receive(&mut peer, 6, None), Some(true));
}

#[test]
fn a_notice_may_arrive_before_the_gap() {
    let mut peer = receiver();
    receive(&mut peer, 5, Some((6, 6)));
    assert_eq!(receive(&mut peer, 7, None), Some(false));
}

#[test]
fn only_the_first_gap_is_reported() {
    let mut peer = receiver();
    receive(&mut peer, 6, None);
    assert_eq!(receive(&mut peer, 8, Some((7, 7))), Some(true));
    assert_eq!(receive(&mut peer, 5, None), Some(false));
}

#[test]
fn a_fin_without_data_has_room_for_its_options() {
    let mut peer = Peer::established_as(&variant("rn"), Config::default());
    for seq in [2001, 4001] {
        peer.send(stamped(data(seq, 1, 1000), PEER_TSVAL, START_MS));
    }
    peer.take();
    peer.connection.close();
    let fin = peer.take_one();
    assert_eq!(fin.options.experiment.dropped, Some(Dropped::NOTHING));
    assert_eq!(fin.options.sack.as_slice().len(), 1);
    assert_eq!(fin.options.wire_len(), 40);
}

#[test]
fn a_sender_reserves_room_for_routers() {
    let mut peer = Peer::established_as(&variant("rn"), plain());
    peer.write(500);
    assert_eq!(peer.take_one().options.experiment.dropped, Some(Dropped::NOTHING));
}
