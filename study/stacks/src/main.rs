//! A stack in user space behind a TUN device: it accepts one connection, sends or receives for a while, and prints how many
//! bytes it wrote or read, and how many microseconds of processor time it took. `run.py` runs it.
//!
//! ```text
//! reknit-stacks reknit|reknit-offload|netstack|netstack-offload|smoltcp sends|receives SECONDS
//! ```

mod netstack;
mod smol;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use reknit_net::{Network, TcpListener, TcpStream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The device, the kernel's address on it, and that of the stack.
const DEVICE: &str = "stack0";
const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const STACK: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 88, 0, 2), 80);
/// Bytes of one call.
const CHUNK: usize = 1 << 18;
/// curl takes anything for the body of HTTP 0.9, but keeps what it reads up to the first line feed in a small buffer.
const FILL: u8 = b'\n';

/// What the stack does.
#[derive(Clone, Copy)]
struct Task {
    sends: bool,
    time: Duration,
}

/// The time and the processor time since the connection was accepted.
struct Meter {
    began: Instant,
    used: i64,
}

impl Meter {
    fn start() -> io::Result<Meter> {
        Ok(Meter { began: Instant::now(), used: used()? })
    }

    fn print(&self, bytes: usize) -> io::Result<()> {
        println!("{bytes} {}", used()? - self.used);
        Ok(())
    }
}

/// Microseconds of processor time of this process, in the kernel too.
fn used() -> io::Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok([usage.user_time(), usage.system_time()].iter().map(|time| time.tv_sec() * 1_000_000 + time.tv_usec()).sum())
}

/// `reknit emulate` waits for a program that listens, and cannot see a stack in user space: this is for it to see.
fn listening() -> io::Result<UdpSocket> {
    UdpSocket::bind("0.0.0.0:9")
}

/// Accepts a connection with reknit-net and its defaults.
async fn accept(offload: bool) -> io::Result<TcpStream> {
    let network = Network::builder((*STACK.ip()).into()).device(DEVICE, KERNEL.into(), 24).offload(offload).start()?;
    let listener = TcpListener::bind(&network, STACK.into())?;
    let _listening = listening()?;
    Ok(listener.accept().await?.0)
}

async fn transfer(mut stream: impl AsyncRead + AsyncWrite + Unpin, task: Task) -> io::Result<()> {
    let (meter, mut chunk, mut bytes) = (Meter::start()?, vec![FILL; CHUNK], 0);
    let act = async {
        loop {
            match if task.sends { stream.write(&chunk).await } else { stream.read(&mut chunk).await } {
                Ok(0) | Err(_) => return, // the peer's time has ended
                Ok(n) => bytes += n,
            }
        }
    };
    let _ = tokio::time::timeout(task.time, act).await;
    meter.print(bytes)
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stack, direction, seconds] = &arguments[..] else {
        return Err(io::Error::other("usage: reknit-stacks STACK sends|receives SECONDS"));
    };
    let time = Duration::from_secs(seconds.parse().map_err(io::Error::other)?);
    let task = Task { sends: direction == "sends", time };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let offload = stack.ends_with("-offload");
    match stack.trim_end_matches("-offload") {
        "reknit" => runtime.block_on(async { transfer(accept(offload).await?, task).await }),
        "netstack" => runtime.block_on(async { transfer(netstack::accept(offload).await?, task).await }),
        "smoltcp" => smol::run(task),
        _ => Err(io::Error::other(format!("{stack}: no such stack"))),
    }?;
    std::process::exit(0) // does not wait until everything is delivered
}
