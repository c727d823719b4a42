//! A client, a gateway and a server, each in a network namespace that ends with the test, and a service as a process of its own.
#![expect(clippy::disallowed_methods, reason = "live tests measure time")]

use std::ffi::OsString;
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

/// Nothing takes longer on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(20);

/// The server.
pub const SERVER: &str = "10.2.0.2";
/// The client.
pub const CLIENT: &str = "10.1.0.2";
/// The server.
pub const SERVER_V6: &str = "fd02::2";

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace: a thread in it that does what others ask for.
pub struct Namespace {
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

    /// A thread that is in the namespace.
    pub fn id(&self) -> Pid {
        self.id
    }

    /// Runs `job` in the namespace, and returns what it returns.
    ///
    /// # Panics
    /// If that fails.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        self.jobs.send(Box::new(move || drop(tell.send(job())))).unwrap();
        told.recv().expect("the job panicked")
    }

    /// Runs a command in the namespace.
    ///
    /// # Panics
    /// If that fails.
    pub fn command(&self, line: &str) -> String {
        let line = line.to_owned();
        self.run(move || {
            let mut words = line.split_whitespace();
            let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        })
    }

    /// Runs `ip` in the namespace.
    ///
    /// # Panics
    /// If that fails.
    pub fn ip(&self, line: &str) -> String {
        self.command(&format!("ip {line}"))
    }

    fn set(&self, key: &'static str, value: &'static str) {
        self.run(move || std::fs::write(format!("/proc/sys/net/{key}"), value).unwrap());
    }

    /// Connects to the server, which says whom it sees.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn connect(&self, address: SocketAddr) -> io::Result<Connection> {
        self.run(move || Connection::open(address))
    }

    /// A server on this port.
    ///
    /// # Panics
    /// If that fails.
    pub fn serve(&self, port: u16) {
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
pub struct Connection {
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

    /// The client, as the server sees it.
    pub fn seen(&self) -> SocketAddr {
        self.seen
    }

    /// True if the server sees another port than the client's: two connections.
    ///
    /// # Panics
    /// If that fails.
    pub fn is_relayed(&self) -> bool {
        self.stream.get_ref().local_addr().unwrap() != self.seen
    }

    /// Asks for bytes and checks them.
    ///
    /// # Errors
    /// If the connection fails.
    ///
    /// # Panics
    /// If something else arrives.
    pub fn transfer(&mut self, count: usize) -> io::Result<()> {
        writeln!(self.stream.get_mut(), "{count}")?;
        let mut received = vec![0; count];
        self.stream.read_exact(&mut received)?;
        assert!(received == bytes(count), "other bytes arrive");
        Ok(())
    }

    /// Asks the server to reset the connection, and returns what it finds then.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn reset_by_server(mut self) -> io::Result<usize> {
        writeln!(self.stream.get_mut(), "reset")?;
        self.stream.read(&mut [0])
    }

    /// Ends the direction to the server, and waits for the end of the other.
    ///
    /// # Errors
    /// If the connection fails.
    ///
    /// # Panics
    /// If something else arrives.
    pub fn close(mut self) -> io::Result<()> {
        self.stream.get_ref().shutdown(std::net::Shutdown::Write)?;
        assert_eq!(self.stream.read(&mut [0])?, 0);
        Ok(())
    }
}

/// Client, gateway and server.
pub struct Network {
    /// The client.
    pub client: Namespace,
    /// What is between them.
    pub gateway: Namespace,
    /// The server.
    pub server: Namespace,
}

impl Network {
    /// The client has 10.1.0.2 and `fd01::2`, the server 10.2.0.2 and `fd02::2`, the gateway the first address of each network.
    ///
    /// # Panics
    /// If that fails.
    #[expect(clippy::new_without_default, reason = "it changes the machine")]
    pub fn new() -> Network {
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

/// A service as a process of its own: this test program once more, which runs only the test that becomes the service.
pub struct Service {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Service {
    /// Starts the test `test` of this program in the namespace, with a variable that tells it to be the service.
    ///
    /// # Panics
    /// If that fails.
    pub fn spawn(namespace: &Namespace, test: &'static str, variable: &'static str, value: OsString) -> Service {
        let mut child = namespace.run(move || {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", test, "--nocapture"]).env(variable, value);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let log = Arc::new(Mutex::new(Vec::new()));
        let (stderr, lines) = (child.stderr.take().unwrap(), log.clone());
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                lines.lock().unwrap().push(line);
            }
        });
        Service { child, log }
    }

    /// What it has written so far.
    ///
    /// # Panics
    /// If the thread that reads it has.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Waits for a line of the log.
    ///
    /// # Panics
    /// If it does not come.
    pub fn wait_for(&self, part: &str) {
        let until = Instant::now() + LIMIT;
        while !self.log().contains(part) {
            assert!(Instant::now() < until, "no `{part}` in:\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Waits for the end; true if it was a success.
    ///
    /// # Panics
    /// If it does not come.
    pub fn ended(&mut self) -> bool {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it, and waits for the end.
    ///
    /// # Panics
    /// If it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
