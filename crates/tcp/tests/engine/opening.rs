//! Opening a connection: RFC 9293 §3.5 and §3.10.7.1 to §3.10.7.4, and the negotiation of options.

use reknit_tcp::segment::{Flags, Options};
use reknit_tcp::{CloseReason, Config, Segment, SeqNum, State, reset_for};
use reknit_testkit::peer::{
    HANDSHAKE_MS, MSS, Peer, SILENCE, WINDOW, ack, data, fin, plain, rst, segment, syn, syn_ack,
};
use reknit_units::{Bytes, Capacity, Duration, Segments};

/// A SYN-ACK with unusual options.
fn syn_ack_with(options: Options) -> Segment {
    Segment { options, ..syn_ack() }
}

fn simultaneous() -> Config {
    Config { simultaneous_open: true, ..plain() }
}

fn opened_with(config: Config, options: Options) -> Peer {
    let mut peer = Peer::of_active_open(config);
    peer.take_sent();
    assert_eq!(peer.at(HANDSHAKE_MS).exchange(syn_ack_with(options)), [". 1:1(0) ack 1"]);
    peer
}

#[test]
fn an_active_open_takes_three_segments() {
    let mut peer = Peer::of_active_open(plain());
    assert_eq!(peer.take_sent(), ["S 0:0(0)"]);
    assert_eq!(peer.state(), State::SynSent);
    assert_eq!(peer.exchange(syn_ack()), [". 1:1(0) ack 1"]);
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_passive_open_takes_three_segments() {
    let mut peer = Peer::of_passive_open(plain());
    assert_eq!(peer.take_sent(), SILENCE);
    assert_eq!(peer.exchange(syn()), ["S. 0:0(0) ack 1"]);
    assert_eq!(peer.state(), State::SynReceived);
    assert_eq!(peer.exchange(ack(1, 1)), SILENCE);
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn simultaneous_opens_make_one_connection() {
    let mut peer = Peer::of_active_open(simultaneous());
    assert_eq!(peer.exchange(syn()), ["S. 0:0(0) ack 1"]);
    assert_eq!(peer.state(), State::SynReceived);
    assert_eq!(peer.exchange(syn_ack()), [". 1:1(0) ack 1"]);
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_simultaneous_open_completes_with_any_ack_of_the_syn() {
    let mut peer = Peer::of_active_open(simultaneous());
    peer.send(syn());
    assert_eq!(peer.exchange(ack(1, 1)), SILENCE);
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_lost_syn_is_retransmitted_with_back_off() {
    let mut peer = Peer::of_active_open(plain());
    peer.at(200_000);
    assert_eq!(peer.times(), [0, 1000, 3000, 7000, 15_000, 31_000, 63_000, 123_000, 183_000]);
    assert_eq!(peer.state(), State::SynSent);
}

#[test]
fn an_unanswered_syn_times_out_after_three_minutes_or_more() {
    // RFC 9293 §3.8.3, MUST-23.
    let mut peer = Peer::of_active_open(plain());
    peer.at(302_999);
    assert_eq!(peer.state(), State::SynSent);
    peer.at(303_000);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::TimedOut)));
}

#[test]
fn a_lost_syn_ack_is_retransmitted_with_back_off() {
    let mut peer = Peer::of_passive_open(plain());
    peer.send(syn());
    peer.at(8000);
    assert_eq!(peer.take_sent(), ["S. 0:0(0) ack 1"; 4]);
    peer.send(ack(1, 1));
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_repeated_syn_gets_the_same_answer() {
    let mut peer = Peer::of_passive_open(plain());
    assert_eq!(peer.exchange(syn()), ["S. 0:0(0) ack 1"]);
    assert_eq!(peer.at(900).exchange(syn()), ["S. 0:0(0) ack 1"]);
    assert_eq!(peer.state(), State::SynReceived);
}

#[test]
fn a_repeated_syn_ack_is_acknowledged_again() {
    let mut peer = Peer::established(plain());
    let answer = peer.exchange(syn_ack());
    assert_eq!(answer.len(), 1);
    assert!(answer[0].starts_with(". 1:1(0) ack 1"), "{answer:?}");
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn after_a_lost_syn_the_first_window_is_one_segment() {
    // RFC 5681 §3.1.
    let mut peer = Peer::of_active_open(plain());
    peer.at(1500).send(syn_ack());
    assert_eq!(peer.info().cwnd, Bytes(u64::from(MSS)));
}

#[test]
fn after_a_lost_syn_the_rto_starts_from_three_seconds() {
    // RFC 6298 §5.7.
    let mut peer = Peer::of_active_open(plain());
    peer.at(1500).send(syn_ack());
    assert_eq!(peer.info().rto, Some(Duration::from_secs(3)));
}

#[test]
fn a_rst_that_acknowledges_the_syn_refuses_the_connection() {
    let mut peer = Peer::of_active_open(plain());
    peer.take_sent();
    assert_eq!(peer.exchange(segment(Flags::RST | Flags::ACK, 0, 1, 0)), SILENCE);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::Refused)));
}

