//! Segments that are withheld to test the receiver (`withhold_every`).

use reknit_tcp::segment::Flags;
use reknit_tcp::{CloseReason, Config};
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::Segments;

/// A sender that has written 300 segments with a window of 200, and the number of the one that it withholds.
fn withholding(isn: u32) -> (TestSender, u32) {
    let testing = Config { withhold_every: Some(Segments(64)), ..config(200) };
    let mut s = TestSender::idle(isn, variant("rack").build(), testing, 100);
    s.connection.set_secret(1);
    let sent = s.write(300);
    let missing: Vec<u32> = (1..=200).filter(|n| !sent.contains(n)).collect();
    assert_eq!((sent.len(), missing.len()), (199, 1), "{missing:?}");
    (s, missing[0])
}

vector!(a_withheld_segment_is_sent_when_something_above_it_was_sacked, |isn| {
    let (mut s, withheld) = withholding(isn);
    s.at(200).pass_all(1..withheld);
    assert!(!s.sent().contains(&withheld));
    let released = s.at(210).pass(withheld + 1);
    assert_eq!(released.first(), Some(&withheld));
    s.at(211).pass_all(withheld + 2..=200);
    s.at(310).pass(withheld);
    assert_eq!(s.info().acknowledged, 200 * SMSS);
    let stats = s.connection.send_stats();
    assert_eq!((stats.cuts.total(), stats.sent.retransmissions()), (0, 0));
});

vector!(who_acknowledges_a_withheld_segment_is_cut_off, |isn| {
    for (cum, blocks) in [(200, vec![]), (0, vec![(100, 200)])] {
        let (mut s, withheld) = withholding(isn);
        let blocks = blocks.into_iter().map(|(_, last)| (withheld, last)).collect();
        s.at(200).deliver(&Ack { cum, blocks, ..Ack::default() });
        assert_eq!(s.connection.close_reason(), Some(CloseReason::OptimisticAck));
        let sent = s.take();
        assert!(sent.len() == 1 && sent[0].flags.has(Flags::RST), "{sent:?}");
    }
});

vector!(after_a_timeout_a_withheld_segment_is_an_ordinary_one, |isn| {
    let (mut s, withheld) = withholding(isn);
    s.at(200).pass_all(1..withheld);
    s.sent();
    // Nothing else arrives.
    s.at(4000);
    assert!(s.sent().contains(&withheld));
    s.at(4100).pass(withheld);
    assert_eq!(s.connection.close_reason(), None);
});

vector!(nothing_is_withheld_without_a_secret_or_data_to_follow, |isn| {
    let testing = Config { withhold_every: Some(Segments(16)), ..config(200) };
    let mut s = TestSender::idle(isn, variant("rack").build(), testing.clone(), 100);
    assert_eq!(s.write(300).len(), 200);
    let mut s = TestSender::idle(isn, variant("rack").build(), testing, 100);
    s.connection.set_secret(1);
    for _ in 0..60 {
        assert_eq!(s.write(3).len(), 3);
    }
    assert_eq!(s.sent(), NOTHING);
});
