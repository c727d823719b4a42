//! The window in both directions: RFC 9293 §3.8.6 (zero windows, silly windows, shrinking), RFC 7323 §2.

use reknit_tcp::segment::Options;
use reknit_tcp::{CloseReason, Config, Segment, SeqNum, State};
use reknit_testkit::peer::{
    HANDSHAKE_MS, MSS, PEER_TSVAL, Peer, SILENCE, START_MS, ack, data, plain, sacking, stamped, syn_ack,
};
use reknit_units::{Bytes, Capacity, Duration, Segments};

/// The first probe of a window that closes right after the handshake: one RTO later.
const FIRST_PROBE_MS: u64 = HANDSHAKE_MS + 1000;

fn with_window(segment: Segment, window: u16) -> Segment {
    Segment { window, ..segment }
}

/// An established connection; the peer has room for `window` bytes.
fn peer_with_window(window: u16) -> Peer {
    let mut peer = Peer::of_active_open(plain());
    peer.at(HANDSHAKE_MS).send(with_window(syn_ack(), window));
    peer.take_sent();
    peer
}

/// An established connection that has room for `bytes`.
fn with_room_for(bytes: u64) -> Peer {
    Peer::established(Config { receive_buffer: Capacity::Bytes(Bytes(bytes)), ..plain() })
}

/// The peer sends full segments until `bytes` have arrived; the application does not read.
fn fill(peer: &mut Peer, bytes: u32) {
    let mut seq = 1;
    while seq <= bytes {
        let len = (bytes + 1 - seq).min(u32::from(MSS)) as u16;
        assert_eq!(peer.send(data(seq, 1, len)), usize::from(len));
        seq += u32::from(len);
    }
    let now = peer.info();
    assert_eq!(now.state, State::Established);
    peer.take_sent();
}

#[test]
fn the_window_is_filled_exactly() {
    let mut peer = peer_with_window(2920);
    peer.write(10_000);
    assert_eq!(peer.take_sent(), [". 1:1461(1460) ack 1", ". 1461:2921(1460) ack 1"]);
    assert_eq!(peer.at(500).take_sent(), SILENCE);
}

#[test]
fn a_window_update_releases_the_next_bytes() {
    let mut peer = peer_with_window(2920);
    peer.write(10_000);
    peer.take_sent();
    assert_eq!(peer.exchange(with_window(ack(1, 1), 4380)), [". 2921:4381(1460) ack 1"]);
    assert_eq!(peer.exchange(with_window(ack(1, 1461), 2920)), SILENCE);
}

#[test]
fn the_window_of_an_older_segment_is_ignored() {
    // RFC 9293 §3.10.7.4, fifth check: SND.WL1 and SND.WL2.
    let mut peer = Peer::established(plain());
    peer.send(with_window(data(101, 1, 100), 5000));
    peer.send(with_window(ack(1, 1), 100));
    assert_eq!(peer.info().snd_wnd, Bytes(5000));
    peer.send(with_window(ack(201, 1), 0));
    assert_eq!(peer.info().snd_wnd, Bytes::ZERO);
}

#[test]
fn the_window_of_an_older_ack_is_ignored() {
    let mut peer = Peer::established(plain());
    peer.write(2920);
    peer.send(with_window(ack(1, 2921), 1000));
    peer.send(with_window(ack(1, 1461), 60_000));
    assert_eq!(peer.info().snd_wnd, Bytes(1000));
}

#[test]
fn a_small_opening_is_not_used() {
    // Silly window avoidance, RFC 9293 §3.8.6.2.1: the window has room neither for a segment, nor for half of the
    // largest window, nor for all data.
    let mut peer = peer_with_window(0);
    peer.send(with_window(ack(1, 1), 60_000));
    peer.send(with_window(ack(1, 1), 0));
    peer.write(5000);
    assert_eq!(peer.exchange(with_window(ack(1, 1), 1459)), SILENCE);
    assert_eq!(peer.exchange(with_window(ack(1, 1), 1460)), [". 1:1461(1460) ack 1"]);
}

#[test]
fn half_of_the_largest_window_is_used() {
    let mut peer = peer_with_window(2000);
    peer.write(5000);
    assert_eq!(peer.take_sent(), [". 1:1461(1460) ack 1"]);
    assert_eq!(peer.exchange(with_window(ack(1, 1461), 999)), SILENCE);
    assert_eq!(peer.exchange(with_window(ack(1, 1461), 1000)), [". 1461:2461(1000) ack 1"]);
}

