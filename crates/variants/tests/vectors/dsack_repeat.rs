//! Worked examples of duplicates that are reported more than once: `dsack-repeat`.

use reknit_tcp::{Config, Segment};
use reknit_testkit::peer::{Peer, data, plain};
use reknit_testkit::{Ack, TestSender, config, variant, vector};
use reknit_units::Segments;

const SMSS: u32 = 1000;

fn segment(n: u32) -> Segment {
    data(1 + (n - 1) * SMSS, 1, SMSS as u16)
}

/// 2, 3, 4 overtake 1, which is retransmitted; the original and everything else arrive. The ACK that reports the copy is next.
fn spuriously_retransmitted(isn: u32, name: &str) -> (TestSender, Ack) {
    let mut s = TestSender::new(isn, &variant(name), config(8), 100);
    s.sent();
    assert!(s.pass_all([2, 3, 4]).contains(&1));
    s.pass(1);
    s.pass_all([5, 6, 7, 8]);
    let report = s.arrive(1);
    assert_eq!(report.dsack, Some(1));
    (s, report)
}

/// The number of spurious retransmissions, of duplicates by the network, and of undone reductions that the sender has
/// counted.
fn counts(s: &TestSender) -> (u64, u64, u64) {
    let stats = s.connection.send_stats();
    (stats.spurious_retransmissions, stats.network_duplicates, stats.undos)
}

vector!(the_second_report_is_enough, |isn| {
    let (mut s, report) = spuriously_retransmitted(isn, "dsack-repeat");
    // The first ACK is lost.
    s.deliver(&report);
    assert_eq!(counts(&s), (1, 0, 1));
});

vector!(three_reports_count_as_one, |isn| {
    let (mut s, report) = spuriously_retransmitted(isn, "dsack-repeat");
    for _ in 0..3 {
        s.deliver(&report);
    }
    assert_eq!(counts(&s), (1, 0, 1));
});

vector!(without_agreement_a_second_report_is_a_second_duplicate, |isn| {
    let (mut s, report) = spuriously_retransmitted(isn, "dsack-r");
    s.deliver(&report);
    s.deliver(&report);
    assert_eq!(counts(&s), (1, 1, 1));
});

#[test]
fn the_receiver_reports_thrice() {
    let mut peer = Peer::established_as(&variant("dsack-repeat"), Config { ack_every: Segments(1), ..plain() });
    peer.at(1000).send(segment(1));
    let mut answers = vec![peer.exchange(segment(1))];
    answers.extend((2..=4).map(|n| peer.exchange(segment(n))));
    let expected = [1001, 2001, 3001].map(|ack| vec![format!(". 1:1(0) ack {ack} sack 1:1001")]);
    assert_eq!(answers[..3], expected);
    assert_eq!(answers[3], [". 1:1(0) ack 4001"]);
}
