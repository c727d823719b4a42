//! The same seed gives the same bytes: the complete packet traces of three scenarios, each reduced to one number.
//!
//! A change here is a change of behavior. If it was intended, list it in the changelog under "Results that change".

use std::sync::Arc;

use reknit_path::{Phases, Profile};
use reknit_sim::{FlowSpec, HashTracer, Scenario, Workload, run, run_traced};
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
    reknit_tcp::proof::begin(1); // the second run also compares fast paths with slow ones
    let (_, again) = run_traced(scenario, HashTracer::default());
    assert_eq!(tracer.hash(), again.hash(), "two runs differ");
    (format!("{:016x}", tracer.hash()), tracer.events())
}

#[test]
fn one_flow_with_delayed_packets() {
    assert_eq!(hash(&scenario("rr-tcp", "dsack-r", 60)), ("b46c7b0927fc3750".to_owned(), 30_926));
}

#[test]
fn time_based_detection_over_two_paths() {
    assert_eq!(hash(&scenario("two-paths-200ms", "rack", 30)), ("09b4cf0d5b83e53a".to_owned(), 68_188));
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
    assert_eq!(hash(&scenario), ("2e1f6f22e1c3aeb2".to_owned(), 5_635));
}

#[test]
fn phases_depend_on_the_seed_unless_they_are_fixed() {
    let drawn = scenario("two-paths-50ms", "newreno", 5);
    let fixed = Scenario { phases: Phases::Fixed, ..drawn.clone() };
    // Initial sequence numbers depend on the seed, so traces always differ.
    let outcome = |scenario: &Scenario, seed| {
        let result = run(&Scenario { seed, ..scenario.clone() });
        (result.packets, result.events, result.flows[0].goodput().to_bits())
    };
    assert_ne!(outcome(&drawn, 1), outcome(&drawn, 2));
    assert_eq!(outcome(&fixed, 1), outcome(&fixed, 2));
}

#[test]
fn another_seed_gives_another_trace() {
    let first = scenario("rr-tcp", "sack", 20);
    let second = Scenario { seed: 8, ..first.clone() };
    assert_ne!(hash(&first).0, hash(&second).0);
}
