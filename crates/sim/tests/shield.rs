//! A shield in front of the receiver.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{FlowSpec, RunResult, Scenario, Workload, run, tcp_config};
use reknit_units::{Bytes, Duration, Instant};

/// A transfer with `variant` over `path` with these changes: the bytes that arrived, and all packets.
fn transfer(path: &str, set: &[String], variant: &str, seconds: u64) -> (u64, u64) {
    let profile = Arc::new(Profile::load(path, set).unwrap());
    let tcp = tcp_config(&profile).unwrap();
    let composition = (reknit_variants::find(variant).unwrap().compose)();
    let RunResult { flows, packets, .. } =
        run(&Scenario::bulk(profile, tcp, composition, Duration::from_secs(seconds), 1));
    (flows[0].delivered.0, packets)
}

/// The same without a shield at the end of the path and with one.
fn transfers(path: &str, variant: &str, seconds: u64) -> [(u64, u64); 2] {
    [&[][..], &["forward.+={ kind = \"shield\" }".to_owned()]].map(|set| transfer(path, set, variant, seconds))
}

#[test]
fn a_sender_that_suffers_from_reordering_becomes_several_times_as_fast() {
    for (path, times) in [("two-paths-50ms", 5), ("two-paths-200ms", 5), ("wireless-arq", 3)] {
        let [(without, _), (with, _)] = transfers(path, "sack", 60);
        assert!(with >= times * without, "{path}: {with} and {without}");
    }
}

#[test]
fn where_nothing_is_reordered_nothing_changes() {
    for path in ["clean", "lossy", "bursty-loss"] {
        for variant in ["sack", "linux", "bbr1"] {
            let [without, with] = transfers(path, variant, 15);
            assert_eq!(without, with, "{path}: {variant}");
        }
    }
}

/// The bytes of a transfer that begins after another one over the same path.
fn second_transfer(path: &str, set: &[String], variant: &str) -> u64 {
    let profile = Arc::new(Profile::load(path, set).unwrap());
    let tcp = tcp_config(&profile).unwrap();
    let composition = (reknit_variants::find(variant).unwrap().compose)();
    let mut scenario = Scenario::bulk(profile, tcp, composition, Duration::from_secs(15), 1);
    let first = FlowSpec { workload: Workload::Transfer(Bytes(100_000)), ..scenario.flows[0].clone() };
    scenario.flows[0].start = Instant::ZERO + Duration::from_secs(5);
    scenario.flows.push(first);
    run(&scenario).flows[0].delivered.0
}

#[test]
fn branches_that_are_made_equal_are_as_fast_as_branches_with_the_same_delay() {
    let shield = "forward.+={ kind = \"shield\", mode = \"equalise\" }".to_owned();
    // At the rate of sdwan-50ms, 100 Mbit/s, it would take long.
    let slower = [0, 1].map(|i| format!("forward.paths.paths.{i}.rate=5 Mbit/s"));
    for (path, slow, rates) in [("two-paths-200ms", "250 ms", &[][..]), ("sdwan-50ms", "75 ms", &slower)] {
        let equalise = [rates, std::slice::from_ref(&shield)].concat();
        let same = [rates, &[format!("forward.paths.paths.0.delay={slow}")]].concat();
        for variant in ["sack", "linux", "bbr1"] {
            let (equal, made) = (second_transfer(path, &same, variant), second_transfer(path, &equalise, variant));
            assert!(made * 10 >= equal * 9, "{path}, {variant}: {made} and {equal}");
        }
    }
}

#[test]
fn paths_without_branches_cannot_be_made_equal() {
    let set = ["forward.+={ kind = \"shield\", mode = \"equalise\" }".to_owned()];
    let error = Profile::load("random-delay", &set).unwrap_err().to_string();
    assert!(error.contains("forward[2].mode: equalise needs branches whose delays differ"), "{error}");
}
