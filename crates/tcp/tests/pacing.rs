//! Pacing and delivery rate samples: what the engine does for a congestion control that asks for them.

use std::sync::{Arc, Mutex};

use reknit_tcp::Config;
use reknit_tcp::facts::{AckFacts, Context, RateSample, Window};
use reknit_tcp::seams::{CongestionControl, CongestionControlTraits, Pacing, Plugin, Reduction};
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::{Bytes, Duration, Rate, Segments};
use reknit_variants::Composition;
use reknit_variants::base::limited_transmit;

/// A window that never changes, optional pacing, and a record of the samples.
#[derive(Clone, Debug)]
struct Fixed {
    pacing: Option<Pacing>,
    /// Sets the window in recovery too, and therefore sees every sample.
    by_model: bool,
    samples: Arc<Mutex<Vec<RateSample>>>,
}

impl Plugin for Fixed {}

impl CongestionControl for Fixed {
    fn traits(&self) -> CongestionControlTraits {
        CongestionControlTraits {
            wants_rate_samples: true,
            steers_by_model: self.by_model,
            ..CongestionControlTraits::default()
        }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        self.samples.lock().unwrap().extend(ack.rate);
        cx.snd.window_with(cx.snd.cwnd)
    }

    fn ssthresh(&mut self, cx: &Context<'_>, _reduction: &Reduction) -> Bytes {
        cx.snd.cwnd
    }

    fn save(&mut self) {}

    fn restore(&mut self, _cx: &Context<'_>) {}

    fn pacing(&self, _cx: &Context<'_>) -> Option<Pacing> {
        self.pacing
    }
}

/// An established connection with a window of `window` segments and an RTT of 100 ms, and the record of its samples.
fn script(isn: u32, window: u32, pacing: Option<Pacing>) -> (TestSender, Arc<Mutex<Vec<RateSample>>>) {
    script_of(isn, window, pacing, false)
}

fn script_of(
    isn: u32,
    window: u32,
    pacing: Option<Pacing>,
    by_model: bool,
) -> (TestSender, Arc<Mutex<Vec<RateSample>>>) {
    let samples = Arc::new(Mutex::new(Vec::new()));
    let mut plugins = variant("sack").build();
    plugins.sender.congestion_control = Box::new(Fixed { pacing, by_model, samples: samples.clone() });
    (TestSender::idle(isn, plugins, config(window), 100), samples)
}

/// One segment every millisecond, in bursts of `quantum` segments.
fn pace(quantum: u64) -> Pacing {
    Pacing {
        rate: Rate::of(Bytes(SMSS), Duration::from_millis(1)),
        quantum: Bytes(quantum * SMSS),
        repairs_alone: false,
    }
}

fn last(samples: &Mutex<Vec<RateSample>>) -> RateSample {
    *samples.lock().unwrap().last().unwrap()
}

vector!(a_quantum_is_sent_each_time_it_takes_at_the_pacing_rate, |isn| {
    let (mut s, _) = script(isn, 20, Some(pace(2)));
    assert_eq!(s.write(7), [1, 2]); // after a pause a burst uses half of its time
    assert_eq!(s.at(101).sent(), [3, 4]);
    assert_eq!(s.at(102).sent(), NOTHING);
    assert_eq!(s.at(103).sent(), [5, 6]);
    assert_eq!(s.at(105).sent(), [7]);
    assert_eq!(s.at(150).sent(), NOTHING);
});

vector!(an_ack_does_not_evade_pacing, |isn| {
    let (mut s, _) = script(isn, 4, Some(pace(1)));
    assert_eq!(s.write(100), [1]);
    assert_eq!(s.at(103).sent(), [2, 3, 4]);
    s.at(200);
    assert_eq!(s.pass(1), [5]);
    assert_eq!(s.pass(2), NOTHING);
    assert_eq!(s.at(201).sent(), [6]);
});

vector!(retransmissions_are_paced_too, |isn| {
    let (mut s, _) = script(isn, 10, Some(pace(1)));
    s.write(10);
    s.at(120).sent();
    // 1 and 2 are lost.
    assert_eq!(s.at(200).pass_all([3, 4, 5, 6]), [1]);
    assert_eq!(s.at(201).sent(), [2]);
});

vector!(what_the_burst_limit_holds_back_follows_at_the_rate_of_the_window, |isn| {
    for spreads_bursts in [false, true] {
        let limited_transmit = limited_transmit::PipeLimitConfig { spreads_bursts }.into();
        let config = Config { max_burst: Some(Segments(4)), ..config(20) };
        let mut s = TestSender::new(isn, &Composition { limited_transmit, ..variant("sack") }, config, 100);
        assert_eq!(s.at(100).sent().len(), 20);
        s.at(200).deliver(&Ack { cum: 20, ..Ack::default() });
        assert_eq!(s.sent(), [21, 22, 23, 24]);
        // A window of 22 segments, and a round trip of 100 ms: a burst each 18 ms.
        assert!((s.cwnd() - 22.0).abs() < 0.1);
        assert_eq!(s.at(218).sent(), NOTHING);
        assert_eq!(s.at(219).sent().len(), if spreads_bursts { 4 } else { 0 });
    }
});

vector!(a_sample_is_the_delivered_data_over_the_longer_of_two_times, |isn| {
    let (mut s, samples) = script(isn, 4, None);
    s.write(100);
    s.at(200).pass_in_order(4);
    let first = last(&samples);
    assert_eq!((first.delivered, first.interval), (Bytes(4 * SMSS), Some(Duration::from_millis(100))));
    assert_eq!(first.prior_delivered, Some(Bytes::ZERO));
    assert_eq!(first.tx_in_flight, Bytes(4 * SMSS));
    // ACKs arrive slowly, 5 at 300 ms and 7 at 400 ms: the time of their arrival counts.
    s.at(300).pass_in_order(2);
    s.at(400).pass(7);
    assert_eq!(last(&samples).rate(), Some(Rate::of(Bytes(4 * SMSS), Duration::from_millis(200))));
    // One ACK for all the rest: the time of transmission counts.
    s.at(500).pass_the_rest();
    assert_eq!(last(&samples).rate(), Some(Rate::of(Bytes(4 * SMSS), Duration::from_millis(200))));
    assert_eq!(last(&samples).total_delivered, Bytes(11 * SMSS));
});

vector!(an_application_without_data_marks_the_following_samples, |isn| {
    let (mut s, samples) = script(isn, 8, None);
    s.write(20);
    s.at(200).pass_in_order(8);
    assert!(last(&samples).is_app_limited); // they were sent after a pause
    s.at(300).pass_in_order(8);
    assert!(!last(&samples).is_app_limited); // the window was full
    s.at(400).pass_in_order(4);
    s.write(8);
    s.at(500).pass_in_order(8);
    assert!(last(&samples).is_app_limited);
});

vector!(a_flight_that_was_delivered_faster_than_the_minimum_rtt_is_no_sample, |isn| {
    // 1 and 2 are late. Each is retransmitted just before its original is acknowledged, and the ACK is taken for that of
    // the copy.
    let (mut s, samples) = script_of(isn, 10, Some(pace(1)), true);
    s.write(10);
    s.at(120).sent();
    assert_eq!(s.at(200).pass_all([3, 4, 5]), [1]);
    assert!(last(&samples).interval.is_some());
    assert_eq!(s.at_us(200_200).pass(1), NOTHING);
    assert_eq!(s.at(201).sent(), [2]);
    s.at_us(201_200).pass(2);
    assert_eq!((last(&samples).delivered, last(&samples).interval), (Bytes(SMSS), None));
});
