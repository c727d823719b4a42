//! Worked examples of `linux`. Each follows from the RFC that it names, from the kernel's documentation (`ip-sysctl`),
//! or from what Linux 6.18 was seen to do.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::facts::Phase;
use reknit_tcp::segment::{Flags, Timestamps};
use reknit_tcp::{Config, Segment, SeqNum};
use reknit_testkit::bottleneck::Bottleneck;
use reknit_testkit::{Ack, ISNS, NOTHING, TestSender, config, variant, vector};
use reknit_units::{Duration, Rate};

/// `window` segments were sent at 100 ms; the round trip takes 100 ms.
fn sent(isn: u32, window: u32) -> TestSender {
    let mut s = TestSender::new(isn, &variant("linux"), config(window), 100);
    assert_eq!(s.at(100).sent().len(), window as usize);
    s
}

/// The same with timestamps.
fn stamped(isn: u32, window: u32) -> TestSender {
    let mut s = TestSender::new(isn, &variant("linux"), Config { timestamps: true, mss: 2000, ..config(window) }, 100);
    assert_eq!(s.at(100).sent().len(), window as usize);
    s
}

/// The application writes only `n` segments.
fn limited(isn: u32, n: u32, rtt_ms: u64) -> TestSender {
    let composition = variant("linux");
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config(20)), rtt_ms);
    s.at(rtt_ms);
    assert_eq!(s.write(n).len(), n as usize);
    s
}

/// Segment `n` arrives, and its ACK echoes the timestamp of a segment that was sent at `sent_ms`.
fn pass_echoing(s: &mut TestSender, n: u32, sent_ms: u32) -> Vec<u32> {
    let ack = s.arrive(n);
    s.deliver(&Ack { ecr: Some(10_000 + sent_ms), ..ack });
    s.sent()
}

fn undos(s: &TestSender) -> u64 {
    s.connection.send_stats().undos
}

// RACK: `linux/rack.rs`, rule 1; RFC 8985 §6.2 step 4.

vector!(three_sacked_segments_mean_a_loss_before_reordering_was_seen, |isn| {
    let mut s = sent(isn, 10);
    assert!(!s.at(200).pass_all([2, 3]).contains(&1));
    assert_eq!(s.pass(4), [1]);
    assert_eq!((s.ssthresh(), s.info().phase), (7.0, Phase::Recovery)); // 717/1024 of 10
});

vector!(fewer_wait_for_a_quarter_of_the_smallest_rtt, |isn| {
    let mut s = sent(isn, 10);
    assert!(!s.at(200).pass_all([2, 3]).contains(&1));
    // 100 ms and a quarter of it after the transmission, and 2 ms; in the tick after that.
    assert_eq!(s.at(231).sent(), NOTHING);
    assert_eq!(s.at(232).sent(), [1]);
});

vector!(after_reordering_was_seen_the_number_means_nothing, |isn| {
    let mut s = sent(isn, 10);
    s.at(200).pass_all([2, 3, 1]);
    assert!(!s.pass_all([5, 6, 7, 8, 9, 10]).contains(&4));
    assert_eq!(s.at(232).sent().first(), Some(&4));
});

vector!(a_dsack_adds_a_quarter_of_the_smallest_rtt, |isn| {
    let mut s = sent(isn, 10);
    s.at(200).pass_all([2, 3, 1, 5, 6]);
    // The original of 4 arrives after the retransmission; the copy is reported as a duplicate.
    assert!(s.at(232).sent().contains(&4));
    s.at(240).pass(4);
    s.at(332).pass(4);
    // No segment has an RTT below 100 ms.
    let new = s.at(435).pass_the_rest();
    s.at(535).pass_all(new[1..=3].iter().copied());
    // Half of 100 ms instead of a quarter.
    assert!(!s.at(587).sent().contains(&new[0]));
    assert!(s.at(588).sent().contains(&new[0]));
});

// `tcp_reordering` and `tcp_max_reordering`: `linux/reordering.rs`.

vector!(the_degree_is_the_distance_that_a_segment_was_late, |isn| {
    let mut s = sent(isn, 20);
    assert_eq!(s.info().dup_thresh.0, 3);
    s.at(200).pass_all([2, 3, 1]);
    assert_eq!(s.info().dup_thresh.0, 3);
    s.pass_all((5..=12).chain([4]));
    assert_eq!(s.info().dup_thresh.0, 9); // 4 to 12, both counted
    s.pass_all([14, 13]);
    assert_eq!(s.info().dup_thresh.0, 9);
});

