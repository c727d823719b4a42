//! Explicit congestion notification: RFC 3168 §6.1.

use reknit_tcp::segment::{Ecn, Flags};
use reknit_tcp::stats::Cuts;
use reknit_tcp::{Config, Segment, State};
use reknit_testkit::peer::{
    HANDSHAKE_MS, MSS, Peer, SILENCE, ack, data, fin, plain, rst, sacking, segment, syn, syn_ack,
};
use reknit_units::{Bytes, Capacity, Segments};

/// One full segment.
const SEG: u32 = MSS as u32;
/// Longer than any delayed ACK.
const LATER_MS: u64 = 500;
/// The flags of a SYN that offers ECN.
const OFFER: Flags = Flags::from_bits(Flags::ECE.bits() | Flags::CWR.bits());

fn ecn() -> Config {
    Config { ecn: true, ..plain() }
}

fn established() -> Peer {
    Peer::established(ecn())
}

fn with(segment: Segment, flags: Flags) -> Segment {
    Segment { flags: segment.flags | flags, ..segment }
}

/// `segment` with an echo of congestion.
fn echoing(segment: Segment) -> Segment {
    with(segment, Flags::ECE)
}

/// `segment` with a congestion mark.
fn marked(segment: Segment) -> Segment {
    Segment { ecn: Ecn::Congested, ..segment }
}

fn is_capable(segment: &Segment) -> bool {
    segment.ecn != Ecn::NotCapable
}

/// The window in segments.
fn cwnd(peer: &Peer) -> u64 {
    peer.info().cwnd.0 / u64::from(MSS)
}

fn cuts(peer: &Peer) -> Cuts {
    peer.connection.send_stats().cuts
}

/// The first bytes of the segments with CWR that were sent since the last call.
fn reductions_told(peer: &mut Peer) -> Vec<u32> {
    peer.take().iter().filter(|segment| segment.flags.has(Flags::CWR)).map(|segment| segment.seq.0).collect()
}

/// An established connection with ten of many segments in flight.
fn sending() -> Peer {
    let mut peer = established();
    peer.write(1_000_000);
    assert_eq!(peer.take_sent().len(), 10);
    peer
}

/// The peer acknowledges in order, segment by segment, from the `first` to the `last`.
fn acknowledge(peer: &mut Peer, first: u32, last: u32) {
    for n in first..=last {
        peer.send(ack(1, 1 + n * SEG));
    }
}

/// The peer reports the first segment in flight as missing until it is retransmitted.
fn report_loss(peer: &mut Peer) {
    for n in 2..=4 {
        peer.send(sacking(ack(1, 1), &[(1 + SEG, 1 + n * SEG)]));
    }
    assert_eq!(peer.connection.send_stats().sent.fast_retransmit, 1);
}

#[test]
fn an_active_open_offers_ecn() {
    let mut peer = Peer::of_active_open(ecn());
    assert_eq!(peer.take_sent(), ["SEW 0:0(0)"]);
    peer.send(echoing(syn_ack()));
    assert!(peer.info().ecn);
}

#[test]
fn a_passive_open_accepts_the_offer() {
    let mut peer = Peer::of_passive_open(ecn());
    assert_eq!(peer.exchange(with(syn(), OFFER)), ["S.E 0:0(0) ack 1"]);
    peer.send(ack(1, 1));
    assert!(peer.info().ecn);
}

#[test]
fn ecn_needs_both_ends() {
    let mut peer = Peer::of_active_open(plain());
    assert_eq!(peer.take_sent(), ["S 0:0(0)"]);
    peer.send(echoing(syn_ack()));
    assert!(!peer.info().ecn);
    let mut peer = Peer::of_passive_open(plain());
    assert_eq!(peer.exchange(with(syn(), OFFER)), ["S. 0:0(0) ack 1"]);
    peer.send(ack(1, 1));
    assert!(!peer.info().ecn);
}

