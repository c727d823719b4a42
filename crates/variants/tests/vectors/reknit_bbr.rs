//! Worked examples of `reknit-bbr`: the detector of `reknit` and the window of `bbr1`.

use reknit_tcp::facts::Phase;
use reknit_testkit::bottleneck::Bottleneck;
use reknit_testkit::{ISNS, SMSS, TestSender, config, variant, vector};
use reknit_units::Rate;

const RATE: Rate = Rate::from_bits_per_second(10_000_000);
const RTT_US: u64 = 100_000;
const S: u64 = 1_000_000;

/// Ten segments were sent at 100 ms; the round trip takes 100 ms.
fn ten_segments(isn: u32) -> TestSender {
    let mut s = TestSender::new(isn, &variant("reknit-bbr"), config(10), 100);
    assert_eq!(s.at(100).sent().len(), 10);
    s
}

/// The share of the link that is used in 20 s if one of 67 transmissions is lost.
fn utilization(name: &str) -> f64 {
    let composition = variant(name);
    let sender = TestSender::idle(ISNS[0], composition.build(), composition.configure(config(10)), RTT_US / 1000);
    let mut link = Bottleneck::new(sender, RTT_US, RATE, RTT_US, 200);
    link.write(1 << 30);
    link.losses = (1..1000).map(|n| n * 67).collect();
    link.run(20 * S);
    link.script.info().acknowledged as f64 * 8.0 / (RATE.bits_per_second() as f64 * 20.0)
}

vector!(a_late_segment_is_learned_and_the_next_is_not_retransmitted, |isn| {
    let mut s = ten_segments(isn);
    s.at(200).pass_all([2, 3, 4]);
    assert!(s.at(225).sent().contains(&1)); // paced
    // 30 ms after it began to be missing, sooner after the retransmission than any round trip took: this is the original.
    s.at(230).pass(1);
    s.at(300).pass_all(5..=10);
    s.at(330).pass(1); // the retransmission arrives, too: a DSACK
    assert_eq!(s.info().phase, Phase::Open);
    let hole = (s.info().acknowledged / SMSS) as u32 + 1;
    s.at(360).pass_all(hole + 1..=hole + 5);
    assert!(!s.at(375).sent().contains(&hole));
    s.at(380).pass(hole);
    assert_eq!((s.info().phase, s.ssthresh()), (Phase::Open, f64::INFINITY));
});

vector!(a_loss_is_retransmitted_and_does_not_change_ssthresh, |isn| {
    let mut s = ten_segments(isn);
    s.at(200).pass_all(2..=10);
    assert!(s.at(225).sent().contains(&1));
    s.at(325).pass(1);
    s.at(600);
    assert!(s.ssthresh().is_infinite());
    assert!(s.cwnd() >= 10.0, "{}", s.cwnd());
});

#[test]
fn random_losses_do_not_reduce_the_rate() {
    let [with_model, with_cubic] = ["reknit-bbr", "reknit"].map(utilization);
    assert!(with_model > 0.85 && with_cubic < 0.5, "{with_model}, {with_cubic}");
}
