//! Unacceptable segments: RFC 9293 §3.10.7.4 with the changes of RFC 5961.

use reknit_tcp::segment::Flags;
use reknit_tcp::{CloseReason, Segment, SeqNum, State};
use reknit_testkit::peer::{Peer, SILENCE, WINDOW, ack, data, fin, plain, rst, segment, syn};
use reknit_units::{Bytes, Capacity};

/// The states in which a reset is an error.
const OPEN: [State; 4] = [State::Established, State::FinWait1, State::FinWait2, State::CloseWait];
/// The states of a connection that both ends have agreed on.
const SYNCHRONISED: [State; 7] = [
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];
/// Challenge ACKs that RFC 5961 §7 suggests for every [`LIMIT_MS`].
const LIMIT: usize = 10;
const LIMIT_MS: u64 = 5000;
/// Right edge of the window that [`Peer::established`] announces.
const RIGHT_EDGE: u32 = 1 + 0xffff;

/// The peer's next byte in `state` as [`Peer::in_state`] reaches it.
fn rcv_nxt(state: State) -> u32 {
    match state {
        State::Established | State::FinWait1 | State::FinWait2 => 1,
        _ => 2,
    }
}

/// The challenge ACK.
fn challenge(state: State) -> String {
    let snd_nxt = if matches!(state, State::Established | State::CloseWait) { 1 } else { 2 };
    format!(". {snd_nxt}:{snd_nxt}(0) ack {}", rcv_nxt(state))
}

#[test]
fn a_rst_with_the_exact_number_resets() {
    // RFC 5961 §3.2.
    for state in OPEN {
        let mut peer = Peer::in_state(state);
        assert_eq!(peer.exchange(rst(rcv_nxt(state))), SILENCE);
        assert_eq!((peer.state(), peer.connection.close_reason()), (State::Closed, Some(CloseReason::Reset)));
    }
}

#[test]
fn a_rst_with_another_number_in_the_window_is_challenged() {
    // RFC 5961 §3.2.
    for state in SYNCHRONISED {
        let mut peer = Peer::in_state(state);
        assert_eq!(peer.exchange(rst(rcv_nxt(state) + 1)), [challenge(state)]);
        assert_eq!(peer.state(), state);
    }
}

#[test]
fn in_syn_received_too_only_the_exact_rst_resets() {
    let mut peer = Peer::in_state(State::SynReceived);
    assert_eq!(peer.exchange(rst(2)), [". 1:1(0) ack 1"]);
    assert_eq!(peer.state(), State::SynReceived);
}

#[test]
fn a_rst_outside_the_window_is_dropped_silently() {
    for state in SYNCHRONISED {
        for seq in [rcv_nxt(state) - 1, rcv_nxt(state) + 10_000_000, 0u32.wrapping_sub(5000)] {
            let mut peer = Peer::in_state(state);
            assert_eq!(peer.exchange(rst(seq)), SILENCE);
            assert_eq!(peer.state(), state);
        }
    }
}

#[test]
fn a_rst_resets_though_the_window_is_closed() {
    // RFC 9293 §3.8.6, MUST-66.
    let config = reknit_tcp::Config { receive_buffer: Capacity::Bytes(Bytes(1460)), ..plain() };
    let mut peer = Peer::established(config);
    peer.send(data(1, 1, 1460));
    peer.send(rst(1461));
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::Reset));
}

#[test]
fn a_rst_may_carry_text() {
    // RFC 9293 §3.5.3, SHLD-2.
    let mut peer = Peer::established(plain());
    assert_eq!(peer.send(segment(Flags::RST, 1, 0, 100)), 0);
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::Reset));
}

#[test]
fn the_acknowledgment_of_a_rst_does_not_matter() {
    let mut peer = Peer::established(plain());
    peer.send(segment(Flags::RST | Flags::ACK, 1, 70_000, 0));
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::Reset));
}

#[test]
fn a_rst_after_a_gap_is_challenged_until_the_gap_is_filled() {
    let mut peer = Peer::established(plain());
    peer.send(data(101, 1, 100));
    assert_eq!(peer.exchange(rst(201)), [". 1:1(0) ack 1 sack 101:201"]);
    peer.send(data(1, 1, 100));
    peer.send(rst(201));
    assert_eq!(peer.state(), State::Closed);
}

#[test]
fn a_peer_that_has_crashed_learns_of_it_from_a_challenge() {
    // RFC 9293 §3.5.1, figure 9: it opens a new connection, does not recognize our ACK, and sends a RST with exactly
    // its number.
    let mut peer = Peer::established(plain());
    assert_eq!(peer.exchange(segment(Flags::SYN, 400, 0, 0)), [". 1:1(0) ack 1"]);
    assert_eq!(peer.exchange(rst(1)), SILENCE);
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::Reset));
}

#[test]
fn data_sent_to_a_peer_that_has_crashed_is_reset() {
    // RFC 9293 §3.5.1, figure 10.
    let mut peer = Peer::established(plain());
    peer.write(100);
    assert_eq!(peer.exchange(rst(1)), SILENCE);
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::Reset));
    assert_eq!(peer.at(10_000).take_sent(), SILENCE);
}

