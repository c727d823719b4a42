//! Closing and aborting a connection: RFC 9293 §3.6, §3.10.4, §3.10.5 and the FINs of §3.10.7.4.

use std::sync::Arc;

use reknit_tcp::seams::{AckAction, AckPolicy, Plugin, RxFacts};
use reknit_tcp::segment::Flags;
use reknit_tcp::{CloseReason, Config, Identity, Output, Segment, SeqNum, State, Stream};
use reknit_testkit::peer::{Peer, SILENCE, ack, data, fin, plain, rst, segment, syn, syn_ack};
use reknit_testkit::variant;
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::{Composition, algorithms};

/// When a TIME-WAIT that [`Peer::in_state`] has entered ends.
const TIME_WAIT_ENDS_MS: u64 = 60_010;

#[test]
fn the_end_that_closes_first_waits_in_time_wait() {
    let mut peer = Peer::established(plain());
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["F. 1:1(0) ack 1"]);
    assert_eq!(peer.state(), State::FinWait1);
    assert_eq!(peer.exchange(ack(1, 2)), SILENCE);
    assert_eq!(peer.state(), State::FinWait2);
    assert_eq!(peer.exchange(fin(1, 2)), [". 2:2(0) ack 2"]);
    assert_eq!(peer.state(), State::TimeWait);
    peer.at(TIME_WAIT_ENDS_MS - 1);
    assert_eq!(peer.state(), State::TimeWait);
    peer.at(TIME_WAIT_ENDS_MS);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::Finished)));
}

#[test]
fn the_end_that_closes_second_does_not_wait() {
    let mut peer = Peer::established(plain());
    assert_eq!(peer.exchange(fin(1, 1)), [". 1:1(0) ack 2"]);
    assert_eq!(peer.state(), State::CloseWait);
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["F. 1:1(0) ack 2"]);
    assert_eq!(peer.state(), State::LastAck);
    assert_eq!(peer.exchange(ack(2, 2)), SILENCE);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::Finished)));
}

#[test]
fn fins_that_cross_lead_to_closing() {
    let mut peer = Peer::in_state(State::FinWait1);
    assert_eq!(peer.exchange(fin(1, 1)), [". 2:2(0) ack 2"]);
    assert_eq!(peer.state(), State::Closing);
    assert_eq!(peer.exchange(ack(2, 2)), SILENCE);
    assert_eq!(peer.state(), State::TimeWait);
}

#[test]
fn a_fin_that_acknowledges_ours_leads_to_time_wait_at_once() {
    let mut peer = Peer::in_state(State::FinWait1);
    assert_eq!(peer.exchange(fin(1, 2)), [". 2:2(0) ack 2"]);
    assert_eq!(peer.state(), State::TimeWait);
}

#[test]
fn our_fin_is_in_the_last_data_segment() {
    let mut peer = Peer::established(plain());
    peer.connection.write(Bytes(1560));
    peer.connection.close();
    assert_eq!(peer.take_sent(), [". 1:1461(1460) ack 1", "FP. 1461:1561(100) ack 1"]);
}

#[test]
fn our_fin_follows_data_already_sent() {
    let mut peer = Peer::established(plain());
    peer.write(100);
    assert_eq!(peer.take_sent(), ["P. 1:101(100) ack 1"]);
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["F. 101:101(0) ack 1"]);
}

#[test]
fn our_fin_waits_for_data_that_the_window_holds_back() {
    let mut peer = Peer::established(plain());
    peer.send(Segment { window: 1460, ..ack(1, 1) });
    peer.write(2000);
    peer.connection.close();
    assert_eq!(peer.take_sent(), [". 1:1461(1460) ack 1"]);
    assert_eq!(peer.state(), State::FinWait1);
    assert_eq!(peer.exchange(ack(1, 1461)), ["FP. 1461:2001(540) ack 1"]);
}

