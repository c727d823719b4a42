//! Metrics in the text format of Prometheus, over a small HTTP server. Each client has a thread of its own, so that slow and
//! silent ones do not keep others waiting; their number, and the size and time of requests, are limited.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use reknit_trace::{Cost, Incident, Totals};

use super::{Shared, State, locked};

/// Connections that have metrics of their own: the worst ones.
const MAX_FLOWS: usize = 20;
/// The longest request, in how many pieces it may come, and how long each may take.
const MAX_BYTES: usize = 8 << 10;
const MAX_READS: usize = 64;
const IO_TIMEOUT: Duration = Duration::from_secs(2);
/// Clients at a time. Beyond, the oldest is cut off.
const MAX_CLIENTS: usize = 64;
/// How long to wait if no client can be served.
const PAUSE: Duration = Duration::from_millis(50);

/// Estimates of what spurious retransmissions cost, Mbit/s.
type Estimate = fn(&Cost) -> f64;
const COSTS: [(&str, &str, Estimate); 2] = [
    (
        "flow_cost_least_bits_per_second",
        "Throughput that spurious retransmissions cost, a conservative estimate.",
        |cost| cost.lost_least_mbit_s,
    ),
    ("flow_cost_most_bits_per_second", "Throughput that spurious retransmissions cost, a generous estimate.", |cost| {
        cost.lost_most_mbit_s
    }),
];

/// What to do about an address that cannot be used.
pub(super) fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program uses the port: choose another one, or 0 for a free one",
        io::ErrorKind::AddrNotAvailable => "; no interface has this address: use 127.0.0.1 or 0.0.0.0",
        io::ErrorKind::PermissionDenied => "; ports below 1024 are for root: choose another one",
        _ => "",
    }
}

/// Serves until the program ends. Returns the address, which has a port even if 0 was given.
pub(super) fn serve(address: SocketAddr, shared: &Shared) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let bound = listener.local_addr()?;
    let shared = shared.clone();
    let clients = Arc::new(Mutex::new(VecDeque::new()));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(PAUSE); // no more file descriptors, for example
                continue;
            };
            let Ok(other) = stream.try_clone() else { continue };
            let client = Client::enter(&clients, other);
            let shared = shared.clone();
            let answered = thread::Builder::new().spawn(move || {
                let _ = answer(&stream, &shared); // a client that goes away is no error
                drop(client);
            });
            if answered.is_err() {
                thread::sleep(PAUSE);
            }
        }
    });
    Ok(bound)
}

/// The connections of all clients, the oldest first.
type Clients = Arc<Mutex<VecDeque<Arc<TcpStream>>>>;

/// A client that is being served. It leaves when it is dropped.
struct Client {
    clients: Clients,
    stream: Arc<TcpStream>,
}

impl Client {
    /// A new client. If there are too many, the oldest one has to go: it has had the most time.
    fn enter(clients: &Clients, stream: TcpStream) -> Client {
        let stream = Arc::new(stream);
        let mut all = clients.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == MAX_CLIENTS
            && let Some(oldest) = all.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both); // perhaps it has just gone
        }
        all.push_back(stream.clone());
        Client { clients: clients.clone(), stream }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut all = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|stream| !Arc::ptr_eq(stream, &self.stream));
    }
}

fn answer(mut stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    let mut request = Vec::new();
    let mut bytes = [0; 1024];
    let mut reads = 0;
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut bytes)?;
        reads += 1;
        if read == 0 || request.len() + read > MAX_BYTES || reads == MAX_READS {
            return Ok(());
        }
        request.extend(&bytes[..read]);
    }
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", text(&locked(shared)))
    } else {
        ("404 Not Found", "the metrics are at /metrics\n".to_owned())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The label and the value of each verdict.
fn verdicts(totals: &Totals) -> Vec<(String, String)> {
    let counts = [
        ("lost", totals.lost),
        ("reordered", totals.reordered),
        ("duplicated", totals.duplicated),
        ("spurious", totals.spurious),
        ("discarded", totals.discarded),
        ("cannot_tell", totals.cannot_tell),
    ];
    let sample = |(name, count): (&str, u64)| (format!("{{verdict=\"{name}\"}}"), count.to_string());
    counts.into_iter().map(sample).collect()
}

/// The same for each incident.
fn incidents(totals: &Totals) -> Vec<(String, String)> {
    let sample =
        |what: Incident| (format!("{{incident=\"{}\"}}", what.name()), totals.incidents[what as usize].to_string());
    Incident::ALL.into_iter().map(sample).collect()
}

fn text(state: &State) -> String {
    let totals = state.watcher.totals();
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        let _ = writeln!(text, "# HELP reknit_{name} {help}\n# TYPE reknit_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "reknit_{name}{labels} {value}");
        }
    };
    let one = |value: u64| [(String::new(), value.to_string())];
    metric("packets_total", "counter", "TCP packets seen.", &one(totals.tcp_packets));
    metric("payload_bytes_total", "counter", "Bytes of TCP payload seen.", &one(totals.bytes));
    metric("connections_total", "counter", "Connections seen.", &one(totals.flows));
    metric("connections", "gauge", "Connections that are followed.", &one(state.watcher.len() as u64));
    metric("connections_forgotten_total", "counter", "Connections beyond the limit.", &one(totals.forgotten));
    metric(
        "packets_copied_total",
        "counter",
        "Packets that were left out because they had been captured before.",
        &one(totals.copies),
    );
    metric(
        "kernel_drops_total",
        "counter",
        "Packets that the kernel dropped before they were seen.",
        &one(state.drops),
    );
    metric("verdicts_total", "counter", "Packets by what happened to them.", &verdicts(&totals));
    metric("incidents_total", "counter", "What happened to connections.", &incidents(&totals));
    let worst = state.watcher.worst(MAX_FLOWS);
    let mut of_flows =
        |name: &str, kind: &str, help: &str, value: &dyn Fn(&reknit_trace::DirectionReport) -> String| {
            let labels = |d: &reknit_trace::DirectionReport| {
                format!("{{connection=\"{}\",from=\"{}\",to=\"{}\"}}", d.stream, d.from, d.to)
            };
            let samples: Vec<(String, String)> = worst.iter().map(|d| (labels(d), value(d))).collect();
            metric(name, kind, help, &samples);
        };
    of_flows("flow_acknowledged_bytes_total", "counter", "Bytes acknowledged, of the worst connections.", &|d| {
        d.acknowledged_bytes.to_string()
    });
    of_flows("flow_lost_total", "counter", "Packets that were lost.", &|d| d.verdicts.lost.to_string());
    of_flows("flow_reordered_total", "counter", "Packets that were late.", &|d| d.verdicts.reordered.to_string());
    of_flows("flow_spurious_total", "counter", "Spurious retransmissions.", &|d| d.verdicts.spurious.to_string());
    of_flows(
        "flow_false_reductions_total",
        "counter",
        "Times the sender reduced its window although nothing was lost.",
        &|d| d.cost.false_reductions.to_string(),
    );
    for (name, help, value) in COSTS {
        of_flows(name, "gauge", help, &|d| (value(&d.cost) * 1e6).to_string());
    }
    of_flows("flow_late_p99_seconds", "gauge", "Lateness of reordered packets, 99th percentile.", &|d| {
        (d.reordering.late_p99_ms.unwrap_or(0.0) / 1e3).to_string()
    });
    text
}