#[test]
fn a_syn_is_challenged_whatever_its_number() {
    // RFC 5961 §4.2.
    for state in SYNCHRONISED {
        for seq in [rcv_nxt(state), 500, RIGHT_EDGE + 5_000_000, 0u32.wrapping_sub(5000)] {
            let mut peer = Peer::in_state(state);
            assert_eq!(peer.exchange(segment(Flags::SYN, seq, 0, 0)), [challenge(state)]);
            assert_eq!(peer.state(), state);
        }
    }
}

#[test]
fn a_syn_below_the_window_is_only_challenged() {
    // RFC 5961 §4.2: irrespective of its number. No duplicate is reported, no data accepted, TIME-WAIT not restarted.
    for state in SYNCHRONISED {
        for flags in [Flags::SYN, Flags::SYN | Flags::ACK, Flags::SYN | Flags::FIN | Flags::ACK] {
            for (seq, len) in [(rcv_nxt(state) - 1, 0), (0, 0), (0, 1), (0, 100)] {
                let mut peer = Peer::in_state(state);
                assert_eq!(peer.exchange(segment(flags, seq, 1, len)), [challenge(state)], "{state:?} {flags:?} {seq}");
                assert_eq!((peer.state(), peer.connection.received()), (state, 0));
                assert_eq!(peer.connection.receive_stats().duplicates, 0);
            }
        }
    }
    let mut peer = Peer::in_state(State::TimeWait);
    peer.at(50_000).send(segment(Flags::SYN | Flags::FIN, 1, 0, 0));
    assert_eq!(peer.at(60_010).state(), State::Closed);
}

#[test]
fn challenges_of_syns_below_the_window_are_limited() {
    for state in SYNCHRONISED {
        let mut peer = Peer::in_state(state);
        for _ in 0..100 {
            peer.send(syn());
        }
        assert_eq!(peer.take_sent().len(), LIMIT, "{state:?}");
    }
}

#[test]
fn a_retransmission_of_the_peers_syn_is_answered_by_an_ack() {
    let mut peer = Peer::established(plain());
    assert_eq!(peer.exchange(syn()), [". 1:1(0) ack 1"]);
}

#[test]
fn an_ack_of_something_never_sent_is_challenged_and_its_data_dropped() {
    // RFC 9293 §3.10.7.4, fifth check.
    for state in SYNCHRONISED {
        let mut peer = Peer::in_state(state);
        assert_eq!(peer.exchange(data(rcv_nxt(state), 3, 100)), [challenge(state)]);
        assert_eq!((peer.state(), peer.connection.received()), (state, 0));
    }
}

/// A connection whose peer never announced more than 1000 bytes and has acknowledged 5000.
fn with_a_small_window() -> Peer {
    let mut peer = Peer::of_active_open(plain());
    peer.send(Segment { window: 1000, flags: Flags::SYN | Flags::ACK, ack: SeqNum(1), ..syn() });
    peer.write(5000);
    for bytes in (1000..=5000).step_by(1000) {
        peer.send(Segment { window: 1000, ..ack(1, 1 + bytes) });
    }
    assert_eq!(peer.connection.acknowledged(), 5000);
    peer.take_sent();
    peer
}

#[test]
fn an_ack_older_than_the_largest_window_is_challenged() {
    // RFC 5961 §5.2: SND.UNA - MAX.SND.WND <= SEG.ACK.
    let mut peer = with_a_small_window();
    assert_eq!(peer.exchange(data(1, 4000, 100)), [". 5001:5001(0) ack 1"]);
    assert_eq!(peer.connection.received(), 0);
}

#[test]
fn an_old_ack_within_the_largest_window_does_not_affect_its_data() {
    let mut peer = with_a_small_window();
    assert_eq!(peer.send(data(1, 4001, 100)), 100);
    assert_eq!(peer.connection.acknowledged(), 5000);
}

#[test]
fn a_segment_without_ack_is_dropped() {
    // RFC 9293 §3.10.7.4, fifth check: "if the ACK bit is off, drop the segment and return".
    let mut peer = Peer::established(plain());
    assert_eq!(peer.exchange(segment(Flags::NONE, 1, 0, 100)), SILENCE);
    assert_eq!(peer.exchange(segment(Flags::FIN, 1, 0, 0)), SILENCE);
    assert_eq!((peer.state(), peer.connection.received()), (State::Established, 0));
}

#[test]
fn data_outside_the_window_is_acknowledged_and_dropped() {
    // RFC 9293 §3.10.7.4, first check.
    for seq in [RIGHT_EDGE, RIGHT_EDGE + 10_000_000] {
        let mut peer = Peer::established(plain());
        assert_eq!(peer.exchange(data(seq, 1, 100)), [". 1:1(0) ack 1"]);
        assert!(!peer.connection.has_gaps());
    }
}

