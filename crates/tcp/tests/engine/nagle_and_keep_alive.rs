//! What is delayed and what is sent without new data: RFC 9293 §3.7.4 (Nagle), §3.8.6.2.1 (silly windows, the sender's
//! side), §3.9.1.2 (push), §3.8.3 (user timeout), §3.8.4 (keep-alives).

use reknit_tcp::config::KeepAlive;
use reknit_tcp::segment::{Ecn, Flags, Timestamps};
use reknit_tcp::{CloseReason, Config, Segment, State};
use reknit_testkit::peer::{
    HANDSHAKE_MS, MSS, PEER_TSVAL, Peer, SILENCE, START_MS, ack, data, fin, plain, rst, sacking, syn_ack,
};
use reknit_units::{Bytes, Duration, Instant};

/// Two hours, the smallest default that RFC 9293 §3.8.4 allows.
const IDLE_MS: u64 = 7_200_000;
const INTERVAL_MS: u64 = 75_000;
const PROBES: u32 = 9;
/// When a connection that is idle since the handshake is first probed.
const FIRST_PROBE_MS: u64 = HANDSHAKE_MS + IDLE_MS;

fn without_nagle() -> Config {
    Config { nagle: false, ..plain() }
}

fn kept_alive() -> Config {
    let idle = Duration::from_millis(IDLE_MS);
    let keep_alive = KeepAlive { idle, interval: Duration::from_millis(INTERVAL_MS), probes: PROBES };
    Config { keep_alive: Some(keep_alive), ..plain() }
}

/// An established connection with a peer that has room for `window` bytes.
fn peer_with_window(config: Config, window: u16) -> Peer {
    let mut peer = Peer::of_active_open(config);
    peer.send(Segment { window, ..syn_ack() });
    peer.take_sent();
    peer
}

/// An established connection with 100 bytes in flight.
fn in_flight(config: Config) -> Peer {
    let mut peer = Peer::established(config);
    peer.write(100);
    assert_eq!(peer.take_sent(), ["P. 1:101(100) ack 1"]);
    peer
}

#[test]
fn a_small_write_is_sent_at_once_on_an_idle_connection() {
    let mut peer = in_flight(plain());
    peer.send(ack(1, 101));
    peer.write(1);
    assert_eq!(peer.take_sent(), ["P. 101:102(1) ack 1"]);
}

#[test]
fn small_writes_wait_for_the_ack_and_are_sent_together() {
    let mut peer = in_flight(plain());
    for _ in 0..5 {
        peer.write(100);
    }
    assert_eq!(peer.at(500).take_sent(), SILENCE);
    assert_eq!(peer.exchange(ack(1, 101)), ["P. 101:601(500) ack 1"]);
}

#[test]
fn small_writes_that_fill_a_segment_do_not_wait() {
    let mut peer = in_flight(plain());
    peer.write(1000);
    assert_eq!(peer.take_sent(), SILENCE);
    peer.write(500);
    assert_eq!(peer.take_sent(), [". 101:1561(1460) ack 1"]);
}

#[test]
fn a_segment_is_full_without_the_room_of_its_options() {
    // RFC 9293 §3.7.1: Eff.snd.MSS.
    let mut peer = in_flight(Config::default());
    peer.write(1447);
    assert_eq!(peer.take_sent(), SILENCE);
    peer.write(1);
    assert_eq!(peer.take_sent(), ["P. 101:1549(1448) ack 1"]);
}

#[test]
fn the_rest_of_a_large_write_waits_for_everything_in_flight() {
    let mut peer = Peer::established(plain());
    peer.write(3000);
    assert_eq!(peer.take_sent(), [". 1:1461(1460) ack 1", ". 1461:2921(1460) ack 1"]);
    assert_eq!(peer.exchange(ack(1, 1461)), SILENCE);
    assert_eq!(peer.exchange(ack(1, 2921)), ["P. 2921:3001(80) ack 1"]);
}

