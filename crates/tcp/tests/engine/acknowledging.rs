//! When the receiver acknowledges, and which blocks it reports: RFC 5681 §4.2, RFC 9293 §3.8.6.3, RFC 2018 §4, RFC 2883 §4.

use reknit_tcp::segment::Flags;
use reknit_tcp::{Config, State};
use reknit_testkit::peer::{PEER_TSVAL, Peer, SILENCE, START_MS, ack, data, fin, plain, segment, stamped};
use reknit_units::{Duration, Segments};

/// The default delay of an ACK.
const DELAY_MS: u64 = 200;

fn established() -> Peer {
    Peer::established(plain())
}

/// The peer sends 100 bytes at each of `starts`; returns the last answer.
fn scattered(peer: &mut Peer, starts: &[u32]) -> String {
    for seq in starts {
        peer.send(data(*seq, 1, 100));
    }
    peer.take_sent().pop().unwrap()
}

#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    let mut peer = established();
    assert_eq!(peer.exchange(data(1, 1, 1460)), SILENCE);
    assert_eq!(peer.exchange(data(1461, 1, 1460)), [". 1:1(0) ack 2921"]);
    assert_eq!(peer.exchange(data(2921, 1, 1460)), SILENCE);
    assert_eq!(peer.exchange(data(4381, 1, 1460)), [". 1:1(0) ack 5841"]);
}

#[test]
fn a_single_segment_is_acknowledged_within_the_delay() {
    let mut peer = established();
    peer.at(100).send(data(1, 1, 1460));
    assert_eq!(peer.at(100 + DELAY_MS - 1).take_sent(), SILENCE);
    assert_eq!(peer.at(100 + DELAY_MS).take_sent(), [". 1:1(0) ack 1461"]);
}

#[test]
fn the_delay_counts_from_the_first_segment() {
    let mut peer = established();
    peer.send(data(1, 1, 1460));
    peer.send(data(1461, 1, 1460));
    peer.take_sent();
    peer.at(100).send(data(2921, 1, 100));
    peer.at(250).send(data(3021, 1, 100));
    peer.at(1000);
    assert_eq!(peer.times(), [100 + DELAY_MS]);
}

#[test]
fn segments_shorter_than_the_first_count_by_their_bytes() {
    // Smaller segments on the path must not suppress ACKs: at least every second full segment.
    let mut peer = established();
    peer.send(data(1, 1, 1460));
    peer.at(300).take_sent();
    let mut acks = 0;
    for n in 0..40 {
        peer.send(data(1461 + n * 1400, 1, 1400));
        acks += peer.take_sent().len();
    }
    assert_eq!(acks, 20);
}

#[test]
fn every_segment_is_acknowledged_on_request() {
    let mut peer = Peer::established(Config { ack_every: Segments(1), ..plain() });
    assert_eq!(peer.exchange(data(1, 1, 1460)), [". 1:1(0) ack 1461"]);
    assert_eq!(peer.exchange(data(1461, 1, 10)), [". 1:1(0) ack 1471"]);
}

#[test]
fn the_delay_is_configurable() {
    let mut peer = Peer::established(Config { ack_delay: Duration::from_millis(40), ..plain() });
    peer.at(100).send(data(1, 1, 1460));
    peer.at(1000);
    assert_eq!(peer.times(), [140]);
}

#[test]
fn outgoing_data_carries_the_delayed_ack() {
    let mut peer = established();
    peer.send(data(1, 1, 100));
    peer.write(500);
    assert_eq!(peer.take_sent(), ["P. 1:501(500) ack 101"]);
    assert_eq!(peer.at(1000).take_sent(), SILENCE);
}

#[test]
fn an_ack_is_not_acknowledged() {
    let mut peer = established();
    assert_eq!(peer.exchange(ack(1, 1)), SILENCE);
    assert_eq!(peer.at(1000).take_sent(), SILENCE);
}