#[test]
fn a_small_opening_with_room_for_all_data_is_used() {
    let mut peer = Peer::established(plain());
    peer.send(with_window(ack(1, 1), 0));
    peer.write(500);
    assert_eq!(peer.exchange(with_window(ack(1, 1), 500)), ["P. 1:501(500) ack 1"]);
}

#[test]
fn a_small_opening_is_used_after_a_timeout() {
    // The override timeout of RFC 9293 §3.8.6.2.1, (4).
    let mut peer = Peer::established(plain());
    peer.send(with_window(ack(1, 1), 700));
    peer.write(5000);
    assert_eq!(peer.at(FIRST_PROBE_MS - 1).take_sent(), SILENCE);
    assert_eq!(peer.at(FIRST_PROBE_MS).take_sent(), [". 1:701(700) ack 1"]);
}

#[test]
fn a_closed_window_is_probed_with_back_off() {
    // RFC 9293 §3.8.6.1: first after one RTO, then at exponentially growing intervals.
    let mut peer = peer_with_window(0);
    peer.write(1000);
    peer.at(125_000);
    assert_eq!(peer.times(), [1010, 3010, 7010, 15_010, 31_010, 63_010, 123_010]);
}

#[test]
fn a_probe_is_one_byte_beyond_the_window() {
    let mut peer = peer_with_window(0);
    peer.write(1000);
    assert_eq!(peer.take_sent(), SILENCE);
    assert_eq!(peer.at(5000).take_sent(), [". 1:2(1) ack 1"; 2]);
    assert_eq!(peer.connection.send_stats().sent.window_probe, 2);
}

#[test]
fn an_accepted_probe_is_followed_by_the_next_byte() {
    let mut peer = peer_with_window(0);
    peer.write(1000);
    assert_eq!(peer.at(FIRST_PROBE_MS).take_sent(), [". 1:2(1) ack 1"]);
    assert_eq!(peer.exchange(with_window(ack(1, 2), 0)), SILENCE);
    assert_eq!(peer.at(3010).take_sent(), [". 2:3(1) ack 1"]);
}

#[test]
fn an_answer_does_not_reset_the_back_off() {
    let mut peer = peer_with_window(0);
    peer.write(1000);
    for (n, ms) in [(1, 1010), (2, 3010), (3, 7010), (4, 15_010)] {
        peer.at(ms);
        assert_eq!(peer.times(), [ms], "probe {n}");
        peer.send(with_window(ack(1, 1), 0));
    }
}

#[test]
fn a_refused_byte_is_retransmitted_when_the_window_opens() {
    let mut peer = peer_with_window(0);
    peer.write(2921);
    peer.at(FIRST_PROBE_MS).send(with_window(ack(1, 1), 0));
    peer.take_sent();
    // In a full segment together with the following data, so that the later segments are full too.
    let sent = peer.at(2000).exchange(ack(1, 1));
    assert_eq!(sent, [". 1:1461(1460) ack 1", ". 1461:2921(1460) ack 1"]);
    assert_eq!(peer.exchange(ack(1, 2921)), ["P. 2921:2922(1) ack 1"]); // Nagle
    assert_eq!(peer.connection.send_stats().cuts.total(), 0);
}

#[test]
fn a_refused_byte_is_retransmitted_with_no_more_than_the_window_allows() {
    for (window, written, expected) in
        [(1000, 5000, ". 1:1001(1000) ack 1"), (60_000, 700, "P. 1:701(700) ack 1"), (60_000, 1, "P. 1:2(1) ack 1")]
    {
        let mut peer = peer_with_window(0);
        peer.write(written);
        peer.at(FIRST_PROBE_MS).send(with_window(ack(1, 1), 0));
        peer.take_sent();
        assert_eq!(peer.exchange(with_window(ack(1, 1), window)), [expected]);
        let end = u32::from(window).min(written as u32);
        peer.send(ack(1, 1 + end));
        assert_eq!(peer.connection.acknowledged(), u64::from(end));
    }
}