#[test]
fn an_ack_of_nothing_new_releases_nothing() {
    let mut peer = in_flight(plain());
    peer.write(100);
    assert_eq!(peer.exchange(ack(1, 1)), SILENCE);
    assert_eq!(peer.exchange(Segment { window: 65_000, ..ack(1, 1) }), SILENCE);
    assert_eq!(peer.exchange(sacking(ack(1, 1), &[(1, 101)])), SILENCE);
}

#[test]
fn writes_before_the_handshake_are_sent_together() {
    let mut peer = Peer::of_active_open(without_nagle());
    peer.write(100);
    peer.write(200);
    assert_eq!(peer.exchange(syn_ack())[1..], ["P. 1:301(300) ack 1"]);
}

#[test]
fn nagle_can_be_switched_off() {
    // RFC 9293 §3.7.4, MUST-17.
    let mut peer = in_flight(without_nagle());
    peer.write(50);
    peer.write(1500);
    assert_eq!(peer.take_sent(), ["P. 101:151(50) ack 1", ". 151:1611(1460) ack 1", "P. 1611:1651(40) ack 1"]);
}

#[test]
fn a_fin_is_sent_with_the_waiting_data() {
    let mut peer = in_flight(plain());
    peer.write(50);
    assert_eq!(peer.take_sent(), SILENCE);
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["FP. 101:151(50) ack 1"]);
}

#[test]
fn a_fin_does_not_wait() {
    let mut peer = in_flight(plain());
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["F. 101:101(0) ack 1"]);
}

#[test]
fn the_last_segment_of_the_written_data_is_pushed() {
    // RFC 9293 §3.9.1.2, MUST-61.
    let mut peer = Peer::established(without_nagle());
    peer.write(2920);
    assert_eq!(peer.take_sent(), [". 1:1461(1460) ack 1", "P. 1461:2921(1460) ack 1"]);
    peer.write(1500);
    assert_eq!(peer.take_sent(), [". 2921:4381(1460) ack 1", "P. 4381:4421(40) ack 1"]);
}

#[test]
fn a_segment_that_the_window_cuts_short_is_not_pushed() {
    let mut peer = peer_with_window(plain(), 1000);
    peer.write(1500);
    assert_eq!(peer.take_sent(), [". 1:1001(1000) ack 1"]);
    assert_eq!(peer.exchange(ack(1, 1001)), ["P. 1001:1501(500) ack 1"]);
}

#[test]
fn pushed_data_is_delivered_like_any_other() {
    // RFC 9293 §3.9.1.3: a receiver may ignore the bit.
    for flags in [Flags::ACK, Flags::ACK | Flags::PSH] {
        let mut peer = Peer::established(plain());
        assert_eq!(peer.send(Segment { flags, ..data(1, 1, 100) }), 100);
        assert_eq!(peer.connection.readable(), Bytes(100));
    }
}

#[test]
fn half_of_the_largest_window_also_waits_for_the_ack() {
    // RFC 9293 §3.8.6.2.1, (3): "[SND.NXT = SND.UNA and]" is the part that Nagle adds.
    let mut peer = peer_with_window(plain(), 2000);
    peer.write(600);
    assert_eq!(peer.take_sent(), ["P. 1:601(600) ack 1"]);
    peer.write(5000);
    assert_eq!(peer.take_sent(), SILENCE);
    assert_eq!(peer.exchange(Segment { window: 1400, ..ack(1, 601) }), [". 601:2001(1400) ack 1"]);
}

#[test]
fn without_nagle_half_of_the_largest_window_is_used_at_once() {
    // RFC 9293 §3.8.6.2.1, (3).
    let mut peer = peer_with_window(without_nagle(), 2000);
    peer.write(600);
    peer.write(5000);
    assert_eq!(peer.take_sent(), ["P. 1:601(600) ack 1", ". 601:2001(1400) ack 1"]);
}

