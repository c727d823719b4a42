//! A thousand flows at once. `make bench` measures how fast they run.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{FlowResult, Scenario, jain, run};
use reknit_units::{Duration, Instant, Segments};

const FLOWS: u32 = 1000;

/// Bulk flows with `sack`, opened within half a second, on a link of 1 Gbit/s and 20 ms with a queue of one
/// bandwidth-delay product. Each may have `window` segments in flight.
fn scenario(window: u32, seconds: u64) -> Scenario {
    let link = "kind = \"link\"\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\nqueue = \"2500000 B\"\n";
    let profile = Profile::parse("backbone", &format!("[[forward]]\n{link}[[reverse]]\n{link}")).unwrap();
    let profile = Arc::new(profile);
    let mut tcp = reknit_sim::tcp_config(&profile).unwrap();
    tcp.max_window = Some(Segments(window));
    let variant = (reknit_variants::find("sack").unwrap().compose)();
    let mut scenario = Scenario::bulk(profile, tcp, variant, Duration::from_secs(seconds), 1);
    let first = scenario.flows[0].clone();
    scenario.flows = vec![first; FLOWS as usize];
    for (i, flow) in (0..).zip(&mut scenario.flows) {
        flow.start = Instant::ZERO + Duration::from_micros(500) * i;
    }
    scenario
}

#[test]
fn a_thousand_windows_that_fit_share_evenly_and_lose_nothing() {
    // The pipe and half of the queue hold 2500 segments.
    let result = run(&scenario(2, 2));
    assert_eq!(result.connections, FLOWS);
    assert_eq!(result.flows.iter().map(|flow| flow.lost).sum::<u64>(), 0);
    let rates: Vec<f64> = result.flows.iter().map(FlowResult::goodput).collect();
    let total: f64 = rates.iter().sum();
    assert!(total > 0.9e9 && total < 1e9, "{total}");
    let fairness = jain(rates.iter().copied());
    assert!(fairness > 0.99, "{fairness}");
}

#[test]
fn a_thousand_windows_that_do_not_fit_still_fill_the_link() {
    let result = run(&scenario(1000, 2));
    assert!(result.flows.iter().map(|flow| flow.lost).sum::<u64>() > 0);
    let delivered: u64 = result.flows.iter().map(|flow| flow.delivered.0).sum();
    let goodput = delivered as f64 * 8.0 / 2.0;
    assert!(goodput > 0.85e9 && goodput < 1e9, "{goodput}");
}
