//! The kernel as the subject.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use crate::peer::CHUNK;
use crate::rate;

pub(crate) fn send(to: SocketAddr, time: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect(to)?;
    let (chunk, began) = (vec![1; CHUNK], Instant::now());
    while began.elapsed() < time {
        stream.write_all(&chunk)?;
    }
    Ok(())
}

pub(crate) fn receive(from: SocketAddr, time: Duration) -> io::Result<f64> {
    let mut stream = TcpStream::connect(from)?;
    let (mut buffer, mut total, began) = (vec![0; CHUNK], 0, Instant::now());
    while began.elapsed() < time {
        total += stream.read(&mut buffer)?;
    }
    Ok(rate(total, began.elapsed()))
}

pub(crate) fn many(to: SocketAddr, flows: usize, each: usize) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let tasks = (0..flows).map(|_| {
            tokio::spawn(async move {
                let mut stream = tokio::net::TcpStream::connect(to).await?;
                stream.write_all(&vec![1; each]).await
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.map_err(io::Error::other)??;
        }
        Ok(())
    })
}

pub(crate) fn ping(to: SocketAddr, trips: usize) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let mut byte = [1; 1];
    (0..trips)
        .map(|_| {
            let began = Instant::now();
            stream.write_all(&byte)?;
            stream.read_exact(&mut byte)?;
            Ok(began.elapsed())
        })
        .collect()
}