#[test]
fn a_peer_that_reflects_the_flags_of_the_syn_has_not_agreed() {
    // RFC 3168 §6.1.1: an answer with ECE alone agrees. §6.1.1.2: old hosts return the reserved bits unchanged.
    for flags in [OFFER, Flags::CWR, Flags::NONE] {
        let mut peer = Peer::of_active_open(ecn());
        peer.send(with(syn_ack(), flags));
        peer.take();
        peer.write(5000);
        assert!(!peer.info().ecn && !peer.take().iter().any(is_capable), "{flags:?}");
        peer.send(echoing(ack(1, 1 + SEG)));
        assert_eq!(cuts(&peer), Cuts::default());
    }
}

#[test]
fn half_an_offer_is_none() {
    // RFC 3168 §6.1.1: an end that does not agree clears both flags.
    for flags in [Flags::ECE, Flags::CWR, Flags::NONE] {
        let mut peer = Peer::of_passive_open(ecn());
        assert_eq!(peer.exchange(with(syn(), flags)), ["S. 0:0(0) ack 1"]);
        peer.send(ack(1, 1));
        peer.write(100);
        assert!(!peer.info().ecn && !is_capable(&peer.take_one()), "{flags:?}");
    }
}

#[test]
fn simultaneous_opens_agree() {
    let mut peer = Peer::of_active_open(Config { simultaneous_open: true, ..ecn() });
    assert_eq!(peer.exchange(with(syn(), OFFER)), ["S.E 0:0(0) ack 1"]);
    assert_eq!(peer.exchange(echoing(syn_ack())), [". 1:1(0) ack 1"]);
    assert!(peer.info().ecn);
}

#[test]
fn a_retransmitted_syn_makes_the_same_offer() {
    let mut peer = Peer::of_active_open(ecn());
    assert_eq!(peer.at(3500).take_sent(), ["SEW 0:0(0)"; 3]);
    let mut peer = Peer::of_passive_open(ecn());
    peer.send(with(syn(), OFFER));
    assert_eq!(peer.at(3500).take_sent(), ["S.E 0:0(0) ack 1"; 3]);
}

#[test]
fn an_offer_is_withdrawn_by_a_syn_without_it() {
    // RFC 3168 §6.1.1: no ECT after a SYN without the offer. §6.1.1.1: an unanswered SYN may be retransmitted that way.
    let mut peer = Peer::of_passive_open(ecn());
    assert_eq!(peer.exchange(with(syn(), OFFER)), ["S.E 0:0(0) ack 1"]);
    assert_eq!(peer.exchange(syn()), ["S. 0:0(0) ack 1"]);
    peer.send(ack(1, 1));
    peer.write(100);
    assert!(!is_capable(&peer.take_one()));
}

#[test]
fn an_offer_that_comes_later_is_too_late() {
    // RFC 3168 §6.1.1: "if a host has received at least one non-ECN-setup SYN".
    let mut peer = Peer::of_passive_open(ecn());
    assert_eq!(peer.exchange(syn()), ["S. 0:0(0) ack 1"]);
    assert_eq!(peer.exchange(with(syn(), OFFER)), ["S. 0:0(0) ack 1"]);
    peer.send(ack(1, 1));
    assert!(!peer.info().ecn);
}

#[test]
fn a_syn_that_was_reset_does_not_affect_the_next() {
    let mut peer = Peer::of_passive_open(ecn());
    peer.send(syn());
    peer.send(rst(1));
    assert_eq!(peer.state(), State::Listen);
    assert_eq!(peer.exchange(with(syn(), OFFER)), ["S.E 0:0(0) ack 1"]);
}

#[test]
fn a_syn_is_not_ecn_capable() {
    // RFC 3168 §6.1.1: "MUST NOT set ECT on SYN or SYN-ACK packets".
    let mut peer = Peer::of_active_open(ecn());
    assert!(!is_capable(&peer.take_one()));
    let mut peer = Peer::of_passive_open(ecn());
    peer.send(with(syn(), OFFER));
    assert!(!is_capable(&peer.take_one()));
}