#[test]
fn also_without_nagle_a_small_opening_is_not_used() {
    // RFC 9293 §3.8.6.2.1: it has room neither for a segment, nor for half of the largest window, nor for all waiting
    // data.
    let mut peer = peer_with_window(without_nagle(), 2000);
    peer.write(1460);
    assert_eq!(peer.take_sent(), ["P. 1:1461(1460) ack 1"]);
    peer.write(541);
    assert_eq!(peer.take_sent(), SILENCE);
    assert_eq!(peer.exchange(Segment { window: 2001, ..ack(1, 1) }), ["P. 1461:2002(541) ack 1"]);
}

#[test]
fn keep_alives_are_off_by_default() {
    // RFC 9293 §3.8.4, MUST-25.
    let mut peer = Peer::established(Config::default());
    assert_eq!(peer.connection.deadline(), Instant::NEVER);
    assert_eq!(peer.at(10 * IDLE_MS).take_sent(), SILENCE);
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn an_idle_connection_is_probed() {
    let mut peer = Peer::established(kept_alive());
    assert_eq!(peer.at(FIRST_PROBE_MS - 1).take_sent(), SILENCE);
    assert_eq!(peer.at(FIRST_PROBE_MS).take_sent(), [". 0:0(0) ack 1"]);
}

#[test]
fn a_probe_is_an_old_number_without_data() {
    // RFC 9293 §3.8.4: SEG.SEQ = SND.NXT-1, SHLD-12.
    let mut peer = in_flight(kept_alive());
    peer.at(50).send(data(1, 101, 300));
    peer.at(300).take_sent();
    let probe = peer.at(50 + IDLE_MS).take_one();
    assert_eq!((probe.seq.0, probe.ack.0, probe.len, probe.flags), (100, 301, 0, Flags::ACK));
}

#[test]
fn a_probe_carries_the_same_options_as_other_segments() {
    let mut peer = Peer::established(Config { timestamps: true, ecn: true, ..kept_alive() });
    let probe = peer.at(FIRST_PROBE_MS).take_one();
    let val = START_MS + FIRST_PROBE_MS as u32;
    assert_eq!(probe.options.timestamps, Some(Timestamps { val, ecr: PEER_TSVAL }));
    assert_eq!(probe.ecn, Ecn::NotCapable);
}

#[test]
fn an_unanswered_probe_is_repeated() {
    // RFC 9293 §3.8.4, MUST-29: a single unanswered probe does not end the connection.
    let mut peer = Peer::established(kept_alive());
    peer.at(FIRST_PROBE_MS + 3 * INTERVAL_MS);
    assert_eq!(peer.times(), [0, 1, 2, 3].map(|n| FIRST_PROBE_MS + n * INTERVAL_MS));
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_peer_that_answers_no_probe_is_timed_out() {
    let mut peer = Peer::established(kept_alive());
    let end = FIRST_PROBE_MS + u64::from(PROBES) * INTERVAL_MS;
    peer.at(end - 1);
    assert_eq!((peer.take_sent().len(), peer.state()), (PROBES as usize, State::Established));
    peer.at(end);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::TimedOut)));
    assert_eq!(peer.at(2 * end).take_sent(), SILENCE);
}