#[test]
fn a_refused_fin_is_retransmitted_alone() {
    let mut peer = peer_with_window(0);
    peer.connection.close();
    assert_eq!(peer.at(FIRST_PROBE_MS).take_sent(), ["F. 1:1(0) ack 1"]);
    peer.send(with_window(ack(1, 1), 0));
    assert_eq!(peer.exchange(ack(1, 1)), ["F. 1:1(0) ack 1"]);
    peer.send(ack(1, 2));
    assert_eq!(peer.state(), State::FinWait2);
}

#[test]
fn full_segments_follow_an_accepted_byte() {
    let mut peer = peer_with_window(0);
    peer.write(1 + 2 * 1460);
    assert_eq!(peer.at(FIRST_PROBE_MS).take_sent(), [". 1:2(1) ack 1"]);
    assert_eq!(peer.exchange(ack(1, 2)), [". 2:1462(1460) ack 1", "P. 1462:2922(1460) ack 1"]);
}

#[test]
fn an_open_window_is_not_probed() {
    let mut peer = peer_with_window(0);
    peer.write(1000);
    peer.at(500).send(ack(1, 1));
    assert_eq!(peer.take_sent(), ["P. 1:1001(1000) ack 1"]);
    peer.send(ack(1, 1001));
    assert_eq!(peer.at(100_000).take_sent(), SILENCE);
}

#[test]
fn a_closed_window_with_nothing_to_send_is_not_probed() {
    let mut peer = peer_with_window(0);
    assert_eq!(peer.at(100_000).take_sent(), SILENCE);
}

#[test]
fn a_probe_recovers_from_a_lost_window_update() {
    let mut peer = peer_with_window(0);
    peer.write(1460);
    // The peer has room again, but its window update was lost. It accepts the probe and announces its window again.
    assert_eq!(peer.at(FIRST_PROBE_MS).take_sent(), [". 1:2(1) ack 1"]);
    assert_eq!(peer.exchange(ack(1, 2)), ["P. 2:1461(1459) ack 1"]);
}

#[test]
fn a_peer_with_a_closed_window_that_answers_is_not_dead() {
    // RFC 9293 §3.8.6.1, MUST-37: as long as the peer answers, the connection stays open.
    let mut peer = peer_with_window(0);
    peer.write(1000);
    for minute in 1..60 {
        peer.at(minute * 60_000).send(with_window(ack(1, 1), 0));
    }
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_peer_with_a_closed_window_that_never_answers_is_dead() {
    let mut peer = peer_with_window(0);
    peer.write(1000);
    peer.at(302_000);
    assert_eq!(peer.state(), State::Established);
    peer.at(400_000);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::TimedOut)));
}

