//! A shield in front of the receiver.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{RunResult, Scenario, run, tcp_config};
use reknit_units::Duration;

/// A transfer with `variant` over `path`, without a shield at its end and with one: the bytes that arrived, and all packets.
fn transfers(path: &str, variant: &str, seconds: u64) -> [(u64, u64); 2] {
    [&[][..], &["forward.+={ kind = \"shield\" }".to_owned()]].map(|set| {
        let profile = Arc::new(Profile::load(path, set).unwrap());
        let tcp = tcp_config(&profile).unwrap();
        let composition = (reknit_variants::find(variant).unwrap().compose)();
        let RunResult { flows, packets, .. } =
            run(&Scenario::bulk(profile, tcp, composition, Duration::from_secs(seconds), 1));
        (flows[0].delivered.0, packets)
    })
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