#[test]
fn a_closed_window_delays_our_fin_until_it_is_probed() {
    let mut peer = Peer::established(plain());
    peer.send(Segment { window: 0, ..ack(1, 1) });
    peer.connection.close();
    assert_eq!(peer.take_sent(), SILENCE);
    assert_eq!(peer.at(2000).take_sent(), ["F. 1:1(0) ack 1"]);
    peer.send(Segment { window: 0, ..ack(1, 2) });
    assert_eq!(peer.state(), State::FinWait2);
}

#[test]
fn nothing_is_written_after_a_close() {
    let mut peer = Peer::in_state(State::FinWait1);
    peer.write(100);
    assert_eq!(peer.take_sent(), SILENCE);
    assert!(peer.connection.is_write_closed());
}

#[test]
fn a_second_close_changes_nothing() {
    let mut peer = Peer::in_state(State::FinWait2);
    peer.connection.close();
    assert_eq!(peer.take_sent(), SILENCE);
    assert_eq!(peer.state(), State::FinWait2);
}

#[test]
fn a_lost_fin_is_retransmitted_with_back_off() {
    for (state, expected) in
        [(State::FinWait1, "F. 1:1(0) ack 1"), (State::Closing, "F. 1:1(0) ack 2"), (State::LastAck, "F. 1:1(0) ack 2")]
    {
        let mut peer = Peer::in_state(state);
        peer.at(8000);
        assert_eq!(peer.times(), [1010, 3010, 7010]);
        assert_eq!(peer.at(16_000).take_sent(), [expected]);
        assert_eq!(peer.state(), state);
    }
}

#[test]
fn a_fin_that_nobody_acknowledges_times_out() {
    let mut peer = Peer::in_state(State::LastAck);
    peer.at(400_000);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::TimedOut)));
}

#[test]
fn a_fin_with_data_is_processed_with_it() {
    let mut peer = Peer::established(plain());
    assert_eq!(peer.send(segment(Flags::FIN | Flags::ACK, 1, 1, 100)), 100);
    assert_eq!(peer.take_sent(), [". 1:1(0) ack 102"]);
    assert_eq!((peer.state(), peer.connection.is_read_closed()), (State::CloseWait, false));
    peer.read(100);
    assert!(peer.connection.is_read_closed());
}

#[test]
fn a_fin_that_overtakes_data_closes_after_the_data() {
    let mut peer = Peer::established(plain());
    assert_eq!(peer.exchange(fin(101, 1)), [". 1:1(0) ack 1 sack 101:102"]);
    assert_eq!(peer.state(), State::Established);
    assert_eq!(peer.exchange(data(1, 1, 100)), [". 1:1(0) ack 102"]);
    assert_eq!((peer.state(), peer.connection.received()), (State::CloseWait, 100));
}

#[test]
fn a_repeated_fin_is_acknowledged_again() {
    for (state, expected) in [(State::CloseWait, ". 1:1(0) ack 2"), (State::LastAck, ". 2:2(0) ack 2")] {
        let mut peer = Peer::in_state(state);
        let answer = peer.exchange(fin(1, 1));
        assert!(answer.len() == 1 && answer[0].starts_with(expected), "{answer:?}");
        assert_eq!(peer.state(), state);
    }
}

#[test]
fn a_repeated_fin_restarts_time_wait() {
    // RFC 9293 §3.10.7.4, eighth check.
    let mut peer = Peer::in_state(State::TimeWait);
    let answer = peer.at(50_000).exchange(fin(1, 2));
    assert!(answer.len() == 1 && answer[0].starts_with(". 2:2(0) ack 2"), "{answer:?}");
    peer.at(109_999);
    assert_eq!(peer.state(), State::TimeWait);
    peer.at(110_000);
    assert_eq!(peer.state(), State::Closed);
}

#[test]
fn other_segments_do_not_restart_time_wait() {
    let mut peer = Peer::in_state(State::TimeWait);
    peer.at(50_000).send(ack(2, 2));
    peer.send(data(2, 2, 100));
    peer.at(TIME_WAIT_ENDS_MS);
    assert_eq!(peer.state(), State::Closed);
}

