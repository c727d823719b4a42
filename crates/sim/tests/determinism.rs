//! The same seed gives the same bytes: the whole trace of packets of three scenarios, condensed into one number each.
//!
//! A change here is a change of behaviour. If it was intended, say so in the changelog under "Results that change".

use std::sync::Arc;

use reknit_path::{Phases, Profile};
use reknit_sim::{FlowSpec, HashTracer, Scenario, Workload, run_traced};
use reknit_tcp::Config;
use reknit_units::{Bytes, Duration, Instant};

fn scenario(path: &str, variant: &str, seconds: u64) -> Scenario {
    let profile = Arc::new(Profile::load(path, &[]).unwrap());
    let tcp: Config = profile.tcp.clone().try_into().unwrap();
    let composition = (reknit_variants::find(variant).unwrap().compose)();
    let scenario = Scenario::bulk(profile, tcp, composition, Duration::from_secs(seconds), 7);
    Scenario { phases: Phases::Drawn, ..scenario }
}

fn hash(scenario: &Scenario) -> (String, u64) {
    let (_, tracer) = run_traced(scenario, HashTracer::default());
    let (_, again) = run_traced(scenario, HashTracer::default());
    assert_eq!(tracer.hash(), again.hash(), "two runs differ");
    (format!("{:016x}", tracer.hash()), tracer.events())
}

#[test]
fn one_flow_with_delayed_packets() {
    assert_eq!(hash(&scenario("rr-tcp", "dsack-r", 60)), ("9f8220f62361d6df".to_owned(), 30_936));
}

#[test]
fn time_based_detection_over_two_paths() {
    assert_eq!(hash(&scenario("two-paths-200ms", "rack", 30)), ("e18e23fd8cb1895d".to_owned(), 61_037));
}

#[test]
fn eight_transfers_share_a_lossy_path() {
    let mut scenario = scenario("lossy", "newreno", 120);
    let flow = scenario.flows[0].clone();
    scenario.flows = (0..8)
        .map(|i| FlowSpec {
            start: Instant::ZERO + Duration::from_millis(137 * i),
            workload: Workload::Transfer(Bytes(300_000)),
            ..flow.clone()
        })
        .collect();
    assert_eq!(hash(&scenario), ("4a9dba090765ad50".to_owned(), 5_671));
}

#[test]
fn phases_are_the_seeds_unless_they_are_fixed() {
    let drawn = scenario("two-paths-50ms", "newreno", 5);
    let fixed = Scenario { phases: Phases::Fixed, ..drawn.clone() };
    let trace = |scenario: &Scenario, seed| hash(&Scenario { seed, ..scenario.clone() }).0;
    assert_ne!(trace(&drawn, 1), trace(&drawn, 2));
    assert_eq!(trace(&fixed, 1), trace(&fixed, 2));
}

#[test]
fn another_seed_gives_another_trace() {
    let first = scenario("rr-tcp", "sack", 20);
    let second = Scenario { seed: 8, ..first.clone() };
    assert_ne!(hash(&first).0, hash(&second).0);
}
