//! What a flow has measured about reordering is passed on to the next flow to the same peer (`rr-share`).

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{FlowResult, FlowSpec, Scenario, Workload, run, tcp_config};
use reknit_units::{Bytes, Duration, Instant};

/// Two transfers over a path that reorders. The second opens `later` after the first, which takes about ten seconds.
fn two_transfers(variant: &str, later: Duration) -> Vec<FlowResult> {
    let profile = Arc::new(Profile::load("rr-tcp", &[]).unwrap());
    let tcp = tcp_config(&profile).unwrap();
    let composition = (reknit_variants::find(variant).unwrap().compose)();
    let mut scenario = Scenario::bulk(profile, tcp, composition, Duration::from_secs(200), 7);
    let flow = FlowSpec { workload: Workload::Transfer(Bytes(2_000_000)), ..scenario.flows[0].clone() };
    scenario.flows = vec![flow.clone(), FlowSpec { start: Instant::ZERO + later, ..flow }];
    let flows = run(&scenario).flows;
    assert!(flows.iter().all(|flow| flow.completed.is_some()));
    flows
}

/// The second flow's false reductions, and its duration.
fn second(variant: &str, later: Duration) -> (u64, Duration) {
    let flows = two_transfers(variant, later);
    (flows[1].false_cuts, flows[1].elapsed)
}

#[test]
fn a_flow_starts_with_the_measurements_of_the_previous_one() {
    let later = Duration::from_secs(30);
    let (alone, knowing) = (second("rr-taes", later), second("rr-share", later));
    assert!(knowing.0 < alone.0 && knowing.1 < alone.1, "{knowing:?} instead of {alone:?}");
}

#[test]
fn old_measurements_are_forgotten() {
    let later = Duration::from_secs(130);
    assert_eq!(second("rr-share", later), second("rr-taes", later));
}

#[test]
fn a_flow_that_has_not_closed_shares_nothing() {
    let later = Duration::from_secs(1);
    assert_eq!(second("rr-share", later), second("rr-taes", later));
}
