//! Every measurement of a run, on runs small enough to compute it by hand: 50 ms each way, windows of 8 segments of
//! 1000 bytes on the wire, an ACK for each segment, and a script that specifies what happens to which packet. Rounds
//! begin at 0.1 s.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{FlowResult, FlowSpec, Measures, Meter, RunResult, Scenario, Workload, run_traced, tcp_config};
use reknit_tcp::seams::ShownName;
use reknit_units::{Bytes, Duration, Instant};

const TCP: &str = "[tcp]\nmss = 960\ntimestamps = false\nack_every = 1\ninitial_window = 8\nmax_window = 8\n\
                   max_burst = \"none\"\n";

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Both directions have a delay of 50 ms, after the stages given as `[[forward]]` and `[[reverse]]` tables.
fn scenario(stages: &str, variant: &str, duration: Duration) -> Scenario {
    let links = "[[forward]]\nkind = \"link\"\ndelay = \"50 ms\"\n[[reverse]]\nkind = \"link\"\ndelay = \"50 ms\"\n";
    let profile = Profile::parse("test", &format!("description = \"test\"\n{stages}\n{links}{TCP}")).unwrap();
    let tcp = tcp_config(&profile).unwrap();
    let composition = (reknit_variants::find(variant).unwrap().compose)();
    Scenario::bulk(Arc::new(profile), tcp, composition, duration, 1)
}

fn script(direction: &str, rules: &str) -> String {
    format!("[[{direction}]]\nkind = \"script\"\nrules = [{rules}]")
}

fn measure(scenario: &Scenario) -> (RunResult, Measures) {
    let (result, meter) = run_traced(scenario, Meter::new(scenario));
    (result, meter.total())
}

/// A transfer of this many full segments.
fn transfer(rules: &str, variant: &str, segments: u64) -> (FlowResult, Measures) {
    let mut scenario = scenario(&script("forward", rules), variant, Duration::from_secs(60));
    scenario.flows[0].workload = Workload::Transfer(Bytes(960 * segments));
    let (result, measures) = measure(&scenario);
    (result.flows[0].clone(), measures)
}

#[track_caller]
fn assert_near(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?}, expected {expected}");
}

#[track_caller]
fn assert_to_three_digits(value: Option<Duration>, seconds: f64) {
    let value = value.map(Duration::as_secs_f64);
    assert!(value.is_some_and(|value| (value - seconds).abs() < seconds * 1e-3), "{value:?}, expected {seconds}");
}

#[test]
fn a_transfer_without_events() {
    let (flow, measures) = transfer("", "sack", 16);
    // SYN at 0, data at 100 and 200 ms, everything received at 250 ms, FIN acknowledged at 300 ms.
    assert_eq!((flow.elapsed, measures.lifetime()), (ms(250), Some(ms(300))));
    assert_eq!((measures.segments, measures.wire), (16, Bytes(16_000)));
    assert_eq!(measures.rtt_mean(), Some(ms(100)));
    assert_to_three_digits(measures.rtt_quantile(1.0), 0.1);
    // Each of the first 8 ACKs releases a segment, each of the others none.
    assert_eq!((measures.burst_quantile(0.5), measures.burst_quantile(1.0)), (0, 1));
    assert_near(measures.cwnd.mean(), 8.0 * 960.0);
    assert_near(measures.dup_thresh.mean(), 3.0);
    assert_near(measures.dup_thresh.deviation(), 0.0);
    assert_eq!((measures.shown.len(), measures.reordering_state), (0, Bytes::ZERO));
    assert_eq!(flow.shown.means().count(), 0);
    assert_eq!(flow.send.armings.expired, Duration::ZERO);
}

#[test]
fn a_lost_packet_is_repaired_by_a_needed_fast_retransmission() {
    let (flow, measures) = transfer("{ segment = 3, action = \"drop\" }", "sack", 40);
    assert_eq!((measures.needed_fast_retransmissions, measures.spurious_fast_retransmissions), (1, 0));
    assert_eq!((flow.lost, flow.queue_drops, measures.repaired_by_fast_retransmit), (1, 0, 1));
    assert_eq!((flow.send.cuts.fast_retransmit, flow.false_fast_retransmits, flow.receive.duplicates), (1, 0, 0));
}

