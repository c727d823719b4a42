//! The timestamps option and PAWS: RFC 7323 §3 to §5.

use reknit_tcp::segment::{Flags, Options, Timestamps};
use reknit_tcp::{Config, State};
use reknit_testkit::peer::{
    HANDSHAKE_MS, PEER_TSVAL, Peer, SILENCE, START_MS, ack, data, fin, plain, rst, segment, stamped, syn, syn_ack,
};
use reknit_units::{Duration, Instant};

/// One day in milliseconds, the tick of both clocks.
const DAY_MS: u64 = 24 * 3600 * 1000;
/// Longer than any delayed ACK.
const LATER_MS: u64 = 500;
/// Our timestamp when the connection was established.
const OURS: u32 = START_MS + HANDSHAKE_MS as u32;

fn established() -> Peer {
    Peer::established(Config::default())
}

/// The value that the connection echoes once its delayed ACK is due.
fn echo(peer: &mut Peer, ms: u64) -> u32 {
    peer.at(ms).take_one().options.timestamps.unwrap().ecr
}

/// True if the connection still accepts the peer's next data, sent at `ms` with a correct timestamp.
fn is_alive(peer: &mut Peer, seq: u32, ms: u64) -> bool {
    peer.at(ms).send(stamped(data(seq, 1, 100), PEER_TSVAL + ms as u32, OURS)) == 100
}

#[test]
fn timestamps_need_both_ends() {
    for (ours, theirs) in [(true, true), (true, false), (false, true)] {
        let mut peer = Peer::of_passive_open(Config { timestamps: ours, ..plain() });
        peer.send(if theirs { stamped(syn(), PEER_TSVAL, 0) } else { syn() });
        assert_eq!(peer.take_one().options.timestamps.is_some(), ours && theirs);
        peer.send(if theirs { stamped(ack(1, 1), PEER_TSVAL, START_MS) } else { ack(1, 1) });
        assert_eq!(peer.info().timestamps, ours && theirs);
        peer.write(100);
        assert_eq!(peer.take_one().options.timestamps.is_some(), ours && theirs);
    }
}

#[test]
fn a_syn_echoes_nothing() {
    // RFC 7323 §3.2: TSecr is zero where the ACK bit is off.
    let mut peer = Peer::of_active_open(Config::default());
    assert_eq!(peer.take_one().options.timestamps, Some(Timestamps { val: START_MS, ecr: 0 }));
}

#[test]
fn a_syn_ack_echoes_the_syn() {
    let mut peer = Peer::of_passive_open(Config::default());
    peer.at(50).send(stamped(syn(), PEER_TSVAL, 0));
    assert_eq!(peer.take_one().options.timestamps, Some(Timestamps { val: START_MS + 50, ecr: PEER_TSVAL }));
}

#[test]
fn every_segment_carries_the_clock_and_an_echo() {
    let mut peer = established();
    peer.at(40).write(5000);
    peer.send(stamped(data(2000, 1, 100), PEER_TSVAL + 30, OURS));
    peer.connection.close();
    let sent = peer.take();
    assert_eq!(sent.len(), 5);
    let expected = Some(Timestamps { val: START_MS + 40, ecr: PEER_TSVAL });
    assert!(sent.iter().all(|segment| segment.options.timestamps == expected), "{sent:?}");
}

#[test]
fn segments_are_shorter_by_the_size_of_the_option() {
    let mut peer = established();
    peer.write(10_000);
    assert_eq!(peer.take()[0].len, 1448);
}

#[test]
fn a_delayed_ack_echoes_the_first_segment_it_covers() {
    // RFC 7323 §4.3, (A).
    let mut peer = established();
    peer.at(20).send(stamped(data(1, 1, 1448), 2000, OURS));
    peer.at(30).send(stamped(data(1449, 1, 1448), 2010, OURS));
    assert_eq!(echo(&mut peer, 30), 2000);
}

#[test]
fn after_a_gap_the_last_segment_in_order_is_echoed() {
    // RFC 7323 §4.3, (B).
    let mut peer = established();
    peer.at(20).send(stamped(data(1, 1, 100), 2000, OURS));
    assert_eq!(echo(&mut peer, LATER_MS), 2000);
    peer.send(stamped(data(201, 1, 100), 2500, OURS));
    assert_eq!(echo(&mut peer, LATER_MS), 2000);
}

