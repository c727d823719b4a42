//! How the simulator scales with the number of flows: packets per second of processor time with one flow and with a
//! thousand on the same link, and the memory per flow. Prints a page in Markdown.
//!
//! Each run is a separate process, so that the heap of one does not affect another, and the runs to compare take turns.

use std::process::Command;
use std::sync::Arc;

use nix::time::{ClockId, clock_gettime};
use reknit_path::Profile;
use reknit_sim::{Scenario, run};
use reknit_units::{Bytes, Capacity, Duration, Instant, Segments};

const MANY: u32 = 1000;
const ROUNDS: usize = 9;
const SIMULATED: Duration = Duration::from_secs(10);
/// Total data in flight with held windows: the pipe and about half of the queue are full.
const HELD: u32 = 9000;

/// What sets the windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Windows {
    /// Each flow has an equal share of [`HELD`].
    Held,
    /// Congestion control.
    Free,
}

/// 1 Gbit/s, 70 ms round trip, and a queue of one bandwidth-delay product.
fn backbone() -> Profile {
    let link = "kind = \"link\"\nrate = \"1 Gbit/s\"\ndelay = \"35 ms\"\nqueue = \"8750000 B\"\n";
    Profile::parse("backbone", &format!("[[forward]]\n{link}[[reverse]]\n{link}")).expect("a valid profile")
}

/// This many bulk flows with `sack` on the link, opened within a second.
fn scenario(windows: Windows, flows: u32) -> Scenario {
    let profile = Arc::new(backbone());
    let mut tcp = reknit_sim::tcp_config(&profile).expect("the defaults are valid");
    tcp.receive_buffer = Capacity::Bytes(Bytes(1 << 26)); // more than a flow ever needs
    tcp.max_window = (windows == Windows::Held).then_some(Segments(HELD / flows));
    let variant = (reknit_variants::find("sack").expect("the base is a variant").compose)();
    let mut scenario = Scenario::bulk(profile, tcp, variant, SIMULATED, 1);
    let first = scenario.flows[0].clone();
    scenario.flows = vec![first; flows as usize];
    for (i, flow) in (0..).zip(&mut scenario.flows) {
        flow.start = Instant::ZERO + Duration::from_secs(1).mul_f64(f64::from(i) / f64::from(flows));
    }
    scenario
}

/// The processor time of this process so far, in seconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("POSIX has this clock");
    std::time::Duration::from(time).as_secs_f64()
}

/// The peak memory of this process, in bytes.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<f64>().ok());
    kib.expect("a number") * 1024.0
}

/// The measurements of one run, or the best of several.
#[derive(Clone, Copy)]
struct Measured {
    /// Packets per second of processor time.
    packets: f64,
    /// Peak memory, bytes.
    memory: f64,
    /// Share of the data packets that were lost.
    lost: f64,
}

impl Measured {
    fn here(windows: Windows, flows: u32) -> Measured {
        let scenario = scenario(windows, flows);
        let before = processor_time();
        let result = run(&scenario);
        let packets = result.packets as f64 / (processor_time() - before);
        let lost: u64 = result.flows.iter().map(|flow| flow.lost).sum();
        let sent: u64 = result.flows.iter().map(|flow| flow.send.sent.total()).sum();
        Measured { packets, memory: peak_memory(), lost: lost as f64 / sent as f64 }
    }

    /// Runs it in a separate process.
    fn elsewhere(windows: Windows, flows: u32) -> Measured {
        let program = std::env::current_exe().expect("the program has a path");
        let output = Command::new(program).args([format!("{windows:?}"), flows.to_string()]).output();
        let output = output.expect("the program can run");
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [packets, memory, lost] = numbers[..] else {
            panic!("{windows:?}, {flows} flows: {}", String::from_utf8_lossy(&output.stderr));
        };
        Measured { packets, memory, lost }
    }

    fn best(self, other: Measured) -> Measured {
        Measured { packets: self.packets.max(other.packets), memory: self.memory.min(other.memory), ..self }
    }
}

/// The name of the processor.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    line.map_or_else(|| "an unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, windows, flows] = arguments.as_slice()
        && let Ok(flows) = flows.parse()
    {
        let windows = if windows == "Held" { Windows::Held } else { Windows::Free };
        let Measured { packets, memory, lost } = Measured::here(windows, flows);
        println!("{packets} {memory} {lost}");
        return;
    }
    let cases = [Windows::Held, Windows::Free].map(|windows| [1, MANY].map(|flows| (windows, flows)));
    let measure = || cases.map(|case| case.map(|(windows, flows)| Measured::elsewhere(windows, flows)));
    let mut all = measure();
    for _ in 1..ROUNDS {
        for (best, again) in all.iter_mut().flatten().zip(measure().into_iter().flatten()) {
            *best = best.best(again);
        }
    }
    println!(
        "# Scale

How many million packets (data and ACKs) the simulator processes per second of processor time, for one bulk flow of `sack` on a
link of 1 Gbit/s and 70 ms, and for {MANY} flows that share the link. The ratio is the second rate divided by the first.

With *held* windows, {HELD} segments are in flight in total, whether there is one flow or {MANY}. The pipe is full, nothing is
lost, and only the number of flows differs. With *free* windows, congestion control sets the windows, and the queue overflows. A
thousand flows with small windows lose more packets than one flow with a large window, so each packet also needs more work.

Memory is what each additional flow adds to the process: both ends, their scoreboards and their statistics. A thousand connections
do not fit into the fast caches, so other load on the machine slows them down more than it slows one flow.

Measured on {}: {} s of simulated time, the best of {ROUNDS} interleaved runs.

| windows | 1 flow | lost | {MANY} flows | lost | ratio | memory for each flow |
|---|---|---|---|---|---|---|",
        processor(),
        SIMULATED.as_secs_f64()
    );
    for ([(windows, _), _], [one, many]) in cases.iter().zip(&all) {
        println!(
            "| {} | {:.2} | {:.1} % | {:.2} | {:.1} % | {:.2} | {:.1} kB |",
            format!("{windows:?}").to_lowercase(),
            one.packets / 1e6,
            one.lost * 100.0,
            many.packets / 1e6,
            many.lost * 100.0,
            many.packets / one.packets,
            (many.memory - one.memory) / f64::from(MANY - 1) / 1e3
        );
    }
}
