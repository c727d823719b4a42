//! Programs that end while data is on its way: nothing is lost, or the program has been told how much.
//!
//! Each test starts this file again as a child process in its own namespace, with the kernel as the peer: a test that finds
//! [`HOW`] in its environment is the child.

mod namespace;

use std::io;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
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
/// On how many connections it writes.
const COUNT: &str = "REKNIT_CONNECTIONS";

fn kernels() -> SocketAddr {
    (KERNEL, PORT).into()
}

/// Starts the child.
fn start(how: &str, connections: usize) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["main_returns", "--exact", "--nocapture"])
        .env(HOW, how)
        .env(COUNT, connections.to_string())
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

/// Reads to the end of all connections; how many bytes there were, and how many have ended with a FIN.
async fn read_all(streams: Vec<KernelStream>) -> (usize, usize) {
    let tasks = streams.into_iter().map(|mut stream| {
        tokio::spawn(async move {
            let (mut total, mut buffer) = (0, vec![0; 1 << 16]);
            loop {
                match tokio::time::timeout(Duration::from_secs(5), stream.read(&mut buffer)).await {
                    Ok(Ok(0)) => return (total, 1),
                    Ok(Ok(n)) => total += n,
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

/// Runs a child, and reads what it sends `after` its start; the bytes, the connections that ended with a FIN, and what the
/// child has reported as lost.
async fn run(how: &str, connections: usize, after: Duration) -> io::Result<(usize, usize, Option<usize>)> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind((std::net::Ipv4Addr::UNSPECIFIED, PORT).into())?;
    let listener = socket.listen(4096)?;
    let child = start(how, connections)?;
    let streams = within(accept(&listener, connections)).await?;
    if how.starts_with("signal") {
        tokio::time::sleep(Duration::from_millis(500)).await;
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT)?;
    }
    let waiting = tokio::task::spawn_blocking(|| reported(child));
    tokio::time::sleep(after).await;
    let (bytes, fins) = within(read_all(streams)).await;
    Ok((bytes, fins, waiting.await.map_err(io::Error::other)?))
}

/// Everything must arrive, with its end.
fn loses_nothing(how: &'static str, connections: usize) {
    if std::env::var_os(HOW).is_some() {
        return child();
    }
    in_namespace(move || async move {
        let (bytes, fins, reported) = run(how, connections, Duration::from_millis(300)).await?;
        assert_eq!((bytes, fins), (connections * LEN, connections), "{how}");
        assert_eq!(reported.unwrap_or(0), 0, "{how}");
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
        let (bytes, fins, reported) = run("exit", 5, Duration::from_millis(300)).await?;
        let lost = reported.expect("the child has asked");
        assert!(lost > 0 && bytes + lost >= 5 * LEN, "{bytes} arrived, {lost} were reported");
        assert_eq!(fins, 0, "the peers take_sent nothing");
        Ok(())
    });
}

#[test]
fn ctrl_c_without_a_shutdown_is_silence() {
    in_namespace(|| async {
        let (bytes, fins, reported) = run("signal", 5, Duration::from_millis(300)).await?;
        assert!(bytes < 5 * LEN && fins == 0 && reported.is_none(), "{bytes} arrived");
        Ok(())
    });
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
        let (bytes, fins) = within(read_all(accepted)).await;
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
async fn write(network: &Network) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(network, kernels()).await?;
    stream.write_all(&vec![7; LEN]).await?;
    Ok(stream)
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn report(lost: Undelivered) {
    println!("lost {}", lost.bytes);
}

/// The child: writes on its connections, and ends in the way that the parent has named.
fn child() {
    let how = std::env::var(HOW).expect("the parent has set it");
    let connections: usize = std::env::var(COUNT).expect("the parent has set it").parse().expect("a number");
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
                tokio::spawn(async move { write(&network).await.expect("a connection") })
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
            pressed.notified().await;
            network.shutdown(minute).await.expect("everything arrives");
            std::process::exit(0);
        }
        other => panic!("unknown end `{other}`"),
    }
}
