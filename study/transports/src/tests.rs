//! Every transport on paths of the product.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{RunResult, Scenario, Transport, run, tcp_config};
use reknit_units::Duration;
use reknit_variants::Composition;

use crate::transports;

fn on(path: &str, transport: &Arc<dyn Transport>, seed: u64) -> RunResult {
    let profile = Arc::new(Profile::load(path, &[]).expect("a built-in path"));
    let tcp = tcp_config(&profile).expect("the path's options are valid");
    let scenario = Scenario::bulk(profile, tcp, Composition::default(), Duration::from_secs(10), seed);
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

#[test]
fn the_same_seed_gives_the_same_run() {
    for transport in &transports() {
        let text = |seed| format!("{:?}", on("random-delay", transport, seed));
        assert_eq!(text(1), text(1), "{}", transport.name());
        assert_ne!(text(1), text(2), "{}", transport.name());
    }
}
