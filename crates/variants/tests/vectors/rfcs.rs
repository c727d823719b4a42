//! Rules of RFC 6582, RFC 6675, RFC 8985 and RFC 9937 that no other test shows (docs/design/rfcs.md).
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_tcp::facts::Phase;
use reknit_testkit::peer::{Peer, ack, plain, sacking, syn_ack};
use reknit_testkit::{NOTHING, TestSender, config, variant, vector};
use reknit_variants::Composition;
use reknit_variants::algorithms::LimitedTransmit;
use reknit_variants::base::prr;
use reknit_variants::linux;

vector!(newreno_needs_duplicates_beyond_recover, |isn| {
    // RFC 6582 §3.2 steps 2 and 4: after a timeout the duplicates below `recover` may come from the timeout itself.
    let mut s = TestSender::new(isn, &variant("newreno"), config(8), 100);
    s.sent();
    assert_eq!(s.at(1100).sent(), [1]);
    assert_eq!(s.pass_all([2, 3, 4, 5]), NOTHING);
    assert_eq!((s.info().phase, s.connection.send_stats().cuts.total()), (Phase::Loss, 1));
});

vector!(only_the_first_partial_ack_restarts_the_timer, |isn| {
    // RFC 6582 §3.2 step 3.
    let mut s = TestSender::new(isn, &variant("newreno"), config(10), 100);
    s.sent();
    // 1, 4 and 7 are lost.
    assert!(s.at(200).pass_all([2, 3, 5, 6, 8, 9, 10]).contains(&1));
    assert!(s.at(300).pass(1).contains(&4));
    assert!(s.at(400).pass(4).contains(&7));
    assert_eq!(s.at(1299).sent(), NOTHING);
    assert_eq!(s.at(1300).sent(), [7]);
});

#[test]
fn three_short_ranges_above_are_enough() {
    // RFC 6675 §4, IsLost: DupThresh discontiguous ranges, whatever their size.
    let mut peer = Peer::established(Config { nagle: false, ..plain() });
    for _ in 0..8 {
        peer.write(100);
    }
    peer.take_sent();
    let answer = peer.exchange(sacking(ack(1, 1), &[(201, 301), (401, 501), (601, 701)]));
    assert_eq!(answer[..2], [". 1:101(100) ack 1", ". 101:201(100) ack 1"]);
}

vector!(one_ack_for_three_segments_is_enough, |isn| {
    // RFC 6675 §5 step 2: the SACKed bytes count, not only the ACKs.
    let mut s = TestSender::new(isn, &variant("sack"), config(10), 100);
    s.sent();
    s.arrive(2);
    s.arrive(3);
    let ack = s.arrive(4);
    s.deliver(&ack);
    assert_eq!((s.sent()[0], s.info().phase), (1, Phase::Recovery));
});

vector!(lost_segments_go_before_new_data, |isn| {
    // RFC 6675 §4, NextSeg rules 1 and 2.
    let mut s = TestSender::new(isn, &variant("sack"), config(10), 100);
    s.sent();
    assert_eq!(s.pass_all([3, 4, 5]), [11, 12, 1]);
    assert_eq!(s.pass_all([6, 7, 8]), NOTHING);
    assert_eq!(s.pass(9), [2]);
    assert_eq!(s.pass(10), [13]);
});

vector!(without_new_data_a_hole_that_is_not_lost_is_retransmitted, |isn| {
    // RFC 6675 §4, NextSeg rule 3.
    let mut s = TestSender::idle(isn, variant("sack").build(), config(10), 100);
    assert_eq!(s.write(10).len(), 10);
    assert_eq!(s.pass_all([2, 3, 4]), [1]);
    assert_eq!(s.pass_all([5, 6, 7]), NOTHING);
    assert_eq!(s.pass(9), [8]);
});

vector!(recovery_ends_beyond_the_recovery_point, |isn| {
    // RFC 6675 §5 step A.
    let mut s = TestSender::new(isn, &variant("sack"), config(10), 100);
    s.sent();
    assert_eq!(s.pass_all([2, 3, 4]), [11, 12, 1]);
    s.pass_all(5..=11);
    s.pass(1); // acknowledges 11, but 12 was outstanding too
    assert_eq!(s.info().phase, Phase::Recovery);
    s.pass(12);
    assert_eq!(s.info().phase, Phase::Open);
});

vector!(no_recovery_begins_below_the_highest_number_at_a_timeout, |isn| {
    // RFC 6675 §5.1.
    let mut s = TestSender::new(isn, &variant("sack"), config(8), 100);
    s.sent();
    s.pass_all([2, 3, 4]);
    assert_eq!(s.info().phase, Phase::Recovery);
    assert_eq!(s.at(1100).sent(), [1]);
    let cuts = s.connection.send_stats().cuts.total();
    s.pass_all([5, 6, 7]);
    assert_eq!((s.info().phase, s.connection.send_stats().cuts.total()), (Phase::Loss, cuts));
});

