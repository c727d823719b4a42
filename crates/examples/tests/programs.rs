//! The programs with this machine's kernel, `curl` and `dig`, in network namespaces.

use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use boringtun::noise::Tunn;
use boringtun::x25519::{PublicKey, StaticSecret};
use fast_socks5::server::{Socks5ServerProtocol, run_tcp_proxy, run_udp_proxy};
use fast_socks5::{ReplyError, Socks5Command, server::DnsResolveHelper};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, gettid};
use reknit_examples::tunnel;
use reknit_net::{Network, TcpStream, UdpSocket};
use reknit_testkit::machine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream as KernelStream, UdpSocket as KernelSocket};

/// A server on the Internet, so to speak.
const SERVER: &str = "203.0.113.5";
const SERVER_6: &str = "2001:db8::5";
/// The ends of the cable between the two namespaces.
const NEAR: &str = "10.1.0.1";
const FAR: &str = "10.1.0.2";
const BYTES: usize = 3_000_000;
/// Nothing takes this long.
const LIMIT: Duration = Duration::from_mins(1);

/// A program under test, which ends with this value.
struct Program(Child);

impl Program {
    /// Starts it, and waits until it has said so.
    fn start(path: &str, arguments: &[&str]) -> Program {
        let mut child = Command::new(path).args(arguments).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        stderr.read_line(&mut line).expect("a line");
        assert!(!line.starts_with("Error"), "{line}");
        thread::spawn(move || io::copy(&mut stderr, &mut io::stderr()));
        Program(child)
    }

    /// Ctrl-C.
    fn interrupt(mut self) {
        kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGINT).expect("it runs");
        assert!(self.0.wait().expect("it ends").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// `ip`, with these words.
fn ip(command: &str) {
    let output = run("ip", &command.split(' ').collect::<Vec<&str>>());
    assert!(output.status.success(), "ip {command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs `test` in a thread with an empty network namespace.
fn in_namespace<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> thread::JoinHandle<R> {
    thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
        ip("link set lo up");
        test()
    })
}

fn join<R>(thread: thread::JoinHandle<R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `future`, with a limit.
fn block_on<R>(future: impl Future<Output = io::Result<R>>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let limited = runtime.block_on(async { tokio::time::timeout(LIMIT, future).await });
    limited.expect("it ends in time").expect("it succeeds")
}

fn body(port: u16) -> Vec<u8> {
    (0..BYTES).map(|n| (n * 7 + n / 251 + usize::from(port)) as u8).collect()
}

/// An HTTP server whose only page depends on its port.
async fn serve_http(address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (mut stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let _ = stream.read(&mut [0; 4096]).await; // the request
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body(address.port())).await?;
            stream.shutdown().await
        });
    }
}

/// A DNS server that answers every question with 192.0.2.99.
async fn serve_dns(address: SocketAddr) -> io::Result<()> {
    let socket = KernelSocket::bind(address).await?;
    let mut bytes = [0; 1500];
    loop {
        let (len, client) = socket.recv_from(&mut bytes).await?;
        let question_len = 12 + bytes[12..len].iter().position(|byte| *byte == 0).unwrap_or(0) + 5;
        let mut answer = bytes[..question_len].to_vec();
        answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]); // one question, one answer
        answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 99]);
        socket.send_to(&answer, client).await?;
    }
}

/// A SOCKS5 server.
async fn serve_socks(address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let protocol = Socks5ServerProtocol::accept_no_auth(stream).await?;
            let (protocol, command, target) = protocol.read_command().await?.resolve_dns().await?;
            match command {
                Socks5Command::TCPConnect => drop(run_tcp_proxy(protocol, &target, LIMIT, false).await?),
                Socks5Command::UDPAssociate => {
                    drop(run_udp_proxy(protocol, &target, None, address.ip(), None).await?);
                }
                Socks5Command::TCPBind => protocol.reply_error(&ReplyError::CommandNotSupported).await?,
            }
            Ok::<(), fast_socks5::SocksError>(())
        });
    }
}

fn at(ip: &str, port: u16) -> SocketAddr {
    SocketAddr::new(ip.parse().expect("an address"), port)
}

/// The far namespace: SOCKS, HTTP and DNS servers, until `stop` is dropped.
fn far(tell: &mpsc::Sender<Pid>, wired: &mpsc::Receiver<()>, stop: tokio::sync::oneshot::Receiver<()>) {
    tell.send(gettid()).expect("the test waits");
    wired.recv().expect("the cable is there");
    for command in [
        "address add 10.1.0.2/24 dev far",
        "link set far up",
        "address add 203.0.113.5/32 dev lo",
        "-6 address add 2001:db8::5/128 dev lo nodad",
    ] {
        ip(command);
    }
    block_on(async {
        tokio::select! {
            ended = serve_socks(at(FAR, 1080)) => ended,
            ended = serve_http(at(SERVER, 80)) => ended,
            ended = serve_http(at(SERVER_6, 80)) => ended,
            ended = serve_dns(at(SERVER, 53)) => ended,
            _ = stop => Ok(()),
        }
    });
}