#[test]
fn a_rst_that_does_not_acknowledge_the_syn_is_ignored() {
    for blind in [rst(0), rst(1), segment(Flags::RST | Flags::ACK, 0, 0, 0), segment(Flags::RST | Flags::ACK, 0, 2, 0)]
    {
        let mut peer = Peer::of_active_open(plain());
        peer.take_sent();
        assert_eq!(peer.exchange(blind), SILENCE);
        assert_eq!(peer.state(), State::SynSent);
    }
}

#[test]
fn an_ack_of_anything_but_the_syn_is_reset() {
    // RFC 9293 §3.10.7.3, first check. An old SYN-ACK, or a peer that considers the connection open (§3.5.1). The reset ends
    // that connection, so the SYN need not wait for its timer.
    for wrong in [ack(300, 100), ack(300, 0), Segment { ack: SeqNum(100), ..syn_ack() }] {
        let mut peer = Peer::of_active_open(plain());
        let number = wrong.ack.0;
        assert_eq!(peer.exchange(wrong), [format!("R {number}:{number}(0)"), "S 0:0(0)".to_owned()]);
        assert_eq!(peer.state(), State::SynSent);
    }
}

#[test]
fn an_ack_of_the_syn_alone_opens_nothing() {
    let mut peer = Peer::of_active_open(plain());
    assert_eq!(peer.exchange(ack(1, 1)), SILENCE);
    assert_eq!(peer.state(), State::SynSent);
}

#[test]
fn in_listen_an_ack_is_reset_and_all_but_a_syn_is_ignored() {
    let mut peer = Peer::of_passive_open(plain());
    assert_eq!(peer.exchange(ack(5, 7)), ["R 7:7(0)"]);
    assert_eq!(peer.exchange(Segment { ack: SeqNum(7), ..syn_ack() }), ["R 7:7(0)"]);
    assert_eq!(peer.exchange(rst(0)), SILENCE);
    assert_eq!(peer.exchange(segment(Flags::SYN | Flags::RST, 0, 0, 0)), SILENCE);
    assert_eq!(peer.exchange(segment(Flags::FIN, 0, 0, 10)), SILENCE);
    assert_eq!(peer.state(), State::Listen);
}

#[test]
fn closing_a_listener_ends_it_silently() {
    let mut peer = Peer::of_passive_open(plain());
    peer.connection.close();
    assert_eq!(peer.take_sent(), SILENCE);
    assert_eq!(peer.state(), State::Closed);
}

#[test]
fn a_closed_connection_resets_any_segment_except_a_rst() {
    let mut peer = Peer::in_state(State::Closed);
    assert_eq!(peer.exchange(data(7, 5, 100)), ["R 5:5(0)"]);
    assert_eq!(peer.exchange(rst(7)), SILENCE);
}

#[test]
fn a_reset_continues_the_numbers_of_the_segment_that_it_answers() {
    // RFC 9293 §3.10.7.1: if there is an ACK, the RST's number is that of the ACK, otherwise zero.
    let arrived = Segment { seq: SeqNum(100), ack: SeqNum(50), len: 10, flags: Flags::ACK | Flags::FIN, ..syn() };
    assert_eq!(reset_for(&arrived), Segment { seq: SeqNum(50), flags: Flags::RST, ..Segment::default() });
    let arrived = Segment { flags: Flags::SYN | Flags::FIN, ..arrived };
    let expected = Segment { ack: SeqNum(112), flags: Flags::RST | Flags::ACK, ..Segment::default() };
    assert_eq!(reset_for(&arrived), expected);
}

#[test]
fn a_reset_syn_ack_leads_back_to_listen_and_the_next_syn_opens() {
    // RFC 9293 §3.5, figure 9: the first SYN was an old duplicate.
    let mut peer = Peer::of_passive_open(plain());
    peer.send(syn());
    assert_eq!(peer.exchange(rst(1)), SILENCE);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Listen, None));
    let next = Segment { seq: SeqNum(9000), ..syn() };
    assert_eq!(peer.exchange(next), ["S. 0:0(0) ack 9001"]);
    assert_eq!(peer.exchange(ack(9001, 1)), SILENCE);
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_rst_refuses_a_simultaneous_open() {
    let mut peer = Peer::of_active_open(simultaneous());
    peer.send(syn());
    assert_eq!(peer.exchange(rst(1)), SILENCE);
    assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::Refused)));
}

