//! Worked examples of `gvisor` and `gvisor+undo`: the functions of gVisor that each follows from are named in
//! `time/gvisor.rs`.

use reknit_tcp::Config;
use reknit_tcp::facts::Phase;
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::{Bytes, Duration};

/// Ten segments were sent at 50 ms; the round trip takes 50 ms.
fn sent(isn: u32, name: &str) -> TestSender {
    let composition = variant(name);
    let config = composition.configure(Config { mss: 2000, ..config(10) });
    let mut s = TestSender::new(isn, &composition, config, 50);
    assert_eq!(s.sent().len(), 10);
    s.at(100);
    s
}

/// The originals up to segment `n` have arrived, sent at 50 ms.
fn originals(n: u32) -> Ack {
    Ack { cum: n, ecr: Some(10_050), ..Ack::default() }
}

vector!(no_new_data_is_sent_while_a_gap_is_open, |isn| {
    let mut s = sent(isn, "gvisor");
    assert_eq!(s.pass_all([2, 3]), NOTHING);
    assert_eq!(s.pass(4), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
});

vector!(once_reordering_has_been_seen_it_waits_and_is_silent, |isn| {
    let mut s = sent(isn, "gvisor");
    assert_eq!(s.pass(2), NOTHING);
    assert!(!s.pass(1).is_empty());
    assert_eq!(s.pass_all([4, 5, 6, 7]), NOTHING);
    s.at_us(112_499);
    assert_eq!(s.sent(), NOTHING);
    s.at_us(112_500); // a quarter of 50 ms later
    assert!(s.sent().starts_with(&[3]));
});

/// How many ms a segment that is late is waited for, `acks` ACKs after a DSACK. The round trip takes 40 ms.
fn wait_after(isn: u32, acks: u64) -> u64 {
    let composition = variant("gvisor");
    let config = composition.configure(Config { mss: 2000, nagle: false, ..config(10) });
    let mut s = TestSender::idle(isn, composition.build(), config, 40);
    s.at(40).write(2);
    s.at(80).pass(2);
    s.pass(1); // late
    let mut now = 80;
    for n in 3..3 + acks {
        assert_eq!(s.write(1).len(), 1);
        if n == 3 {
            s.deliver(&Ack { cum: 2, dsack: Some(1), ..Ack::default() });
        }
        now += 40;
        s.at(now).pass_the_rest();
    }
    let sent = s.write(2);
    now += 40;
    assert_eq!(s.at(now).pass(sent[1]), NOTHING);
    (0..100).find(|waited| s.at(now + waited).sent() == [sent[0]]).unwrap()
}

vector!(a_reordering_window_that_a_dsack_widens_lasts_sixteen_acks, |isn| {
    assert_eq!(wait_after(isn, 15), 20);
    assert_eq!(wait_after(isn, 16), 10);
});

vector!(a_spurious_reduction_stays, |isn| {
    let mut s = sent(isn, "gvisor");
    assert_eq!(s.pass_all([2, 3, 4]), [1]);
    s.at(105).deliver(&originals(4));
    s.deliver(&originals(10));
    assert_eq!((s.info().phase, s.ssthresh()), (Phase::Open, 5.0));
    assert_eq!(s.connection.send_stats().undos, 0);
});

vector!(with_undo_slow_start_leads_back_to_the_old_window, |isn| {
    let mut s = sent(isn, "gvisor+undo");
    assert_eq!(s.pass_all([2, 3, 4]), [1]);
    s.at(105).deliver(&originals(4));
    assert_eq!((s.info().phase, s.ssthresh()), (Phase::Open, 10.0));
    assert_eq!(s.connection.send_stats().undos, 1);
});

vector!(a_probe_for_one_segment_expects_an_ack_200_ms_late, |isn| {
    let composition = variant("gvisor");
    let config = composition.configure(Config { mss: 2000, ..config(10) });
    let mut s = TestSender::idle(isn, composition.build(), Config { min_rto: Duration::from_secs(1), ..config }, 100);
    s.at(200).connection.write(Bytes(SMSS));
    assert_eq!(s.sent(), [1]);
    s.at_us(599_999);
    assert_eq!(s.sent(), NOTHING);
    s.at(600); // 2 * 100 + 200
    assert_eq!(s.sent(), [1]);
    assert_eq!(s.connection.send_stats().sent.probe, 1);
});