#[test]
fn an_ack_outside_the_window_acknowledges_nothing() {
    let mut peer = Peer::established(plain());
    peer.write(100);
    assert_eq!(peer.exchange(ack(RIGHT_EDGE + 1, 101)), [". 101:101(0) ack 1"]);
    assert_eq!(peer.connection.acknowledged(), 0);
    peer.send(ack(RIGHT_EDGE, 101));
    assert_eq!(peer.connection.acknowledged(), 100);
}

#[test]
fn an_overtaken_ack_is_not_answered() {
    // Two hosts that answer each other's old ACKs would never stop.
    let mut peer = Peer::established(plain());
    peer.send(data(1, 1, 1460));
    peer.send(data(1461, 1, 1460));
    assert_eq!(peer.exchange(ack(1, 1)), SILENCE);
}

#[test]
fn challenges_are_limited() {
    // RFC 5961 §7.
    let mut peer = Peer::established(plain());
    for _ in 0..100 {
        peer.send(rst(2));
    }
    assert_eq!(peer.take_sent().len(), LIMIT);
    peer.at(LIMIT_MS + 10);
    for _ in 0..100 {
        peer.send(segment(Flags::SYN, 300, 0, 0));
    }
    assert_eq!(peer.take_sent().len(), LIMIT);
}

#[test]
fn the_limit_on_challenges_does_not_affect_ordinary_acks() {
    let mut peer = Peer::established(plain());
    for _ in 0..100 {
        peer.send(rst(2));
    }
    peer.take_sent();
    assert_eq!(peer.exchange(data(2001, 1, 100)), [". 1:1(0) ack 1 sack 2001:2101"]);
    peer.send(data(1, 1, 2000));
    assert_eq!(peer.exchange(data(1, 1, 100)).len(), 1);
}

#[test]
fn unusual_flags_do_not_affect_data() {
    // Urgent data is delivered in line.
    for flags in [Flags::ACK | Flags::PSH, Flags::ACK | Flags::URG, Flags::ACK | Flags::ECE | Flags::CWR] {
        let mut peer = Peer::established(plain());
        assert_eq!(peer.send(segment(flags, 1, 1, 100)), 100);
    }
}

#[test]
fn a_stray_segment_with_all_flags_set_breaks_nothing() {
    for state in SYNCHRONISED {
        let mut peer = Peer::in_state(state);
        peer.send(segment(Flags::from_bits(0xff), rcv_nxt(state) + 1, 1, 10));
        assert_eq!(peer.state(), state);
    }
}

#[test]
fn after_a_reset_nothing_more_is_sent() {
    let mut peer = Peer::established(plain());
    peer.write(100_000);
    peer.take_sent();
    peer.send(rst(1));
    assert_eq!(peer.at(10_000).take_sent(), SILENCE);
    peer.write(100);
    assert_eq!(peer.take_sent(), SILENCE);
}

#[test]
fn a_rst_after_the_peers_fin_still_resets() {
    let mut peer = Peer::established(plain());
    peer.write(u64::from(WINDOW));
    peer.send(fin(1, 1));
    peer.send(rst(2));
    assert_eq!(peer.connection.close_reason(), Some(CloseReason::Reset));
}

/// A connection that has received five times its receive buffer, all of it acknowledged; the next number.
fn long_used() -> (Peer, u32) {
    let buffer = Capacity::Bytes(Bytes(u64::from(RIGHT_EDGE) - 1));
    let mut peer = Peer::established(reknit_tcp::Config { receive_buffer: buffer, ..plain() });
    peer.connection.read_at_once();
    let mut seq = 1;
    while seq < 5 * RIGHT_EDGE {
        assert_eq!(peer.send(data(seq, 1, 10_000)), 10_000);
        seq += 10_000;
    }
    peer.at(1000).take_sent();
    (peer, seq)
}

#[test]
fn answers_to_old_data_of_somebody_who_guesses_are_limited() {
    // RFC 5961 §5.2 and §7. The numbers of data that has arrived are half of all numbers after 2 GiB.
    let (mut peer, next) = long_used();
    for n in 0..10_000 {
        let seq = 1 + n * 37 % (next - 1000);
        let guess = match n % 4 {
            0 => data(seq, n.wrapping_mul(429_497), 100),
            1 => segment(Flags::PSH, seq, 1, 100),
            2 => segment(Flags::FIN | Flags::ACK, seq, 0x8000_0000 + n, 0),
            _ => data(1 + seq % (next - RIGHT_EDGE - 1000), 1, 100), // not even in the window before
        };
        assert_eq!(peer.send(guess), 0);
    }
    let answers = peer.take();
    assert!(answers.len() <= LIMIT + 1, "{}", answers.len()); // one guess is right
    let duplicates = answers.iter().filter(|answer| !answer.options.sack.is_empty()).count();
    assert!(duplicates <= 1, "{duplicates} reported");
}

#[test]
fn a_peer_that_has_lost_every_ack_is_answered_without_limit() {
    let (mut peer, next) = long_used();
    let lost = next - RIGHT_EDGE + 1;
    for n in 0..100 {
        let seq = lost + n * 600;
        let expected = format!(". 1:1(0) ack {next} sack {seq}:{}", seq + 100);
        assert_eq!(peer.exchange(data(seq, 1, 100)), [expected]);
    }
}