#[test]
fn the_flags_of_the_handshake_are_no_congestion_signal() {
    let mut peer = established();
    peer.send(echoing(syn_ack()));
    peer.write(100);
    assert_eq!(peer.take().last().unwrap().flags, Flags::ACK | Flags::PSH);
    assert_eq!((cwnd(&peer), cuts(&peer)), (10, Cuts::default()));
}

#[test]
fn new_data_is_ecn_capable() {
    let mut peer = established();
    peer.write(5000);
    assert!(peer.take().iter().all(|segment| segment.ecn == Ecn::Ect0));
}

#[test]
fn retransmissions_by_the_timer_are_not_ecn_capable() {
    // RFC 3168 §6.1.5.
    let mut peer = established();
    peer.write(1000);
    let sent = peer.at(2000).take();
    assert_eq!(sent.iter().map(is_capable).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn retransmissions_of_lost_segments_are_not_ecn_capable() {
    // RFC 3168 §6.1.5.
    let mut peer = sending();
    report_loss(&mut peer);
    let sent = peer.take();
    assert!(sent.iter().any(|segment| segment.seq.0 == 1));
    assert!(sent.iter().all(|segment| is_capable(segment) == (segment.seq.0 > 1)), "{sent:?}");
}

#[test]
fn a_segment_without_data_is_not_ecn_capable() {
    // RFC 3168 §6.1.4.
    let mut peer = established();
    peer.send(data(1, 1, MSS));
    peer.send(data(1 + SEG, 1, MSS)); // acknowledged at once
    peer.send(data(1 + 3 * SEG, 1, MSS)); // a gap
    peer.send(rst(2 + 2 * SEG)); // challenged
    peer.at(LATER_MS).send(data(1, 1, MSS)); // a duplicate
    peer.abort();
    let sent = peer.take();
    assert_eq!(sent.len(), 5);
    assert!(!sent.iter().any(is_capable), "{sent:?}");
}

#[test]
fn a_window_probe_is_not_ecn_capable_and_has_no_cwr() {
    // RFC 3168 §6.1.6.
    let mut peer = sending();
    peer.send(echoing(ack(1, 1 + SEG)));
    peer.send(Segment { window: 0, ..ack(1, 1 + 10 * SEG) });
    peer.take();
    let probe = peer.at(5000).take()[0];
    assert_eq!((probe.len, is_capable(&probe), probe.flags.has(Flags::CWR)), (1, false, false));
    peer.send(ack(1, 2 + 10 * SEG));
    let next = peer.take()[0];
    assert_eq!((is_capable(&next), next.flags.has(Flags::CWR)), (true, true));
}

#[test]
fn an_echo_halves_the_window() {
    let mut peer = sending();
    peer.send(echoing(ack(1, 1 + SEG)));
    assert_eq!((cwnd(&peer), peer.info().ssthresh), (5, Some(Bytes(5 * u64::from(MSS)))));
    assert_eq!(cuts(&peer), Cuts { ecn: 1, ..Cuts::default() });
}

#[test]
fn an_echo_on_data_halves_the_window() {
    let mut peer = sending();
    assert_eq!(peer.send(echoing(data(1, 1 + SEG, 100))), 100);
    assert_eq!(cuts(&peer).ecn, 1);
}

#[test]
fn an_echo_retransmits_nothing() {
    let mut peer = sending();
    peer.send(echoing(ack(1, 1 + SEG)));
    assert_eq!(peer.connection.send_stats().sent.retransmissions(), 0);
}

#[test]
fn the_echoes_of_one_window_halve_it_once() {
    let mut peer = sending();
    for n in 1..=10 {
        peer.send(echoing(ack(1, 1 + n * SEG)));
    }
    assert_eq!(cuts(&peer).ecn, 1);
    peer.send(echoing(ack(1, 1 + 11 * SEG)));
    assert_eq!(cuts(&peer).ecn, 2);
}

#[test]
fn a_late_echo_of_an_earlier_window_reduces_nothing() {
    // It was overtaken by ACKs of data that was sent after the reduction.
    let mut peer = sending();
    peer.send(echoing(ack(1, 1 + SEG)));
    acknowledge(&mut peer, 2, 12);
    peer.send(echoing(ack(1, 1 + 5 * SEG)));
    assert_eq!(cuts(&peer).ecn, 1);
}

#[test]
fn an_echo_does_not_open_the_window() {
    // RFC 3168 §6.1.2: it grows by "ACK packets without the ECN-Echo bit set".
    let mut peer = sending();
    for n in 1..=10 {
        peer.send(echoing(ack(1, 1 + n * SEG)));
        assert_eq!(peer.info().cwnd, Bytes(5 * u64::from(MSS)));
    }
    acknowledge(&mut peer, 11, 20);
    assert!(cwnd(&peer) > 5);
}

#[test]
fn a_window_of_one_segment_is_not_opened_by_an_echo() {
    // RFC 3168 §6.1.2: one segment is the lower bound.
    let mut peer = Peer::established(Config { initial_window: Segments(1), ..ecn() });
    peer.write(100_000);
    peer.send(echoing(ack(1, 1 + SEG)));
    assert_eq!(cwnd(&peer), 1);
}

#[test]
fn the_next_new_data_carries_cwr() {
    let mut peer = sending();
    assert_eq!(peer.exchange(echoing(ack(1, 1 + 5 * SEG))), SILENCE);
    assert_eq!(peer.exchange(ack(1, 1 + 6 * SEG)), [".W 14601:16061(1460) ack 1"]);
    assert_eq!(peer.exchange(ack(1, 1 + 7 * SEG)), [". 16061:17521(1460) ack 1"]);
}

#[test]
fn new_data_carries_cwr_after_a_loss() {
    // RFC 3168 §6.1.2: "for any reason"; §6.1.5: not retransmissions.
    let mut peer = sending();
    report_loss(&mut peer);
    for n in 5..=10 {
        peer.send(sacking(ack(1, 1), &[(1 + SEG, 1 + n * SEG)]));
    }
    let told = reductions_told(&mut peer);
    assert!(told.len() == 1 && told[0] > 10 * SEG, "{told:?}");
}

#[test]
fn new_data_carries_cwr_after_a_timeout() {
    let mut peer = established();
    peer.write(u64::from(MSS));
    assert_eq!(peer.at(2000).take_sent(), ["P. 1:1461(1460) ack 1"; 2]);
    peer.send(ack(1, 1 + SEG));
    peer.write(200);
    assert_eq!(peer.take_sent(), ["P.W 1461:1661(200) ack 1"]);
}

#[test]
fn cwr_is_not_repeated_if_its_segment_is_retransmitted() {
    let mut peer = established();
    peer.write(100);
    peer.send(echoing(ack(1, 101)));
    peer.write(100);
    assert_eq!(peer.at(2000).take_sent(), ["P. 1:101(100) ack 1", "P.W 101:201(100) ack 1", "P. 101:201(100) ack 1"]);
}

#[test]
fn a_marked_window_is_not_reduced_again_for_its_losses() {
    // RFC 3168 §6.1.2: one reduction for "a series of dropped and/or CE packets from a single window".
    let mut peer = sending();
    peer.send(echoing(sacking(ack(1, 1), &[(1 + SEG, 1 + 2 * SEG)])));
    report_loss(&mut peer);
    assert_eq!(cuts(&peer), Cuts { ecn: 1, ..Cuts::default() });
    assert_eq!(peer.info().ssthresh, Some(Bytes(5 * u64::from(MSS))));
}

#[test]
fn a_window_with_losses_is_not_reduced_again_for_its_marks() {
    let mut peer = sending();
    report_loss(&mut peer);
    let sent = peer.take().iter().filter(|segment| segment.seq.0 > 1).count() as u32;
    for n in 5..=10 + sent {
        peer.send(echoing(sacking(ack(1, 1), &[(1 + SEG, 1 + n * SEG)])));
    }
    peer.send(echoing(ack(1, 1 + 10 * SEG)));
    assert_eq!(cuts(&peer), Cuts { fast_retransmit: 1, ..Cuts::default() });
}

#[test]
fn the_window_after_a_marked_one_is_reduced_for_its_losses() {
    let mut peer = sending();
    peer.send(echoing(ack(1, 1 + SEG)));
    acknowledge(&mut peer, 2, 10);
    for n in 12..=14 {
        peer.send(sacking(ack(1, 1 + 10 * SEG), &[(1 + 11 * SEG, 1 + n * SEG)]));
    }
    assert_eq!(cuts(&peer), Cuts { ecn: 1, fast_retransmit: 1, ..Cuts::default() });
}

#[test]
fn a_mark_is_echoed_until_the_peer_sends_cwr() {
    // RFC 3168 §6.1.3.
    let mut peer = Peer::established(Config { ack_every: Segments(1), ..ecn() });
    assert_eq!(peer.exchange(marked(data(1, 1, 100))), [".E 1:1(0) ack 101"]);
    assert_eq!(peer.exchange(data(101, 1, 100)), [".E 1:1(0) ack 201"]);
    assert_eq!(peer.exchange(data(201, 1, 100)), [".E 1:1(0) ack 301"]);
    assert_eq!(peer.exchange(with(data(301, 1, 100), Flags::CWR)), [". 1:1(0) ack 401"]);
    assert_eq!(peer.exchange(data(401, 1, 100)), [". 1:1(0) ack 501"]);
    assert_eq!(peer.exchange(marked(data(501, 1, 100))), [".E 1:1(0) ack 601"]);
}

#[test]
fn a_mark_on_the_segment_with_cwr_is_echoed() {
    let mut peer = Peer::established(Config { ack_every: Segments(1), ..ecn() });
    peer.send(marked(data(1, 1, 100)));
    peer.take_sent();
    assert_eq!(peer.exchange(marked(with(data(101, 1, 100), Flags::CWR))), [".E 1:1(0) ack 201"]);
}

#[test]
fn a_delayed_ack_echoes_a_mark_of_any_segment_it_covers() {
    // RFC 3168 §6.1.3.
    for first_is_marked in [true, false] {
        let mut peer = established();
        let [first, second] = [data(1, 1, MSS), data(1 + SEG, 1, MSS)];
        peer.send(if first_is_marked { marked(first) } else { first });
        peer.send(if first_is_marked { second } else { marked(second) });
        assert_eq!(peer.take_sent(), [".E 1:1(0) ack 2921"]);
    }
}

#[test]
fn outgoing_data_echoes_too() {
    let mut peer = established();
    peer.send(marked(data(1, 1, 100)));
    peer.write(500);
    assert_eq!(peer.take_sent(), ["P.E 1:501(500) ack 101"]);
    assert_eq!(peer.at(2000).take_sent(), ["P.E 1:501(500) ack 101"]);
}

#[test]
fn an_ecn_capable_segment_without_a_mark_is_not_echoed() {
    for codepoint in [Ecn::Ect0, Ecn::Capable1] {
        let mut peer = established();
        peer.send(Segment { ecn: codepoint, ..data(1, 1, 100) });
        assert_eq!(peer.at(LATER_MS).take_sent(), [". 1:1(0) ack 101"]);
    }
}

#[test]
fn a_mark_after_a_gap_or_on_a_fin_is_echoed_at_once() {
    let mut peer = established();
    assert_eq!(peer.exchange(marked(data(101, 1, 100))), [".E 1:1(0) ack 1 sack 101:201"]);
    let mut peer = established();
    assert_eq!(peer.exchange(marked(segment(Flags::FIN | Flags::ACK, 1, 1, 100))), [".E 1:1(0) ack 102"]);
}

#[test]
fn a_mark_on_the_data_that_completes_the_handshake_is_echoed() {
    let mut peer = Peer::of_passive_open(ecn());
    peer.send(with(syn(), OFFER));
    peer.take_sent();
    peer.send(marked(data(1, 1, 100)));
    assert_eq!(peer.at(LATER_MS).take_sent(), [".E 1:1(0) ack 101"]);
}

#[test]
fn a_mark_outside_the_window_is_ignored() {
    // RFC 3168 §6.1.5: old data, data beyond the window, data with an ACK of something that was never sent.
    let mut peer = Peer::established(Config { dsack: false, ..ecn() });
    peer.send(data(1, 1, 100));
    peer.at(LATER_MS).take_sent();
    for outside in [data(1, 1, 100), data(10_000_000, 1, 100), data(101, 9999, 100)] {
        assert_eq!(peer.exchange(marked(outside)), [". 1:1(0) ack 101"]);
    }
}

#[test]
fn a_mark_on_a_segment_without_data_is_ignored() {
    // RFC 3168 §6.1.4: such a segment should not be ECN-capable.
    let mut peer = established();
    peer.send(marked(ack(1, 1)));
    assert_eq!(peer.exchange(marked(rst(2))), [". 1:1(0) ack 1"]);
    assert_eq!(peer.exchange(marked(fin(1, 1))), [". 1:1(0) ack 2"]);
}

#[test]
fn a_mark_on_a_window_probe_is_echoed() {
    // RFC 3168 §6.1.6: its sequence number is exact, so it is hard to forge.
    let mut peer = Peer::established(Config { receive_buffer: Capacity::Bytes(Bytes(u64::from(MSS))), ..ecn() });
    peer.send(data(1, 1, MSS));
    peer.at(LATER_MS).take_sent();
    assert_eq!(peer.exchange(marked(data(1 + SEG, 1, 1))), [".E 1:1(0) ack 1461"]);
}

#[test]
fn without_ecn_a_mark_is_not_echoed_and_an_echo_reduces_nothing() {
    let mut peer = Peer::established(plain());
    peer.send(marked(data(1, 1, 100)));
    assert_eq!(peer.at(LATER_MS).take_sent(), [". 1:1(0) ack 101"]);
    peer.write(100);
    assert!(!is_capable(&peer.take_one()));
    peer.at(LATER_MS + HANDSHAKE_MS).send(echoing(ack(101, 101)));
    assert_eq!(cuts(&peer), Cuts::default());
}

#[test]
fn a_marked_window_of_one_segment_waits_for_the_timer() {
    // RFC 3168 §6.1.2: "able to send a new packet only when the retransmit timer expires".
    let mut peer = Peer::established(Config { initial_window: Segments(1), ..ecn() });
    peer.write(100_000);
    peer.take_sent();
    assert_eq!(peer.at(50).exchange(echoing(ack(1, 1 + SEG))), SILENCE);
    assert_eq!(peer.at(1049).take_sent(), SILENCE);
    assert_eq!(peer.at(1050).take_sent(), [".W 1461:2921(1460) ack 1"]);
}

#[test]
fn an_echo_with_the_last_acknowledgment_leaves_no_timer() {
    let mut peer = Peer::established(Config { initial_window: Segments(1), ..ecn() });
    peer.connection.write(Bytes(u64::from(SEG)));
    peer.connection.close();
    assert_eq!(peer.take().len(), 1);
    peer.send(echoing(ack(1, SEG + 2))); // checks that no timer runs
    assert_eq!(peer.state(), State::FinWait2);
}