vector!(the_degree_is_at_most_300, |isn| {
    let mut s = sent(isn, 400);
    s.at(200).pass_all([2, 3, 1]);
    s.pass_all((5..=390).chain([4]));
    assert_eq!(s.info().dup_thresh.0, 300);
});

// Undo: `linux/undo.rs`. RFC 3708 for DSACK, RFC 3522 (Eifel) for timestamps.

vector!(as_many_duplicates_as_retransmissions_undo_a_reduction, |isn| {
    let mut s = sent(isn, 10);
    assert!(s.at(200).pass_all([3, 4, 5]).contains(&1));
    s.pass_all([6, 7]);
    assert_eq!(s.connection.send_stats().sent.retransmissions(), 2);
    s.at(230).pass_all([1, 2]);
    s.at(300).pass(1);
    assert_eq!((s.ssthresh(), undos(&s)), (7.0, 0)); // one of two
    s.pass(2);
    assert_eq!((s.ssthresh(), undos(&s)), (f64::INFINITY, 1));
    assert!(s.cwnd() >= 10.0);
});

vector!(an_old_timestamp_on_a_partial_ack_undoes_a_reduction, |isn| {
    let mut s = stamped(isn, 10);
    assert!(s.at(200).pass_all([2, 3, 4]).contains(&1));
    assert_eq!(s.ssthresh(), 7.0);
    pass_echoing(s.at(230), 1, 100);
    assert_eq!((s.ssthresh(), undos(&s)), (f64::INFINITY, 1));
    assert_ne!(s.info().phase, Phase::Recovery);
});

vector!(a_partial_ack_proves_nothing_while_a_retransmission_is_in_flight, |isn| {
    let mut s = stamped(isn, 10);
    assert!(s.at(200).pass_all([3, 4, 5]).contains(&1));
    assert!(s.pass_all([6, 7]).contains(&2));
    pass_echoing(s.at(230), 1, 100);
    assert_eq!((s.ssthresh(), undos(&s)), (7.0, 0));
    pass_echoing(&mut s, 2, 100);
    assert_eq!((s.ssthresh(), undos(&s)), (f64::INFINITY, 1));
});

vector!(the_timestamp_of_the_retransmission_proves_a_loss, |isn| {
    let mut s = stamped(isn, 10);
    assert!(s.at(200).pass_all([2, 3, 4]).contains(&1));
    pass_echoing(s.at(300), 1, 200);
    assert_eq!((s.ssthresh(), undos(&s)), (7.0, 0));
});

vector!(an_old_timestamp_on_the_ack_that_ends_recovery_undoes_it, |isn| {
    let mut s = stamped(isn, 4);
    let new = s.at(200).pass_all([2, 3, 4]);
    assert_eq!(new, [5, 6, 1]); // a third of the window is less than two segments
    for n in 5..=6 {
        s.arrive(n);
    }
    pass_echoing(s.at(230), 1, 100);
    assert_eq!((s.ssthresh(), undos(&s), s.info().phase), (f64::INFINITY, 1, Phase::Open));
});

vector!(an_old_timestamp_after_a_timeout_undoes_it, |isn| {
    let mut s = stamped(isn, 4);
    s.at(700);
    let repeated = s.sent();
    assert!(repeated.contains(&1), "{repeated:?}");
    assert_eq!(s.info().phase, Phase::Loss);
    pass_echoing(s.at(710), 1, 100);
    assert_eq!((s.ssthresh(), undos(&s), s.info().phase), (f64::INFINITY, 1, Phase::Open));
});

// F-RTO: RFC 5682 §3, `linux/frto.rs`.

vector!(data_sent_once_and_before_the_timeout_proves_it_spurious, |isn| {
    let mut s = sent(isn, 4);
    s.at(700);
    s.sent();
    assert_eq!(s.info().phase, Phase::Loss);
    // The ACK of the first segment may belong to either copy. New data is sent first.
    let before = s.ssthresh();
    assert_eq!(s.at(710).pass(1).first(), Some(&6));
    assert_eq!((s.ssthresh(), undos(&s)), (before, 0));
    s.pass(2);
    assert_eq!((s.ssthresh(), undos(&s)), (f64::INFINITY, 1));
});