#[test]
fn a_filled_gap_echoes_the_segment_that_fills_it() {
    // RFC 7323 §4.3, (C).
    let mut peer = established();
    peer.at(20).send(stamped(data(101, 1, 100), 2020, OURS));
    peer.at(30).take();
    peer.send(stamped(data(1, 1, 100), 2030, OURS));
    assert_eq!(echo(&mut peer, 30), 2030);
}

#[test]
fn a_segment_retransmitted_because_of_a_lost_ack_is_echoed() {
    // The duplicate begins at or before the last ACK, so it passes the rule of RFC 7323 §4.3 (2).
    let mut peer = established();
    for (ms, val) in [(20, 1010), (5000, 6000), (15_000, 16_000)] {
        peer.at(ms).send(stamped(data(1, 1, 1448), val, OURS));
        assert_eq!(echo(&mut peer, ms + LATER_MS), val);
    }
}

#[test]
fn an_old_duplicate_is_acknowledged_and_dropped() {
    // RFC 7323 §5.3, R1.
    let mut peer = established();
    peer.at(20).send(stamped(data(1, 1, 100), 2000, OURS));
    peer.at(LATER_MS).take();
    assert_eq!(peer.send(stamped(data(101, 1, 100), 1999, OURS)), 0);
    assert_eq!(peer.take_sent(), [". 1:1(0) ack 101"]);
    let stats = peer.connection.receive_stats();
    assert_eq!((stats.segments, stats.paws_discards, stats.paws_discarded_acks), (1, 1, 0));
    assert_eq!(peer.send(stamped(data(101, 1, 100), 2000, OURS)), 100);
}

#[test]
fn a_late_original_that_paws_discards_is_reported_as_a_duplicate() {
    // Its retransmission filled the hole, and the receiver has echoed newer timestamps since.
    let mut peer = established();
    peer.at(20).send(stamped(data(1, 1, 100), 2020, OURS));
    peer.send(stamped(data(101, 1, 100), 2030, OURS));
    peer.at(LATER_MS).take();
    assert_eq!(peer.send(stamped(data(1, 1, 100), 2000, OURS)), 0);
    assert_eq!(peer.take_sent(), [". 1:1(0) ack 201 sack 1:101"]);
    let stats = peer.connection.receive_stats();
    assert_eq!((stats.segments, stats.duplicates, stats.paws_discards), (2, 0, 1));
}

#[test]
fn answers_to_old_timestamps_of_somebody_who_guesses_are_limited() {
    let mut peer = established();
    peer.at(20).send(stamped(data(1, 1, 1000), 2020, OURS));
    peer.at(LATER_MS).take();
    for n in 0..500 {
        peer.send(stamped(data(1 + n, 70_000 + n, 100), 2000, OURS));
    }
    let answers = peer.take();
    assert_eq!(answers.len(), 10); // RFC 5961 §7
    assert!(answers.iter().all(|answer| answer.options.sack.is_empty()));
}

#[test]
fn an_old_ack_acknowledges_nothing() {
    let mut peer = established();
    peer.write(100);
    peer.send(stamped(ack(1, 101), PEER_TSVAL - 1, OURS));
    assert_eq!(peer.connection.acknowledged(), 0);
    assert_eq!(peer.connection.receive_stats().paws_discarded_acks, 1);
    peer.send(stamped(ack(1, 101), PEER_TSVAL, OURS));
    assert_eq!(peer.connection.acknowledged(), 100);
}

#[test]
fn timestamps_compare_across_their_wrap() {
    for start in [u32::MAX - 5, (1 << 31) - 5] {
        let mut peer = Peer::of_active_open(Config::default());
        peer.send(stamped(syn_ack(), start, START_MS));
        assert_eq!(peer.send(stamped(data(1, 1, 100), start.wrapping_add(10), START_MS)), 100);
        peer.at(LATER_MS).take();
        assert_eq!(peer.send(stamped(data(101, 1, 100), start, START_MS)), 0);
        assert_eq!(peer.send(stamped(data(101, 1, 100), start.wrapping_add(9).wrapping_add(1 << 31), START_MS)), 100);
    }
}

#[test]
fn after_24_days_of_silence_an_old_timestamp_is_accepted() {
    // RFC 7323 §5.5: in 25 days the peer's clock has passed the sign bit.
    let mut peer = established();
    let ms = 25 * DAY_MS;
    peer.at(ms);
    assert_eq!(peer.send(stamped(data(1, 1, 100), PEER_TSVAL.wrapping_add(ms as u32), OURS)), 100);
    assert_eq!(echo(&mut peer, ms + LATER_MS), PEER_TSVAL.wrapping_add(ms as u32));
}