#[test]
fn idle_time_before_a_write_does_not_count_against_a_closed_window() {
    let mut peer = peer_with_window(0);
    peer.at(400_000).write(1000);
    assert_eq!(peer.at(410_000).take_sent(), [". 1:2(1) ack 1"; 3]);
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_peer_whose_window_shrinks_to_nothing_is_not_dead() {
    // RFC 9293 §3.8.6, MUST-36: data in flight is still retransmitted, and the connection stays open as long as it is
    // answered.
    let mut peer = Peer::established(plain());
    peer.write(4380);
    peer.take_sent();
    for minute in 1..60 {
        peer.at(minute * 60_000).send(with_window(ack(1, 1), 0));
    }
    assert_eq!(peer.state(), State::Established);
    assert!(peer.take_sent().iter().all(|line| line.starts_with(". 1:1461(1460)")));
    peer.send(ack(1, 4381));
    assert_eq!(peer.connection.acknowledged(), 4380);
}

#[test]
fn a_window_that_shrinks_stops_new_data() {
    let mut peer = Peer::established(plain());
    peer.write(2920);
    peer.send(with_window(ack(1, 1), 1000));
    peer.take_sent();
    peer.write(1460);
    assert_eq!(peer.exchange(with_window(ack(1, 1461), 1460)), SILENCE);
    assert_eq!(peer.exchange(with_window(ack(1, 1461), 2920)), ["P. 2921:4381(1460) ack 1"]);
}

#[test]
fn our_acks_stay_within_a_window_that_was_probed() {
    // One byte further, and the peer would drop them together with their acknowledgments.
    let mut peer = peer_with_window(0);
    peer.write(1000);
    assert_eq!(peer.at(FIRST_PROBE_MS).take_sent(), [". 1:2(1) ack 1"]);
    peer.send(with_window(data(1, 1, 1460), 0));
    assert_eq!(peer.exchange(with_window(data(1461, 1, 1460), 0)), [". 1:1(0) ack 2921"]);
}

#[test]
fn our_acks_stay_within_a_window_that_has_shrunk() {
    let mut peer = Peer::established(plain());
    peer.write(5000);
    peer.send(with_window(ack(1, 1), 100));
    assert_eq!(peer.take_sent().len(), 3);
    assert_eq!(peer.exchange(with_window(data(101, 1, 100), 100)), [". 101:101(0) ack 1 sack 101:201"]);
}

#[test]
fn a_reneging_peer_that_selectively_acknowledged_a_probe_is_probed_again() {
    let mut peer = peer_with_window(0);
    peer.write(100_000);
    assert_eq!(peer.at(FIRST_PROBE_MS).take_sent(), [". 1:2(1) ack 1"]);
    peer.send(sacking(with_window(ack(1, 1), 0), &[(1, 2)]));
    assert_eq!(peer.at(3010).take_sent(), [". 1:2(1) ack 1"]);
    assert_eq!(peer.exchange(ack(1, 2)).len(), 4);
    peer.send(ack(1, 1462));
    assert_eq!(peer.connection.acknowledged(), 1461);
}

#[test]
fn a_probe_that_was_selectively_acknowledged_does_not_grow_when_the_window_opens() {
    let mut peer = peer_with_window(0);
    peer.write(100_000);
    assert_eq!(peer.at(FIRST_PROBE_MS).take_sent(), [". 1:2(1) ack 1"]);
    peer.send(sacking(with_window(ack(1, 1), 0), &[(1, 2)]));
    assert_eq!(peer.exchange(ack(1, 1))[0], ". 2:1462(1460) ack 1");
}

#[test]
fn data_with_sack_blocks_respects_the_peers_segment_size() {
    // RFC 9293 §3.7.1: options count towards the segment size.
    let mut peer = Peer::of_active_open(Config::default());
    let options = Options { mss: Some(536), sack_permitted: true, ..Options::default() };
    peer.at(HANDSHAKE_MS).send(stamped(Segment { options, ..syn_ack() }, PEER_TSVAL, START_MS));
    peer.send(stamped(data(1001, 1, 100), PEER_TSVAL, START_MS));
    peer.send(stamped(data(3001, 1, 100), PEER_TSVAL, START_MS));
    peer.take();
    peer.write(2000);
    let sent = peer.take();
    assert!(sent.len() >= 3);
    assert!(sent.iter().all(|s| usize::from(s.len) + s.header_len() - 20 <= 536), "{sent:?}");
}

#[test]
fn the_announced_window_shrinks_as_the_buffer_fills() {
    let mut peer = with_room_for(5840);
    peer.send(data(1, 1, 1460));
    peer.send(data(1461, 1, 1460));
    assert_eq!(peer.take_one().window, 2920);
    peer.send(data(2921, 1, 1460));
    peer.send(data(4381, 1, 1460));
    assert_eq!(peer.take_one().window, 0);
}

#[test]
fn an_application_that_reads_at_once_keeps_the_window_open() {
    let mut peer = with_room_for(5840);
    peer.connection.read_at_once();
    for seq in (1..100_000).step_by(1460) {
        assert_eq!(peer.send(data(seq, 1, 1460)), 1460);
    }
    assert!(peer.take().iter().all(|s| s.window >= 4380));
}

#[test]
fn a_closed_window_answers_probes_and_accepts_no_data() {
    // RFC 9293 §3.10.7.4, first check; §3.8.6.1.
    let mut peer = with_room_for(1460);
    fill(&mut peer, 1460);
    peer.at(1000).take_sent();
    assert_eq!(peer.send(data(1461, 1, 1)), 0);
    let answer = peer.take_one();
    assert_eq!((answer.ack, answer.window), (SeqNum(1461), 0));
    assert_eq!(peer.exchange(ack(1460, 1)), [". 1:1(0) ack 1461"]);
}

#[test]
fn a_closed_window_accepts_acknowledgments() {
    // RFC 9293 §3.4: "special allowance should be made to accept valid ACKs".
    let mut peer = with_room_for(1460);
    peer.write(1000);
    fill(&mut peer, 1460);
    peer.send(ack(1461, 1001));
    assert_eq!(peer.connection.acknowledged(), 1000);
}

#[test]
fn a_peer_that_has_filled_the_window_acknowledges_from_its_right_edge() {
    // The first segment of the window is lost. Pure ACKs have the number after the last segment.
    let mut peer = with_room_for(14_600);
    peer.write(1000);
    for n in 1..10 {
        peer.send(data(1 + n * 1460, 1, 1460));
    }
    peer.send(ack(14_601, 1001));
    assert_eq!(peer.connection.acknowledged(), 1000);
}

#[test]
fn data_beyond_the_window_is_cut_off() {
    let mut peer = with_room_for(2000);
    assert_eq!(peer.send(data(1, 1, 1460)), 1460);
    assert_eq!(peer.send(data(1461, 1, 1460)), 540);
    assert_eq!(peer.connection.readable(), Bytes(2000));
    let last = *peer.take().last().unwrap();
    assert_eq!((last.ack, last.window), (SeqNum(2001), 0));
}

#[test]
fn a_closed_window_opens_only_by_a_useful_amount() {
    // Silly window avoidance, RFC 9293 §3.8.6.2.2: a segment, or half of the buffer.
    let mut peer = with_room_for(5840);
    fill(&mut peer, 5840);
    peer.read(1459);
    peer.send(ack(5840, 1));
    assert_eq!(peer.take_one().window, 0);
    peer.read(1);
    peer.send(ack(5840, 1));
    assert_eq!(peer.take_one().window, 1460);
}

#[test]
fn reading_from_a_full_buffer_announces_the_room() {
    for segments in 1..=4 {
        let config = Config { receive_buffer: Capacity::Count(Segments(segments)), ..plain() };
        let mut peer = Peer::established(config);
        fill(&mut peer, segments * 1460);
        peer.at(1000).take();
        peer.read(u64::from(segments) * 1460);
        assert_eq!(u32::from(peer.take_one().window), segments * 1460);
    }
}

#[test]
fn reading_from_a_buffer_with_room_announces_nothing() {
    let mut peer = with_room_for(60_000);
    fill(&mut peer, 2920);
    peer.read(2920);
    assert_eq!(peer.take_sent(), SILENCE);
}

#[test]
fn everything_announced_is_accepted_despite_the_rounding_of_the_field() {
    // RFC 7323 §2.4: the field is rounded down, so its right edge varies by less than one unit, but the window is never
    // taken back.
    let mut peer = Peer::of_active_open(plain());
    let options = Options { window_scale: Some(7), ..syn_ack().options };
    peer.send(Segment { options, ..syn_ack() });
    peer.take();
    let (mut seq, mut edge) = (1, 0);
    for n in 0..500u32 {
        let len = (1 + n * 37 % 1400) as u16;
        peer.send(data(seq, 1, len));
        seq += u32::from(len);
        for sent in peer.take() {
            let announced = sent.ack.0 + (u32::from(sent.window) << 7);
            assert!(announced + (1 << 7) > edge);
            edge = edge.max(announced);
        }
    }
    assert_eq!(peer.send(data(edge - 1, 1, 1)), 1);
}

#[test]
fn a_probed_window_opens_for_the_whole_segment() {
    let mut peer = with_room_for(1460);
    fill(&mut peer, 1460);
    peer.at(1000).read(1460);
    assert_eq!(peer.send(data(1461, 1, 1460)), 1460);
}

#[test]
fn a_window_probe_measures_no_round_trip() {
    let mut peer = peer_with_window(0);
    peer.write(1000);
    peer.at(FIRST_PROBE_MS).send(with_window(ack(1, 1), 0));
    peer.at(5000).send(ack(1, 2));
    assert_eq!(peer.info().srtt, Some(Duration::from_millis(HANDSHAKE_MS)));
}

#[test]
fn reading_more_than_has_arrived_counts_as_reading_all_of_it() {
    let mut peer = with_room_for(4000);
    peer.send(data(1, 1, MSS));
    peer.read(50_000);
    assert_eq!(peer.at(1000).take().last().unwrap().window, 4000);
    peer.send(data(1 + u32::from(MSS), 1, 1000));
    assert_eq!(peer.connection.readable(), Bytes(1000));
}