#[test]
fn a_rst_does_not_cut_time_wait_short() {
    // RFC 1337 §3: it may answer an old duplicate of ours.
    let mut peer = Peer::in_state(State::TimeWait);
    assert_eq!(peer.exchange(rst(2)), SILENCE);
    assert_eq!(peer.state(), State::TimeWait);
}

#[test]
fn data_still_arrives_after_our_close() {
    for state in [State::FinWait1, State::FinWait2] {
        let mut peer = Peer::in_state(state);
        assert_eq!(peer.send(data(1, 2, 1460)) + peer.send(data(1461, 2, 1460)), 2920);
        assert_eq!(peer.take_sent(), [". 2:2(0) ack 2921"]);
        assert_eq!((peer.state(), peer.connection.readable()), (State::FinWait2, Bytes(2920)));
    }
}

#[test]
fn data_is_still_sent_after_the_peers_close() {
    let mut peer = Peer::in_state(State::CloseWait);
    peer.write(1000);
    assert_eq!(peer.take_sent(), ["P. 1:1001(1000) ack 2"]);
    peer.send(ack(2, 1001));
    assert_eq!((peer.state(), peer.connection.acknowledged()), (State::CloseWait, 1000));
}

#[test]
fn a_peer_that_never_closes_is_given_up_after_ten_silent_minutes() {
    let mut peer = Peer::in_state(State::FinWait2);
    peer.at(300_000).send(data(1, 2, 100));
    peer.at(899_999);
    assert_eq!(peer.state(), State::FinWait2);
    peer.at(900_000);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::TimedOut)));
}

#[test]
fn segments_of_somebody_else_do_not_keep_fin_wait_2_alive() {
    let mut peer = Peer::in_state(State::FinWait2);
    for minute in 1..10 {
        peer.at(minute * 60_000).send(rst(50));
        peer.send(data(1, 77, 100));
        peer.send(data(10_000_000, 2, 100));
    }
    peer.at(600_010);
    assert_eq!(peer.state(), State::Closed);
}

#[test]
fn only_the_fin_itself_restarts_time_wait() {
    // An old segment with FIN could otherwise keep the connection for as long as somebody sends it.
    let mut peer = Peer::established(plain());
    peer.send(data(1, 1, 100));
    peer.connection.close();
    peer.take_sent();
    peer.send(fin(101, 2));
    assert_eq!(peer.state(), State::TimeWait);
    for second in 1..60 {
        peer.at(second * 1000).send(segment(Flags::FIN | Flags::ACK, 1, 2, 50));
        peer.send(segment(Flags::FIN, 101, 0, 0));
        peer.send(fin(101, 1_000_000));
    }
    peer.at(60_010);
    assert_eq!(peer.state(), State::Closed);
}

#[test]
fn text_after_the_peers_fin_is_ignored() {
    // RFC 9293 §3.10.7.4, seventh check.
    for state in [State::CloseWait, State::Closing, State::LastAck, State::TimeWait] {
        let mut peer = Peer::in_state(state);
        for beyond in [data(102, 1, 100), data(2, 1, 100), segment(Flags::FIN | Flags::ACK, 1, 1, 100)] {
            assert_eq!(peer.send(beyond), 0);
            assert_eq!((peer.state(), peer.connection.received()), (state, 0));
            assert!(!peer.connection.has_gaps(), "{state:?}");
        }
        assert!(peer.take().iter().all(|s| s.ack == SeqNum(2)));
    }
}

#[test]
fn text_beyond_a_pending_fin_is_ignored() {
    let mut peer = Peer::established(plain());
    peer.send(fin(101, 1));
    assert_eq!(peer.send(data(102, 1, 100)), 0);
    assert_eq!(peer.send(data(51, 1, 100)), 50);
    assert_eq!(peer.send(data(1, 1, 50)), 50);
    assert_eq!((peer.state(), peer.connection.received()), (State::CloseWait, 100));
}