#[test]
fn after_23_days_of_silence_an_old_timestamp_is_still_old() {
    let mut peer = established();
    peer.at(23 * DAY_MS);
    assert_eq!(peer.send(stamped(data(1, 1, 100), PEER_TSVAL - 1, OURS)), 0);
    assert_eq!(peer.take_sent(), [". 1:1(0) ack 1"]);
}

#[test]
fn a_rst_is_exempt_from_paws() {
    // RFC 7323 §5.2.
    let mut peer = established();
    peer.send(stamped(rst(1), PEER_TSVAL - 1, 0));
    assert_eq!(peer.state(), State::Closed);
}

#[test]
fn no_segment_that_fails_a_check_moves_ts_recent() {
    // Otherwise one forged timestamp would make PAWS drop everything after it.
    let future = PEER_TSVAL + (1 << 30);
    for forged in [
        segment(Flags::RST, 51, 0, 100),
        segment(Flags::SYN, 1, 0, 10),
        data(1, 999_999_999, 100),
        segment(Flags::NONE, 1, 0, 100),
        data(5_000_000, 1, 100),
        segment(Flags::RST, 0, 0, 0),
    ] {
        for val in [future, PEER_TSVAL.wrapping_sub(1 << 29)] {
            let mut peer = established();
            peer.at(420).send(stamped(forged, val, 0));
            assert!(is_alive(&mut peer, 1, 430), "{forged:?}");
            assert_eq!(peer.at(1000).take().last().unwrap().options.timestamps.unwrap().ecr, PEER_TSVAL + 430);
        }
    }
}

#[test]
fn a_segment_ahead_of_a_gap_does_not_move_ts_recent() {
    // RFC 7323 §4.3 (2): SEG.SEQ <= Last.ACK.sent.
    let mut peer = established();
    peer.at(420).send(stamped(data(2, 1, 100), PEER_TSVAL + (1 << 30), OURS));
    assert!(is_alive(&mut peer, 1, 430));
}

#[test]
fn a_challenged_syn_does_not_change_the_echo_of_the_handshake() {
    let mut peer = established();
    peer.send(stamped(segment(Flags::SYN, 400, 0, 0), 7, 0));
    assert_eq!(echo(&mut peer, 20), PEER_TSVAL);
}

#[test]
fn a_segment_without_the_option_is_dropped_silently() {
    // RFC 7323 §3.2: dropped, without any effect; the connection "MUST NOT" be aborted.
    let mut peer = established();
    peer.write(100);
    peer.take_sent();
    assert_eq!(peer.exchange(data(1, 101, 100)), SILENCE);
    assert_eq!(peer.exchange(fin(1, 101)), SILENCE);
    assert_eq!((peer.state(), peer.connection.received(), peer.connection.acknowledged()), (State::Established, 0, 0));
    assert!(is_alive(&mut peer, 1, LATER_MS));
}

#[test]
fn a_rst_and_a_syn_need_no_timestamps() {
    let mut peer = established();
    assert_eq!(peer.exchange(segment(Flags::SYN, 400, 0, 0)), [". 1:1(0) ack 1"]);
    peer.send(rst(1));
    assert_eq!(peer.state(), State::Closed);
}