// Segmentation offload: `linux/transmit.rs` rule 2.

vector!(two_segments_leave_together_if_acks_are_close, |isn| {
    let mut s = sent(isn, 20);
    s.at(200).pass_all([3, 2, 1]);
    // Each ACK above a gap leaves room for one segment; one was left before.
    assert_eq!(s.at_us(201_100).pass(5).len(), 2);
    assert_eq!([s.at_us(201_500).pass(6).len(), s.at_us(201_900).pass(7).len()], [0, 2]);
    assert_eq!([s.at_us(202_300).pass(8).len(), s.at_us(204_000).pass(9).len()], [0, 2]);
    assert_eq!(s.at_us(205_500).pass(10).len(), 1); // 1.5 ms after the last transmission
});

// PRR: RFC 9937 §6, `linux/prr.rs`.

vector!(recovery_begins_with_one_segment_and_sends_in_proportion, |isn| {
    let mut s = sent(isn, 20);
    assert_eq!(s.at(200).pass_all([2, 3]), [21]);
    // The room of the second waits for more. ssthresh 14 to cwnd 20: after n deliveries, 0.7 n segments rounded up were sent.
    let counts: Vec<usize> = (4..=13).map(|n| s.pass(n).len()).collect();
    assert_eq!(counts, [1, 1, 1, 0, 1, 1, 0, 1, 1, 0]);
});

vector!(below_ssthresh_only_a_safe_ack_adds_a_segment, |isn| {
    let mut s = sent(isn, 20);
    s.at(200).pass_all([11, 12]);
    assert_eq!(s.pass(13), [1]); // 1 to 10 are lost
    assert_eq!(s.pass_all(14..=20), [2, 3, 4, 5, 6, 7, 8]);
    // SND.UNA advances, and nothing else is marked lost.
    assert_eq!(s.at(300).pass(1), [9, 10]);
});

vector!(an_ack_that_shows_a_further_loss_adds_none, |isn| {
    let mut s = sent(isn, 20);
    s.at(200).pass_all([11, 12]);
    assert_eq!(s.pass_all(13..=16), [1, 2, 3, 4]);
    // The retransmission overtakes 17 to 20.
    assert_eq!(s.at(300).pass(1), [5]);
});

vector!(recovery_ends_with_ssthresh, |isn| {
    let mut s = sent(isn, 20);
    s.at(200).pass_all(2..=20);
    s.at(300).pass(1);
    s.pass_the_rest();
    assert_eq!((s.ssthresh(), s.info().phase), (14.0, Phase::Open));
    assert_eq!(s.cwnd(), 15.0); // the ACK that ends recovery lets it grow
});

// Tail loss probes: RFC 8985 §7, `tcp_early_retrans`.

vector!(a_probe_sends_new_data_after_two_srtt, |isn| {
    let mut s = sent(isn, 10);
    // 100 ms, twice the RTT, and 2 ms; in the tick after that.
    assert_eq!(s.at(307).sent(), NOTHING);
    assert_eq!(s.at(308).sent(), [11]);
});

vector!(without_new_data_a_probe_repeats_the_last_segment, |isn| {
    let mut s = limited(isn, 5, 100);
    assert_eq!(s.at(307).sent(), NOTHING);
    assert_eq!(s.at(308).sent(), [5]);
    // The timer of 300 ms starts again. It expires at the next multiple of eight ticks (the clock begins at
    // 10 s).
    assert_eq!(s.at(623).sent(), NOTHING);
    assert_eq!(s.at(624).sent().first(), Some(&1));
});

vector!(a_probe_for_a_single_segment_waits_for_its_delayed_ack, |isn| {
    let mut s = limited(isn, 1, 400);
    // After 1000 ms, at the next multiple of eight ticks.
    assert_eq!(s.at(1423).sent(), NOTHING);
    assert_eq!(s.at(1424).sent(), [1]);
});

// RTO: `tcp_rto_min_us`, `linux/rto.rs`.

vector!(the_timeout_is_srtt_plus_at_least_200_ms, |isn| {
    for (rtt, rto) in [(10, 210), (100, 300), (400, 1200)] {
        let s = limited(isn, 1, rtt);
        assert_eq!(s.info().rto, Some(Duration::from_millis(rto)), "{rtt} ms");
    }
});

