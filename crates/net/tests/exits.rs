//! Programs that end while data is on its way: nothing is lost, or the program has been told how much.
//!
//! Each test starts this file again as a child process in its own namespace, with the kernel as the peer: a test that finds
//! [`HOW`] in its environment is the child.

mod namespace;

use std::io::{self, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use namespace::{KERNEL, OURS, in_namespace, within};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reknit_net::{Network, TcpStream, Undelivered};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream as KernelStream};
use tokio::sync::Notify;

const PORT: u16 = 7000;
/// What the child writes on each connection.
const LEN: usize = 1_000_000;

/// How the child ends.
const HOW: &str = "REKNIT_EXIT";
/// On how many connections it writes, and how much on each.
const COUNT: &str = "REKNIT_CONNECTIONS";
const BYTES: &str = "REKNIT_BYTES";

/// How long a peer waits for more data once the sender is gone.
const SILENCE: Duration = Duration::from_millis(300);

fn kernels() -> SocketAddr {
    (KERNEL, PORT).into()
}

/// Starts the child.
fn start(how: &str, connections: usize, len: usize) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["main_returns", "--exact", "--nocapture"])
        .env(HOW, how)
        .env(COUNT, connections.to_string())
        .env(BYTES, len.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// What the child has printed after `lost `: the bytes that it was told are lost.
fn reported(child: Child) -> Option<usize> {
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("lost ")).map(|bytes| bytes.parse().expect("a number"))
}

/// Reads to the end of all connections, or until nothing more comes although the sender `is_gone`; how many bytes there were, and
/// how many connections have ended with a FIN.
async fn read_all(streams: Vec<KernelStream>, is_gone: &Arc<AtomicBool>) -> (usize, usize) {
    let tasks = streams.into_iter().map(|mut stream| {
        let is_gone = is_gone.clone();
        tokio::spawn(async move {
            let (mut total, mut buffer) = (0, vec![0; 1 << 16]);
            loop {
                let was_gone = is_gone.load(Ordering::Relaxed);
                match tokio::time::timeout(SILENCE, stream.read(&mut buffer)).await {
                    Ok(Ok(0)) => return (total, 1),
                    Ok(Ok(n)) => total += n,
                    Err(_) if !was_gone => {}
                    Ok(Err(_)) | Err(_) => return (total, 0),
                }
            }
        })
    });
    let mut all = (0, 0);
    for task in tasks.collect::<Vec<_>>() {
        let (bytes, fins) = task.await.expect("no panic");
        all = (all.0 + bytes, all.1 + fins);
    }
    all
}

async fn accept(listener: &TcpListener, connections: usize) -> io::Result<Vec<KernelStream>> {
    let mut streams = Vec::new();
    while streams.len() < connections {
        streams.push(listener.accept().await?.0);
    }
    Ok(streams)
}

/// What has become of the data of a child.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Bytes that have arrived, and connections that have ended with a FIN.
    bytes: usize,
    fins: usize,
    /// What the child has reported as lost.
    reported: Option<usize>,
}

/// Accepts connections of children.
fn listen() -> io::Result<TcpListener> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((std::net::Ipv4Addr::UNSPECIFIED, PORT).into())?;
    socket.listen(4096)
}

/// Runs a child, and reads what it sends `after` it has connected, or after a signal has killed it.
async fn run(how: &str, connections: usize, len: usize, after: Duration) -> io::Result<End> {
    run_with(&listen()?, how, connections, len, after).await
}

async fn run_with(
    listener: &TcpListener,
    how: &str,
    connections: usize,
    len: usize,
    after: Duration,
) -> io::Result<End> {
    let mut child = start(how, connections, len)?;
    let streams = within(accept(listener, connections)).await?;
    let is_gone = Arc::new(AtomicBool::new(false));
    let ended = is_gone.clone();
    // What a signal kills must not be able to deliver everything before.
    let (is_killed, shuts_down) = (how == "signal", how == "signal-shutdown");
    let reading = tokio::spawn(async move {
        tokio::time::sleep(after).await;
        while is_killed && !ended.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        within(read_all(streams, &ended)).await
    });
    let waiting = tokio::task::spawn_blocking(move || {
        if is_killed {
            std::thread::sleep(Duration::from_millis(500));
        } else if shuts_down {
            wait_for_line(&mut child, WRITTEN)?;
        }
        if is_killed || shuts_down {
            kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT)?;
        }
        let reported = reported(child);
        is_gone.store(true, Ordering::Relaxed);
        io::Result::Ok(reported)
    });
    let (bytes, fins) = reading.await.map_err(io::Error::other)?;
    Ok(End { bytes, fins, reported: waiting.await.map_err(io::Error::other)?? })
}

