//! Expected segments take a fast path through a connection (`connection/expected.rs`, `sender/expected.rs`). Here a clone of each
//! connection takes the slow path for every segment, and both must have the same state afterwards: for all variants, over paths
//! that deliver in order, lose, reorder and duplicate. `PROOF_SEGMENTS` sets the number of segments, roughly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reknit_path::Profile;
use reknit_sim::{Scenario, Transactions, Workload, run};
use reknit_tcp::proof::{self, FastPath};
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::{VARIANTS, Variant};

const PATHS: [&str; 5] = ["clean", "lossy", "two-paths-50ms", "random-delay", "duplicates"];

/// How many segments a variant sends over each path.
fn segments() -> u64 {
    let all = std::env::var("PROOF_SEGMENTS").ok().and_then(|number| number.parse().ok()).unwrap_or(50_000);
    all / (VARIANTS.len() * PATHS.len()) as u64
}

/// Parts of the data of a connection that is closed with the last one.
const PARTS: u64 = 5;

/// A connection that is mostly open, and another that sends in both directions and is closed while data is in flight.
fn scenario(path: &str, variant: &Variant) -> Scenario {
    let profile = Arc::new(Profile::load(path, &[]).unwrap());
    let tcp = reknit_sim::tcp_config(&profile).unwrap();
    let eighth = u64::from(tcp.mss) * segments() / 8;
    let mut scenario = Scenario::bulk(profile, tcp, (variant.compose)(), Duration::from_secs(3600), 3);
    let part = Bytes(6 * eighth / PARTS);
    let open = Transactions { per_connection: None, count: Some(PARTS), ..Transactions::files(part) };
    scenario.flows[0].workload = Workload::Transactions(open);
    let mut second = scenario.flows[0].clone();
    second.workload = Workload::Exchange { size: Bytes(eighth), back: Bytes(eighth) };
    second.start = Instant::ZERO + Duration::from_millis(300);
    scenario.flows.push(second);
    scenario
}

#[test]
fn a_fast_path_changes_what_the_slow_path_does() {
    proof::begin(1);
    let runs: Vec<_> =
        PATHS.iter().flat_map(|path| VARIANTS.iter().map(move |variant| scenario(path, variant))).collect();
    let next = AtomicUsize::new(0);
    let run_all = || {
        while let Some(scenario) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            run(scenario);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(run_all);
        run_all();
    });
    for (path, least) in [(FastPath::Data, 0.5), (FastPath::Ack, 0.25), (FastPath::SentOnce, 0.1)] {
        let (compared, sent) = (proof::segments(path), segments() * (VARIANTS.len() * PATHS.len()) as u64);
        let share = compared as f64 / sent as f64;
        assert!(share > least, "{path:?}: only {compared} of {sent} segments took this path");
    }
}