#[test]
fn an_answer_to_the_last_probe_is_enough() {
    let mut peer = Peer::established(kept_alive());
    let answered = FIRST_PROBE_MS + u64::from(PROBES) * INTERVAL_MS - 1;
    peer.at(answered).send(ack(1, 1));
    peer.take_sent();
    peer.at(answered + IDLE_MS + INTERVAL_MS);
    assert_eq!(peer.times(), [answered + IDLE_MS, answered + IDLE_MS + INTERVAL_MS]);
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn any_segment_delays_the_probe() {
    // RFC 9293 §3.8.4, MUST-26: no data and no acknowledgments within an interval.
    for arrival in [data(1, 1, 100), ack(1, 1)] {
        let mut peer = Peer::established(kept_alive());
        peer.at(IDLE_MS - 1000).send(arrival);
        assert!(peer.at(IDLE_MS).take_sent().len() <= 1);
        assert_eq!(peer.at(2 * IDLE_MS - 1001).take_sent(), SILENCE);
        assert_eq!(peer.at(2 * IDLE_MS - 1000).take_sent().len(), 1);
    }
}

#[test]
fn segments_that_fail_a_check_hide_no_dead_peer() {
    // Anybody who guesses the ports can send them.
    let mut peer = Peer::established(kept_alive());
    let blind = [rst(50_000), data(1, 77_777, 100), data(10_000_000, 1, 10), data(0, 77_777, 1), syn_ack()];
    for (n, segment) in (1..).zip(blind) {
        peer.at(n * 1_000_000).send(segment);
    }
    peer.take_sent();
    peer.at(FIRST_PROBE_MS);
    assert_eq!(peer.take_sent(), [". 0:0(0) ack 1"]);
    for n in 1..u64::from(PROBES) {
        peer.at(FIRST_PROBE_MS + n * INTERVAL_MS - 1000).send(rst(50_000));
    }
    peer.at(FIRST_PROBE_MS + u64::from(PROBES) * INTERVAL_MS);
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::TimedOut));
}

#[test]
fn a_peer_that_has_forgotten_the_connection_ends_it() {
    let mut peer = Peer::established(kept_alive());
    peer.at(FIRST_PROBE_MS).send(rst(1));
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::Reset)));
}

/// Sends probes long before any other timer.
fn hasty() -> Config {
    let keep_alive = KeepAlive { idle: Duration::from_millis(200), interval: Duration::from_millis(100), probes: 3 };
    Config { keep_alive: Some(keep_alive), ..plain() }
}

#[test]
fn no_probe_is_sent_while_data_is_outstanding() {
    // RFC 9293 §3.8.4, MUST-26.
    let mut peer = in_flight(hasty());
    peer.at(60_000);
    assert_eq!(peer.state(), State::Established);
    assert!(peer.take_sent().iter().all(|line| line == "P. 1:101(100) ack 1"));
    peer.send(ack(1, 101));
    assert_eq!(peer.at(60_199).take_sent(), SILENCE);
    assert_eq!(peer.at(60_200).take_sent(), [". 100:100(0) ack 1"]);
}

#[test]
fn no_probe_is_sent_while_a_closed_window_is_probed() {
    let mut peer = peer_with_window(hasty(), 0);
    peer.write(100);
    assert_eq!(peer.at(900).take_sent(), SILENCE);
    peer.at(60_000);
    assert_eq!(peer.state(), State::Established);
    assert!(peer.take_sent().iter().all(|line| line == ". 1:2(1) ack 1"));
}

#[test]
fn no_probe_is_sent_before_the_connection_is_established() {
    let mut peer = Peer::of_active_open(hasty());
    assert_eq!(peer.at(5000).take_sent(), ["S 0:0(0)"; 3]);
    let mut peer = Peer::of_passive_open(hasty());
    assert_eq!(peer.at(5000).take_sent(), SILENCE);
}

#[test]
fn a_half_closed_connection_is_probed() {
    let mut peer = Peer::established(hasty());
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["F. 1:1(0) ack 1"]);
    peer.send(ack(1, 2));
    assert_eq!((peer.at(300).take_sent(), peer.state()), (vec![". 1:1(0) ack 1".to_owned()], State::FinWait2));
    peer.at(1000);
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::TimedOut));

    let mut peer = Peer::established(hasty());
    peer.send(fin(1, 1));
    peer.take_sent();
    assert_eq!((peer.at(300).take_sent(), peer.state()), (vec![". 0:0(0) ack 2".to_owned()], State::CloseWait));
}