/// Reads what the child prints up to this line.
fn wait_for_line(child: &mut Child, line: &str) -> io::Result<()> {
    let stdout = child.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    let (mut read, mut byte) = (Vec::new(), [0]);
    while !read.ends_with(format!("{line}\n").as_bytes()) {
        stdout.read_exact(&mut byte)?;
        read.extend(byte);
    }
    Ok(())
}

/// Everything must arrive, with its end.
fn loses_nothing(how: &'static str, connections: usize) {
    if std::env::var_os(HOW).is_some() {
        return child();
    }
    in_namespace(move || async move {
        let end = run(how, connections, LEN, Duration::from_millis(300)).await?;
        assert_eq!((end.bytes, end.fins), (connections * LEN, connections), "{how}");
        assert_eq!(end.reported.unwrap_or(0), 0, "{how}");
        Ok(())
    });
}

#[test]
fn main_returns() {
    loses_nothing("return", 5);
}

#[test]
fn main_returns_while_tasks_hold_the_streams() {
    loses_nothing("return-holding", 5);
}

#[test]
fn main_panics() {
    loses_nothing("panic", 5);
}

#[test]
fn the_process_exits_after_a_shutdown() {
    loses_nothing("shutdown-exit", 5);
}

#[test]
fn ctrl_c_with_a_shutdown() {
    loses_nothing("signal-shutdown", 5);
}

#[test]
fn every_stream_is_closed_before_the_process_exits() {
    loses_nothing("closed-exit", 5);
}

#[test]
fn a_thousand_connections_with_a_megabyte_each() {
    loses_nothing("return", 1000);
}

#[test]
fn the_process_exits_and_has_been_told_what_is_lost() {
    in_namespace(|| async {
        let End { bytes, fins, reported } = run("exit", 5, LEN, Duration::from_millis(300)).await?;
        let lost = reported.expect("the child has asked");
        assert!(lost > 0 && bytes + lost >= 5 * LEN, "{bytes} arrived, {lost} were reported");
        assert_eq!(fins, 0, "the peers were told nothing");
        Ok(())
    });
}

#[test]
fn ctrl_c_without_a_shutdown_is_silence() {
    in_namespace(|| async {
        let End { bytes, fins, reported } = run("signal", 5, LEN, Duration::from_millis(300)).await?;
        assert!(bytes < 5 * LEN && fins == 0 && reported.is_none(), "{bytes} arrived");
        Ok(())
    });
}

/// So many exits of each kind: `EXITS=2500` for a long run.
fn exits() -> usize {
    std::env::var("EXITS").map_or(1, |exits| exits.parse().expect("EXITS is a number"))
}

/// Exits in one namespace.
const BATCH: usize = 10;
/// Batches at the same time.
const WORKERS: usize = 6;

/// The ways to end that deliver everything, or say what is lost (`exit`), in turn for each of the four kinds: return, exit, Ctrl-C and
/// panic.
const KINDS: [&[&str]; 4] =
    [&["return", "return-holding"], &["shutdown-exit", "closed-exit", "exit"], &["signal-shutdown"], &["panic"]];

/// What many exits have written, delivered and reported as lost.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    exits: usize,
    written: usize,
    delivered: usize,
    reported: usize,
}

/// Exit number `n`, of each kind, with data of random size: up to 300 kB, sometimes up to 4 MB.
async fn exit_in_all_ways(listener: &TcpListener, n: usize, sum: &Mutex<Sum>) -> io::Result<()> {
    let mut random = SplitMix(n as u64);
    for kind in KINDS {
        let how = kind[n % kind.len()];
        let most = if random.below(50) == 0 { 4_000_000 } else { 300_000 };
        let (len, after) = (1 + random.below(most) as usize, Duration::from_millis(random.below(20)));
        let end = run_with(listener, how, 1, len, after).await?;
        let reported = end.reported.unwrap_or(0);
        assert!(how == "exit" || (end.bytes, end.fins, reported) == (len, 1, 0), "{n}, {how}, {len} bytes: {end:?}");
        assert!(end.bytes + reported >= len && end.bytes <= len, "{n}, {how}, {len} bytes: {end:?}");
        let mut sum = sum.lock().expect("no panic");
        sum.exits += 1;
        sum.written += len;
        sum.delivered += end.bytes;
        sum.reported += reported;
    }
    Ok(())
}

#[test]
#[expect(clippy::print_stdout, reason = "a long run says what it has done")]
fn exits_of_every_kind_lose_nothing() {
    let (exits, next, sum) = (exits(), AtomicUsize::new(0), Arc::new(Mutex::new(Sum::default())));
    let work = || {
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= exits {
                return;
            }
            let sum = sum.clone();
            in_namespace(move || async move {
                let listener = listen()?;
                for n in first..exits.min(first + BATCH) {
                    exit_in_all_ways(&listener, n, &sum).await?;
                }
                Ok(())
            });
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    println!("{:?}", sum.lock().expect("no panic"));
}

/// Random numbers.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }
}