#[test]
fn a_fin_below_data_that_has_arrived_is_ignored() {
    let mut peer = Peer::established(plain());
    assert_eq!(peer.send(data(1001, 1, 1000)), 1000);
    assert_eq!(peer.send(segment(Flags::FIN | Flags::ACK, 1, 1, 10)), 10);
    assert_eq!(peer.state(), State::Established);
    assert_eq!(peer.send(data(11, 1, 990)), 990);
    assert_eq!((peer.state(), peer.connection.received()), (State::Established, 2000));
}

#[test]
fn a_contradicting_fin_does_not_damage_the_stream() {
    let now = Instant::ZERO + Duration::from_secs(1);
    let mut stream =
        Stream::connect(now, &Arc::new(plain()), variant("sack").build(), Identity::default(), Bytes(1 << 20));
    let bytes = [7; 2000];
    for segment in [syn_ack(), data(1001, 1, 1000), segment(Flags::FIN | Flags::ACK, 1, 1, 10), data(11, 1, 990)] {
        stream.on_segment(now, &segment, &bytes[..usize::from(segment.len)]);
        while let Output::Send(_) = stream.poll(now, &mut Vec::new()) {}
    }
    let mut read = [0; 3000];
    assert_eq!(stream.read(now, &mut read), 2000);
    assert_eq!(read[..2000], bytes);
}

#[test]
fn a_second_fin_at_another_position_is_ignored() {
    let mut peer = Peer::in_state(State::CloseWait);
    peer.send(fin(2, 1));
    peer.send(fin(500, 1));
    assert!(peer.take().iter().all(|s| s.ack == SeqNum(2)));
    assert_eq!(peer.state(), State::CloseWait);
}

#[test]
fn aborting_an_open_connection_resets_it() {
    // RFC 9293 §3.10.5: <SEQ=SND.NXT><CTL=RST>; the additional ACK does no harm.
    for (state, expected) in [
        (State::SynReceived, "R. 1:1(0) ack 1"),
        (State::Established, "R. 1:1(0) ack 1"),
        (State::FinWait1, "R. 2:2(0) ack 1"),
        (State::FinWait2, "R. 2:2(0) ack 1"),
        (State::CloseWait, "R. 1:1(0) ack 2"),
    ] {
        let mut peer = Peer::in_state(state);
        peer.abort();
        assert_eq!(peer.take_sent(), [expected]);
        assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::Aborted)));
    }
}

#[test]
fn aborting_before_the_connection_is_open_is_silent() {
    // RFC 9293 §3.10.5.
    for state in [State::Listen, State::SynSent] {
        let mut peer = Peer::in_state(state);
        peer.abort();
        assert_eq!(peer.take_sent(), SILENCE);
        assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::Aborted)));
    }
}

#[test]
fn aborting_after_both_have_closed_is_silent() {
    // RFC 9293 §3.10.5.
    for state in [State::Closing, State::LastAck, State::TimeWait] {
        let mut peer = Peer::in_state(state);
        peer.abort();
        assert_eq!(peer.take_sent(), SILENCE, "{state:?}");
        assert_eq!(peer.state(), State::Closed);
    }
}

#[test]
fn an_abort_drops_unsent_data() {
    let mut peer = Peer::established(plain());
    peer.connection.write(Bytes(5000));
    peer.abort();
    assert_eq!(peer.take_sent(), ["R. 1:1(0) ack 1"]);
    assert_eq!(peer.at(10_000).take_sent(), SILENCE);
}

#[test]
fn an_unsent_syn_is_not_sent_after_an_abort() {
    let config = Arc::new(Config::default());
    let now = Instant::ZERO + Duration::from_secs(1);
    let mut connection = reknit_tcp::Connection::connect(now, config, variant("sack").build(), Identity::default());
    connection.abort(now);
    assert_eq!(connection.poll(now), Output::Idle);
}

