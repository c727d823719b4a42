//! A client, a gateway and a server, each in a network namespace that ends with the test, and a proxy as a process of its own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Linger;
use nix::unistd::{Pid, gettid};
use reknit_testkit::machine;

/// The variable that turns a test program into a proxy: its settings.
const SETTINGS: &str = "REKNIT_PROXY_TEST_SETTINGS";
/// Nothing takes longer on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) const SERVER: &str = "10.2.0.2";
pub(crate) const CLIENT: &str = "10.1.0.2";
pub(crate) const SERVER_V6: &str = "fd02::2";

/// True if the machine has what these tests need.
pub(crate) fn can_run() -> bool {
    machine::has(&["root", "/dev/net/tun", "ip", "nft"])
}

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace: a thread in it that does what others ask for.
pub(crate) struct Namespace {
    id: Pid,
    jobs: Sender<Job>,
}

impl Namespace {
    fn new() -> Namespace {
        let (jobs, todo) = channel::<Job>();
        let (tell, told) = channel();
        thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            tell.send(gettid()).unwrap();
            for job in todo {
                job();
            }
        });
        let namespace = Namespace { id: told.recv().unwrap(), jobs };
        namespace.ip("link set lo up");
        namespace
    }

    /// Runs `job` in the namespace, and returns what it returns.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        self.jobs.send(Box::new(move || drop(tell.send(job())))).unwrap();
        told.recv().expect("the job panicked")
    }

    /// Runs a command in the namespace.
    pub(crate) fn command(&self, line: &str) -> String {
        let line = line.to_owned();
        self.run(move || {
            let mut words = line.split_whitespace();
            let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        })
    }

    pub(crate) fn ip(&self, line: &str) -> String {
        self.command(&format!("ip {line}"))
    }

    fn set(&self, key: &'static str, value: &'static str) {
        self.run(move || std::fs::write(format!("/proc/sys/net/{key}"), value).unwrap());
    }

    /// Connects to the server, which says whom it sees.
    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<Connection> {
        self.run(move || Connection::open(address))
    }

    /// A server on this port.
    pub(crate) fn serve(&self, port: u16) {
        self.run(move || {
            let listener = TcpListener::bind((IpAddr::from([0_u16; 8]), port)).unwrap();
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    thread::spawn(|| answer(stream));
                }
            });
        });
    }
}

/// Says whom it sees, and sends as many bytes as each line asks for.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    let peer = stream.peer_addr()?;
    writeln!(stream, "{}", SocketAddr::new(peer.ip().to_canonical(), peer.port()))?;
    let lines = BufReader::new(stream.try_clone()?).lines();
    for line in lines {
        let line = line?;
        if line == "reset" {
            setsockopt(&stream, Linger, &libc::linger { l_onoff: 1, l_linger: 0 })?;
            break;
        }
        let count: usize = line.parse().map_err(io::Error::other)?;
        stream.write_all(&bytes(count))?;
    }
    Ok(())
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

/// A connection to the server.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    /// The client, as the server sees it.
    seen: SocketAddr,
}

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, LIMIT)?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut stream = BufReader::new(stream);
        let mut seen = String::new();
        stream.read_line(&mut seen)?;
        let seen = seen.trim().parse().map_err(io::Error::other)?;
        Ok(Connection { stream, seen })
    }

    pub(crate) fn seen(&self) -> SocketAddr {
        self.seen
    }

    /// True if the server sees another port than the client's: two connections.
    pub(crate) fn is_relayed(&self) -> bool {
        self.stream.get_ref().local_addr().unwrap() != self.seen
    }

    /// Asks for bytes and checks them.
    pub(crate) fn transfer(&mut self, count: usize) -> io::Result<()> {
        writeln!(self.stream.get_mut(), "{count}")?;
        let mut received = vec![0; count];
        self.stream.read_exact(&mut received)?;
        assert!(received == bytes(count), "other bytes arrive");
        Ok(())
    }

    /// Asks the server to reset the connection, and returns what it finds then.
    pub(crate) fn reset_by_server(mut self) -> io::Result<usize> {
        writeln!(self.stream.get_mut(), "reset")?;
        self.stream.read(&mut [0])
    }

    /// Ends the direction to the server, and waits for the end of the other.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.stream.get_ref().shutdown(std::net::Shutdown::Write)?;
        assert_eq!(self.stream.read(&mut [0])?, 0);
        Ok(())
    }
}

/// Client, gateway and server.
pub(crate) struct Network {
    pub(crate) client: Namespace,
    pub(crate) gateway: Namespace,
    pub(crate) server: Namespace,
}

impl Network {
    /// The client has 10.1.0.2 and `fd01::2`, the server 10.2.0.2 and `fd02::2`, the gateway the first address of each network.
    pub(crate) fn new() -> Network {
        let network = Network { client: Namespace::new(), gateway: Namespace::new(), server: Namespace::new() };
        let gateway = &network.gateway;
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            gateway.set(key, "1");
        }
        for (n, host) in [(1, &network.client), (2, &network.server)] {
            gateway.ip(&format!("link add side{n} type veth peer name eth0 netns {}", host.id));
            gateway.ip(&format!("address add 10.{n}.0.1/24 dev side{n}"));
            gateway.ip(&format!("address add fd0{n}::1/64 dev side{n} nodad"));
            gateway.ip(&format!("link set side{n} up"));
            host.ip(&format!("address add 10.{n}.0.2/24 dev eth0"));
            host.ip(&format!("address add fd0{n}::2/64 dev eth0 nodad"));
            host.ip("link set eth0 up");
            host.ip(&format!("route add default via 10.{n}.0.1"));
            host.ip(&format!("-6 route add default via fd0{n}::1"));
        }
        network
    }
}

/// A running proxy.
pub(crate) struct Proxy {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

/// Runs the proxy if this process is to be one. The first test of each program calls it.
pub(crate) fn be_a_proxy() {
    if let Some(file) = std::env::var_os(SETTINGS) {
        let load = || {
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            reknit_proxy::Settings::parse("proxy.toml", &text).map_err(|error| error.to_string())
        };
        let ended = reknit_proxy::run(load);
        if let Err(error) = &ended {
            eprintln!("error: {error}");
        }
        std::process::exit(i32::from(ended.is_err()));
    }
}

impl Proxy {
    /// Starts a proxy with the settings in `file`, and waits until it listens.
    pub(crate) fn start(namespace: &Namespace, file: &std::path::Path) -> Proxy {
        let proxy = Proxy::spawn(namespace, file);
        proxy.wait_for("event=listening");
        proxy
    }

    pub(crate) fn spawn(namespace: &Namespace, file: &std::path::Path) -> Proxy {
        let file = file.to_owned();
        let mut child = namespace.run(move || {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "proxy_process", "--nocapture"]).env(SETTINGS, file);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let log = Arc::new(Mutex::new(Vec::new()));
        let (stderr, lines) = (child.stderr.take().unwrap(), log.clone());
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                lines.lock().unwrap().push(line);
            }
        });
        Proxy { child, log }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Waits for a line of the log.
    pub(crate) fn wait_for(&self, part: &str) {
        let until = Instant::now() + LIMIT;
        while !self.log().contains(part) {
            assert!(Instant::now() < until, "no `{part}` in:\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Waits for the end; true if it was a success.
    pub(crate) fn ended(&mut self) -> bool {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().unwrap();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