#[test]
fn peers_that_do_not_read_are_reported_to_the_byte() {
    in_namespace(|| async {
        // They read only after the network has given up.
        let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
        let network = namespace::network(true)?;
        let mut ends = Vec::new();
        let mut written = 0;
        for _ in 0..20 {
            let (accepted, opened) = tokio::try_join!(listener.accept(), TcpStream::connect(&network, kernels()))?;
            written += fill(&opened).await?;
            ends.push((accepted.0, opened));
        }
        let limit = Duration::from_secs(1);
        let lost = network.shutdown(limit).await.expect_err("nobody reads");
        assert_eq!(lost.connections, 20);
        let (accepted, _opened): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        let (bytes, fins) = within(read_all(accepted, &Arc::new(AtomicBool::new(true)))).await;
        assert_eq!((bytes as u64 + lost.bytes, fins), (written as u64, 0));
        Ok(())
    });
}

#[test]
fn a_stream_says_what_its_peer_never_got() {
    in_namespace(|| async {
        let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
        let network = namespace::network(true)?;
        let (accepted, opened) = tokio::try_join!(listener.accept(), TcpStream::connect(&network, kernels()))?;
        fill(&opened).await?;
        drop(accepted); // with unread data, so it resets
        let error = within(opened.closed()).await.expect_err("it was reset");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let lost = opened.info()?.unacknowledged.0;
        assert!(lost > 0);
        assert_eq!(error.to_string(), format!("connection reset by peer; {lost} bytes were not acknowledged"));
        assert_eq!(network.undelivered(), Undelivered { connections: 1, bytes: lost });
        let (accepted, opened) = tokio::try_join!(listener.accept(), TcpStream::connect(&network, kernels()))?;
        let ((mut accepted, _), mut opened) = (accepted, opened);
        opened.write_all(b"all of it").await?;
        let mut got = Vec::new();
        let (closed, read) = tokio::join!(opened.closed(), accepted.read_to_end(&mut got));
        closed?;
        assert_eq!(read?, 9);
        Ok(())
    });
}

/// Writes until neither the peer nor the send buffer takes any more; how many bytes.
async fn fill(stream: &TcpStream) -> io::Result<usize> {
    let mut written = 0;
    while tokio::time::timeout(Duration::from_millis(300), stream.writable()).await.is_ok() {
        match stream.try_write(&[1; 10_000]) {
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// A connection of the child, with everything written.
async fn write(network: &Network, len: usize) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(network, kernels()).await?;
    stream.write_all(&vec![7; len]).await?;
    Ok(stream)
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn report(lost: Undelivered) {
    println!("lost {}", lost.bytes);
}

/// What a child that waits for Ctrl-C prints once it has written everything.
const WRITTEN: &str = "written";

#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn say_written() {
    println!("{WRITTEN}");
}

/// The child: writes on its connections, and ends in the way that the parent has named.
fn child() {
    let how = std::env::var(HOW).expect("the parent has set it");
    let number = |name| -> usize { std::env::var(name).expect("the parent has set it").parse().expect("a number") };
    let (connections, len) = (number(COUNT), number(BYTES));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let pressed = Arc::new(Notify::new());
    if how == "signal-shutdown" {
        let pressed = pressed.clone();
        ctrlc::set_handler(move || pressed.notify_one()).expect("a handler");
    }
    runtime.block_on(async {
        let network = Network::builder(OURS).device("reknit0", KERNEL, 24).start().expect("a network");
        let tasks: Vec<_> = (0..connections)
            .map(|_| {
                let network = network.clone();
                tokio::spawn(async move { write(&network, len).await.expect("a connection") })
            })
            .collect();
        let mut streams = Vec::new();
        for task in tasks {
            streams.push(task.await.expect("no panic"));
        }
        end(&how, network, streams, &pressed).await;
    });
}

async fn end(how: &str, network: Network, streams: Vec<TcpStream>, pressed: &Notify) {
    let minute = Duration::from_mins(1);
    match how {
        "return" => {}
        "return-holding" => {
            tokio::spawn(async move {
                let _streams = streams;
                std::future::pending::<()>().await;
            });
        }
        "panic" => panic!("of the child"),
        "exit" => {
            report(network.undelivered());
            std::process::exit(0);
        }
        "shutdown-exit" => {
            network.shutdown(minute).await.expect("everything arrives");
            std::process::exit(0);
        }
        "closed-exit" => {
            for stream in &streams {
                stream.closed().await.expect("everything arrives");
            }
            std::process::exit(0);
        }
        "signal" => std::future::pending().await,
        "signal-shutdown" => {
            say_written();
            pressed.notified().await;
            network.shutdown(minute).await.expect("everything arrives");
            std::process::exit(0);
        }
        other => panic!("unknown end `{other}`"),
    }
}
