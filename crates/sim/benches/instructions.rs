//! Instructions per data segment: both ends, the path and the simulator, on fixed cases.
//!
//! `cargo bench -p reknit-sim --bench instructions`; [`reknit_testkit::instructions`] says what may follow.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{Scenario, run};
use reknit_testkit::instructions::{Benchmark, Case, Work};
use reknit_units::{Duration, Instant};

/// The variants of most cases: the base of all, and the three with most code.
const VARIANTS: [&str; 4] = ["sack", "linux", "reknit", "bbr"];
/// The variants of cases that compare paths or numbers of flows.
const BASE: &[&str] = &["sack"];

/// Traffic over a path.
#[derive(Clone, Copy)]
struct Traffic {
    name: &'static str,
    /// For readers of the table.
    description: &'static str,
    /// The name of a profile, or the content of one.
    path: &'static str,
    /// Changes of the profile.
    set: &'static [&'static str],
    variants: &'static [&'static str],
    flows: u32,
    /// Simulated time, in milliseconds.
    duration: u64,
}

const GIGABIT: &str = r#"
    forward = [{ kind = "link", rate = "1 Gbit/s", delay = "5 ms", queue = "1 MB" }]
    reverse = [{ kind = "link", rate = "1 Gbit/s", delay = "5 ms" }]
"#;
const LATE: &str = r#"
    reverse = [{ kind = "link", rate = "100 Mbit/s", delay = "5 ms" }]
    [[forward]]
    kind = "link"
    rate = "100 Mbit/s"
    [[forward]]
    kind = "multipath"
    choice = "random"
    paths = [{ delay = "5 ms", weight = 9 }, { delay = "10 ms", weight = 1 }]
"#;
const LOST: &str = r#"
    forward = [{ kind = "link", rate = "100 Mbit/s", delay = "5 ms" }, { kind = "loss", probability = 0.01 }]
    reverse = [{ kind = "link", rate = "100 Mbit/s", delay = "5 ms" }]
"#;

/// The path of RR-TCP without delays and with room for the window, as in the comparison with ns-2.
const IN_ORDER: &[&str] =
    &["forward.delays.probability=0", "forward.bottleneck.rate=3.9 Mbit/s", "reverse.bottleneck.rate=3.9 Mbit/s"];

/// One flow of all variants for a second.
const CASE: Traffic =
    Traffic { name: "", description: "", path: "", set: &[], variants: &VARIANTS, flows: 1, duration: 1000 };

const CASES: [Traffic; 8] = [
    Traffic {
        name: "base",
        description: "three hops in order, an ACK for each segment: the run that is compared with ns-2",
        path: "rr-tcp",
        set: IN_ORDER,
        variants: BASE,
        duration: 20_000,
        ..CASE
    },
    Traffic {
        name: "clean",
        description: "the path `clean`: the queue overflows from time to time",
        path: "clean",
        duration: 2000,
        ..CASE
    },
    Traffic { name: "one-flow", description: "one flow at 1 Gbit/s", path: GIGABIT, duration: 300, ..CASE },
    Traffic {
        name: "many-flows",
        description: "200 flows at 1 Gbit/s",
        path: GIGABIT,
        flows: 200,
        duration: 300,
        ..CASE
    },
    Traffic {
        name: "thousand-flows",
        description: "1000 flows at 1 Gbit/s",
        path: GIGABIT,
        variants: BASE,
        flows: 1000,
        duration: 300,
        ..CASE
    },
    Traffic { name: "late", description: "one segment of ten arrives 5 ms late", path: LATE, duration: 2000, ..CASE },
    Traffic { name: "lost", description: "one segment of a hundred is lost", path: LOST, duration: 3000, ..CASE },
    Traffic {
        name: "two-paths-50ms",
        description: "segments alternate between two paths",
        path: "two-paths-50ms",
        duration: 15_000,
        ..CASE
    },
];

impl Traffic {
    fn scenario(&self, variant: &str) -> Scenario {
        let set: Vec<String> = self.set.iter().map(ToString::to_string).collect();
        let profile =
            if self.path.contains('=') { Profile::parse(self.name, self.path) } else { Profile::load(self.path, &set) };
        let profile = Arc::new(profile.expect("a valid profile"));
        let tcp = reknit_sim::tcp_config(&profile).expect("the defaults are valid");
        let variant = (reknit_variants::find(variant).expect("a variant").compose)();
        let mut scenario = Scenario::bulk(profile, tcp, variant, Duration::from_millis(self.duration), 1);
        let first = scenario.flows[0].clone();
        scenario.flows = vec![first; self.flows as usize];
        for (i, flow) in (0..).zip(&mut scenario.flows) {
            flow.start = Instant::ZERO + Duration::from_millis(100).mul_f64(f64::from(i) / f64::from(self.flows));
        }
        scenario
    }

    /// Runs it; returns the number of data segments that were sent.
    fn work(self, variant: &str) -> Work {
        let scenario = self.scenario(variant);
        Box::new(move || run(&scenario).flows.iter().map(|flow| flow.send.sent.total()).sum())
    }
}

fn main() -> ExitCode {
    let case = |traffic: Traffic| Case {
        name: traffic.name,
        description: traffic.description,
        columns: traffic.variants,
        prepare: Box::new(move |variant| traffic.work(variant)),
    };
    let benchmark = Benchmark {
        introduction: "# Instructions\n\nCounted by callgrind in an optimised build. Unlike times, they are the same on every \
                       machine. CI counts them\nagain, and fails if a case needs over 3 % more.\n\n## Simulations\n\nFor each data \
                       segment with its ACK: both ends, the path and the simulator.",
        columns: &VARIANTS,
        cases: CASES.map(case).into(),
        file: Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.toml"),
    };
    benchmark.main()
}