#[test]
fn curl_and_dig_go_through_a_socks_server() {
    if !machine::has(&["root", "/dev/net/tun", "ip", "curl", "dig"]) {
        return;
    }
    let (tell, told) = mpsc::channel();
    let (wire, wired) = mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let far = in_namespace(move || far(&tell, &wired, stopped));
    let near = in_namespace(move || {
        ip(&format!("link add near type veth peer name far netns {}", told.recv().expect("the far thread")));
        ip(&format!("address add {NEAR}/24 dev near"));
        ip("link set near up");
        wire.send(()).expect("the far thread");
        let program = Program::start(env!("CARGO_BIN_EXE_tun2socks"), &[&format!("{FAR}:1080"), "tun0"]);
        ip("route add 203.0.113.0/24 dev tun0");
        ip("-6 route add 2001:db8::/32 dev tun0");
        let retries = ["--retry", "20", "--retry-delay", "1", "--retry-connrefused", "--retry-all-errors", "-s"];
        for url in [format!("http://{SERVER}/"), format!("http://[{SERVER_6}]/")] {
            let output = run("curl", &[&retries[..], &["-m", "30", &url]].concat());
            assert!(output.status.success(), "{url}: {:?}", output.status);
            assert!(output.stdout == body(80), "{url}: {} bytes", output.stdout.len());
        }
        let refused = run("curl", &["-s", "-m", "20", &format!("http://{SERVER}:81/")]);
        assert_eq!(refused.status.code(), Some(7), "curl: could not connect");
        for _ in 0..3 {
            let output = run("dig", &[&format!("@{SERVER}"), "+short", "+tries=3", "+time=5", "name.example", "A"]);
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "192.0.2.99");
        }
        program.interrupt();
        drop(stop);
    });
    join(near);
    join(far);
}

#[test]
fn a_wireguard_peer_reaches_servers_through_the_exit() {
    if !machine::has(&["root", "ip"]) {
        return;
    }
    join(in_namespace(|| {
        ip("address add 203.0.113.5/32 dev lo");
        let (ours, theirs) = (StaticSecret::from([7; 32]), StaticSecret::from([9; 32]));
        let hexadecimal = |bytes: &[u8; 32]| bytes.map(|byte| format!("{byte:02x}")).concat();
        let (private, public) = (hexadecimal(theirs.as_bytes()), hexadecimal(PublicKey::from(&ours).as_bytes()));
        let exit = Program::start(env!("CARGO_BIN_EXE_wireguard-exit"), &["127.0.0.1:51820", &private, &public]);
        block_on(async {
            tokio::select! {
                ended = serve_http(at(SERVER, 80)) => ended,
                ended = serve_dns(at(SERVER, 53)) => ended,
                ended = visit(Tunn::new(ours, PublicKey::from(&theirs), None, None, 2, None)) => ended,
            }
        });
        exit.interrupt();
    }));
}

/// What a host behind the tunnel does.
async fn visit(tunn: Tunn) -> io::Result<()> {
    let socket = KernelSocket::bind("127.0.0.1:0").await?;
    let (io, to_network, from_network) = reknit_net::channel(1420, 512);
    let own: IpAddr = [10, 8, 0, 2].into();
    let network = Network::builder(own).start_on(io)?;
    tokio::spawn(tunnel(tunn, socket, Some(at("127.0.0.1", 51820)), to_network, from_network));
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&network, at(SERVER, 80)).await?;
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
        let mut page = Vec::new();
        stream.read_to_end(&mut page).await?;
        assert!(page.ends_with(&body(80)), "{} bytes", page.len());
    }
    let refused = TcpStream::connect(&network, at(SERVER, 81)).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    let socket = UdpSocket::bind(&network, SocketAddr::new(own, 0))?;
    let query = [&[1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'x', 0][..], &[0, 1, 0, 1]].concat();
    socket.send_to(&query, at(SERVER, 53)).await?;
    let mut answer = [0; 100];
    let (len, from) = socket.recv_from(&mut answer).await?;
    assert_eq!((from, &answer[len - 4..len]), (at(SERVER, 53), &[192, 0, 2, 99][..]));
    Ok(())
}

#[test]
fn ports_are_forwarded_one_by_one() {
    if !machine::has(&["root", "/dev/net/tun", "ip", "curl"]) {
        return;
    }
    join(in_namespace(|| {
        let program =
            Program::start(env!("CARGO_BIN_EXE_port-forward"), &["10.77.0.2", "8000-8099", "127.0.0.1:9000", "linux"]);
        block_on(async {
            tokio::select! {
                ended = serve_http(at("127.0.0.1", 9000)) => ended,
                ended = serve_http(at("127.0.0.1", 9005)) => ended,
                ended = fetch() => ended,
            }
        });
        program.interrupt();
    }));
}

async fn fetch() -> io::Result<()> {
    KernelStream::connect(at("10.77.0.2", 8099)).await?; // the server refuses, and the connection ends
    for port in [8000, 8005] {
        let url = format!("http://10.77.0.2:{port}/");
        let output = tokio::process::Command::new("curl").args(["-s", "-m", "30", &url]).output().await?;
        assert!(output.status.success() && output.stdout == body(port + 1000), "{url}: {:?}", output.status);
    }
    Ok(())
}