#[test]
fn the_ack_that_completes_the_handshake_needs_timestamps_too() {
    let mut peer = Peer::of_passive_open(Config::default());
    peer.send(stamped(syn(), PEER_TSVAL, 0));
    peer.send(ack(1, 1));
    assert_eq!(peer.state(), State::SynReceived);
    peer.send(stamped(ack(1, 1), PEER_TSVAL, START_MS));
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn an_option_that_was_not_negotiated_is_ignored() {
    // RFC 7323 §3.2.
    let mut peer = Peer::established(plain());
    assert_eq!(peer.send(stamped(data(1, 1, 100), 5000, 0)), 100);
    assert_eq!(peer.send(stamped(data(101, 1, 100), 4000, 0)), 100);
    assert_eq!(peer.at(LATER_MS).take_one().options, Options::default());
}

#[test]
fn a_repeated_fin_with_a_newer_timestamp_restarts_time_wait() {
    let mut peer = established();
    peer.connection.close();
    peer.at(20).send(stamped(fin(1, 2), PEER_TSVAL + 10, OURS));
    assert_eq!(peer.state(), State::TimeWait);
    peer.at(50_000).send(stamped(fin(1, 2), PEER_TSVAL + 50_000, OURS));
    peer.at(109_999);
    assert_eq!(peer.state(), State::TimeWait);
}

#[test]
fn the_echo_times_the_round_trip_of_a_segment_sent_twice() {
    // RFC 7323 §4: the echo tells which transmission was acknowledged. 30 ms after 10 ms: 7/8 x 10 + 1/8 x 30.
    let mut peer = established();
    peer.at(20).write(100);
    peer.at(1020); // the retransmission timer
    let [first, again] = peer.take()[..] else { panic!("not sent twice") };
    assert_eq!((again.seq, again.options.timestamps.unwrap().val), (first.seq, START_MS + 1020));
    peer.at(1050).send(stamped(ack(1, 101), PEER_TSVAL + 1040, START_MS + 1020));
    assert_eq!(peer.info().srtt, Some(Duration::from_micros(12_500)));
}

#[test]
fn the_rst_of_an_abort_carries_timestamps() {
    // RFC 7323 §3.2: if timestamps were negotiated, a RST should carry them.
    let mut peer = established();
    peer.at(40).abort();
    let reset = peer.take_one();
    assert!(reset.flags.has(Flags::RST));
    assert_eq!(reset.options.timestamps, Some(Timestamps { val: START_MS + 40, ecr: PEER_TSVAL }));
    let mut peer = Peer::established(plain());
    peer.abort();
    assert_eq!(peer.take_one().options, Options::default());
}

#[test]
fn the_rst_that_answers_a_wrong_ack_of_our_syn_carries_timestamps() {
    for agreed in [true, false] {
        let mut peer = Peer::of_passive_open(Config::default());
        peer.send(if agreed { stamped(syn(), PEER_TSVAL, 0) } else { syn() });
        peer.take();
        peer.at(40).send(stamped(ack(1, 77), PEER_TSVAL + 40, START_MS));
        let reset = peer.take_one();
        assert!(reset.flags.has(Flags::RST));
        let expected = agreed.then_some(Timestamps { val: START_MS + 40, ecr: PEER_TSVAL });
        assert_eq!(reset.options.timestamps, expected);
    }
}

#[test]
fn an_echo_from_the_future_measures_nothing() {
    let mut peer = established();
    peer.at(20).write(100);
    peer.at(2000).send(stamped(ack(1, 101), PEER_TSVAL + 2000, START_MS + 3000));
    assert_eq!(peer.info().srtt, Some(Duration::from_millis(HANDSHAKE_MS)));
}

#[test]
fn pieces_of_segments_that_were_too_large_are_stamped_as_retransmissions() {
    // RFC 7323 §4.1 with `sack`; with `reknit` the first retransmissions repeat the first timestamp, and echoes of it measure
    // nothing.
    for (name, stamp) in [("sack", OURS + 90), ("reknit", OURS)] {
        let mut peer = Peer::established_as(&reknit_testkit::variant(name), Config::default());
        peer.write(2 * 1448);
        assert_eq!(peer.take().len(), 2);
        let later = HANDSHAKE_MS + 90;
        peer.at(later)
            .connection
            .limit_segment_size(Instant::ZERO + Duration::from_millis(u64::from(START_MS) + later), 1012);
        let pieces = peer.take();
        let sizes: Vec<_> = pieces.iter().map(|piece| (piece.seq.0, piece.len)).collect();
        assert_eq!(sizes, [(1, 1000), (1001, 448), (1449, 1000), (2449, 448)], "{name}");
        assert!(pieces.iter().all(|piece| piece.options.timestamps.unwrap().val == stamp), "{name}: {pieces:?}");
        peer.at(later + HANDSHAKE_MS).send(stamped(ack(1, 2897), PEER_TSVAL + later as u32, stamp));
        assert_eq!(peer.info().srtt, Some(Duration::from_millis(HANDSHAKE_MS)), "{name}");
        peer.at(later + LATER_MS);
        assert_eq!(peer.take(), [], "{name}");
    }
}

#[test]
fn a_simultaneous_open_agrees_on_timestamps_too() {
    let mut peer = Peer::of_active_open(Config { simultaneous_open: true, ..Config::default() });
    peer.take_sent();
    assert_eq!(peer.exchange(stamped(syn(), PEER_TSVAL, 0)), ["S. 0:0(0) ack 1"]);
    assert_eq!(peer.exchange(stamped(syn_ack(), PEER_TSVAL, START_MS)), [". 1:1(0) ack 1"]);
    assert!(peer.info().timestamps);
    assert!(is_alive(&mut peer, 1, LATER_MS));
}