#[test]
fn a_lost_retransmission_is_repeated_by_the_timer() {
    let rules = "{ segment = 3, transmission = [1, 2], action = \"drop\" }";
    let (flow, measures) = transfer(rules, "sack", 40);
    assert_eq!((flow.lost, measures.repaired_by_fast_retransmit, flow.send.timeouts), (2, 1, 1));
    assert_eq!((measures.needed_fast_retransmissions, measures.spurious_fast_retransmissions), (1, 0));
}

#[test]
fn a_delayed_packet_is_retransmitted_spuriously() {
    let mut scenario =
        scenario(&script("forward", "{ segment = 3, action = \"delay\", by = \"30 ms\" }"), "sack", ms(60_000));
    scenario.flows[0].workload = Workload::Transfer(Bytes(960 * 40));
    let (result, measures) = measure(&scenario);
    let flow = &result.flows[0];
    assert_eq!((measures.needed_fast_retransmissions, measures.spurious_fast_retransmissions), (0, 1));
    assert_eq!((flow.false_cuts, flow.false_fast_retransmits, flow.receive.duplicates), (1, 1, 1));
    assert_eq!((result.delayed, flow.lost, flow.spurious_retransmissions), (1, 0, 1));
    // The RTT of its own ACK, at 230 ms, although the sender cannot know it.
    assert_to_three_digits(measures.rtt_quantile(1.0), 0.13);
    assert_eq!(measures.rtt_mean(), Some((ms(100) * 39 + ms(130)) / 40));
}

#[test]
fn a_stalled_path_shows_the_timer_settings() {
    // Nothing gets through from 0.95 s to 5.95 s. The last ACK that restarts the timer arrives at 1 s; the timer
    // expires at 2 s and at 4 s.
    let hold = script("forward", "{ from = \"950 ms\", to = \"5950 ms\", action = \"hold\" }");
    let (result, measures) = measure(&scenario(&hold, "sack", Duration::from_secs(7)));
    let send = &result.flows[0].send;
    assert_eq!(
        (send.timeouts, send.armings.expired, send.armings.largest),
        (2, Duration::from_secs(3), Duration::from_secs(4))
    );
    // Data sent at 1 s leaves at 5.95 s, and is acknowledged a round trip later.
    assert_to_three_digits(measures.rtt_quantile(1.0), 5.05);
    assert_near(measures.srtt.mean().map(|srtt| (srtt * 1e3).round()), 100.0);
}

#[test]
fn cwnd_is_weighted_by_time() {
    // Slow start from 2 segments without a limit: 2, 4, 8 from 0.1, 0.2 and 0.3 s; each ACK adds a segment, all at the
    // same time.
    let mut scenario = scenario("", "sack", ms(399));
    scenario.tcp.initial_window = reknit_units::Segments(2);
    scenario.tcp.max_window = None;
    let (_, measures) = measure(&scenario);
    assert_near(measures.cwnd.mean(), 960.0 * (2.0 * 0.1 + 4.0 * 0.1 + 8.0 * 0.099) / 0.299);
    assert_eq!(measures.cwnd.largest(), Some(8.0 * 960.0));
}

#[test]
fn lost_acks_and_queue_drops_are_counted_separately() {
    let acks = script("reverse", "{ packet = [3, 4], action = \"drop\" }");
    let (result, _) = measure(&scenario(&acks, "sack", ms(950)));
    assert_eq!((result.flows[0].lost_acks, result.flows[0].lost), (2, 0));
    // Of 8 at once, one is served and 3 wait.
    let queue = "[[forward]]\nkind = \"link\"\nrate = \"8 Mbit/s\"\nqueue = \"3 packets\"\n";
    let (result, _) = measure(&scenario(queue, "sack", ms(105)));
    let flow = &result.flows[0];
    assert_eq!((flow.lost_acks, flow.lost), (0, flow.queue_drops));
    assert!((4..=5).contains(&flow.queue_drops), "{}", flow.queue_drops);
}

