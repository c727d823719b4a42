//! One flow, a thousand flows and the round trip of one byte, live: reknit-net and smoltcp behind a TUN device, with the
//! kernel as their peer, and kernel to kernel over veth. Prints the tables of `docs/guide/sockets.md`.
//!
//! Needs root. Each measurement has network namespaces of its own. All kinds take turns, so that a busy machine affects
//! all of them; the tables have medians.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod kernel;
mod links;
mod ours;
mod peer;
mod smol;

use std::io;
use std::time::Duration;

use links::Link;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Rounds of all measurements.
const ROUNDS: usize = 5;
/// How long one flow sends.
const TIME: Duration = Duration::from_secs(2);
/// Flows at once, and what each transfers.
const FLOWS: usize = 1000;
const EACH: usize = 200_000;
/// Round trips of one byte.
const TRIPS: usize = 20_000;

/// What sends to the kernel, and receives from it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kernel,
    Ours,
    Smoltcp,
}

/// One row of the tables.
struct Row {
    name: &'static str,
    kind: Kind,
    link: Link,
    sends: Vec<f64>,
    receives: Vec<f64>,
    flows: Vec<f64>,
    trips: Vec<Duration>,
}

impl Row {
    fn new(name: &'static str, kind: Kind, link: Link) -> Row {
        Row { name, kind, link, sends: Vec::new(), receives: Vec::new(), flows: Vec::new(), trips: Vec::new() }
    }

    fn measure(&mut self) -> io::Result<()> {
        let (kind, link) = (self.kind, self.link);
        let send = move |to| match kind {
            Kind::Kernel => kernel::send(to, TIME),
            Kind::Ours => ours::send(link, to, TIME),
            Kind::Smoltcp => smol::send(to, TIME),
        };
        let receive = move |from| match kind {
            Kind::Kernel => kernel::receive(from, TIME),
            Kind::Ours => ours::receive(link, from, TIME),
            Kind::Smoltcp => smol::receive(from, TIME),
        };
        let many = move |to| match kind {
            Kind::Kernel => kernel::many(to, FLOWS, EACH),
            Kind::Ours => ours::many(link, to, FLOWS, EACH),
            Kind::Smoltcp => smol::many(to, FLOWS, EACH),
        };
        let ping = move |to| match kind {
            Kind::Kernel => kernel::ping(to, TRIPS),
            Kind::Ours => ours::ping(link, to, TRIPS),
            Kind::Smoltcp => smol::ping(to, TRIPS),
        };
        self.sends.push(links::run(link, |listener| peer::sink(&listener), send)?.0);
        self.receives.push(links::run(link, |listener| peer::source(&listener), receive)?.1);
        self.flows.push(links::run(link, |listener| peer::many(listener, FLOWS), many)?.0);
        self.trips.extend(links::run(link, |listener| peer::echo(&listener), ping)?.1);
        Ok(())
    }
}

/// Bytes in a time, as Gbit/s.
fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 * 8.0 / time.as_secs_f64() / 1e9
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn print(rows: &mut [Row]) {
    println!("| | send, Gbit/s | receive, Gbit/s | {FLOWS} flows, Gbit/s | round trip p50, us | p99, us |");
    println!("|---|---|---|---|---|---|");
    let mut kernel = [1.0; 3];
    for row in rows {
        let rates = [&row.sends, &row.receives, &row.flows].map(|values| median(values));
        if row.kind == Kind::Kernel {
            kernel = rates;
        }
        let cells = [0, 1, 2].map(|i| format!("{:.2} ({:.2})", rates[i], rates[i] / kernel[i]));
        row.trips.sort();
        let trip = |percent: usize| row.trips[row.trips.len() * percent / 100].as_secs_f64() * 1e6;
        println!("| {} | {} | {:.0} | {:.0} |", row.name, cells.join(" | "), trip(50), trip(99));
    }
}

fn main() -> io::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let rows = [
        Row::new("kernel, veth, offload", Kind::Kernel, Link::Veth { offload: true }),
        Row::new("reknit-net, TUN, offload", Kind::Ours, Link::Tun { offload: true }),
        Row::new("kernel, veth, packets of 1500 bytes", Kind::Kernel, Link::Veth { offload: false }),
        Row::new("reknit-net, TUN, packets of 1500 bytes", Kind::Ours, Link::Tun { offload: false }),
        Row::new("smoltcp, TUN, packets of 1500 bytes", Kind::Smoltcp, Link::Tun { offload: false }),
    ];
    // An argument chooses the rows whose names contain it.
    let wanted = std::env::args().nth(1).filter(|name| !name.starts_with('-')).unwrap_or_default();
    let mut rows: Vec<Row> = rows.into_iter().filter(|row| row.name.contains(&wanted)).collect();
    for _ in 0..ROUNDS {
        for row in &mut rows {
            row.measure()?;
        }
    }
    print(&mut rows);
    Ok(())
}
