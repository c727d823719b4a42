//! Clients that transfer data and compare it.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::server::{self, SERVER};

const CLIENTS: usize = 8;
const LEN: usize = 200_000;
/// What is transferred before each pause.
const PIECE: usize = 20_000;
const PAUSE: Duration = Duration::from_millis(10);
/// The longest that a client waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// The addresses of connections that are open now: what an attacker knows who sees the traffic.
pub(crate) type Open = Arc<Mutex<BTreeSet<SocketAddr>>>;

/// How long each transfer took; none if it was not complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers(Vec<Option<Duration>>);

impl Transfers {
    pub(crate) fn all(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn complete(&self) -> usize {
        self.0.iter().flatten().count()
    }

    pub(crate) fn longest(&self) -> Duration {
        self.0.iter().flatten().copied().max().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        let mut times: Vec<Duration> = self.0.iter().flatten().copied().collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

pub(crate) struct Clients {
    threads: Vec<JoinHandle<Transfers>>,
    open: Open,
}

impl Clients {
    /// They begin no transfer after this time.
    pub(crate) fn start(time: Duration) -> Clients {
        let open = Open::default();
        let threads = (0..CLIENTS).map(|_| {
            let open = open.clone();
            thread::spawn(move || transfer_again(time, &open))
        });
        Clients { threads: threads.collect(), open }
    }

    pub(crate) fn open(&self) -> Open {
        self.open.clone()
    }

    pub(crate) fn wait(self) -> io::Result<Transfers> {
        let mut all = Transfers::default();
        for thread in self.threads {
            all.0.extend(thread.join().map_err(|_| io::Error::other("a client has panicked"))?.0);
        }
        Ok(all)
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn transfer_again(time: Duration, open: &Open) -> Transfers {
    let (began, mut transfers) = (Instant::now(), Transfers::default());
    while began.elapsed() < time {
        let start = Instant::now();
        let is_down = transfers.0.len().is_multiple_of(2);
        let result = transfer(is_down, open, start);
        let took = start.elapsed();
        if let Err(error) = &result {
            eprintln!("a transfer failed after {took:?}: {error}");
        }
        transfers.0.push(result.is_ok().then_some(took).filter(|took| *took <= PATIENCE));
    }
    transfers
}

fn transfer(is_down: bool, open: &Open, began: Instant) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&SERVER, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let local = stream.local_addr()?;
    open.lock().unwrap_or_else(PoisonError::into_inner).insert(local);
    let result = if is_down { download(&mut stream, began) } else { upload(&mut stream, began) };
    open.lock().unwrap_or_else(PoisonError::into_inner).remove(&local);
    result
}

/// A pause between two pieces, unless the transfer takes too long already.
fn pause(began: Instant) -> io::Result<()> {
    sleep(PAUSE);
    if began.elapsed() > PATIENCE { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
}

fn download(stream: &mut TcpStream, began: Instant) -> io::Result<()> {
    stream.write_all(&server::request(b'd', LEN as u32))?;
    let mut piece = vec![0; PIECE];
    for _ in 0..LEN / PIECE {
        stream.read_exact(&mut piece)?;
        if piece.iter().any(|byte| *byte != server::BYTE) {
            return Err(io::Error::other("other data"));
        }
        pause(began)?;
    }
    if stream.read(&mut piece)? > 0 { Err(io::Error::other("more data")) } else { Ok(()) }
}

fn upload(stream: &mut TcpStream, began: Instant) -> io::Result<()> {
    stream.write_all(&server::request(b'u', LEN as u32))?;
    let piece = vec![server::BYTE; PIECE];
    for _ in 0..LEN / PIECE {
        stream.write_all(&piece)?;
        pause(began)?;
    }
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    if u32::from_be_bytes(answer) as usize == LEN { Ok(()) } else { Err(io::Error::other("less data has arrived")) }
}