#[test]
fn time_wait_is_not_probed() {
    let mut peer = Peer::established(hasty());
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["F. 1:1(0) ack 1"]);
    assert_eq!(peer.exchange(fin(1, 2)), [". 2:2(0) ack 2"]);
    assert_eq!((peer.at(59_000).take_sent(), peer.state()), (Vec::new(), State::TimeWait));
    peer.at(61_000);
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::Finished));
}

#[test]
fn a_probe_of_the_peer_is_answered() {
    // RFC 9293 §3.8.4, with and without MAY-6's byte of garbage.
    for len in [0, 1] {
        for state in [State::Established, State::FinWait1, State::FinWait2] {
            let mut peer = Peer::in_state(state);
            peer.send(data(1, 1, 100));
            peer.at(500).take_sent();
            let answer = peer.exchange(data(100, 1, len));
            assert!(answer.len() == 1 && answer[0].contains("(0) ack 101"), "{answer:?}");
            assert_eq!((peer.state(), peer.connection.received()), (state, 100));
        }
    }
}

#[test]
fn a_probe_right_after_the_handshake_is_answered() {
    let mut peer = Peer::established(plain());
    assert_eq!(peer.exchange(ack(0, 1)), [". 1:1(0) ack 1"]);
    assert_eq!(peer.exchange(data(0, 1, 1)).len(), 1);
    assert_eq!((peer.state(), peer.connection.received()), (State::Established, 0));
}

#[test]
fn unacknowledged_data_times_out() {
    // RFC 9293 §3.8.3: R2, after at least 100 s (SHLD-11).
    let mut peer = in_flight(Config { user_timeout: Duration::from_secs(100), ..plain() });
    peer.at(100_009);
    assert_eq!(peer.state(), State::Established);
    assert_eq!(peer.times(), [1010, 3010, 7010, 15_010, 31_010, 63_010]);
    peer.at(124_000);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::TimedOut)));
}

#[test]
fn a_peer_that_acknowledges_occasionally_is_not_timed_out() {
    let mut peer = Peer::established(plain());
    peer.write(100 * u64::from(MSS));
    for n in 1..100 {
        peer.at(u64::from(n) * 200_000).send(ack(1, 1 + n * u32::from(MSS)));
    }
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_reader_that_is_too_slow_can_be_given_up() {
    // It answers, so neither the user timeout nor the persist timer ends the connection.
    for (drain_timeout, ends) in [(None, false), (Some(Duration::from_secs(1800)), true)] {
        let mut peer = peer_with_window(Config { drain_timeout, ..plain() }, 1000);
        peer.write(20_000);
        for minute in 1..60 {
            // One byte in a minute.
            let acked = 1000 + minute as u32;
            peer.at(minute * 60_000).send(Segment { window: 1, ..ack(1, acked) });
        }
        assert_eq!(peer.connection.close_reason(), ends.then_some(CloseReason::TimedOut));
    }
}

#[test]
fn a_window_that_never_opens_can_be_given_up() {
    // RFC 6429. By default the connection stays open, as RFC 9293 §3.8.6.1 requires.
    for (drain_timeout, ends) in [(None, false), (Some(Duration::from_secs(1800)), true)] {
        let mut peer = peer_with_window(Config { drain_timeout, ..plain() }, 0);
        peer.write(100);
        for minute in 1..60 {
            peer.at(minute * 60_000).send(Segment { window: 0, ..ack(1, 1) });
        }
        assert_eq!(peer.connection.close_reason(), ends.then_some(CloseReason::TimedOut));
    }
}

#[test]
fn a_peer_that_keeps_up_is_not_given_up() {
    let mut peer = Peer::established(Config { drain_timeout: Some(Duration::from_secs(60)), ..plain() });
    for n in 0..20u32 {
        peer.at(10_000 + u64::from(n) * 50_000).write(1000);
        peer.at(40_000 + u64::from(n) * 50_000).send(ack(1, 1001 + n * 1000));
    }
    assert_eq!(peer.at(10_000_000).state(), State::Established);
}