#[test]
fn packets_of_two_flows_come_in_runs_of_a_window() {
    let mut scenario = scenario("", "sack", ms(1045));
    let second = FlowSpec { start: Instant::ZERO + ms(30), ..scenario.flows[0].clone() };
    scenario.flows.push(second);
    let (result, _) = measure(&scenario);
    // From 0.1 s and from 0.13 s on, a window of 8 every 0.1 s: 10 windows of each flow.
    assert_eq!((result.run_lengths.packets, result.run_lengths.runs), (160, 20));
}

#[test]
fn what_a_plug_in_shows_is_averaged_over_time_and_noted_at_the_end() {
    const FA_RATIO: ShownName = ShownName { seam: "dup_thresh", name: "fa_ratio" };
    let delay = "[[forward]]\nkind = \"delay\"\nprobability = 0.1\nextra = \"uniform(0 ms, 100 ms)\"\n";
    let at_end = |result: &RunResult| result.flows[0].shown.means().collect::<Vec<_>>();
    let (result, fixed) = measure(&scenario(delay, "rr-fa", Duration::from_secs(30)));
    assert_near(fixed.shown[&FA_RATIO].mean(), 0.9);
    assert_near(fixed.shown[&FA_RATIO].deviation(), 0.0);
    assert_eq!(at_end(&result), [(FA_RATIO, 0.9)]);
    let (result, moving) = measure(&scenario(delay, "rr-ta", Duration::from_secs(30)));
    assert!(moving.shown[&FA_RATIO].deviation().unwrap() > 0.0 && at_end(&result) != [(FA_RATIO, 0.9)]);
    // They keep the histogram of lengths: 16 bytes per event, at most 1000 events. Leung-Ma keeps two means.
    let (_, averages) = measure(&scenario(delay, "leung-ma", Duration::from_secs(30)));
    assert!((2_000..20_000).contains(&fixed.reordering_state.0), "{}", fixed.reordering_state);
    assert!((1..500).contains(&averages.reordering_state.0), "{}", averages.reordering_state);
}

/// The counts after a warm-up are those of the whole run minus those of the warm-up.
#[test]
fn the_warm_up_is_the_difference() {
    let profile = Arc::new(Profile::load("rr-tcp", &[]).unwrap());
    let tcp = tcp_config(&profile).unwrap();
    let composition = (reknit_variants::find("dsack-r").unwrap().compose)();
    let whole = Scenario::bulk(profile, tcp, composition, Duration::from_secs(60), 3);
    let warm_up = Duration::from_nanos(19_999_999_999);
    let counts = |scenario: &Scenario| {
        let (result, m) = measure(scenario);
        let flow = &result.flows[0];
        let sums = [
            flow.delivered.0,
            flow.send.sent.total(),
            flow.send.sent.retransmissions(),
            flow.send.cuts.total(),
            flow.send.undos,
            flow.send.armings.count,
            flow.false_cuts,
            flow.false_fast_retransmits,
            flow.spurious_retransmissions,
            flow.receive.duplicates,
            result.delayed,
            result.run_lengths.packets,
            m.segments,
            m.spurious_fast_retransmissions,
            flow.elapsed.as_nanos(),
        ];
        (sums, m.cwnd.mean().unwrap() * flow.elapsed.as_secs_f64())
    };
    let (all, cwnd) = counts(&whole);
    let (before, cwnd_before) = counts(&Scenario { duration: warm_up, ..whole.clone() });
    let (after, cwnd_after) = counts(&Scenario { warm_up, ..whole });
    for (i, whole) in all.into_iter().enumerate() {
        assert_eq!(before[i] + after[i], whole, "count {i}");
        assert!(after[i] > 0, "count {i}");
    }
    // There is no window before the handshake is complete.
    assert!((cwnd_before + cwnd_after - cwnd).abs() < 0.01 * cwnd, "{cwnd_before} + {cwnd_after} is not {cwnd}");
}
