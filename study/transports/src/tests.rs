//! Every transport on paths of the product.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{RunResult, Scenario, Transport, run, tcp_config};
use reknit_units::Duration;
use reknit_variants::Composition;

use crate::transports;

fn on(path: &str, transport: &Arc<dyn Transport>, seed: u64) -> RunResult {
    with(path, &[], Duration::from_secs(10), transport, seed)
}

fn with(path: &str, changes: &[&str], duration: Duration, transport: &Arc<dyn Transport>, seed: u64) -> RunResult {
    let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
    let profile = Arc::new(Profile::load(path, &changes).expect("a built-in path"));
    let tcp = tcp_config(&profile).expect("the path's options are valid");
    let scenario = Scenario::bulk(profile, tcp, Composition::default(), duration, seed);
    run(&Scenario { transport: Some(transport.clone()), ..scenario })
}

#[test]
fn a_clean_link_is_filled() {
    for transport in &transports() {
        let flow = &on("clean", transport, 1).flows[0];
        // 100 Mbit/s.
        assert!(flow.goodput() > 6e7, "{}: {}", transport.name(), flow.goodput());
        // smoltcp sends everything after a lost packet again.
        if transport.name() != "smoltcp" {
            // The data of a lost packet may need two.
            assert!(flow.send.sent.retransmissions() <= flow.lost * 2, "{}: {flow:?}", transport.name());
            assert_eq!(flow.spurious_retransmissions, 0, "{}", transport.name());
        }
    }
}

#[test]
fn lost_data_is_retransmitted() {
    for transport in &transports() {
        let flow = &on("lossy", transport, 1).flows[0];
        assert!(flow.lost > 0 && flow.goodput() > 1e5, "{}: {flow:?}", transport.name());
        assert!(flow.send.sent.retransmissions() > 0, "{}: {flow:?}", transport.name());
        let sent = flow.send.sent.total() * flow.smss.0;
        assert!(flow.delivered.0 <= sent, "{}: data in packets was not recognised: {flow:?}", transport.name());
    }
}

/// QUIC changes its keys after at most 1000 packets. Those that are still under way when the old ones are discarded are lost.
#[test]
fn packets_from_before_a_key_update_are_no_error() {
    let late = ["forward.delays.probability=0.03", "forward.delays.extra=pareto(1.8, 79 ms)"];
    for transport in &transports() {
        for seed in 1..=10 {
            let [earlier, later] =
                [10, 20].map(|s| with("rr-tcp", &late, Duration::from_secs(s), transport, seed).flows[0].delivered);
            assert!(later > earlier, "{} with seed {seed} ends with {earlier:?}", transport.name());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for transport in &transports() {
        let text = |seed| format!("{:?}", on("random-delay", transport, seed));
        assert_eq!(text(1), text(1), "{}", transport.name());
        assert_ne!(text(1), text(2), "{}", transport.name());
    }
}