// Growth: RFC 7661, `linux/cubic.rs` rule 9.

vector!(in_slow_start_the_window_grows_to_twice_what_is_used, |isn| {
    let composition = variant("linux");
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config(10)), 100);
    let mut next = 1;
    for round in 1..=20 {
        s.at(100 * round);
        assert_eq!(s.write(6).len(), 6);
        s.at(100 * round + 50);
        s.pass_all(next..next + 6);
        next += 6;
    }
    // The ACK after which 6 in flight are no longer more than half has grown it last.
    assert_eq!(s.cwnd(), 12.0 + 4.0);
    assert_eq!(s.ssthresh(), f64::INFINITY);
});

vector!(a_window_of_which_less_than_half_is_used_does_not_grow, |isn| {
    let composition = variant("linux");
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config(10)), 100);
    for round in 0..20 {
        s.at(100 * u64::from(round) + 100);
        s.write(3);
        s.at(100 * u64::from(round) + 150);
        s.pass_all(3 * round + 1..=3 * round + 3);
    }
    assert_eq!(s.cwnd(), 10.0);
});

// HyStart: Ha and Rhee 2011, `linux/hystart.rs`.

/// Runs slow start over a link with a round trip of 100 ms and a queue that never overflows, until it ends. Returns the
/// window then.
fn slow_start_ends_at(rate: Rate) -> f64 {
    let composition = variant("linux");
    let script = TestSender::idle(ISNS[0], composition.build(), composition.configure(config(10)), 100);
    let mut link = Bottleneck::new(script, 100_000, rate, 100_000, 10_000);
    link.write(1 << 20);
    for ms in 101..2000 {
        link.run(ms * 1000);
        if link.script.ssthresh() < f64::INFINITY {
            assert_eq!(link.lost, 0);
            return link.script.ssthresh();
        }
    }
    panic!("slow start has not ended");
}

#[test]
fn slow_start_ends_when_the_acks_of_a_round_span_half_a_round_trip() {
    // ACKs arrive every 1.168 ms. The round with 80 segments spans half of 100 ms, and half of the burst's 1 ms, after
    // 43 of them.
    let window = slow_start_ends_at(Rate::from_bits_per_second(10_000_000));
    assert!((122.0..=126.0).contains(&window), "{window}");
}

#[test]
fn slow_start_ends_when_the_rtt_rises_by_an_eighth() {
    // ACKs 5.84 ms apart do not form a train. The smallest RTT is 105.84 ms. The first segment of the round with 40
    // takes 116.8 ms, that of the round with 80 more than 200 ms, and eight samples are needed.
    assert_eq!(slow_start_ends_at(Rate::from_bits_per_second(2_000_000)), 88.0);
}

/// The kernel answers all of it. An attacker who knows the ports would make it send as many ACKs as he likes.
#[test]
fn blind_data_with_old_timestamps_is_answered_seldom() {
    let mut s = stamped(ISNS[0], 4);
    let mut answers = 0;
    for i in 0..20_000u32 {
        let mut segment = Segment {
            seq: SeqNum(i.wrapping_mul(4_000_037)),
            ack: SeqNum(i.wrapping_mul(2_654_435_761)),
            flags: Flags::ACK,
            window: 1000,
            len: 100,
            ..Segment::default()
        };
        segment.options.timestamps = Some(Timestamps { val: 0, ecr: 0 });
        s.connection.on_segment(s.now(), &segment);
        answers += s.take().len();
    }
    assert!(answers <= 10, "{answers}");
}

vector!(a_dsack_of_what_was_sent_once_is_not_believed, |isn| {
    let report = |name: &str| {
        let mut s = TestSender::new(isn, &variant(name), config(10), 100);
        s.at(100).sent();
        s.arrive(2);
        s.at(200).deliver(&Ack { cum: 0, blocks: vec![(2, 2)], ..Ack::default() });
        s.at(201).deliver(&Ack { cum: 0, blocks: vec![(2, 2)], dsack: Some(2), ..Ack::default() });
        s.connection.send_stats().network_duplicates
    };
    assert_eq!([report("rack"), report("linux"), report("bbr1")], [1, 0, 0]);
});
