//! Flows with a model of the path share the link with each other and with flows that react to losses.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{FlowSpec, Scenario, run, tcp_config};
use reknit_units::{Duration, Instant};

/// 10 Mbit/s and 40 ms: 34 packets fill the pipe. The queue holds twice as many.
const PATH: &str = r#"
    description = "a path that two flows share"
    [[forward]]
    kind = "link"
    rate = "10 Mbit/s"
    delay = "20 ms"
    queue = "68 packets"
    [[reverse]]
    kind = "link"
    rate = "10 Mbit/s"
    delay = "20 ms"
    queue = "68 packets"
"#;

const DURATION: Duration = Duration::from_secs(60);

/// Each flow's share of the link; the second flow starts two seconds after the first.
fn shares(variants: [&str; 2]) -> [f64; 2] {
    let profile = Arc::new(Profile::parse("shared", PATH).unwrap());
    let tcp = tcp_config(&profile).unwrap();
    let [first, second] = variants.map(|name| (reknit_variants::find(name).unwrap().compose)());
    let mut scenario = Scenario::bulk(profile, tcp, first, DURATION, 1);
    let start = Instant::ZERO + Duration::from_secs(2);
    scenario.flows.push(FlowSpec { start, ..FlowSpec::bulk(Arc::new(second)) });
    let flows = run(&scenario).flows;
    let capacity = 10e6 / 8.0 * DURATION.as_secs_f64();
    [0, 1].map(|flow| flows[flow].delivered.0 as f64 / capacity)
}

#[test]
fn two_flows_of_the_same_variant_share_and_fill_the_link() {
    for variant in ["bbr", "bbr1", "reknit-bbr"] {
        let [first, second] = shares([variant; 2]);
        assert!(first + second > 0.88, "{variant}: {first} and {second}");
        assert!(second > 0.3 && first > 0.3, "{variant}: {first} and {second}");
    }
}

#[test]
fn version_3_leaves_cubic_its_share() {
    for variants in [["bbr", "rack"], ["rack", "bbr"]] {
        let [first, second] = shares(variants);
        assert!(first + second > 0.88, "{variants:?}: {first} and {second}");
        assert!(second > 0.15 && first > 0.15, "{variants:?}: {first} and {second}");
    }
}