#[test]
fn in_syn_received_a_wrong_ack_is_reset() {
    for wrong in [0, 2, 5000] {
        let mut peer = Peer::in_state(State::SynReceived);
        assert_eq!(peer.exchange(ack(1, wrong)), [format!("R {wrong}:{wrong}(0)")]);
        assert_eq!(peer.state(), State::SynReceived);
    }
}

#[test]
fn in_syn_received_segments_outside_the_window_are_acknowledged() {
    // RFC 9293 §3.10.7.4, first check.
    for outside in [segment(Flags::SYN, 10_000_000, 0, 0), data(10_000_000, 1, 10)] {
        let mut peer = Peer::in_state(State::SynReceived);
        assert_eq!(peer.exchange(outside), [". 1:1(0) ack 1"]);
        assert_eq!(peer.state(), State::SynReceived);
    }
}

#[test]
fn data_on_a_syn_is_ignored_until_it_is_retransmitted() {
    // RFC 9293 §3.10.7.2 would queue it. Unacknowledged data is retransmitted anyway.
    let mut peer = Peer::of_passive_open(plain());
    assert_eq!(peer.exchange(Segment { len: 100, ..syn() }), ["S. 0:0(0) ack 1"]);
    assert_eq!(peer.send(data(1, 1, 100)), 100);
    assert_eq!(peer.connection.received(), 100);
}

#[test]
fn data_on_a_syn_ack_is_ignored_until_it_is_retransmitted() {
    let mut peer = Peer::of_active_open(plain());
    peer.take_sent();
    assert_eq!(peer.exchange(Segment { len: 100, ..syn_ack() }), [". 1:1(0) ack 1"]);
    assert_eq!(peer.send(data(1, 1, 100)), 100);
}