vector!(after_a_timeout_sacked_segments_are_not_retransmitted, |isn| {
    // RFC 6675 §5.1, RFC 2018 §5.
    let mut s = TestSender::new(isn, &variant("sack"), config(8), 100);
    s.sent();
    assert_eq!(s.pass(3), [9]);
    assert_eq!(s.at(1100).sent(), [1]);
    assert_eq!(s.pass(1), [2, 4]);
    assert_eq!(s.pass(2), [5, 6]);
});

/// An idle sender with RACK-TLP; the handshake took 100 ms.
fn rack(isn: u32) -> TestSender {
    let composition = variant("rack");
    TestSender::idle(isn, composition.build(), composition.configure(config(10)), 100)
}

vector!(at_a_timeout_rack_marks_what_is_overdue, |isn| {
    // RFC 8985 §6.3.
    let mut s = rack(isn);
    assert_eq!(s.write(1), [1]);
    s.at(200).pass(1);
    assert_eq!(s.at(1000).write(2), [2, 3]);
    assert_eq!(s.at(1200).sent(), [3]); // the probe
    assert_eq!(s.at(2150).write(1), [4]);
    assert_eq!(s.at(2200).sent(), [2]);
    assert_eq!(s.pipe(), 2.0); // 3 is lost, and 4 is not overdue
});

#[test]
fn without_an_srtt_the_probe_waits_a_second() {
    // RFC 8985 §7.2. The SYN was sent twice, so its round trip is unknown.
    let mut peer = Peer::of_active_open_as(&variant("rack"), plain());
    peer.at(1010).send(syn_ack());
    peer.take_sent();
    peer.write(100);
    peer.at(2500);
    assert_eq!(peer.times(), [1010, 2010]);
}

vector!(there_is_one_probe_per_round_trip, |isn| {
    // RFC 8985 §7.3.
    let mut s = rack(isn);
    assert_eq!(s.write(1), [1]);
    assert_eq!(s.at(325).sent(), [1]);
    assert_eq!(s.at(1324).sent(), NOTHING);
    assert_eq!((s.connection.send_stats().sent.probe, s.connection.send_stats().timeouts), (1, 0));
});

vector!(after_the_probe_the_retransmission_timer_runs, |isn| {
    // RFC 8985 §7.3.
    let mut s = rack(isn);
    s.write(1);
    assert_eq!(s.at(325).sent(), [1]);
    assert_eq!(s.at(1325).sent(), [1]);
    assert_eq!((s.connection.send_stats().sent.probe, s.connection.send_stats().timeouts), (1, 1));
});

vector!(a_probe_prefers_new_data, |isn| {
    // RFC 8985 §7.3.
    let mut s = TestSender::new(isn, &variant("rack"), config(2), 100);
    assert_eq!(s.sent(), [1, 2]);
    assert_eq!(s.at(300).sent(), [3]);
});

vector!(rack_retransmits_within_the_window, |isn| {
    // RFC 8985 §9.3: all of 1 to 6 are lost after the third SACK, but each ACK sends at most what PRR allows.
    let mut s = rack(isn);
    s.write(10);
    for n in 7..=10 {
        assert!(s.pass(n).len() <= 2, "{n}");
    }
    assert!(s.connection.send_stats().cuts.total() == 1 && s.pipe() <= s.cwnd());
});

fn with_prr_of_linux() -> Composition {
    Composition {
        fast_recovery: linux::prr::LinuxPrrConfig::default().into(),
        limited_transmit: LimitedTransmit::Off {},
        ..Composition::default()
    }
}

vector!(below_ssthresh_prr_conserves_packets_unless_the_ack_is_safe, |isn| {
    // RFC 9937 §6.1. 1 to 12 are lost, so pipe is below ssthresh.
    let mut s = TestSender::new(isn, &with_prr_of_linux(), config(20), 100);
    s.sent();
    assert_eq!(s.pass_all([13, 14]), NOTHING);
    assert_eq!(s.pass(15), [1]);
    assert_eq!(s.pass(16), [2]);
    assert_eq!(s.pass(17), [3]);
    assert_eq!(s.pass(1), [4, 5]); // SND.UNA advances
});

vector!(the_fast_retransmit_of_prr_is_sent_at_once, |isn| {
    // RFC 9937 §6.1.
    let of_rfc_9937 = Composition { fast_recovery: prr::PrrConfig::default().into(), ..with_prr_of_linux() };
    for composition in [of_rfc_9937, with_prr_of_linux()] {
        let mut s = TestSender::new(isn, &composition, config(20), 100);
        s.sent();
        assert_eq!(s.pass_all([2, 3, 4]), [1]);
    }
});

vector!(prr_ends_with_ssthresh, |isn| {
    // RFC 9937 §6.1.
    let composition = Composition { fast_recovery: prr::PrrConfig::default().into(), ..with_prr_of_linux() };
    let mut s = TestSender::new(isn, &composition, config(20), 100);
    s.sent();
    s.pass_all(2..=20);
    s.pass(1);
    assert_eq!((s.cwnd(), s.ssthresh(), s.info().phase), (10.0, 10.0, Phase::Open));
});
