//! TCP for a deterministic simulator: two hosts under virtual time, with ordinary async code. Hours take milliseconds, and the same
//! seed gives the same run.

use std::io;
use std::time::Duration;

use reknit_net::{ChannelIo, Network, TcpListener, TcpStream, channel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::Instant;

/// The one-way delay of the link.
const DELAY: Duration = Duration::from_millis(25);
/// One of this many packets is lost, and another one is late.
const ONE_IN: u64 = 100;
/// How late.
const LATE: Duration = Duration::from_millis(10);
const BYTES: usize = 2_000_000;

/// Random numbers from a seed (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// One direction of the link.
async fn link(mut from: Receiver<Vec<u8>>, to: Sender<Vec<u8>>, mut random: Random) {
    while let Some(packet) = from.recv().await {
        let late = match random.next() % ONE_IN {
            0 => continue, // lost
            1 => LATE,
            _ => Duration::ZERO,
        };
        let (to, at) = (to.clone(), Instant::now() + DELAY + late);
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            let _ = to.send(packet).await;
        });
    }
}

/// Two hosts at the ends of the link.
fn hosts(seed: u64) -> io::Result<(Network, Network)> {
    let ((one, to_one, from_one), (two, to_two, from_two)) = (channel(1500, 4096), channel(1500, 4096));
    tokio::spawn(link(from_one, to_two, Random(seed)));
    tokio::spawn(link(from_two, to_one, Random(!seed)));
    let host = |io: ChannelIo, n: u8| Network::builder([10, 0, 0, n].into()).secret([n; 32]).start_on(io);
    Ok((host(one, 1)?, host(two, 2)?))
}

/// A transfer: how long it takes, how many segments are retransmitted, and a digest of what arrives.
async fn transfer(seed: u64) -> io::Result<(Duration, u64, u64)> {
    let (client, server) = hosts(seed)?;
    let listener = TcpListener::bind(&server, "10.0.0.2:80".parse().expect("an address"))?;
    let began = Instant::now();
    let receiving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        io::Result::Ok(bytes)
    });
    let mut stream = TcpStream::connect(&client, "10.0.0.2:80".parse().expect("an address")).await?;
    let sent: Vec<u8> = (0..BYTES).map(|n| (n * 7 + n / 251) as u8).collect();
    stream.write_all(&sent).await?;
    stream.closed().await?;
    let took = began.elapsed();
    let received = receiving.await.map_err(io::Error::other)??;
    assert!(received == sent, "every byte arrives");
    let digest = received.iter().fold(seed, |digest, byte| digest.rotate_left(5) ^ u64::from(*byte));
    Ok((took, stream.info()?.sent.sent.retransmissions(), digest))
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_run() -> io::Result<()> {
    let mut runs = Vec::new();
    for seed in [1, 1, 2] {
        runs.push(transfer(seed).await?);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0].0, runs[2].0);
    assert!(runs[0].1 > 0 && runs[0].0 < Duration::from_mins(1), "{runs:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn days_pass_in_no_time() -> io::Result<()> {
    let (client, server) = hosts(3)?;
    let listener = TcpListener::bind(&server, "10.0.0.2:80".parse().expect("an address"))?;
    let opened = TcpStream::connect(&client, "10.0.0.2:80".parse().expect("an address"));
    let (accepted, mut stream) = tokio::try_join!(listener.accept(), opened)?;
    tokio::time::sleep(Duration::from_hours(72)).await;
    stream.write_all(b"still there").await?;
    stream.closed().await?;
    let mut bytes = String::new();
    let mut server = accepted.0;
    server.read_to_string(&mut bytes).await?;
    assert_eq!(bytes, "still there");
    Ok(())
}
