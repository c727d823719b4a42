//! Requirements of RFCs that no other test shows (docs/design/rfcs.md).
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::facts::Phase;
use reknit_tcp::{Config, Segment};
use reknit_testkit::peer::{MSS, PEER_TSVAL, Peer, SILENCE, START_MS, ack, data, plain, sacking, stamped};
use reknit_testkit::{Ack, NOTHING, TestSender, config, variant, vector};
use reknit_units::{Duration, Segments};

#[test]
fn only_a_syn_carries_the_options_of_a_syn() {
    // RFC 9293 MUST-65, RFC 2018 §2, RFC 7323 §2.2.
    let mut peer = Peer::of_active_open(Config::default());
    let syn = peer.take_one().options;
    assert!(syn.mss.is_some() && syn.sack_permitted && syn.window_scale.is_some());
    let mut peer = Peer::established(Config::default());
    peer.write(100);
    peer.send(stamped(data(101, 1, 100), PEER_TSVAL, START_MS));
    peer.connection.close();
    let segments = peer.take();
    assert_eq!(segments.len(), 3);
    for segment in segments {
        let options = segment.options;
        assert!(options.mss.is_none() && !options.sack_permitted && options.window_scale.is_none(), "{segment:?}");
    }
}

#[test]
fn data_within_a_window_that_has_shrunk_is_retransmitted() {
    // RFC 9293 SHLD-16.
    let mut peer = Peer::established(plain());
    peer.write(4 * u64::from(MSS));
    peer.take_sent();
    peer.send(Segment { window: MSS, ..ack(1, 1) });
    assert_eq!(peer.at(1010).take_sent(), [". 1:1461(1460) ack 1"]);
}

#[test]
fn ssthresh_begins_without_a_limit() {
    assert_eq!(Peer::established(plain()).info().ssthresh, None);
}

vector!(a_second_timeout_of_a_segment_keeps_ssthresh, |isn| {
    // RFC 5681 §3.1.
    let mut s = TestSender::new(isn, &variant("sack"), config(8), 100);
    s.sent();
    for ms in [1100, 3100, 7100] {
        assert_eq!(s.at(ms).sent(), [1]);
        assert_eq!(s.cwnd(), 1.0);
        assert_eq!(s.ssthresh(), 4.0);
    }
});

vector!(limited_transmit_does_not_change_cwnd, |isn| {
    // RFC 3042 §2.
    let mut s = TestSender::new(isn, &variant("sack"), config(4), 100);
    s.sent();
    for (n, new) in [(2, 5), (3, 6)] {
        assert_eq!(s.pass(n), [new]);
        assert_eq!((s.cwnd(), s.ssthresh()), (4.0, f64::INFINITY));
    }
});

vector!(with_sack_a_duplicate_without_news_sends_nothing, |isn| {
    // RFC 3042 §2, RFC 5681 §3.2.
    let mut s = TestSender::new(isn, &variant("sack"), config(4), 100);
    s.sent();
    assert_eq!(s.pass(2), [5]);
    for _ in 0..5 {
        s.deliver(&Ack { blocks: vec![(2, 2)], ..Ack::default() });
        assert_eq!(s.sent(), NOTHING);
    }
    assert_eq!(s.info().phase, Phase::Disorder);
});

#[test]
fn limited_transmit_stays_within_the_peers_window() {
    let in_flight = || {
        let mut peer = Peer::established(Config { initial_window: Segments(4), ..plain() });
        peer.write(10 * u64::from(MSS));
        assert_eq!(peer.take_sent().len(), 4);
        peer
    };
    let duplicate = sacking(ack(1, 1), &[(1461, 2921)]);
    assert_eq!(in_flight().exchange(Segment { window: 4 * MSS, ..duplicate }), SILENCE);
    assert_eq!(in_flight().exchange(Segment { window: 5 * MSS, ..duplicate }), [". 5841:7301(1460) ack 1"]);
}

#[test]
fn a_segment_causes_at_most_one_ack() {
    // RFC 5681 §4.2. The segments are in order, above a gap, a duplicate, below it, and a filled gap.
    let mut peer = Peer::established(plain());
    for seq in [1, 1461, 4381, 4381, 1, 2921, 5841] {
        assert!(peer.exchange(data(seq, 1, 1460)).len() <= 1, "{seq}");
    }
}

#[test]
fn the_rto_is_between_one_second_and_its_maximum() {
    // RFC 6298 §2.4 and §2.5.
    let mut peer = Peer::established(plain());
    peer.write(100);
    peer.at(290_000);
    let times = [10, 1010, 3010, 7010, 15_010, 31_010, 63_010, 123_010, 183_010, 243_010];
    assert_eq!(peer.times(), times);
}

vector!(a_constant_round_trip_leaves_the_granularity, |isn| {
    // RFC 6298 §4.
    let short = Config { min_rto: Duration::from_millis(10), ..config(10) };
    let mut s = TestSender::idle(isn, variant("sack").build(), short, 100);
    s.at(200);
    for i in 0..40 {
        let sent = s.write(1);
        s.at(300 + 100 * i).pass(sent[0]);
    }
    assert_eq!(s.info().rto, Some(Duration::from_millis(101)));
});

#[test]
fn the_timer_runs_while_data_is_outstanding() {
    // RFC 6298 §5.1 and §5.2.
    let mut peer = Peer::established(plain());
    assert!(!peer.connection.deadline().is_set());
    peer.write(100);
    peer.take_sent();
    assert!(peer.connection.deadline().is_set());
    peer.send(ack(1, 101));
    assert!(!peer.connection.deadline().is_set());
}

#[test]
fn an_ack_of_new_data_restarts_the_timer() {
    // RFC 6298 §5.3.
    let mut peer = Peer::established(plain());
    peer.write(2 * u64::from(MSS));
    peer.take_sent();
    peer.at(500).send(ack(1, 1461));
    peer.at(1600);
    assert_eq!(peer.take_sent_timed(), [(1500, "P. 1461:2921(1460) ack 1".to_owned())]);
}

vector!(after_reneging_the_left_edge_is_retransmitted, |isn| {
    // RFC 2018 §5 and §8: a SACK of the first segment is no acknowledgment, and its data is kept.
    let mut s = TestSender::idle(isn, variant("sack").build(), config(4), 100);
    assert_eq!(s.write(4), [1, 2, 3, 4]);
    s.deliver(&Ack { blocks: vec![(1, 4)], ..Ack::default() });
    assert_eq!((s.sent(), s.connection.acknowledged()), (vec![], 0));
    assert_eq!(s.at(1100).sent(), [1]);
    assert_eq!(s.pass(1), [2, 3]);
});