#[test]
fn a_gap_is_acknowledged_at_once() {
    let mut peer = established();
    assert_eq!(peer.exchange(data(101, 1, 100)), [". 1:1(0) ack 1 sack 101:201"]);
    assert_eq!(peer.exchange(data(201, 1, 100)), [". 1:1(0) ack 1 sack 101:301"]);
}

#[test]
fn a_filled_gap_is_acknowledged_at_once() {
    let mut peer = established();
    scattered(&mut peer, &[101, 301]);
    assert_eq!(peer.exchange(data(1, 1, 100)), [". 1:1(0) ack 201 sack 301:401"]);
    assert_eq!(peer.exchange(data(201, 1, 50)), [". 1:1(0) ack 251 sack 301:401"]);
    assert_eq!(peer.exchange(data(251, 1, 50)), [". 1:1(0) ack 401"]);
}

#[test]
fn a_duplicate_is_acknowledged_at_once() {
    let mut peer = established();
    scattered(&mut peer, &[1, 1]);
    assert_eq!(peer.exchange(data(1, 1, 100)), [". 1:1(0) ack 101 sack 1:101"]);
}

#[test]
fn a_fin_is_acknowledged_at_once() {
    let mut peer = established();
    assert_eq!(peer.exchange(fin(1, 1)), [". 1:1(0) ack 2"]);
}

#[test]
fn a_pending_ack_is_not_delayed_again() {
    let mut peer = established();
    peer.at(100).send(data(1, 1, 100));
    peer.at(150).send(ack(101, 1));
    peer.at(1000);
    assert_eq!(peer.times(), [100 + DELAY_MS]);
}

#[test]
fn the_block_of_the_latest_segment_comes_first() {
    // RFC 2018 §4.
    let mut peer = established();
    assert_eq!(scattered(&mut peer, &[301, 101]), ". 1:1(0) ack 1 sack 101:201 301:401");
    assert_eq!(scattered(&mut peer, &[401]), ". 1:1(0) ack 1 sack 301:501 101:201");
    assert_eq!(scattered(&mut peer, &[201]), ". 1:1(0) ack 1 sack 101:501");
}

#[test]
fn four_blocks_fit_without_timestamps() {
    let mut peer = established();
    let expected = ". 1:1(0) ack 1 sack 1001:1101 801:901 601:701 401:501";
    assert_eq!(scattered(&mut peer, &[201, 401, 601, 801, 1001]), expected);
}

#[test]
fn three_blocks_fit_with_timestamps() {
    let mut peer = Peer::established(Config::default());
    for seq in [201, 401, 601, 801, 1001] {
        peer.send(stamped(data(seq, 1, 100), PEER_TSVAL, START_MS));
    }
    assert_eq!(peer.take_sent().pop().unwrap(), ". 1:1(0) ack 1 sack 1001:1101 801:901 601:701");
}

#[test]
fn a_duplicate_below_the_ack_is_reported_first() {
    // RFC 2883 §4.1.
    let mut peer = established();
    scattered(&mut peer, &[1, 201, 401]);
    assert_eq!(scattered(&mut peer, &[1]), ". 1:1(0) ack 101 sack 1:101 401:501 201:301");
}

#[test]
fn a_duplicate_above_the_ack_is_reported_before_the_block_around_it() {
    // RFC 2883 §4.1, third example, and §4.2.
    let mut peer = established();
    scattered(&mut peer, &[201, 301, 501]);
    assert_eq!(scattered(&mut peer, &[301]), ". 1:1(0) ack 1 sack 301:401 201:401 501:601");
}

#[test]
fn a_duplicate_is_reported_once() {
    // RFC 2883 §4, (1).
    let mut peer = established();
    scattered(&mut peer, &[201, 201]);
    assert_eq!(scattered(&mut peer, &[401]), ". 1:1(0) ack 1 sack 401:501 201:301");
}

#[test]
fn the_part_of_a_segment_that_is_a_duplicate_is_reported() {
    // RFC 2883 §4.2.
    let mut peer = established();
    peer.send(data(1, 1, 100));
    assert_eq!(peer.exchange(data(51, 1, 100)), [". 1:1(0) ack 151 sack 51:101"]);
    peer.send(data(201, 1, 100));
    assert_eq!(peer.exchange(data(251, 1, 100)), [". 1:1(0) ack 151 sack 251:301 201:351"]);
}

