//! What counts as evidence: of the round-trip time, of a delivery, of a loss, and that a reduction was spurious.

use reknit_tcp::Config;
use reknit_tcp::config::RttSamples;
use reknit_tcp::facts::{AckFacts, Context, Phase, Spurious};
use reknit_tcp::scoreboard::SegId;
use reknit_tcp::seams::{LossDetector, LossDetectorTraits, LossReason, Plugin, Verdicts};
use reknit_testkit::peer::{MSS, Peer, SILENCE, WINDOW, ack, plain, sacking};
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::{Bytes, Duration, Segments};
use reknit_variants::{Composition, algorithms};

use crate::spurious::declared;

const RTT: Duration = Duration::from_millis(100);

vector!(without_sack_an_ack_of_a_retransmission_times_nothing_behind_it, |isn| {
    // Karn's algorithm. 2 to 4 arrived after 100 ms, but are acknowledged only with the copy of 1, after 200 ms.
    let per_ack = Config { sack: false, dsack: false, rtt_samples: RttSamples::PerAck, ..config(10) };
    let mut s = TestSender::new(isn, &variant("newreno"), per_ack, 100);
    s.sent();
    assert_eq!(s.at(200).pass_all([2, 3, 4]).last(), Some(&1));
    s.at(300).pass(1);
    assert_eq!(s.info().acknowledged, 4 * SMSS);
    assert_eq!(s.info().srtt, Some(RTT));
});

vector!(with_timestamps_too_a_round_trip_gives_one_sample, |isn| {
    // RFC 6298 §3. The gains of the estimator are meant for one sample in a round trip.
    let stamped = Config { timestamps: true, mss: SMSS as u16 + 12, ..config(10) };
    let mut s = TestSender::new(isn, &variant("sack"), stamped, 100);
    s.sent();
    s.at(200).pass(1);
    s.at(260).pass_all(2..=10);
    assert_eq!(s.info().srtt, Some(RTT));
    s.at(360).pass_in_order(2); // sent at 200 ms, after the first sample
    assert_eq!(s.info().srtt, Some(RTT * 7 / 8 + Duration::from_millis(160) / 8));
});

#[test]
fn a_segment_that_a_block_covers_in_part_has_not_arrived() {
    let mut peer = Peer::established(plain());
    peer.write(4 * u64::from(MSS));
    let segment = |n: u32| 1 + n * u32::from(MSS);
    peer.send(sacking(ack(1, 1), &[(segment(0) + 700, segment(2))]));
    assert_eq!(peer.info().pipe, Bytes(3 * u64::from(MSS)));
    peer.send(sacking(ack(1, 1), &[(segment(1), segment(3) + 700)]));
    assert_eq!(peer.info().pipe, Bytes(2 * u64::from(MSS)));
}

#[test]
fn window_updates_are_no_duplicate_acks() {
    // RFC 5681 §2, (e): without SACK, a duplicate has the window of the ACK before.
    let mut peer = Peer::established(Config { sack: false, dsack: false, ..plain() });
    peer.write(10 * u64::from(MSS));
    peer.take_sent();
    for n in 1..=5 {
        assert_eq!(peer.exchange(reknit_tcp::Segment { window: WINDOW + n, ..ack(1, 1) }), SILENCE);
    }
    assert_eq!((peer.connection.send_stats().dup_acks, peer.info().phase), (0, Phase::Open));
}

vector!(the_last_segment_is_rescued_once_in_a_recovery, |isn| {
    // RFC 6675 §4, NextSeg rule 4.
    let mut s = TestSender::idle(isn, variant("sack").build(), config(12), 100);
    assert_eq!(s.write(12).len(), 12);
    // 1, 3 and 12 are lost.
    assert_eq!(s.at(200).pass_all([2, 4, 5, 6, 7, 8, 9, 10, 11]), [1, 3]);
    assert_eq!(s.at(300).pass(1), [12]);
    assert_eq!(s.write(1), [13]);
    assert_eq!(s.at(310).pass(3), NOTHING); // 13 may still arrive
    assert_eq!(s.info().phase, Phase::Recovery);
});

fn optimistic() -> Composition {
    declared("dsack-r", Spurious::FastRetransmit)
}

vector!(an_ecn_echo_forbids_the_undo, |isn| {
    // RFC 4015 §3, step 9.
    let mut s = TestSender::new(isn, &optimistic(), Config { ecn: true, ..config(12) }, 100);
    s.sent();
    assert!(s.at(200).pass_all([2, 3, 4]).contains(&1));
    let echoing = Ack { ece: true, ..s.arrive(5) };
    s.deliver(&echoing);
    assert_eq!((s.connection.send_stats().spurious_cuts, s.info().phase), (0, Phase::Recovery));
    s.pass(6);
    assert_eq!((s.connection.send_stats().undos, s.cwnd()), (1, 12.0));
});

vector!(the_undo_of_a_timeout_in_recovery_restores_the_window_before_the_recovery, |isn| {
    let mut s = TestSender::new(isn, &optimistic(), config(12), 100);
    s.sent();
    s.at(200).pass_all([2, 3, 4]);
    s.at(2000);
    assert_eq!((s.connection.send_stats().timeouts, s.cwnd()), (1, 1.0));
    s.pass(5);
    assert_eq!((s.connection.send_stats().undos, s.cwnd()), (1, 12.0));
});

/// Takes the first segment for lost after three SACKs, and withdraws the reduction when it has arrived.
#[derive(Clone, Debug)]
struct Penitent(Option<SegId>);

impl Plugin for Penitent {}

impl LossDetector for Penitent {
    fn traits(&self) -> LossDetectorTraits {
        LossDetectorTraits { withdraws: true, ..LossDetectorTraits::default() }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        match self.0 {
            Some(hole) if ack.newly.contains(&hole) => verdicts.withdraw(hole),
            None if cx.board.sacked().segments == Segments(3) => {
                self.0 = Some(cx.board.first());
                verdicts.event(cx.board.first());
                verdicts.lost(cx.board.first(), LossReason::Duplicates);
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, _cx: &Context<'_>, _verdicts: &mut Verdicts) {}
}

vector!(a_withdrawn_reduction_restores_the_window, |isn| {
    let penitent = algorithms::LossDetector::unlisted("penitent", || Box::new(Penitent(None)));
    let composition = Composition { loss_detector: penitent, ..variant("sack") };
    let mut s = TestSender::new(isn, &composition, config(12), 100);
    s.sent();
    s.at(200).pass_all([2, 3, 4]);
    assert_eq!((s.cwnd(), s.info().phase), (6.0, Phase::Recovery));
    s.pass(1); // and slow start goes on
    assert_eq!((s.cwnd(), s.ssthresh(), s.info().phase), (14.0, f64::INFINITY, Phase::Open));
    assert_eq!(s.connection.send_stats().undos, 1);
});