#[test]
fn a_fin_on_a_syn_closes_nothing() {
    // RFC 9293 §3.10.7.4, eighth check: no FIN is processed before the SYN is acknowledged.
    let mut peer = Peer::of_passive_open(plain());
    assert_eq!(peer.exchange(segment(Flags::SYN | Flags::FIN, 0, 0, 0)), ["S. 0:0(0) ack 1"]);
    peer.send(ack(1, 1));
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn the_ack_that_completes_the_handshake_may_carry_data_and_a_fin() {
    let mut peer = Peer::in_state(State::SynReceived);
    let last = segment(Flags::ACK | Flags::FIN, 1, 1, 100);
    assert_eq!(peer.exchange(last), [". 1:1(0) ack 102"]);
    assert_eq!((peer.state(), peer.connection.readable()), (State::CloseWait, Bytes(100)));
}

#[test]
fn data_written_before_the_handshake_is_sent_right_after_it() {
    let mut peer = Peer::of_active_open(plain());
    peer.write(2920);
    assert_eq!(peer.take_sent(), ["S 0:0(0)"]);
    assert_eq!(peer.exchange(syn_ack()), [". 1:1(0) ack 1", ". 1:1461(1460) ack 1", "P. 1461:2921(1460) ack 1"]);
}

#[test]
fn closing_before_the_handshake_still_sends_the_written_data() {
    let mut peer = Peer::of_active_open(plain());
    peer.write(100);
    peer.connection.close();
    peer.take_sent();
    assert_eq!(peer.state(), State::SynSent);
    assert_eq!(peer.exchange(syn_ack()).last().unwrap(), "FP. 1:101(100) ack 1");
    assert_eq!(peer.state(), State::FinWait1);
}

#[test]
fn both_ends_use_the_smaller_segment_size() {
    // RFC 9293 §3.7.1: 536 if none is announced.
    for (announced, expected) in [(None, 536), (Some(1000), 1000), (Some(1460), 1460), (Some(65_535), 1460)] {
        let mut peer = opened_with(plain(), Options { mss: announced, ..Options::default() });
        peer.write(10_000);
        assert_eq!((peer.take()[0].len, peer.info().smss), (expected, Bytes(u64::from(expected))));
    }
}

#[test]
fn a_segment_size_below_what_every_host_accepts_is_raised() {
    for announced in [0, 1, 63, 64, 535] {
        let mut peer = opened_with(plain(), Options { mss: Some(announced), ..Options::default() });
        peer.write(10_000);
        assert_eq!(peer.take()[0].len, 536);
    }
    let mut peer = opened_with(Config { min_mss: 100, ..plain() }, Options { mss: Some(99), ..Options::default() });
    peer.write(10_000);
    assert_eq!(peer.take()[0].len, 100);
    let mut peer = opened_with(Config { mss: 300, ..plain() }, Options { mss: Some(1460), ..Options::default() });
    peer.write(10_000);
    assert_eq!(peer.take()[0].len, 300); // our own choice may be smaller
}

#[test]
fn the_syn_announces_our_segment_size() {
    let config = Config { mss: 1000, ..plain() };
    let mut peer = Peer::of_active_open(config.clone());
    assert_eq!(peer.take_one().options.mss, Some(1000));
    let mut peer = Peer::of_passive_open(config);
    peer.send(syn());
    assert_eq!(peer.take_one().options.mss, Some(1000));
}

#[test]
fn sack_needs_both_ends() {
    for (ours, theirs) in [(true, true), (true, false), (false, true)] {
        let config = Config { sack: ours, ..plain() };
        let mut peer = Peer::of_passive_open(config);
        peer.send(Segment { options: Options { sack_permitted: theirs, ..Options::default() }, ..syn() });
        assert_eq!(peer.take_one().options.sack_permitted, ours && theirs);
        peer.send(ack(1, 1));
        let expected = if ours && theirs { ". 1:1(0) ack 1 sack 101:201" } else { ". 1:1(0) ack 1" };
        assert_eq!(peer.exchange(data(101, 1, 100)), [expected]);
    }
}

#[test]
fn windows_are_scaled_if_both_ends_offer_it() {
    let config = Config { receive_buffer: Capacity::Bytes(Bytes(4 << 20)), ..plain() };
    let mut peer = Peer::of_active_open(config);
    assert_eq!(peer.take_one().options.window_scale, Some(7));
    peer.send(syn_ack_with(Options { window_scale: Some(3), ..Options::default() }));
    assert_eq!((peer.info().window_scale, peer.info().snd_wnd), (3, Bytes(u64::from(WINDOW))));
    assert_eq!(u32::from(peer.take_one().window) << 7, 4 << 20);
    peer.send(ack(1, 1));
    assert_eq!(peer.info().snd_wnd, Bytes(u64::from(WINDOW) << 3));
}

#[test]
fn windows_are_not_scaled_if_the_peer_does_not_offer_it() {
    let mut peer = Peer::of_passive_open(plain());
    peer.send(syn());
    assert_eq!(peer.take_one().options.window_scale, None);
    peer.send(ack(1, 1));
    assert_eq!((peer.info().window_scale, peer.info().snd_wnd), (0, Bytes(u64::from(WINDOW))));
    peer.send(data(2000, 1, 100));
    assert_eq!(peer.take_one().window, u16::MAX);
}

#[test]
fn a_shift_above_fourteen_counts_as_fourteen() {
    // RFC 7323 §2.3.
    let mut peer = opened_with(plain(), Options { window_scale: Some(200), ..Options::default() });
    peer.send(ack(1, 1));
    assert_eq!((peer.info().window_scale, peer.info().snd_wnd), (14, Bytes(u64::from(WINDOW) << 14)));
}

#[test]
fn the_peer_may_close_with_the_last_segment_of_the_handshake() {
    let mut peer = Peer::in_state(State::SynReceived);
    peer.send(fin(1, 1));
    assert_eq!((peer.state(), peer.connection.is_read_closed()), (State::CloseWait, true));
}

#[test]
fn the_initial_window_is_sent_at_once() {
    let mut peer = Peer::established(Config { initial_window: Segments(3), ..plain() });
    peer.write(10_000);
    assert_eq!(peer.take_sent(), [". 1:1461(1460) ack 1", ". 1461:2921(1460) ack 1", ". 2921:4381(1460) ack 1"]);
}

#[test]
fn a_syn_of_somebody_else_does_not_prevent_a_connection() {
    // It carries no acknowledgment, so anybody who guesses the ports can send it.
    let mut peer = Peer::of_active_open(plain());
    peer.take_sent();
    assert_eq!(peer.exchange(Segment { seq: SeqNum(12_345), ..syn() }), SILENCE);
    assert_eq!(peer.state(), State::SynSent);
    assert_eq!(peer.exchange(syn_ack()), [". 1:1(0) ack 1"]);
    assert_eq!(peer.state(), State::Established);
}

#[test]
fn a_half_open_connection_returns_to_listen_after_a_minute() {
    let mut peer = Peer::of_passive_open(plain());
    peer.send(syn());
    assert_eq!(peer.at(59_999).state(), State::SynReceived);
    assert_eq!(peer.at(60_000).state(), State::Listen);
    peer.take_sent();
    assert_eq!(peer.at(600_000).take_sent(), SILENCE);
    let next = Segment { seq: SeqNum(9000), ..syn() };
    assert_eq!(peer.exchange(next), ["S. 0:0(0) ack 9001"]);
    peer.send(ack(9001, 1));
    // The earlier timeouts do not count against the new connection.
    assert_eq!((peer.state(), peer.info().rto), (State::Established, Some(Duration::from_secs(1))));
}

#[test]
fn how_long_a_connection_may_be_half_open_is_configurable() {
    let mut peer = Peer::of_passive_open(Config { half_open_timeout: Duration::from_secs(10), ..plain() });
    peer.send(syn());
    assert_eq!(peer.at(10_000).state(), State::Listen);
}
