//! Receivers that lie gain little, and those that acknowledge what was never sent are caught.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{FlowSpec, Misbehavior, RunResult, Scenario, run, tcp_config};
use reknit_tcp::State;
use reknit_units::{Duration, Instant, Segments};

/// 10 Mbit/s and 40 ms: 34 packets fill the pipe. The queue holds 50.
const SHARED: &str = r#"
    [[forward]]
    kind = "link"
    rate = "10 Mbit/s"
    delay = "20 ms"
    queue = "50 packets"
    [[reverse]]
    kind = "link"
    delay = "20 ms"
"#;

/// Every tenth packet is late by up to 15 ms, one in 200 is lost, and ACKs are lost too.
const HONEST: &str = r#"
    [[forward]]
    kind = "loss"
    probability = 0.005
    [[forward]]
    kind = "link"
    rate = "40 Mbit/s"
    delay = "5 ms"
    queue = "100 packets"
    [[forward]]
    kind = "delay"
    probability = 0.1
    extra = "uniform(0 ms, 15 ms)"
    [[reverse]]
    kind = "loss"
    probability = 0.02
    [[reverse]]
    kind = "link"
    delay = "5 ms"
"#;

fn scenario(path: &str, variant: &str, lie: Option<Misbehavior>, withhold_every: Option<u32>) -> Scenario {
    let profile = Arc::new(Profile::parse("path", path).unwrap());
    let mut tcp = tcp_config(&profile).unwrap();
    tcp.withhold_every = withhold_every.map(Segments);
    let composition = (reknit_variants::find(variant).unwrap().compose)();
    let mut scenario = Scenario::bulk(profile, tcp, composition, Duration::from_secs(20), 1);
    scenario.flows[0].lie = lie;
    scenario
}

/// A transfer, with a liar if `lie` says so, and an honest rival.
fn beside_a_rival(variant: &str, lie: Option<Misbehavior>, withhold_every: Option<u32>) -> RunResult {
    let mut scenario = scenario(SHARED, variant, lie, withhold_every);
    let start = Instant::ZERO + Duration::from_millis(100);
    scenario.flows.push(FlowSpec { start, lie: None, ..scenario.flows[0].clone() });
    run(&scenario)
}

fn delivered(result: &RunResult) -> f64 {
    result.flows[0].delivered.0 as f64
}

#[test]
fn claims_of_duplicates_gain_little_where_undo_is_bounded() {
    for variant in ["rack", "reknit", "reknit-bbr"] {
        let honest = delivered(&beside_a_rival(variant, None, None));
        for lie in [Misbehavior::Dsack, Misbehavior::Timestamps, Misbehavior::DsackAndTimestamps] {
            let gain = delivered(&beside_a_rival(variant, Some(lie), None)) / honest;
            assert!(gain < 1.2, "{variant}, {lie:?}: {gain}");
        }
    }
    // The bound is what makes the difference.
    let honest = delivered(&beside_a_rival("dsack-r", None, None));
    assert!(delivered(&beside_a_rival("dsack-r", Some(Misbehavior::Dsack), None)) / honest > 1.2);
}

#[test]
fn who_acknowledges_what_was_never_sent_is_caught() {
    for variant in ["rack", "linux", "reknit", "reknit-bbr", "bbr"] {
        for lie in [Misbehavior::Optimistic, Misbehavior::Conceal] {
            let result = beside_a_rival(variant, Some(lie), Some(256));
            assert_eq!(result.flows[0].last.unwrap().state, State::Closed, "{variant}, {lie:?}");
            assert!(delivered(&result) < 2e6, "{variant}, {lie:?}: {}", delivered(&result));
            assert!(result.flows[1].delivered.0 > 18_000_000, "{variant}, {lie:?}: {}", result.flows[1].delivered);
        }
    }
}

#[test]
fn false_blocks_hurt_only_the_liar() {
    for variant in ["rack", "linux", "reknit", "reknit-bbr", "bbr", "sack"] {
        let honest = delivered(&beside_a_rival(variant, None, None));
        for lie in [Misbehavior::SackAhead, Misbehavior::SackRandom] {
            let gain = delivered(&beside_a_rival(variant, Some(lie), None)) / honest;
            assert!(gain < 1.0, "{variant}, {lie:?}: {gain}");
        }
    }
}

#[test]
fn nobody_honest_is_caught() {
    for variant in ["rack", "linux", "reknit", "reknit-bbr", "bbr", "sack"] {
        let result = run(&scenario(HONEST, variant, None, Some(16)));
        assert_eq!(result.flows[0].last.unwrap().state, State::Established, "{variant}");
        let least = if variant.starts_with("reknit") { 100_000 } else { 2_000_000 };
        assert!(result.flows[0].delivered.0 > least, "{variant}: {}", result.flows[0].delivered);
    }
}

#[test]
fn tests_of_honest_receivers_cost_little() {
    for variant in ["rack", "linux"] {
        let [without, with] = [None, Some(256)].map(|every| {
            let result = beside_a_rival(variant, None, every);
            result.flows.iter().map(|flow| flow.delivered.0 as f64).sum::<f64>()
        });
        assert!(with > without * 0.97, "{variant}: {with} of {without}");
    }
}