#[test]
fn a_peer_that_missed_data_before_an_abort_is_reset_when_it_asks() {
    // The RST lies beyond what the peer expects, so the peer answers with a challenge ACK (RFC 5961 §3.2).
    let mut peer = Peer::established(plain());
    peer.write(1000);
    peer.abort();
    assert_eq!(peer.take_sent(), ["P. 1:1001(1000) ack 1", "R. 1001:1001(0) ack 1"]);
    assert_eq!(peer.exchange(ack(1, 1)), ["R 1:1(0)"]);
}

#[test]
fn a_rst_before_our_fin_is_acknowledged_is_an_error() {
    for state in [State::FinWait1, State::Closing, State::LastAck] {
        let mut peer = Peer::in_state(state);
        assert_eq!(peer.exchange(rst(if state == State::FinWait1 { 1 } else { 2 })), SILENCE);
        assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::Reset)));
    }
}

#[test]
fn only_segments_with_data_are_pushed() {
    let mut peer = Peer::established(plain());
    peer.write(100);
    assert_eq!(peer.take_sent(), ["P. 1:101(100) ack 1"]);
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["F. 101:101(0) ack 1"]);
    let mut peer = Peer::established(plain());
    peer.connection.write(Bytes(100));
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["FP. 1:101(100) ack 1"]);
    assert_eq!(peer.at(1500).take_sent(), ["FP. 1:101(100) ack 1"]); // the retransmission timer
}

/// Acknowledges everything 150 ms late.
#[derive(Clone, Debug)]
struct Lazy;

impl Plugin for Lazy {}

impl AckPolicy for Lazy {
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction {
        AckAction::By(rx.now + Duration::from_millis(150))
    }

    fn on_ack_sent(&mut self) {}
}

fn lazy() -> Composition {
    Composition { ack_policy: algorithms::AckPolicy::unlisted("lazy", || Box::new(Lazy)), ..variant("sack") }
}

#[test]
fn the_policy_may_delay_the_ack_of_a_fin() {
    // RFC 9293 §3.8.6.3 makes no exception for a FIN.
    let lazy = lazy();
    let mut peer = Peer::established_as(&lazy, plain());
    peer.at(1000).send(segment(Flags::FIN | Flags::ACK, 1, 1, 100));
    assert_eq!(peer.state(), State::CloseWait);
    assert_eq!(peer.at(1149).take_sent(), SILENCE);
    assert_eq!(peer.at(1150).take_sent(), [". 1:1(0) ack 102"]);
    // Also in TIME-WAIT.
    let mut peer = Peer::established_as(&lazy, plain());
    peer.connection.close();
    peer.take_sent();
    peer.at(1000).send(fin(1, 2));
    assert_eq!(peer.state(), State::TimeWait);
    assert_eq!(peer.at(1149).take_sent(), SILENCE);
    assert_eq!(peer.at(1150).take_sent(), [". 2:2(0) ack 2"]);
}

#[test]
fn our_fin_may_carry_the_ack_of_the_peers() {
    let lazy = lazy();
    let mut peer = Peer::established_as(&lazy, plain());
    peer.at(1000).send(fin(1, 1));
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["F. 1:1(0) ack 2"]);
    assert_eq!(peer.at(1200).take_sent(), SILENCE);
}

#[test]
fn a_rst_in_last_ack_with_data_outstanding_is_an_error() {
    let mut peer = Peer::in_state(State::CloseWait);
    peer.connection.write(Bytes(100));
    peer.connection.close();
    peer.take_sent();
    peer.send(rst(2));
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::Reset));
}

#[test]
fn a_close_right_after_the_handshake_works_for_a_passive_open() {
    let mut peer = Peer::of_passive_open(plain());
    peer.send(syn());
    peer.connection.close();
    assert_eq!(peer.take_sent(), ["S. 0:0(0) ack 1"]);
    assert_eq!(peer.exchange(ack(1, 1)), ["F. 1:1(0) ack 1"]);
    assert_eq!(peer.state(), State::FinWait1);
}
