//! Long runs: for every cause of reordering, flows of every family of variants with mixed traffic share a path. Every
//! group makes progress to the end, and memory does not grow.
//!
//! In CI the runs take minutes of simulated time. `SOAK_HOURS=24 cargo test -p reknit-sim --test soak -- --nocapture` runs
//! them for a day, and prints what each did.

use std::sync::Arc;

use reknit_path::causes::CAUSES;
use reknit_path::{Direction, Phases, Profile, Variate};
use reknit_sim::{Datagram, FlowSpec, Scenario, TraceEvent, Tracer, Transactions, Workload, run_traced};
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::{FAMILIES, Family, Variant};

/// Pages, small requests and files. On average a flow sends about 6 packets per second, and less on a slow path.
fn traffic(profile: &Profile) -> [Workload; 3] {
    let is_slow = profile.bottleneck(Direction::Forward).is_some_and(|rate| rate.bits_per_second() < 1_000_000);
    let transactions = |response: u64, think_ms: u64, per_connection: u32| {
        Workload::Transactions(Transactions {
            request: Bytes(300),
            response: Bytes(response),
            think: Variate::Exponential(Duration::from_millis(if is_slow { think_ms * 50 } else { think_ms })),
            per_connection: std::num::NonZeroU32::new(per_connection),
            count: None,
        })
    };
    [transactions(20_000, 5000, 4), transactions(300, 1000, 1000), transactions(3_000_000, 600_000, 1)]
}

/// The variants of a family, by turns.
fn member(family: &Family, turn: usize) -> &'static Variant {
    &family.variants[turn % family.variants.len()]
}

/// A flow for each family and kind of traffic. Each is a group of its own.
fn scenario(path: &str, turn: usize, duration: Duration) -> Scenario {
    let profile = Arc::new(Profile::load(path, &[]).unwrap());
    let tcp = reknit_sim::tcp_config(&profile).unwrap();
    let mut flows = Vec::new();
    for family in &FAMILIES {
        for (kind, workload) in traffic(&profile).into_iter().enumerate() {
            let variant = Arc::new((member(family, turn * 3 + kind).compose)());
            let group = flows.len() as u32;
            flows.push(FlowSpec { workload, group, ..FlowSpec::bulk(variant) });
        }
    }
    Scenario {
        profile,
        tcp,
        flows,
        duration,
        warm_up: duration / 2,
        seed: turn as u64 + 1,
        phases: Phases::Drawn,
        sample_every: None,
        transport: None,
    }
}

/// The memory of the process in KiB, each simulated hour.
#[derive(Default)]
struct Watch {
    hours: Vec<u64>,
}

impl Tracer for Watch {
    fn on_packet(&mut self, now: Instant, _event: TraceEvent, _datagram: &Datagram) {
        while now.since(Instant::ZERO) >= Duration::from_secs(3600) * (self.hours.len() as u64 + 1) {
            self.hours.push(resident());
        }
    }
}

/// Resident memory of this process in KiB, or 0 if the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
#[expect(clippy::print_stdout, reason = "a long run tells what it did")]
fn every_family_gets_on_for_long_over_every_cause_of_reordering() {
    let hours: Option<u64> = std::env::var("SOAK_HOURS").ok().map(|hours| hours.parse().expect("hours"));
    let only = std::env::var("SOAK_PATH").ok();
    let duration = Duration::from_secs(hours.map_or(120, |hours| hours * 3600));
    let paths = CAUSES.iter().map(|cause| cause.path).enumerate();
    for (turn, path) in paths.filter(|(_, path)| only.as_ref().is_none_or(|only| only == path)) {
        let (result, watch) = run_traced(&scenario(path, turn, duration), Watch::default());
        let completed: Vec<u64> = result.transactions.iter().map(reknit_sim::TransactionStats::completed).collect();
        // The first two kinds of each family, in the second half of the run; a short one may be too short for some.
        let least = completed.chunks(3).flat_map(|family| &family[..2]).min().unwrap();
        assert!(*least > 0 || hours.is_none(), "{path}: a flow stands still: {completed:?}");
        assert!(completed.iter().sum::<u64>() > 0, "{path}");
        let (early, late) = (watch.hours.get(2).copied().unwrap_or(0), watch.hours.last().copied().unwrap_or(0));
        assert!(late <= early + early / 10 + 2048, "{path}: memory grows: {:?} KiB", watch.hours);
        if hours.is_some() {
            let failed: u64 = result.transactions.iter().map(reknit_sim::TransactionStats::failed).sum();
            println!(
                "{path}: {} events, {} packets, {} connections, {} transactions of the second half, {failed} of them \
                 failed; {early} KiB after 3 h, {late} KiB at the end",
                result.events,
                result.packets,
                result.connections,
                completed.iter().sum::<u64>()
            );
        }
    }
}
