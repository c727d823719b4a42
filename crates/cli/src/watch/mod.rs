//! `reknit watch`: the verdicts of `reknit analyze` on live traffic.

mod metrics;
mod show;
mod source;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use reknit_trace::{CapturePoint, Watcher};
use reknit_units::Duration;

use crate::analyze::At;
use crate::{Failure, input, output};
use show::WatchView;

/// How often the table is refreshed.
const TICK: Duration = Duration::from_secs(1);
/// How many times per tick the thread checks whether to stop.
const POLLS_PER_TICK: u32 = 20;

/// Find lost, late, duplicated and spuriously retransmitted packets in live traffic (an interface needs root)
///
/// Every second, shows a table of the connections whose packets are lost, late or retransmitted spuriously, the worst
/// first. If the output is not a terminal, it prints a line for each connection to which something happened. Ctrl-C ends it.
/// Listening on an interface needs root or the capability `CAP_NET_RAW`. docs/guide/watch.md explains the columns.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  reknit watch eth0
  reknit watch any --metrics 127.0.0.1:9435
  reknit watch growing.pcapng
  ssh router tcpdump -i wan0 -s 128 -U -w - tcp | reknit watch -")]
pub(crate) struct Args {
    /// An interface, `any` for all of them, a capture file that is still growing, or `-` for a capture on standard input
    #[arg(value_name = "IFACE|FILE")]
    source: PathBuf,
    /// Where the packets are captured [default: inferred for each connection]
    #[arg(long, value_enum, value_name = "PLACE")]
    at: Option<At>,
    /// Serve metrics for Prometheus at this address
    #[arg(long, value_name = "ADDR:PORT", value_parser = input::address)]
    metrics: Option<SocketAddr>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_negative_numbers = true)]
    duration: Option<Duration>,
}

/// What the threads share.
#[derive(Debug, Default)]
pub(super) struct State {
    watcher: Watcher,
    /// Packets that the kernel dropped.
    drops: u64,
    /// Packets have come since the last tick.
    has_new_packets: bool,
    /// The source has ended, perhaps with an error.
    ended: Option<Result<(), String>>,
}

pub(super) type Shared = Arc<Mutex<State>>;

/// The state. A thread that panicked leaves counts, which are still useful.
pub(super) fn locked(shared: &Shared) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.source.display().to_string();
    let source = source::open(&args.source).map_err(Failure::Failed)?;
    let watcher = Watcher::new(args.at.map(CapturePoint::from));
    let shared: Shared = Arc::new(Mutex::new(State { watcher, ..State::default() }));
    if let Some(address) = args.metrics {
        let bound = metrics::serve(address, &shared)
            .map_err(|error| Failure::Failed(format!("--metrics {address}: {error}{}", metrics::advice(&error))))?;
        output::note(format_args!("note: metrics at http://{bound}/metrics"));
    }
    let stop = output::on_interrupt();
    let (thread_shared, thread_stop) = (shared.clone(), stop.clone());
    thread::spawn(move || {
        let ended = source.run(&thread_shared, &thread_stop);
        locked(&thread_shared).ended = Some(ended);
    });
    let mut watch = WatchView::new(reknit_config::visible(&name).into_owned(), std::io::stdout().is_terminal());
    let max_ticks = args.duration.map_or(u64::MAX, |duration| duration.as_nanos().div_ceil(TICK.as_nanos()));
    for ticks in 1..=max_ticks {
        if wait(&shared, &stop) || ticks == max_ticks {
            break;
        }
        let text = watch.tick(&mut locked(&shared));
        if !output::print_unless_closed(&text)? {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut state = locked(&shared);
    // As at the end of a capture: what is undecided now stays so.
    state.watcher.finish();
    output::print_unless_closed(&watch.tick(&mut state))?;
    let ended = state.ended.take().unwrap_or(Ok(())).map_err(Failure::Failed);
    if ended.is_ok() || state.watcher.totals().tcp_packets > 0 {
        output::print(&watch.end(&state))?;
    }
    ended
}

/// Waits for the next tick. True if the watch is over.
fn wait(shared: &Shared, stop: &AtomicBool) -> bool {
    for _ in 0..POLLS_PER_TICK {
        if stop.load(Ordering::Relaxed) || locked(shared).ended.is_some() {
            return true;
        }
        thread::sleep(std::time::Duration::from_nanos(TICK.as_nanos()) / POLLS_PER_TICK);
    }
    false
}
