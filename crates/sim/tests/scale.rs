//! How the simulator bears many flows: `cargo test --release -p reknit-sim --test scale -- --ignored --nocapture`.

use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{Scenario, run};
use reknit_units::{Duration, Instant};

/// 1 Gbit/s with this delay each way, and a queue of as much as a round trip carries.
fn backbone(delay_ms: u64) -> Profile {
    let queue = 1_000_000_000 / 8 * 2 * delay_ms / 1000;
    let link = format!("kind = \"link\"\nrate = \"1 Gbit/s\"\ndelay = \"{delay_ms} ms\"\nqueue = \"{queue} B\"\n");
    Profile::parse("backbone", &format!("[[forward]]\n{link}[[reverse]]\n{link}")).unwrap()
}

/// As many bulk flows by `sack` through the backbone, opened within a second.
fn scenario(delay_ms: u64, flows: u32, duration: Duration) -> Scenario {
    let profile = Arc::new(backbone(delay_ms));
    let tcp = reknit_sim::tcp_config(&profile).unwrap();
    let variant = (reknit_variants::find("sack").unwrap().compose)();
    let mut scenario = Scenario::bulk(profile, tcp, variant, duration, 1);
    let first = scenario.flows[0].clone();
    scenario.flows = vec![first; flows as usize];
    for (i, flow) in (0..).zip(&mut scenario.flows) {
        flow.start = Instant::ZERO + Duration::from_secs(1).mul_f64(f64::from(i) / f64::from(flows));
    }
    scenario
}

/// Packets simulated per second of processor time: the best of three runs, since others use the caches, too.
fn packets_per_second(delay_ms: u64, flows: u32) -> f64 {
    let scenario = scenario(delay_ms, flows, Duration::from_secs(5));
    let once = || {
        let before = processor_time();
        let result = run(&scenario);
        result.packets as f64 / (processor_time() - before)
    };
    (0..3).map(|_| once()).fold(0.0, f64::max)
}

/// Seconds for which this thread has been running.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.expect("a number") / 1e9
}

/// The largest that this process has been, in octets; 0 where the system does not say.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().split(' ').next()?.parse().ok()).map_or(0.0, |kib: f64| kib * 1024.0)
}

#[test]
#[ignore = "measures; run it alone and in release"]
#[expect(clippy::print_stdout, reason = "the numbers are what it is for")]
fn a_thousand_flows_cost_little_more_than_one() {
    let mut worst = f64::MAX;
    for delay_ms in [10, 35] {
        let one = packets_per_second(delay_ms, 1);
        let before = peak_memory();
        let thousand = packets_per_second(delay_ms, 1000);
        let each = (peak_memory() - before) / 1000.0;
        println!("{delay_ms} ms each way, 1 flow: {:.2} million packets/s", one / 1e6);
        println!("1000 flows: {:.2} million packets/s, {:.2} of one flow's", thousand / 1e6, thousand / one);
        println!("peak memory grew by {:.1} kB for each flow, packets on their way included", each / 1e3);
        worst = worst.min(thousand / one);
    }
    assert!(worst >= 0.5, "a thousand flows cost more than twice as much as one");
}