#[test]
fn of_two_duplicate_parts_the_first_is_reported() {
    // RFC 2883 §4.2.2: only the first contiguous block.
    let mut peer = established();
    scattered(&mut peer, &[101, 301]);
    assert_eq!(peer.exchange(data(101, 1, 300)), [". 1:1(0) ack 1 sack 101:201 101:401"]);
}

#[test]
fn without_dsack_a_duplicate_moves_its_block_to_the_front() {
    // RFC 2018 §4: the block of the segment that caused this ACK comes first.
    let mut peer = Peer::established(Config { dsack: false, ..plain() });
    scattered(&mut peer, &[1001, 3001, 5001, 7001, 9001]);
    let expected = ". 1:1(0) ack 1 sack 1001:1101 9001:9101 7001:7101 5001:5101";
    assert_eq!(scattered(&mut peer, &[1001]), expected);
}

#[test]
fn without_dsack_a_duplicate_below_the_ack_is_not_reported() {
    let mut peer = Peer::established(Config { dsack: false, ..plain() });
    assert_eq!(scattered(&mut peer, &[1, 1]), ". 1:1(0) ack 101");
}

#[test]
fn without_sack_a_gap_is_acknowledged_without_blocks() {
    let mut peer = Peer::established(Config { sack: false, ..plain() });
    assert_eq!(scattered(&mut peer, &[101, 301]), ". 1:1(0) ack 1");
    assert_eq!(scattered(&mut peer, &[101]), ". 1:1(0) ack 1");
}

#[test]
fn every_ack_reports_while_there_is_a_gap() {
    // RFC 2018 §4.
    let mut peer = established();
    scattered(&mut peer, &[101]);
    peer.write(500);
    assert_eq!(peer.take_sent(), ["P. 1:501(500) ack 1 sack 101:201"]);
    assert_eq!(peer.at(5000).take_sent()[0], "P. 1:501(500) ack 1 sack 101:201");
}

#[test]
fn a_full_segment_leaves_the_report_to_a_pure_ack() {
    let mut peer = established();
    peer.write(11 * 1460); // ten segments are sent
    let answer = peer.exchange(data(101, 1461, 100)); // and the last one with its ACK, which also opens a gap
    assert_eq!(answer, ["P. 14601:16061(1460) ack 1", ". 16061:16061(0) ack 1 sack 101:201"]);
}

#[test]
fn arrivals_in_any_order_give_one_stream() {
    let mut peer = established();
    for seq in [401, 1, 201, 301, 101] {
        assert_eq!(peer.send(data(seq, 1, 100)), 100);
    }
    assert_eq!(peer.take_sent().pop().unwrap(), ". 1:1(0) ack 501");
    assert_eq!(peer.connection.received(), 500);
}

#[test]
fn overlapping_segments_add_only_what_is_new() {
    let mut peer = established();
    peer.send(data(101, 1, 100));
    peer.send(data(1, 1, 300));
    assert_eq!((peer.connection.received(), peer.connection.has_gaps()), (300, false));
    assert_eq!(peer.send(data(1, 1, 300)), 0);
}

#[test]
fn received_segments_are_counted_by_kind() {
    let mut peer = established();
    scattered(&mut peer, &[1, 201, 201, 1, 101]);
    let stats = peer.connection.receive_stats();
    assert_eq!((stats.segments, stats.duplicates, stats.out_of_order), (5, 2, 1));
}

#[test]
fn a_segment_before_the_ack_of_our_fin_is_still_processed() {
    let mut peer = Peer::in_state(State::FinWait1);
    assert_eq!(peer.send(segment(Flags::ACK, 1, 1, 100)), 100);
    assert_eq!(peer.at(DELAY_MS + 10).take_sent(), [". 2:2(0) ack 101"]);
}
