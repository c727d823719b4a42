//! The server: a child process, so that its memory is its own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use reknit_net::{Bytes, Network, TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The kernel's address on the device, and the server's.
const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
pub(crate) const SERVER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 2), 80));
/// What all connections may hold.
pub(crate) const MAX_MEMORY: u64 = 64 << 20;
/// What each may have beyond: when no memory is left, and when it is idle.
const EACH: u64 = (12 + 4) << 10;
/// All data consists of it.
pub(crate) const BYTE: u8 = b'r';
static DATA: [u8; 1 << 16] = [BYTE; 1 << 16];

/// A request: `d` asks for so many bytes and the end, `o` for the same and nothing after it, `u` announces so many.
pub(crate) fn request(kind: u8, len: u32) -> [u8; 5] {
    let [a, b, c, d] = len.to_be_bytes();
    [kind, a, b, c, d]
}

/// What the server had at its peak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) grown: u64,
    pub(crate) sockets: u64,
}

impl Memory {
    pub(crate) fn budget(&self) -> u64 {
        MAX_MEMORY + self.sockets * EACH
    }
}

pub(crate) struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    before: u64,
}

impl Server {
    /// Starts it in this thread's namespace.
    pub(crate) fn start() -> io::Result<Server> {
        let mut child =
            Command::new(std::env::current_exe()?).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut server = Server { child, output: BufReader::new(output), before: 0 };
        server.line()?; // it listens
        server.before = server.status("VmRSS:")?;
        Ok(server)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// A line of what the kernel knows about it, in bytes.
    fn status(&self, name: &str) -> io::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().split(' ').next()).and_then(|kib| kib.parse::<u64>().ok());
        kib.map(|kib| kib << 10).ok_or_else(|| io::Error::other(format!("{name} is missing")))
    }

    pub(crate) fn stop(mut self) -> io::Result<Memory> {
        let grown = self.status("VmHWM:")?.saturating_sub(self.before);
        drop(self.child.stdin.take()); // it ends
        let sockets = self.line()?.parse().map_err(io::Error::other)?;
        self.child.wait()?;
        Ok(Memory { grown, sockets })
    }
}

/// The process of the server, until its standard input ends.
pub(crate) fn serve() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let sockets = runtime.block_on(async {
        let network = Network::builder(SERVER.ip())
            .device("reknit0", KERNEL, 24)
            .stack_options(|options| options.max_memory = Bytes(MAX_MEMORY))
            .start()?;
        let listener = TcpListener::bind(&network, SERVER)?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream));
            }
        });
        writeln!(io::stdout(), "ready")?;
        let ended = tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new()));
        let mut most = 0;
        while !ended.is_finished() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            most = most.max(network.sockets());
        }
        io::Result::Ok(most)
    })?;
    writeln!(io::stdout(), "{sockets}")?;
    std::process::exit(0) // attackers would keep it from ending
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut request = [0; 5];
    stream.read_exact(&mut request).await?;
    let [kind, len @ ..] = request;
    let len = u32::from_be_bytes(len) as usize;
    if kind == b'u' {
        let mut buffer = vec![0; 1 << 14];
        let mut left = len;
        while left > 0 {
            match stream.read(&mut buffer).await? {
                n if n > 0 && buffer[..n].iter().all(|byte| *byte == BYTE) => left -= n,
                _ => return Ok(()),
            }
        }
        stream.write_all(&(len as u32).to_be_bytes()).await?;
        return stream.shutdown().await;
    }
    let mut left = len;
    while left > 0 {
        left -= stream.write(&DATA[..left.min(DATA.len())]).await?;
    }
    stream.shutdown().await?;
    if kind == b'd' {
        // The end of what the client sends.
        let _ = stream.read(&mut [0; 1]).await?;
    }
    Ok(())
}
