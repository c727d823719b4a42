//! reknit-net as the subject.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reknit_net::{Network, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::links::{Link, PEER, SUBJECT};
use crate::peer::CHUNK;
use crate::rate;

/// Runs `act` with a network in a runtime of one thread.
fn with_network<R, F: Future<Output = io::Result<R>>>(link: Link, act: impl FnOnce(Network) -> F) -> io::Result<R> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let offload = link == Link::Tun { offload: true };
        act(Network::builder(SUBJECT.into()).device("reknit0", PEER.into(), 24).offload(offload).start()?).await
    })
}

pub(crate) fn send(link: Link, to: SocketAddr, time: Duration) -> io::Result<()> {
    with_network(link, |network| async move {
        let mut stream = TcpStream::connect(&network, to).await?;
        let (chunk, began) = (vec![1; CHUNK], Instant::now());
        while began.elapsed() < time {
            stream.write_all(&chunk).await?;
        }
        end(stream).await
    })
}

/// Sends the end, and waits for that of the peer: the runtime must not end before.
async fn end(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

pub(crate) fn receive(link: Link, from: SocketAddr, time: Duration) -> io::Result<f64> {
    with_network(link, |network| async move {
        let mut stream = TcpStream::connect(&network, from).await?;
        let (mut buffer, mut total, began) = (vec![0; CHUNK], 0, Instant::now());
        while began.elapsed() < time {
            total += stream.read(&mut buffer).await?;
        }
        let rate = rate(total, began.elapsed());
        drop(stream);
        // The reset is sent before the runtime ends.
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok(rate)
    })
}

pub(crate) fn many(link: Link, to: SocketAddr, flows: usize, each: usize) -> io::Result<()> {
    with_network(link, |network| async move {
        let tasks = (0..flows).map(|_| {
            let network = network.clone();
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(&network, to).await?;
                stream.write_all(&vec![1; each]).await?;
                end(stream).await
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.map_err(io::Error::other)??;
        }
        Ok(())
    })
}

pub(crate) fn ping(link: Link, to: SocketAddr, trips: usize) -> io::Result<Vec<Duration>> {
    with_network(link, |network| async move {
        let mut stream = TcpStream::connect(&network, to).await?;
        stream.set_nodelay(true)?;
        let (mut byte, mut times) = ([1; 1], Vec::with_capacity(trips));
        for _ in 0..trips {
            let began = Instant::now();
            stream.write_all(&byte).await?;
            stream.read_exact(&mut byte).await?;
            times.push(began.elapsed());
        }
        end(stream).await?;
        Ok(times)
    })
}
